//! What an event can be found by.

use std::sync::Arc;

use base::identity::Identity;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::place;

/// The longest value that an event can be found by, in bytes.
pub const MAX_VALUE_BYTES: usize = 1024;
/// The rules of one event that it can be found by, at most.
const MAX_RULES: usize = 32;

/// What a filter is about, what tells most first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum EventField {
    /// `@id`.
    Id,
    /// The id of the request, which a refused caller sees.
    Reference,
    /// A caller, as [`Identity::key`].
    Identity,
    /// `incident.id`.
    Incident,
    /// The id of a rule of the WAF or of an alert.
    Rule,
    /// `config.id`, of a WAF config.
    Config,
    /// `route.id`.
    Route,
    /// `route.node`.
    Node,
    /// `event.category`.
    Category,
    /// `event.action`; the action of an audit event.
    Action,
    /// `event.module`; `waf` for its trail.
    Plugin,
    /// `true` where a dry run kept it from being enforced.
    DryRun,
    /// `blocked` or `observed`.
    Outcome,
    /// `security`, `trail` or `audit`.
    Type,
    /// `decision.policy`.
    Policy,
}

/// An event that is to be stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewEvent {
    pub(super) at_millis: u64,
    pub(super) place: u64,
    pub(super) line: Arc<[u8]>,
    /// The hash of each value that it can be found by, that of the id first.
    pub(super) terms: Vec<i64>,
}

// === impl NewEvent ===

impl NewEvent {
    /// Reads an event that arrives at `now_millis`; `None` for what is no JSON object.
    #[must_use]
    pub fn read(line: &Arc<[u8]>, now_millis: u64) -> Option<NewEvent> {
        let event: Value = serde_json::from_slice(line).ok()?;
        Some(NewEvent::of(line, &event, place::time(&event, now_millis))).filter(|_| event.is_object())
    }

    /// Reads an event that is ordered by this time.
    pub(super) fn ordered(line: &Arc<[u8]>, at_millis: u64) -> Option<NewEvent> {
        let event: Value = serde_json::from_slice(line).ok()?;
        Some(NewEvent::of(line, &event, at_millis)).filter(|_| event.is_object())
    }

    fn of(line: &Arc<[u8]>, event: &Value, at_millis: u64) -> NewEvent {
        let id = match text(event, &["@id"]) {
            Some(id) => id.to_owned(),
            None => format!("{:x?}", &Sha256::digest(line)[..]),
        };
        // The node is that of the sender, whatever an event says: no node takes the place of another's event.
        let node = text(event, &["route", "node"]).unwrap_or_default();
        let tie = hash(&[b"place", node.as_bytes(), b"\0", id.as_bytes()]);
        let mut terms = vec![term(EventField::Id, &id)];
        for (field, value) in values(event) {
            let found = term(field, &value);
            if field != EventField::Id && value.len() <= MAX_VALUE_BYTES && !terms.contains(&found) {
                terms.push(found);
            }
        }
        NewEvent { at_millis, place: place::of(at_millis, tie.cast_unsigned()), line: Arc::clone(line), terms }
    }

    /// The time by which it is ordered, in milliseconds since 1970.
    #[must_use]
    pub fn at_millis(&self) -> u64 {
        self.at_millis
    }

    /// The event, one line of JSON.
    #[must_use]
    pub fn line(&self) -> &Arc<[u8]> {
        &self.line
    }

    /// Whether it has all of these values.
    #[must_use]
    pub fn has(&self, filters: &[(EventField, String)]) -> bool {
        filters.iter().all(|(field, value)| self.terms.contains(&term(*field, value)))
    }
}

/// The hash by which a value is found.
pub(super) fn term(field: EventField, value: &str) -> i64 {
    hash(&[&[field_byte(field)], value.as_bytes()])
}

/// Whether so many events have this value that an index of them would be one of all events.
pub(super) fn is_common(field: EventField, value: &str) -> bool {
    matches!((field, value), (EventField::Type, "security") | (EventField::Outcome, "observed"))
}

/// The hashes that [`is_common`] is about.
pub(super) fn common() -> [i64; 2] {
    [term(EventField::Type, "security"), term(EventField::Outcome, "observed")]
}

fn hash(parts: &[&[u8]]) -> i64 {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update(part);
    }
    let hash: [u8; 32] = hash.finalize().into();
    hash.first_chunk::<8>().map_or(0, |first| i64::from_le_bytes(*first))
}

/// Part of what is stored: never changed, and never given again.
fn field_byte(field: EventField) -> u8 {
    match field {
        EventField::Id => 1,
        EventField::Reference => 2,
        EventField::Identity => 3,
        EventField::Incident => 4,
        EventField::Rule => 5,
        EventField::Config => 6,
        EventField::Route => 7,
        EventField::Node => 8,
        EventField::Category => 9,
        EventField::Action => 10,
        EventField::Plugin => 11,
        EventField::DryRun => 12,
        EventField::Outcome => 13,
        EventField::Type => 14,
        EventField::Policy => 15,
    }
}

/// What an event can be found by, apart from its id.
fn values(event: &Value) -> Vec<(EventField, String)> {
    use EventField::{
        Action, Category, Config, Identity, Incident, Node, Outcome, Plugin, Policy, Reference, Route, Type,
    };
    let kind = match text(event, &["@type"]) {
        Some("SvcWafTrailEvent") => "trail",
        Some("SvcWafSecurityAudit") => "audit",
        _ => "security",
    };
    let mut found = vec![(Type, kind.to_owned())];
    let paths: [(EventField, &[&str]); 11] = [
        (Reference, &["http", "request_id"]),
        (Reference, &["request_id"]),
        (Incident, &["incident", "id"]),
        (Config, &["config", "id"]),
        (Route, &["route", "id"]),
        (Node, &["route", "node"]),
        (Category, &["event", "category"]),
        (Action, &["event", "action"]),
        (Plugin, &["event", "module"]),
        (Outcome, &["event", "outcome"]),
        (Policy, &["decision", "policy"]),
    ];
    let of_paths = paths.iter().filter_map(|(field, path)| Some((*field, text(event, path)?.to_owned())));
    found.extend(of_paths);
    found.extend(identities(event).map(|key| (Identity, key)));
    found.extend(rules(event).map(|rule| (EventField::Rule, rule)));
    let mut is_dry_run = event.pointer("/decision/dry_run").and_then(Value::as_bool).unwrap_or(false);
    match kind {
        "trail" => {
            let refused = event.get("block").is_some_and(|block| !block.is_null());
            is_dry_run = !refused && event.get("would_block").is_some_and(|block| !block.is_null());
            found.push((Plugin, "waf".to_owned()));
            found.push((Outcome, if refused { "blocked" } else { "observed" }.to_owned()));
        }
        "audit" => found.extend(text(event, &["action"]).map(|action| (Action, action.to_owned()))),
        _ => {}
    }
    if is_dry_run {
        found.push((EventField::DryRun, "true".to_owned()));
    }
    found
}

/// The keys of the callers that an event names, and of whom an audit event is about.
fn identities(event: &Value) -> impl Iterator<Item = String> {
    let kinds = [("ip", "ip"), ("network", "ip"), ("apikey", "apikey"), ("user", "user")];
    let named = kinds.into_iter().filter_map(move |(name, kind)| {
        let value = text(event, &["source", name])?;
        Some(key(&format!("{kind}:{value}")).unwrap_or_else(|| format!("{kind}:{value}")))
    });
    named.chain(text(event, &["ref"]).and_then(key))
}

fn key(identity: &str) -> Option<String> {
    Identity::parse(identity).ok().map(|identity| identity.key())
}

/// The rules that an event names.
fn rules(event: &Value) -> impl Iterator<Item = String> {
    let list = |name: &str| event.get(name).and_then(Value::as_array).into_iter().flatten();
    let of_matches = list("matches").filter_map(|found| found.get("rule_id"));
    let signals = event.pointer("/threat/signals").and_then(Value::as_array).into_iter().flatten();
    let of_signals =
        signals.filter_map(|signal| signal.get("rules")?.as_array()).flatten().filter_map(|of| of.get("id"));
    let refusals = ["/block/rule_id", "/would_block/rule_id", "/alert/rule/id"];
    let refusals = refusals.into_iter().filter_map(|path| event.pointer(path));
    let found = refusals.chain(list("rule_ids")).chain(of_matches).chain(of_signals).filter_map(|rule| match rule {
        Value::Number(number) => Some(number.to_string()),
        Value::String(text) => Some(text.clone()),
        _ => None,
    });
    let mut all: Vec<String> = Vec::new();
    for rule in found {
        if all.len() < MAX_RULES && !all.contains(&rule) {
            all.push(rule);
        }
    }
    all.into_iter()
}

fn text<'a>(event: &'a Value, path: &[&str]) -> Option<&'a str> {
    let found = path.iter().try_fold(event, |value, name| value.get(name))?;
    found.as_str().filter(|text| !text.is_empty())
}
