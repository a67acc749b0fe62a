//! The events API of PagerDuty, version 2.

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::super::message::{Message, key};
use super::super::text::cut;
use super::number::number;
use base::clock;

/// The longest summary, in characters.
const MAX_SUMMARY: usize = 1024;
/// The longest key by which events become one incident there.
const MAX_KEY: usize = 255;

pub(super) fn body(message: &Message, routing_key: &str) -> Value {
    let identity = message.identity.as_ref().map(key);
    let mut details = json!({
        "rule": message.rule_id,
        "trigger": message.trigger.word(),
        "test": message.test,
        "detail": message.detail,
        "score": message.score.map(number),
        "action": message.action,
        "tags": message.tags,
        "route": message.route_name,
    });
    let further = [
        ("events", message.incident.as_ref().map(|(_, count)| Value::from(*count))),
        ("events_in_window", message.burst.map(|(count, _)| Value::from(count))),
        ("window_seconds", message.burst.map(|(_, seconds)| Value::from(seconds))),
        ("banned_until", message.ban.as_ref().map(|ban| Value::from(clock::rfc3339(ban.until)))),
        ("banned_by", message.ban.as_ref().map(|ban| Value::from(ban.by.clone()))),
    ];
    if let Some(details) = details.as_object_mut() {
        for (name, value) in further {
            if let Some(value) = value {
                details.insert(name.to_owned(), value);
            }
        }
    }
    let mut payload = json!({
        "summary": cut(&message.headline(), MAX_SUMMARY),
        "source": identity.unwrap_or_else(|| "palisade".to_owned()),
        "severity": severity(message.severity),
        "timestamp": clock::rfc3339(message.at),
        "class": if message.category.is_empty() { message.trigger.word() } else { &message.category },
        "custom_details": details,
    });
    if !message.node.is_empty()
        && let Some(payload) = payload.as_object_mut()
    {
        payload.insert("component".to_owned(), Value::from(message.node.clone()));
    }
    json!({
        "routing_key": routing_key,
        "event_action": "trigger",
        "dedup_key": dedup_key(&message.subject),
        "client": "Palisade",
        "payload": payload,
    })
}

/// The subject, or a digest of it if it is too long.
fn dedup_key(subject: &str) -> String {
    if subject.chars().count() <= MAX_KEY {
        return subject.to_owned();
    }
    snapshot::hex(&Sha256::digest(subject.as_bytes()))
}

fn severity(severity: u8) -> &'static str {
    match severity {
        4.. => "critical",
        3 => "error",
        2 => "warning",
        _ => "info",
    }
}
