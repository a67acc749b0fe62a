//! An event as a message of RFC 5424.

use crate::sinks::facts::{Facts, Level};

/// The longest name of a host, and of a kind of message, in bytes (RFC 5424, section 6).
const MAX_HOST: usize = 255;
const MAX_KIND: usize = 32;

/// What of messages is the same for all.
#[derive(Clone, Debug)]
pub(super) struct Head {
    facility: u8,
    host: String,
    process: u32,
}

impl Head {
    /// `facility` is 0 to 23. What cannot be in a name of a host is left out of `host`.
    pub(super) fn new(facility: u8, host: &str, process: u32) -> Head {
        Head { facility, host: name(host, MAX_HOST), process }
    }

    /// The message: the event is its text, in one line of JSON.
    pub(super) fn message(&self, line: &[u8]) -> Vec<u8> {
        let facts = Facts::of(&serde_json::from_slice(line).unwrap_or_default());
        let priority = u16::from(self.facility) * 8 + u16::from(severity(facts.level));
        let timestamp = if is_timestamp(&facts.timestamp) { &facts.timestamp } else { "-" };
        let (host, process, kind) = (&self.host, self.process, name(&facts.kind, MAX_KIND));
        let mut message = format!("<{priority}>1 {timestamp} {host} palisade {process} {kind} - ").into_bytes();
        message.extend_from_slice(line);
        message
    }
}

/// The severity of RFC 5424 (table 2).
fn severity(level: Level) -> u8 {
    match level {
        Level::Error => 3,
        Level::Warning => 4,
        Level::Notice => 5,
        Level::Info => 6,
    }
}

/// Whether it is a time of RFC 3339 in UTC, as events have it. A gateway may send anything.
fn is_timestamp(text: &str) -> bool {
    let shape = |(at, byte): (usize, u8)| match at {
        4 | 7 => byte == b'-',
        10 => byte == b'T',
        13 | 16 => byte == b':',
        19 => byte == b'.' || byte == b'Z',
        _ => byte.is_ascii_digit() || byte == b'Z' && at + 1 == text.len(),
    };
    (20..=27).contains(&text.len()) && text.ends_with('Z') && text.bytes().enumerate().all(shape)
}

/// Printable characters of ASCII, so many at most; `-` where there is none.
fn name(text: &str, most: usize) -> String {
    let name: String = text.chars().filter(char::is_ascii_graphic).take(most).collect();
    if name.is_empty() { "-".to_owned() } else { name }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(line: &str) -> String {
        String::from_utf8(Head::new(16, "gate keeper", 7).message(line.as_bytes())).unwrap()
    }

    #[test]
    fn an_event_is_the_text_of_a_message_of_its_severity() {
        let line =
            r#"{"@type":"SvcSecurityEvent","@timestamp":"2026-11-26T10:00:00.123Z","event":{"severity":4},"m":"é\n"}"#;
        let head = "<131>1 2026-11-26T10:00:00.123Z gatekeeper palisade 7 SvcSecurityEvent - ";
        assert_eq!(message(line), format!("{head}{line}"));
        let priority = |line: &str| message(line).split('>').next().unwrap().to_owned();
        let of =
            |severity: u8| priority(&format!(r#"{{"@type":"SvcSecurityEvent","event":{{"severity":{severity}}}}}"#));
        assert_eq!([1, 2, 3, 4, 9].map(of), ["<134", "<133", "<132", "<131", "<131"]);
        assert_eq!(priority(r#"{"@type":"SvcWafSecurityAudit"}"#), "<133");
        assert_eq!(priority(r#"{"@type":"SvcWafTrailEvent"}"#), "<134");
        let ocsf = r#"{"class_uid":4002,"severity_id":3,"metadata":{"log_name":"SvcSecurityEvent","original_time":"2026-11-26T10:00:00Z"}}"#;
        assert_eq!(
            message(ocsf),
            format!("<132>1 2026-11-26T10:00:00Z gatekeeper palisade 7 SvcSecurityEvent - {ocsf}")
        );
    }

    #[test]
    fn what_a_gateway_makes_up_stays_out_of_the_head() {
        for time in ["", "2026-11-26T10:00:00Z> x", "2026-11-26 10:00:00.1Z", "2026-11-26T10:00:00.12Z4Z", "now"] {
            let line = format!(r#"{{"@type":"a b\nc","@timestamp":"{time}"}}"#);
            assert!(message(&line).starts_with("<134>1 - gatekeeper palisade 7 abc - {"), "{line}");
        }
        let long = format!(r#"{{"@type":"{}"}}"#, "x".repeat(100));
        assert!(message(&long).contains(&format!(" {} - ", "x".repeat(32))));
        assert!(message("no json").ends_with(" - - no json"));
        assert!(message(r#"{"@timestamp":"2026-11-26T10:00:00Z"}"#).starts_with("<134>1 2026-11-26T10:00:00Z "));
    }
}
