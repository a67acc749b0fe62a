//! Incidents: the events of one identity, close together in time, as one row with a count.

use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::event::{SecurityEvent, Source, timestamp_millis};
use crate::fabric::{IPV6_PREFIX, Identity};
use crate::store::fabric::{IncidentRow, Workflow};

/// An event belongs to its identity's incident when it comes at most this long after the one before.
pub const WINDOW_MILLIS: u64 = 1_800_000;
/// The last events that an incident shows.
pub const TIMELINE: usize = 20;
/// The most incidents that are held; those longest silent go first.
pub const MAX_INCIDENTS: usize = 10_000;
/// A silent incident, and what operators made of one, is forgotten after this long: seven days.
pub const KEPT_MILLIS: u64 = 7 * 86_400_000;
/// Events that come this soon after an incident was resolved were under way then, and do not open it again.
pub const REOPEN_GRACE_MILLIS: u64 = 5_000;
/// The most signals that are kept of an incident's last event.
const MAX_SIGNALS: usize = 16;
/// The most different categories, tags, actions, routes or nodes of one incident.
const MAX_VALUES: usize = 64;
/// The longest text that is taken from an event, in characters.
const MAX_TEXT: usize = 512;

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
    /// Names of the routes seen, ids where they have none.
    pub routes: Vec<String>,
    /// Message of the last event.
    pub last_message: String,
    /// Node of the last event.
    pub node: String,
    /// The last 20 events, oldest first.
    pub timeline: VecDeque<TimelineEntry>,
    /// Nodes seen.
    pub nodes: Vec<String>,
    /// What operators made of it.
    pub state: IncidentState,
    /// The signals of the last event that had any: evidence for a ban.
    #[serde(skip)]
    pub(crate) signals: Vec<Value>,
}

/// What operators made of an incident.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum IncidentState {
    /// Nothing yet.
    #[default]
    Open,
    /// Somebody is at it.
    Acknowledged,
    /// It is over.
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
    /// Which one.
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
    /// Its decision was enforced.
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
    by_key: HashMap<String, Incident>,
    /// (last seen, key), to find those longest silent.
    by_age: BTreeSet<(u64, String)>,
    /// What operators made of them; none is open.
    workflows: HashMap<String, Workflow>,
    unsaved: HashSet<String>,
    removed: HashSet<String>,
    /// States that an event has cleared, with the time at which they were set.
    cleared: HashMap<String, u64>,
}

/// Where an event stands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Place {
    /// The incident's id.
    pub(crate) id: String,
    /// How many events it has, this one included.
    pub(crate) count: u64,
    /// It was resolved until this event came.
    pub(crate) reopened: bool,
}

/// What the store does not have yet.
#[derive(Debug, Default)]
pub(crate) struct Unsaved {
    pub(crate) written: Vec<IncidentRow>,
    pub(crate) removed: Vec<String>,
    pub(crate) cleared: Vec<(String, u64)>,
}

impl Incidents {
    /// Counts an event in; answers its place. An event that names no identity belongs to no incident.
    pub(super) fn record(&mut self, event: SecurityEvent, now: u64) -> Option<Place> {
        let identity = identity(&event.source)?;
        let key = format!("{}:{}", identity.kind, identity.value);
        // A node's clock may be wrong; its events still belong where they arrive.
        let at = timestamp_millis(&event.timestamp).filter(|&at| at <= now && now - at <= WINDOW_MILLIS).unwrap_or(now);
        let mut incident = match self.by_key.remove(&key) {
            Some(held) => {
                self.by_age.remove(&(held.last_seen, key.clone()));
                if at.saturating_sub(held.last_seen) > WINDOW_MILLIS { fresh(&event, &key, identity, at) } else { held }
            }
            None => {
                self.make_room(now);
                fresh(&event, &key, identity, at)
            }
        };
        incident.count_in(event, at);
        let reopened = self.reopen(&key, now);
        let place = Place { id: incident.id.clone(), count: incident.count, reopened };
        self.removed.remove(&key);
        self.unsaved.insert(key.clone());
        self.by_age.insert((incident.last_seen, key.clone()));
        self.by_key.insert(key, incident);
        Some(place)
    }

    /// The most recent first.
    pub(super) fn list(&mut self, now: u64) -> Vec<Incident> {
        self.forget_silent(now);
        let newest = self.by_age.iter().rev().filter_map(|(_, key)| self.by_key.get(key));
        newest.map(|incident| Incident { state: self.state(&incident.key, now), ..incident.clone() }).collect()
    }

    /// What operators made of the incident of an identity; `None` while it is open.
    pub(super) fn workflow(&self, key: &str, now: u64) -> Option<&Workflow> {
        self.workflows.get(key).filter(|workflow| now.saturating_sub(workflow.at) < KEPT_MILLIS)
    }

    /// Takes over what the store has acknowledged; `None` where the state was cleared.
    pub(super) fn set_workflow(&mut self, key: &str, workflow: Option<Workflow>) {
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
        for incident in incidents {
            self.by_age.insert((incident.last_seen, incident.key.clone()));
            self.by_key.insert(incident.key.clone(), incident);
        }
        self.workflows.extend(workflows.into_iter().map(|workflow| (workflow.key.clone(), workflow)));
    }

    /// What the store does not have yet. From here on it counts as saved; see [`Incidents::put_back`].
    pub(super) fn unsaved(&mut self, now: u64) -> Unsaved {
        self.workflows.retain(|_, workflow| now.saturating_sub(workflow.at) < KEPT_MILLIS);
        let unsaved = std::mem::take(&mut self.unsaved);
        let row = |key: String| {
            let json = serde_json::to_string(self.by_key.get(&key)?).ok()?;
            Some(IncidentRow { key, json })
        };
        Unsaved {
            written: unsaved.into_iter().filter_map(row).collect(),
            removed: std::mem::take(&mut self.removed).into_iter().collect(),
            cleared: std::mem::take(&mut self.cleared).into_iter().collect(),
        }
    }

    /// The store did not take it: it is tried again with what comes after.
    pub(super) fn put_back(&mut self, unsaved: Unsaved) {
        let held = unsaved.written.into_iter().map(|row| row.key).filter(|key| self.by_key.contains_key(key));
        self.unsaved.extend(held.collect::<Vec<_>>());
        self.removed.extend(unsaved.removed.into_iter().filter(|key| !self.by_key.contains_key(key)));
        for (key, at) in unsaved.cleared {
            self.cleared.entry(key).or_insert(at);
        }
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
        let over = |workflow: &&Workflow| {
            workflow.state == "resolved" && now > workflow.at.saturating_add(REOPEN_GRACE_MILLIS)
        };
        let Some(at) = self.workflows.get(key).filter(over).map(|workflow| workflow.at) else { return false };
        self.workflows.remove(key);
        self.cleared.insert(key.to_owned(), at);
        true
    }

    fn make_room(&mut self, now: u64) {
        self.forget_silent(now);
        while self.by_key.len() >= MAX_INCIDENTS {
            let Some((_, key)) = self.by_age.pop_first() else { return };
            self.forget(&key);
        }
    }

    fn forget_silent(&mut self, now: u64) {
        let horizon = now.saturating_sub(KEPT_MILLIS);
        while self.by_age.first().is_some_and(|(seen, _)| *seen < horizon) {
            if let Some((_, key)) = self.by_age.pop_first() {
                self.forget(&key);
            }
        }
    }

    fn forget(&mut self, key: &str) {
        self.by_key.remove(key);
        self.unsaved.remove(key);
        self.removed.insert(key.to_owned());
    }
}

impl Incident {
    fn count_in(&mut self, event: SecurityEvent, at: u64) {
        let outcome_blocked = event.event.outcome.as_deref() == Some("blocked");
        let score = event.threat.score.filter(|score| score.is_finite()).unwrap_or(0.0);
        let entry = TimelineEntry {
            at,
            category: text(event.event.category),
            action: text(event.event.action),
            score,
            enforced: event.decision.enforced.unwrap_or(outcome_blocked),
            route_id: text(event.route.id),
            route_name: text(event.route.name),
            message: text(event.message),
        };
        self.first_seen = self.first_seen.min(at);
        self.last_seen = self.last_seen.max(at);
        self.count += 1;
        self.enforced_count += u64::from(entry.enforced);
        self.max_score = self.max_score.max(score);
        note(&mut self.categories, &entry.category);
        note(&mut self.actions, &entry.action);
        note(&mut self.routes, if entry.route_name.is_empty() { &entry.route_id } else { &entry.route_name });
        for tag in event.threat.tags.unwrap_or_default() {
            note(&mut self.tags, &text(Some(tag)));
        }
        if let Some(mut signals) = event.threat.signals.filter(|signals| !signals.is_empty()) {
            signals.truncate(MAX_SIGNALS);
            self.signals = signals;
        }
        entry.message.clone_into(&mut self.last_message);
        self.node = text(event.route.node);
        note(&mut self.nodes, &self.node);
        if self.timeline.len() >= TIMELINE {
            self.timeline.pop_front();
        }
        self.timeline.push_back(entry);
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

/// The most specific identity of an event: api key, else user, else address, which is its network where it is one of IPv6.
pub(super) fn identity(source: &Source) -> Option<IdentityRef> {
    let given = |value: &Option<String>| value.as_deref().filter(|value| !value.is_empty()).map(str::to_owned);
    let (kind, value) = given(&source.apikey)
        .map(|value| ("apikey", value))
        .or_else(|| Some(("user", given(&source.user)?)))
        .or_else(|| Some(("ip", address(&given(&source.ip)?, source.network.as_deref()))))?;
    Some(IdentityRef { kind: kind.to_owned(), value: value.chars().take(MAX_TEXT).collect() })
}

/// What an address is judged by: the network that the gateway says, where it is one around the address, else that of the
/// usual width. Text that is no address is itself.
fn address(ip: &str, network: Option<&str>) -> String {
    let Ok(identity) = Identity::parse(&format!("ip:{ip}")) else { return ip.to_owned() };
    if let Some(network) = network.and_then(|network| Identity::parse(&format!("ip:{network}")).ok())
        && (network == identity || network.has_own_key() && network.covers(&identity))
    {
        return network.value().to_owned();
    }
    // A gateway of an older release does not say.
    identity.charged(IPV6_PREFIX).value().to_owned()
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
mod tests {
    use serde_json::json;

    use super::*;

    const NOW: u64 = 1_800_000_000_000;

    fn event(ip: &str, id: &str, at: u64, score: f64) -> SecurityEvent {
        serde_json::from_value(json!({
            "@timestamp": crate::clock::rfc3339(at),
            "event": { "category": "threat", "action": "deny", "outcome": "blocked" },
            "source": { "ip": ip, "apikey": null, "user": null },
            "threat": { "score": score, "tags": ["waf:match"], "signals": [] },
            "incident": { "id": id, "count": 1 },
            "route": { "id": "r1", "name": "shop", "node": "n1" },
            "message": format!("score {score}"),
        }))
        .unwrap()
    }

    #[test]
    fn a_scan_is_one_incident_with_a_count() {
        let mut incidents = Incidents::default();
        for number in 0..30_u32 {
            let at = NOW + u64::from(number);
            incidents.record(event("192.0.2.1", &format!("i{number}"), at, f64::from(number)), NOW + 99);
        }
        incidents.record(event("192.0.2.2", "other", NOW, 1.0), NOW + 99);
        let list = incidents.list(NOW + 99);
        assert_eq!(list.len(), 2);
        let first = &list[0];
        assert_eq!(
            (first.id.as_str(), first.key.as_str(), first.count, first.enforced_count),
            ("i0", "ip:192.0.2.1", 30, 30)
        );
        assert_eq!((first.first_seen, first.last_seen, first.max_score), (NOW, NOW + 29, 29.0));
        assert_eq!((first.timeline.len(), first.timeline[0].at), (TIMELINE, NOW + 10));
        assert_eq!((first.last_message.as_str(), first.nodes.len(), first.routes.len()), ("score 29", 1, 1));
        let row = serde_json::to_value(first).unwrap();
        assert_eq!(row["ref"], json!({ "kind": "ip", "value": "192.0.2.1" }));
        assert_eq!(row["state"], "open");
    }

    #[test]
    fn addresses_of_one_network_of_ipv6_are_one_caller() {
        let mut incidents = Incidents::default();
        for (number, ip) in
            ["2001:db8:1:2::1", "2001:db8:1:2:ffff::7", "::ffff:192.0.2.1", "192.0.2.1"].iter().enumerate()
        {
            incidents.record(event(ip, &format!("i{number}"), NOW, 1.0), NOW);
        }
        let mut wider = event("2001:db8:1:2::1", "w", NOW, 1.0);
        wider.source.network = Some("2001:db8:1::/56".into());
        incidents.record(wider, NOW);
        let mut foreign = event("2001:db8:9::1", "f", NOW, 1.0);
        foreign.source.network = Some("2001:db8:1::/56".into());
        incidents.record(foreign, NOW);
        let mut keys: Vec<_> = incidents.list(NOW).into_iter().map(|one| (one.key, one.count)).collect();
        keys.sort();
        let expected =
            [("ip:192.0.2.1", 2), ("ip:2001:db8:1:2::/64", 2), ("ip:2001:db8:1::/56", 1), ("ip:2001:db8:9::/64", 1)];
        assert_eq!(keys, expected.map(|(key, count)| (key.to_owned(), count)));
    }

    #[test]
    fn after_the_window_a_new_one_begins() {
        let mut incidents = Incidents::default();
        incidents.record(event("192.0.2.1", "a", NOW, 1.0), NOW);
        let within = NOW + WINDOW_MILLIS;
        incidents.record(event("192.0.2.1", "b", within, 1.0), within);
        assert_eq!(incidents.list(within)[0].id, "a");
        let after = within + WINDOW_MILLIS + 1;
        incidents.record(event("192.0.2.1", "c", after, 1.0), after);
        let list = incidents.list(after);
        assert_eq!((list.len(), list[0].id.as_str(), list[0].count), (1, "c", 1));
        assert!(incidents.list(after + KEPT_MILLIS + 1).is_empty());
    }

    #[test]
    fn the_most_specific_identity_counts_and_the_table_is_bounded() {
        let mut incidents = Incidents::default();
        let mut keyed = event("192.0.2.1", "a", NOW, 1.0);
        keyed.source.user = Some("ann".into());
        incidents.record(keyed, NOW);
        assert_eq!(incidents.list(NOW)[0].key, "user:ann");
        incidents.record(SecurityEvent::default(), NOW);
        for number in 0..=MAX_INCIDENTS as u64 {
            incidents.record(event(&format!("x{number}"), "i", NOW + 1 + number, 1.0), NOW + 1 + number);
        }
        let list = incidents.list(NOW + 1);
        assert_eq!(list.len(), MAX_INCIDENTS);
        assert!(!list.iter().any(|incident| incident.key == "user:ann" || incident.key == "ip:x0"));
    }

    #[test]
    fn a_wrong_clock_does_not_move_an_event() {
        let mut incidents = Incidents::default();
        incidents.record(event("192.0.2.1", "a", NOW + 1, 1.0), NOW);
        incidents.record(event("192.0.2.2", "b", 5, 1.0), NOW);
        assert!(incidents.list(NOW).iter().all(|incident| incident.last_seen == NOW));
    }

    fn place(id: &str, count: u64, reopened: bool) -> Option<Place> {
        Some(Place { id: id.to_owned(), count, reopened })
    }

    fn workflow(state: &str, at: u64) -> Option<Workflow> {
        Some(Workflow { key: "ip:192.0.2.1".into(), state: state.into(), by: "alice".into(), at, note: String::new() })
    }

    #[test]
    fn a_resolved_incident_opens_again_after_the_grace_and_an_acknowledged_one_stays() {
        let mut incidents = Incidents::default();
        let state = |incidents: &mut Incidents, now| incidents.list(now)[0].state;
        incidents.record(event("192.0.2.1", "a", NOW, 1.0), NOW);
        incidents.set_workflow("ip:192.0.2.1", workflow("acknowledged", NOW));
        incidents.record(event("192.0.2.1", "b", NOW, 1.0), NOW + 60_000);
        assert_eq!(state(&mut incidents, NOW + 60_000), IncidentState::Acknowledged);
        incidents.set_workflow("ip:192.0.2.1", workflow("resolved", NOW + 60_000));
        let late = NOW + 60_000 + REOPEN_GRACE_MILLIS;
        incidents.record(event("192.0.2.1", "c", late, 1.0), late);
        assert_eq!(state(&mut incidents, late), IncidentState::Resolved, "it was under way");
        assert_eq!(incidents.record(event("192.0.2.1", "d", late + 1, 1.0), late + 1), place("a", 4, true));
        assert_eq!(state(&mut incidents, late + 1), IncidentState::Open);
        let unsaved = incidents.unsaved(late + 1);
        assert_eq!(unsaved.cleared, [("ip:192.0.2.1".to_owned(), NOW + 60_000)]);
        incidents.set_workflow("ip:192.0.2.1", workflow("acknowledged", late));
        assert!(incidents.workflow("ip:192.0.2.1", late + KEPT_MILLIS - 1).is_some());
        assert!(incidents.workflow("ip:192.0.2.1", late + KEPT_MILLIS).is_none(), "a state is kept for seven days");
    }

    #[test]
    fn what_is_saved_is_restored_and_what_was_not_taken_is_offered_again() {
        let mut incidents = Incidents::default();
        incidents.record(event("192.0.2.1", "a", NOW, 7.0), NOW);
        incidents.record(event("192.0.2.2", "b", NOW, 7.0), NOW);
        let unsaved = incidents.unsaved(NOW);
        assert_eq!(unsaved.written.len(), 2);
        assert!(incidents.unsaved(NOW).written.is_empty());
        incidents.put_back(unsaved);
        let rows = incidents.unsaved(NOW).written;
        let read = rows.iter().map(|row| serde_json::from_str(&row.json).unwrap()).collect();
        let mut after = Incidents::default();
        after.restore(read, Vec::new());
        assert_eq!(after.list(NOW).len(), 2);
        assert_eq!(after.record(event("192.0.2.1", "z", NOW + 1, 1.0), NOW + 1), place("a", 2, false));
        after.list(NOW + KEPT_MILLIS + 1_000);
        let mut removed = after.unsaved(NOW).removed;
        removed.sort();
        assert_eq!(removed, ["ip:192.0.2.1", "ip:192.0.2.2"]);
    }
}
