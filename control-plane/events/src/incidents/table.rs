//! The incidents that are held, by whose they are and by age.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use base::crowd::{Crowd, Place as Origin};
use serde_json::Value;

use super::counted::Counted;
use super::{Incident, IncidentLimits, IncidentState, SharedText, Texts, TimelineEntry, fresh, identity, merge};
use crate::event::{SecurityEvent, timestamp_millis};
use store::fabric::{MergeIncident, Workflow};

/// The forgotten incidents that the store is told of at a time, at most.
const MAX_REMOVED: usize = 100_000;

/// The incident of each identity.
#[derive(Debug, Default)]
pub(crate) struct Incidents {
    /// As they are configured now.
    limits: IncidentLimits,
    /// Shared with lists that are being read: such a one is copied when an event changes it.
    by_key: HashMap<SharedText, Arc<Incident>>,
    /// The same by (last seen, key): lists begin at the newest, and those longest silent are forgotten first.
    by_age: BTreeMap<(u64, SharedText), Arc<Incident>>,
    /// The same by where they are from: of a network that has more than its share, its own give way where there are too many.
    crowd: Crowd<SharedText>,
    /// Those that are not in the crowd any more because they were acknowledged when they would have given way.
    spared: BTreeSet<(u64, SharedText)>,
    texts: Texts,
    /// What operators made of them; none is open.
    workflows: HashMap<String, Workflow>,
    workflow_changes: u64,
    /// What was counted in since the store was told, of each incident that it concerns: several control planes add to one.
    parts: HashMap<SharedText, Incident>,
    /// Those that were forgotten, each with its last event.
    removed: HashMap<SharedText, u64>,
    /// States that an event has cleared, with the time at which they were set.
    cleared: HashMap<String, u64>,
}

/// Where an event stands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// The incident's id.
    pub id: String,
    /// How many events it has, this one included.
    pub count: u64,
    /// It was resolved until this event came.
    pub reopened: bool,
}

/// What the store does not have yet.
#[derive(Debug, Default)]
pub(crate) struct Unsaved {
    pub(crate) added: Vec<Incident>,
    pub(crate) removed: Vec<(String, u64)>,
    pub(crate) cleared: Vec<(String, u64)>,
}

impl Incidents {
    /// Applies these limits from here on.
    pub(crate) fn limit(&mut self, limits: IncidentLimits) {
        self.limits = limits;
    }

    /// Counts an event in; answers its place. An event that names no identity belongs to no incident.
    /// `ipv6_prefix` is the width of the networks that callers of IPv6 are judged by.
    pub(crate) fn record(&mut self, event: SecurityEvent, ipv6_prefix: u8, now: u64) -> Option<Place> {
        let identity = identity(&event.source, ipv6_prefix)?;
        let key = SharedText::from(format!("{}:{}", identity.kind, identity.value));
        // A node's clock may be wrong; its events still belong where they arrive.
        let window = self.limits.window;
        let at = timestamp_millis(&event.timestamp).filter(|&at| at <= now && now - at <= window).unwrap_or(now);
        let held = self.let_go(&key);
        let mut incident = match held.filter(|held| at.saturating_sub(held.last_seen) <= window) {
            Some(held) => held,
            None => {
                self.parts.remove(&key);
                self.make_room(now);
                Arc::new(fresh(&event, &key, identity, at))
            }
        };
        let key = incident.key.clone();
        let part = self.parts.entry(key.clone()).or_insert_with(|| incident.nothing_yet(at));
        let counted = Counted::of(event, at, &mut self.texts);
        part.count_in(&counted, self.limits.timeline);
        // Copied where a list that is being read has it as well.
        let counting = Arc::make_mut(&mut incident);
        counting.count_in(&counted, self.limits.timeline);
        if counted.signals.is_some() {
            counting.signals = counted.signals;
        }
        let reopened = self.reopen(&key, now);
        let place = Place { id: incident.id.to_string(), count: incident.count, reopened };
        self.removed.remove(&key);
        self.hold(incident);
        Some(place)
    }

    /// The most recent first.
    #[cfg(test)]
    pub(super) fn list(&mut self, now: u64) -> Vec<Incident> {
        let listed = self.since(0, now).into_iter();
        listed.map(|(incident, state)| incident.in_state(state).into_owned()).collect()
    }

    /// Those with an event since `oldest`, each with its state; the most recent first. Nothing is copied.
    pub(crate) fn since(&mut self, oldest: u64, now: u64) -> Vec<(Arc<Incident>, IncidentState)> {
        self.forget_silent(now);
        let newest = self.by_age.values().rev().take_while(|incident| incident.last_seen >= oldest);
        newest.map(|incident| (Arc::clone(incident), self.state(&incident.key, now))).collect()
    }

    /// What operators made of the incident of an identity; `None` while it is open.
    pub(crate) fn workflow(&self, key: &str, now: u64) -> Option<&Workflow> {
        self.workflows.get(key).filter(|workflow| now.saturating_sub(workflow.at) < self.limits.kept)
    }

    /// Takes over what the store has acknowledged; `None` where the state was cleared.
    pub(crate) fn set_workflow(&mut self, key: &str, workflow: Option<Workflow>) {
        self.workflow_changes += 1;
        self.cleared.remove(key);
        match workflow {
            Some(workflow) => drop(self.workflows.insert(key.to_owned(), workflow)),
            None => drop(self.workflows.remove(key)),
        }
    }

    /// The signals of the last event of an identity.
    pub(crate) fn signals(&self, key: &str) -> Vec<Value> {
        let signals = self.by_key.get(key).and_then(|incident| incident.signals.as_deref());
        signals.and_then(|signals| serde_json::from_str(signals).ok()).unwrap_or_default()
    }

    /// The last events of an identity, oldest first.
    pub(crate) fn timeline(&self, key: &str) -> impl Iterator<Item = &TimelineEntry> {
        self.by_key.get(key).into_iter().flat_map(|incident| &incident.timeline)
    }

    /// Takes over what an earlier process has kept.
    pub(crate) fn restore(&mut self, incidents: Vec<Incident>) {
        for mut incident in incidents {
            incident.share(&mut self.texts);
            self.hold(Arc::new(incident));
        }
    }

    /// The same of what operators made of them.
    pub(crate) fn restore_workflows(&mut self, workflows: Vec<Workflow>) {
        self.workflows.extend(workflows.into_iter().map(|workflow| (workflow.key.clone(), workflow)));
    }

    /// What the store does not have yet. From here on it counts as saved; see [`Incidents::put_back`].
    pub(crate) fn unsaved(&mut self, now: u64) -> Unsaved {
        let kept = self.limits.kept;
        self.workflows.retain(|_, workflow| now.saturating_sub(workflow.at) < kept);
        let removed = std::mem::take(&mut self.removed).into_iter();
        Unsaved {
            added: std::mem::take(&mut self.parts).into_values().collect(),
            removed: removed.map(|(key, seen)| (key.to_string(), seen)).collect(),
            cleared: std::mem::take(&mut self.cleared).into_iter().collect(),
        }
    }

    /// The store did not take it: it is tried again with what comes after.
    pub(crate) fn put_back(&mut self, unsaved: Unsaved) {
        for part in unsaved.added.into_iter().filter(|part| self.by_key.contains_key(&part.key)) {
            let part = match self.parts.remove(&part.key) {
                Some(later) => merge::merged(part, later, &self.limits),
                None => part,
            };
            self.parts.insert(part.key.clone(), part);
        }
        for (key, seen) in unsaved.removed.into_iter().filter(|(key, _)| !self.by_key.contains_key(key.as_str())) {
            self.removed.insert(key.into(), seen);
        }
        for (key, at) in unsaved.cleared {
            self.cleared.entry(key).or_insert(at);
        }
    }

    /// How the store makes one incident of what it has and a part.
    pub(crate) fn merge(&self) -> MergeIncident {
        merge::of_rows(self.limits)
    }

    /// These are in the store now, and what was counted in meanwhile comes on top.
    pub(crate) fn kept(&mut self, incidents: Vec<Incident>, now: u64) {
        for mut incident in incidents {
            incident.share(&mut self.texts);
            let held = self.let_go(&incident.key);
            if held.is_none() {
                self.make_room(now);
            }
            if let Some(part) = self.parts.get(&incident.key) {
                incident = merge::merged(incident, part.clone(), &self.limits);
            }
            incident.signals = held.and_then(|held| held.signals.clone());
            self.removed.remove(&incident.key);
            self.hold(Arc::new(incident));
        }
    }

    /// The store has these no more: another control plane has forgotten them.
    pub(crate) fn gone(&mut self, keys: &[String]) {
        for key in keys {
            self.let_go(key);
            if let Some(part) = self.parts.get(key.as_str()) {
                self.hold(Arc::new(part.clone()));
            }
        }
    }

    /// How many there are.
    pub(crate) fn count(&mut self, now: u64) -> usize {
        self.forget_silent(now);
        self.by_key.len()
    }

    /// The keys of all.
    pub(crate) fn keys(&self) -> Vec<String> {
        self.by_key.keys().map(SharedText::to_string).collect()
    }

    /// How often a state was set or cleared here.
    pub(crate) fn workflow_changes(&self) -> u64 {
        self.workflow_changes
    }

    /// The store has these states now. False, and nothing is changed, where a state was set or cleared here since `changes` of them: it may
    /// not be among those.
    pub(crate) fn follow_workflows(&mut self, workflows: Vec<Workflow>, changes: u64) -> bool {
        if self.workflow_changes != changes {
            return false;
        }
        let is_cleared = |workflow: &Workflow| self.cleared.get(&workflow.key).is_some_and(|at| workflow.at <= *at);
        let now = workflows.into_iter().filter(|workflow| !is_cleared(workflow));
        self.workflows = now.map(|workflow| (workflow.key.clone(), workflow)).collect();
        true
    }

    fn hold(&mut self, incident: Arc<Incident>) {
        // One of this key, at a start, may be held already.
        self.let_go(&incident.key);
        self.crowd.add(Origin::of(&incident.key), incident.last_seen, incident.key.clone());
        self.by_age.insert((incident.last_seen, incident.key.clone()), Arc::clone(&incident));
        self.by_key.insert(incident.key.clone(), incident);
    }

    fn let_go(&mut self, key: &str) -> Option<Arc<Incident>> {
        let held = self.by_key.remove(key)?;
        let aged = (held.last_seen, held.key.clone());
        self.by_age.remove(&aged);
        self.spared.remove(&aged);
        self.crowd.remove(Origin::of(key), held.last_seen, held.key.clone());
        Some(held)
    }

    fn state(&self, key: &str, now: u64) -> IncidentState {
        match self.workflow(key, now).map(|workflow| workflow.state.as_str()) {
            Some("acknowledged") => IncidentState::Acknowledged,
            Some("resolved") => IncidentState::Resolved,
            _ => IncidentState::Open,
        }
    }

    /// A resolved incident is open again, once the caller comes back; whether it was resolved.
    fn reopen(&mut self, key: &str, now: u64) -> bool {
        let grace = self.limits.reopen_grace;
        let over = |workflow: &&Workflow| workflow.state == "resolved" && now > workflow.at.saturating_add(grace);
        let Some(at) = self.workflows.get(key).filter(over).map(|workflow| workflow.at) else { return false };
        self.workflow_changes += 1;
        self.workflows.remove(key);
        self.cleared.insert(key.to_owned(), at);
        true
    }

    /// Makes room for a further one.
    fn make_room(&mut self, now: u64) {
        self.forget_silent(now);
        while self.by_key.len() >= self.limits.held.max(1) && self.give_way(now) {}
    }

    /// Forgets those that are silent for too long, and those that are too many.
    fn forget_silent(&mut self, now: u64) {
        let horizon = now.saturating_sub(self.limits.kept);
        while self.is_oldest_before(horizon) && self.forget_oldest() {}
        while self.by_key.len() > self.limits.held && self.give_way(now) {}
    }

    /// Forgets one for another: not one that an operator has acknowledged, while there are others. False where there is none.
    fn give_way(&mut self, now: u64) -> bool {
        while let Some((seen, key)) = self.crowd.pop(self.limits.held) {
            if self.state(&key, now) != IncidentState::Acknowledged {
                return self.forget(&key);
            }
            self.spared.insert((seen, key));
        }
        let Some((_, key)) = self.spared.pop_first() else { return self.forget_oldest() };
        self.forget(&key)
    }

    fn is_oldest_before(&self, horizon: u64) -> bool {
        self.by_age.first_key_value().is_some_and(|((seen, _), _)| *seen < horizon)
    }

    /// False where there is none.
    fn forget_oldest(&mut self) -> bool {
        let Some((_, key)) = self.by_age.first_key_value().map(|(aged, _)| aged.clone()) else { return false };
        self.forget(&key)
    }

    /// False where it is not held.
    fn forget(&mut self, key: &SharedText) -> bool {
        let Some(held) = self.let_go(key) else { return false };
        let (seen, key) = (held.last_seen, held.key.clone());
        self.parts.remove(&key);
        // While the store is down they become many. What is left there is read again at a start, and forgotten by its age.
        if self.removed.len() < MAX_REMOVED {
            self.removed.insert(key, seen);
        }
        true
    }
}
