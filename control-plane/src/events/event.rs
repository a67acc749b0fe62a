//! The shape of an event, as far as the control plane reads it.

use std::fmt;
use std::net::IpAddr;

use serde::Deserialize;
use serde_json::Value;

/// The longest event that is taken, in bytes.
pub const MAX_EVENT_BYTES: usize = 256 * 1024;

/// The highest score of a request.
pub(crate) const MAX_SCORE: f64 = 100.0;

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
        Some(self.ip.as_deref()?.parse::<IpAddr>().ok()?.to_canonical())
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
    /// One line of JSON without its end.
    pub(super) line: Vec<u8>,
    /// The same, read.
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
    // White space between JSON tokens may hold line ends; the file must have one line per event.
    let line = if bytes.iter().any(|byte| matches!(byte, b'\n' | b'\r')) {
        value.to_string().into_bytes()
    } else {
        bytes.to_vec()
    };
    let kind = match kind {
        "SvcSecurityEvent" => {
            SecurityEvent::deserialize(&value).map_or(Kind::Other, |event| Kind::Security(event.into()))
        }
        "SvcWafTrailEvent" => TrailEvent::deserialize(&value).map_or(Kind::Other, Kind::Trail),
        other => return Err(EventError::UnknownType(other.chars().take(100).collect())),
    };
    Ok(Checked { line, value, kind })
}

/// `@timestamp` in milliseconds since the Unix epoch: RFC 3339 text in UTC, or a number of milliseconds.
pub(super) fn timestamp_millis(value: &Value) -> Option<u64> {
    match value {
        Value::Number(number) => number.as_u64(),
        Value::String(text) => rfc3339_millis(text),
        _ => None,
    }
}

fn rfc3339_millis(text: &str) -> Option<u64> {
    let (date, time) = text.split_once(['T', 't'])?;
    let time = time.strip_suffix(['Z', 'z']).or_else(|| time.strip_suffix("+00:00"))?;
    let mut date = date.splitn(3, '-').map(str::parse::<u64>);
    let (year, month, day) = (date.next()?.ok()?, date.next()?.ok()?, date.next()?.ok()?);
    let mut time = time.splitn(3, ':');
    let (hour, minute) = (time.next()?.parse::<u64>().ok()?, time.next()?.parse::<u64>().ok()?);
    let (second, fraction) = time.next().map(|rest| rest.split_once('.').unwrap_or((rest, "")))?;
    let second = second.parse::<u64>().ok()?;
    let millis = format!("{fraction:0<3}").get(..3)?.parse::<u64>().ok()?;
    if !(1970..=9999).contains(&year) || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    if hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    // Days since 1970-01-01, with years that begin in March so that the leap day is a year's last.
    let shifted = if month > 2 { year } else { year - 1 };
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let days = (365 * shifted + shifted / 4 - shifted / 100 + shifted / 400 + day_of_year).checked_sub(719_468)?;
    Some((((days * 24 + hour) * 60 + minute) * 60 + second) * 1000 + millis)
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
            assert_eq!(timestamp_millis(&Value::from(crate::clock::rfc3339(millis))), Some(millis));
            assert_eq!(timestamp_millis(&Value::from(millis)), Some(millis));
        }
        assert_eq!(rfc3339_millis("2026-01-01T00:00:00Z"), rfc3339_millis("2026-01-01T00:00:00.000000+00:00"));
        for bad in ["", "2026-01-01", "2026-13-01T00:00:00Z", "2026-01-01T00:00:00", "0000-01-01T00:00:00Z", "é"] {
            assert_eq!(rfc3339_millis(bad), None, "{bad}");
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
        let spread = check(b"{\n\"@type\":\r\n\"SvcWafTrailEvent\"}").ok().unwrap();
        assert_eq!(spread.line, br#"{"@type":"SvcWafTrailEvent"}"#);
    }
}
