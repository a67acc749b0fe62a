//! What servers need to know of an event, in either format.

use serde_json::{Map, Value};

use crate::event::timestamp_millis;

/// What servers need to know of an event.
#[derive(Debug)]
pub(super) struct Facts {
    /// Whether it is in the format of OCSF.
    pub(super) is_ocsf: bool,
    /// Its id, which no other event has.
    pub(super) id: Option<String>,
    /// Its type: `SvcSecurityEvent`, `SvcWafTrailEvent`, `SvcWafSecurityAudit`, or whatever a gateway has sent.
    pub(super) kind: String,
    /// When it was, in milliseconds since the Unix epoch.
    pub(super) time: Option<u64>,
    /// The same as the event has it.
    pub(super) timestamp: String,
    pub(super) level: Level,
}

/// How grave an event is, from the least.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Level {
    Info,
    Notice,
    Warning,
    Error,
}

impl Facts {
    /// The facts of an event; empty where a gateway has sent something else.
    pub(super) fn of(event: &Map<String, Value>) -> Facts {
        let is_ocsf = !event.contains_key("@type") && event.contains_key("class_uid");
        let metadata = |name: &str| event.get("metadata").and_then(|metadata| metadata.get(name));
        let field = |ecs: &str, ocsf: &str| if is_ocsf { metadata(ocsf) } else { event.get(ecs) };
        let text = |value: Option<&Value>| value.and_then(Value::as_str).map(str::to_owned);
        let severity = match is_ocsf {
            true => event.get("severity_id"),
            false => event.get("event").and_then(|fields| fields.get("severity")),
        };
        let kind = text(field("@type", "log_name")).unwrap_or_default();
        Facts {
            is_ocsf,
            id: text(field("@id", "uid")),
            time: event.get(if is_ocsf { "time" } else { "@timestamp" }).and_then(timestamp_millis),
            timestamp: text(field("@timestamp", "original_time")).unwrap_or_default(),
            level: Level::of(&kind, severity.and_then(Value::as_u64)),
            kind,
        }
    }
}

impl Level {
    /// An audit event has no severity of its own.
    fn of(kind: &str, severity: Option<u64>) -> Level {
        match (kind, severity) {
            ("SvcWafSecurityAudit", _) => Level::Notice,
            (_, Some(4..)) => Level::Error,
            (_, Some(3)) => Level::Warning,
            (_, Some(2)) => Level::Notice,
            _ => Level::Info,
        }
    }
}
