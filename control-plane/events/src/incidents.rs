//! Incidents: the events of one identity, close together in time, as one row with a count.

mod counted;
mod merge;

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::net::IpAddr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use counted::Counted;

use super::event::{SecurityEvent, Source, timestamp_millis};
use base::identity::Identity;
use store::fabric::{MergeIncident, Workflow};

/// The most incidents that are held; those longest silent go first.
pub const MAX_INCIDENTS: usize = 10_000;
/// The most signals that are kept of an incident's last event.
const MAX_SIGNALS: usize = 16;
/// The most different categories, tags, actions, routes or nodes of one incident.
const MAX_VALUES: usize = 64;
/// The longest text that is taken from an event, in characters.
const MAX_TEXT: usize = 512;

/// How long events belong together, and what is kept of them. All times are in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IncidentLimits {
    /// An event belongs to its identity's incident when it comes at most this long after the one before.
    pub window: u64,
    /// The last events that an incident shows.
    pub timeline: usize,
    /// A silent incident, and what operators made of one, is forgotten after this long.
    pub kept: u64,
    /// Events that come this soon after an incident was resolved were under way then, and do not open it again.
    pub reopen_grace: u64,
}

impl Default for IncidentLimits {
    fn default() -> IncidentLimits {
        IncidentLimits { window: 1_800_000, timeline: 20, kept: 7 * 86_400_000, reopen_grace: 5_000 }
    }
}

/// One incident.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Incident {
    /// Its id: the one that its first event carries.
    pub id: String,
    /// Whose it is.
    #[serde(rename = "ref")]
    pub identity: IdentityRef,
    /// The identity as one string, such as `ip:192.0.2.1`.
    pub key: String,
    /// Time of the first event, in milliseconds since the Unix epoch.
    pub first_seen: u64,
    /// Time of the last event.
    pub last_seen: u64,
    /// Events.
    pub count: u64,
    /// Events whose decision was enforced.
    pub enforced_count: u64,
    /// The highest score.
    pub max_score: f64,
    /// Categories seen, in order of appearance; at most 64, like the lists below.
    pub categories: Vec<String>,
    /// Tags seen.
    pub tags: Vec<String>,
    /// Actions seen.
    pub actions: Vec<String>,
    /// Names of the routes seen, or ids of routes without a name.
    pub routes: Vec<String>,
    /// Message of the last event.
    pub last_message: String,
    /// Node of the last event.
    pub node: String,
    /// The last events, oldest first; `security.incidents.timeline` says how many.
    pub timeline: VecDeque<TimelineEntry>,
    /// Nodes seen.
    pub nodes: Vec<String>,
    /// Its state, set by operators.
    pub state: IncidentState,
    /// The signals of the last event that had any: evidence for a ban.
    #[serde(skip)]
    pub(crate) signals: Vec<Value>,
}

/// The state of an incident, set by operators.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum IncidentState {
    /// No operator has handled it.
    #[default]
    Open,
    /// Someone is working on it.
    Acknowledged,
    /// It is closed.
    Resolved,
}

impl IncidentState {
    /// As documents have it.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            IncidentState::Open => "open",
            IncidentState::Acknowledged => "acknowledged",
            IncidentState::Resolved => "resolved",
        }
    }
}

/// An identity in two parts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct IdentityRef {
    /// `apikey`, `user` or `ip`.
    pub kind: String,
    /// Its value.
    pub value: String,
}

/// One event in an incident's timeline.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TimelineEntry {
    /// When, in milliseconds since the Unix epoch.
    pub at: u64,
    /// Its category.
    pub category: String,
    /// Its action.
    pub action: String,
    /// Its score.
    pub score: f64,
    /// Whether its decision was enforced.
    pub enforced: bool,
    /// Id of the route.
    pub route_id: String,
    /// Name of the route.
    pub route_name: String,
    /// Its message.
    pub message: String,
}

/// The incident of each identity.
#[derive(Debug, Default)]
pub(super) struct Incidents {
    /// As they are configured now.
    limits: IncidentLimits,
    by_key: HashMap<String, Incident>,
    /// (last seen, key), to find those longest silent.
    by_age: BTreeSet<(u64, String)>,
    /// What operators made of them; none is open.
    workflows: HashMap<String, Workflow>,
    workflow_changes: u64,
    /// What was counted in since the store was told, of each incident that it concerns: several control planes add to one.
    parts: HashMap<String, Incident>,
    /// Those that were forgotten, each with its last event.
    removed: HashMap<String, u64>,
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
    pub(super) fn limit(&mut self, limits: IncidentLimits) {
        self.limits = limits;
    }

    /// Counts an event in; answers its place. An event that names no identity belongs to no incident.
    /// `ipv6_prefix` is the width of the networks that callers of IPv6 are judged by.
    pub(super) fn record(&mut self, event: SecurityEvent, ipv6_prefix: u8, now: u64) -> Option<Place> {
        let identity = identity(&event.source, ipv6_prefix)?;
        let key = format!("{}:{}", identity.kind, identity.value);
        // A node's clock may be wrong; its events still belong where they arrive.
        let window = self.limits.window;
        let at = timestamp_millis(&event.timestamp).filter(|&at| at <= now && now - at <= window).unwrap_or(now);
        let held = self.let_go(&key);
        let mut incident = match held.filter(|held| at.saturating_sub(held.last_seen) <= window) {
            Some(held) => held,
            None => {
                self.parts.remove(&key);
                self.make_room(now);
                fresh(&event, &key, identity, at)
            }
        };
        let part = self.parts.entry(key.clone()).or_insert_with(|| incident.nothing_yet(at));
        let mut counted = Counted::of(event, at);
        incident.count_in(&counted, self.limits.timeline);
        part.count_in(&counted, self.limits.timeline);
        if let Some(signals) = counted.signals.take() {
            incident.signals = signals;
        }
        let reopened = self.reopen(&key, now);
        let place = Place { id: incident.id.clone(), count: incident.count, reopened };
        self.removed.remove(&key);
        self.hold(incident);
        Some(place)
    }

    /// The most recent first.
    #[cfg(test)]
    pub(super) fn list(&mut self, now: u64) -> Vec<Incident> {
        self.list_where(now, |_, _| true)
    }

    /// Those that are wanted, the most recent first. Each is judged with its state.
    pub(super) fn list_where(&mut self, now: u64, wanted: impl Fn(&Incident, IncidentState) -> bool) -> Vec<Incident> {
        self.forget_silent(now);
        let newest = self.by_age.iter().rev().filter_map(|(_, key)| self.by_key.get(key));
        let with_state = newest.map(|incident| (incident, self.state(&incident.key, now)));
        let wanted = with_state.filter(|(incident, state)| wanted(incident, *state));
        wanted.map(|(incident, state)| Incident { state, ..incident.clone() }).collect()
    }

    /// What operators made of the incident of an identity; `None` while it is open.
    pub(super) fn workflow(&self, key: &str, now: u64) -> Option<&Workflow> {
        self.workflows.get(key).filter(|workflow| now.saturating_sub(workflow.at) < self.limits.kept)
    }

    /// Takes over what the store has acknowledged; `None` where the state was cleared.
    pub(super) fn set_workflow(&mut self, key: &str, workflow: Option<Workflow>) {
        self.workflow_changes += 1;
        self.cleared.remove(key);
        match workflow {
            Some(workflow) => drop(self.workflows.insert(key.to_owned(), workflow)),
            None => drop(self.workflows.remove(key)),
        }
    }

    /// The signals of the last event of an identity.
    pub(super) fn signals(&self, key: &str) -> Vec<Value> {
        self.by_key.get(key).map_or(Vec::new(), |incident| incident.signals.clone())
    }

    /// The last events of an identity, oldest first.
    pub(super) fn timeline(&self, key: &str) -> impl Iterator<Item = &TimelineEntry> {
        self.by_key.get(key).into_iter().flat_map(|incident| &incident.timeline)
    }

    /// Takes over what an earlier process has kept.
    pub(super) fn restore(&mut self, incidents: Vec<Incident>, workflows: Vec<Workflow>) {
        incidents.into_iter().for_each(|incident| self.hold(incident));
        self.workflows.extend(workflows.into_iter().map(|workflow| (workflow.key.clone(), workflow)));
    }

    /// What the store does not have yet. From here on it counts as saved; see [`Incidents::put_back`].
    pub(super) fn unsaved(&mut self, now: u64) -> Unsaved {
        let kept = self.limits.kept;
        self.workflows.retain(|_, workflow| now.saturating_sub(workflow.at) < kept);
        Unsaved {
            added: std::mem::take(&mut self.parts).into_values().collect(),
            removed: std::mem::take(&mut self.removed).into_iter().collect(),
            cleared: std::mem::take(&mut self.cleared).into_iter().collect(),
        }
    }

    /// The store did not take it: it is tried again with what comes after.
    pub(super) fn put_back(&mut self, unsaved: Unsaved) {
        for part in unsaved.added.into_iter().filter(|part| self.by_key.contains_key(&part.key)) {
            let part = match self.parts.remove(&part.key) {
                Some(later) => merge::merged(part, later, &self.limits),
                None => part,
            };
            self.parts.insert(part.key.clone(), part);
        }
        self.removed.extend(unsaved.removed.into_iter().filter(|(key, _)| !self.by_key.contains_key(key)));
        for (key, at) in unsaved.cleared {
            self.cleared.entry(key).or_insert(at);
        }
    }

    /// How the store makes one incident of what it has and a part.
    pub(super) fn merge(&self) -> MergeIncident {
        merge::of_rows(self.limits)
    }

    /// These are in the store now, and what was counted in meanwhile comes on top.
    pub(super) fn kept(&mut self, incidents: Vec<Incident>, now: u64) {
        for incident in incidents {
            let held = self.let_go(&incident.key);
            if held.is_none() {
                self.make_room(now);
            }
            let mut incident = match self.parts.get(&incident.key) {
                Some(part) => merge::merged(incident, part.clone(), &self.limits),
                None => incident,
            };
            incident.signals = held.map(|held| held.signals).unwrap_or_default();
            self.removed.remove(&incident.key);
            self.hold(incident);
        }
    }

    /// The store has these no more: another control plane has forgotten them.
    pub(super) fn gone(&mut self, keys: &[String]) {
        for key in keys {
            self.let_go(key);
            if let Some(part) = self.parts.get(key) {
                self.hold(part.clone());
            }
        }
    }

    /// How many there are.
    pub(super) fn count(&mut self, now: u64) -> usize {
        self.forget_silent(now);
        self.by_key.len()
    }

    /// The keys of all.
    pub(super) fn keys(&self) -> Vec<String> {
        self.by_key.keys().cloned().collect()
    }

    /// How often a state was set or cleared here.
    pub(super) fn workflow_changes(&self) -> u64 {
        self.workflow_changes
    }

    /// The store has these states now. False, and nothing is changed, where a state was set or cleared here since `changes` of them: it may
    /// not be among those.
    pub(super) fn follow_workflows(&mut self, workflows: Vec<Workflow>, changes: u64) -> bool {
        if self.workflow_changes != changes {
            return false;
        }
        let is_cleared = |workflow: &Workflow| self.cleared.get(&workflow.key).is_some_and(|at| workflow.at <= *at);
        let now = workflows.into_iter().filter(|workflow| !is_cleared(workflow));
        self.workflows = now.map(|workflow| (workflow.key.clone(), workflow)).collect();
        true
    }

    fn hold(&mut self, incident: Incident) {
        self.by_age.insert((incident.last_seen, incident.key.clone()));
        self.by_key.insert(incident.key.clone(), incident);
    }

    fn let_go(&mut self, key: &str) -> Option<Incident> {
        let held = self.by_key.remove(key)?;
        self.by_age.remove(&(held.last_seen, key.to_owned()));
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

    fn make_room(&mut self, now: u64) {
        self.forget_silent(now);
        while self.by_key.len() >= MAX_INCIDENTS {
            let Some((seen, key)) = self.by_age.pop_first() else { return };
            self.forget(key, seen);
        }
    }

    fn forget_silent(&mut self, now: u64) {
        let horizon = now.saturating_sub(self.limits.kept);
        while self.by_age.first().is_some_and(|(seen, _)| *seen < horizon) {
            if let Some((seen, key)) = self.by_age.pop_first() {
                self.forget(key, seen);
            }
        }
    }

    fn forget(&mut self, key: String, seen: u64) {
        self.by_key.remove(&key);
        self.parts.remove(&key);
        self.removed.insert(key, seen);
    }
}

fn fresh(event: &SecurityEvent, key: &str, identity: IdentityRef, at: u64) -> Incident {
    let id = event.incident.id.clone().filter(|id| !id.is_empty()).map(|id| text(Some(id)));
    Incident {
        id: id.unwrap_or_else(|| format!("{key}@{at}")),
        identity,
        key: key.to_owned(),
        first_seen: at,
        last_seen: at,
        ..Incident::default()
    }
}

/// The most specific identity of an event that is one: api key, else user, else address, which is its network where it is
/// one of IPv6. What a node sends in place of an identity (a range, text that is no address) is none: the ledger bans by it.
pub(super) fn identity(source: &Source, ipv6_prefix: u8) -> Option<IdentityRef> {
    let given = |kind: &str, value: &Option<String>| Identity::parse(&format!("{kind}:{}", value.as_deref()?)).ok();
    let identity = given("apikey", &source.apikey)
        .or_else(|| given("user", &source.user))
        .or_else(|| caller(source.address()?, source.network.as_deref(), ipv6_prefix))?;
    Some(IdentityRef { kind: identity.kind().to_owned(), value: identity.value().to_owned() })
}

/// What an address is judged by: the network that the gateway says, if it is around the address and no wider than the one of
/// the configuration (a gateway may still have an earlier one), else that of the configuration.
fn caller(address: IpAddr, network: Option<&str>, ipv6_prefix: u8) -> Option<Identity> {
    let identity = Identity::parse(&format!("ip:{address}")).ok()?;
    let network = network.and_then(|network| Identity::parse(&format!("ip:{network}")).ok());
    let fits = |network: &Identity| {
        let width = network.network_v6().map(|network| network.prefix_len());
        network == &identity && width.is_none_or(|width| width >= ipv6_prefix)
            || network.has_own_key() && width >= Some(ipv6_prefix) && network.covers(&identity)
    };
    Some(network.filter(fits).unwrap_or_else(|| identity.charged(ipv6_prefix)))
}

pub(super) fn text(value: Option<String>) -> String {
    value.map(|text| text.chars().take(MAX_TEXT).collect()).unwrap_or_default()
}

fn note(values: &mut Vec<String>, value: &str) {
    if !value.is_empty() && values.len() < MAX_VALUES && !values.iter().any(|known| known == value) {
        values.push(value.to_owned());
    }
}

#[cfg(test)]
mod tests;
