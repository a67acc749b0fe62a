//! Our own JSON, as `docs/alerts.md` describes it.

use serde_json::{Value, json};

use super::super::message::{Message, key};
use super::number::number;
use base::clock;

pub(super) fn body(message: &Message) -> Value {
    let or_null = |text: &str| if text.is_empty() { Value::Null } else { Value::from(text) };
    json!({
        "type": "palisade.alert",
        "version": 1,
        "id": message.id,
        "at": clock::rfc3339(message.at),
        "test": message.test,
        "rule": { "id": message.rule_id, "name": message.rule_name },
        "trigger": message.trigger.word(),
        "severity": message.severity,
        "summary": message.headline(),
        "detail": or_null(&message.detail),
        "subject": message.subject,
        "identity": message.identity.as_ref().map(|identity| json!({
            "kind": identity.kind, "value": identity.value, "key": key(identity),
        })),
        "incident": message.incident.as_ref().map(|(id, count)| json!({ "id": id, "count": count })),
        "score": message.score.map(number),
        "category": or_null(&message.category),
        "action": or_null(&message.action),
        "enforced": message.enforced,
        "tags": message.tags,
        "route": { "id": or_null(&message.route_id), "name": or_null(&message.route_name), "node": or_null(&message.node) },
        "ban": message.ban.as_ref().map(|ban| json!({
            "until": clock::rfc3339(ban.until), "by": ban.by, "way": ban.way,
        })),
        "burst": message.burst.map(|(count, seconds)| json!({ "count": count, "window_seconds": seconds })),
    })
}
