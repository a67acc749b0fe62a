//! The shape of an event, as far as the control plane reads it.

use std::fmt;
use std::net::IpAddr;

use serde::Deserialize;
use serde_json::Value;

use base::clock;
use base::identity::canonical;

/// The longest event that is taken, in bytes.
pub const MAX_EVENT_BYTES: usize = 256 * 1024;

/// The highest score of a request.
pub const MAX_SCORE: f64 = 100.0;

/// Why a line is no event.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum EventError {
    /// Longer than [`MAX_EVENT_BYTES`]; with its length.
    TooLong(usize),
    /// Not a JSON object; with the parser's words.
    NotJson(String),
    /// `@type` is missing or names nothing that nodes send; with what was found.
    UnknownType(String),
}

/// The parts of a `SvcSecurityEvent` that an incident is made of. Whatever is missing counts as empty: a node of another
/// release must not lose its events here.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct SecurityEvent {
    #[serde(rename = "@timestamp")]
    pub(super) timestamp: Value,
    pub(super) event: Classification,
    pub(super) source: Source,
    pub(super) threat: Threat,
    pub(super) incident: IncidentRef,
    pub(super) route: Route,
    pub(super) message: Option<String>,
    pub(super) decision: Decision,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Classification {
    pub(super) category: Option<String>,
    pub(super) action: Option<String>,
    pub(super) outcome: Option<String>,
    pub(super) module: Option<String>,
    pub(super) severity: Option<u64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Source {
    pub(super) ip: Option<String>,
    /// The network that an address of IPv6 is judged by.
    pub(super) network: Option<String>,
    pub(super) apikey: Option<String>,
    pub(super) user: Option<String>,
}

impl Source {
    /// The address of the caller; `None` where there is none or the text is no single address.
    pub(super) fn address(&self) -> Option<IpAddr> {
        Some(canonical(self.ip.as_deref()?.parse().ok()?))
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Threat {
    score: Option<f64>,
    pub(super) tags: Option<Vec<String>>,
    pub(super) signals: Option<Vec<Value>>,
}

impl Threat {
    /// The score on the scale that gateways use, 0 to 100: a node may send any number. `None` where it is no number.
    pub(super) fn score(&self) -> Option<f64> {
        self.score.filter(|score| score.is_finite()).map(|score| score.clamp(0.0, MAX_SCORE))
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct IncidentRef {
    pub(super) id: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Route {
    pub(super) id: Option<String>,
    pub(super) name: Option<String>,
    pub(super) node: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Decision {
    pub(super) enforced: Option<bool>,
}

/// The parts of a `SvcWafTrailEvent` that the ledger may be fed with.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct TrailEvent {
    pub(super) blocking: bool,
    pub(super) block: Value,
    pub(super) source: Source,
}

/// A checked event.
pub(super) struct Checked {
    /// The event. Of a name that it has twice, the last value.
    pub(super) value: Value,
    /// What it is.
    pub(super) kind: Kind,
}

/// The events that nodes send.
pub(super) enum Kind {
    /// A `SvcSecurityEvent` whose parts have their types.
    Security(Box<SecurityEvent>),
    /// A `SvcWafTrailEvent`.
    Trail(TrailEvent),
    /// One of them that nothing can be made of.
    Other,
}

/// The severity of an event with this score: 1 to 4, one more from 40, 70 and 90 points on.
#[must_use]
pub fn severity(score: f64) -> u8 {
    [40.0, 70.0, 90.0].iter().fold(1, |severity, step| severity + u8::from(score >= *step))
}

/// Checks one event.
///
/// # Errors
///
/// [`EventError`].
pub(super) fn check(bytes: &[u8]) -> Result<Checked, EventError> {
    if bytes.len() > MAX_EVENT_BYTES {
        return Err(EventError::TooLong(bytes.len()));
    }
    let value: Value = serde_json::from_slice(bytes).map_err(|error| EventError::NotJson(error.to_string()))?;
    let kind = value.get("@type").and_then(Value::as_str).unwrap_or_default();
    let kind = match kind {
        "SvcSecurityEvent" => {
            SecurityEvent::deserialize(&value).map_or(Kind::Other, |event| Kind::Security(event.into()))
        }
        "SvcWafTrailEvent" => TrailEvent::deserialize(&value).map_or(Kind::Other, Kind::Trail),
        other => return Err(EventError::UnknownType(other.chars().take(100).collect())),
    };
    Ok(Checked { value, kind })
}

/// `@timestamp` in milliseconds since the Unix epoch: RFC 3339 text in UTC, or a number of milliseconds.
pub(super) fn timestamp_millis(value: &Value) -> Option<u64> {
    match value {
        Value::Number(number) => number.as_u64(),
        Value::String(text) => clock::rfc3339_millis(text),
        _ => None,
    }
}

impl fmt::Display for EventError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLong(length) => write!(f, "an event of {length} bytes is over the limit of {MAX_EVENT_BYTES}"),
            Self::NotJson(why) => write!(f, "an event is not JSON: {why}"),
            Self::UnknownType(found) => {
                write!(f, "an event has @type {found:?}; nodes send SvcSecurityEvent and SvcWafTrailEvent")
            }
        }
    }
}

impl std::error::Error for EventError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timestamps_are_read_as_they_are_written() {
        for millis in [0, 951_782_399_999, 951_782_400_000, 1_709_164_800_000, 4_107_542_400_123] {
            assert_eq!(timestamp_millis(&Value::from(base::clock::rfc3339(millis))), Some(millis));
            assert_eq!(timestamp_millis(&Value::from(millis)), Some(millis));
        }
    }

    #[test]
    fn what_is_no_event_is_refused_with_its_reason() {
        assert!(matches!(check(b"{"), Err(EventError::NotJson(_))));
        assert!(matches!(check(b"\xff"), Err(EventError::NotJson(_))));
        assert_eq!(check(b"{}").err(), Some(EventError::UnknownType(String::new())));
        for word in ["X", "SvcWafSecurityAudit"] {
            let event = format!(r#"{{"@type":"{word}"}}"#);
            assert_eq!(check(event.as_bytes()).err(), Some(EventError::UnknownType(word.into())));
        }
        assert!(matches!(check(&vec![b' '; MAX_EVENT_BYTES + 1]), Err(EventError::TooLong(_))));
    }
}
