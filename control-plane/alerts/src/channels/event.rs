//! A further `SvcSecurityEvent` for the exporters.

use serde_json::{Value, json};

use super::super::message::Message;
use super::number::number;
use base::clock;
use entities::AlertTrigger;

pub(super) fn event(message: &Message) -> Value {
    let or_null = |text: &str| if text.is_empty() { Value::Null } else { Value::from(text) };
    let of = |kind: &str| message.identity.as_ref().filter(|identity| identity.kind == kind).map(|found| &found.value);
    let category = match (message.category.as_str(), message.trigger) {
        ("", AlertTrigger::Ban) => "ban",
        ("", _) => "threat",
        (category, _) => category,
    };
    let (id, count) = message.incident.clone().unzip();
    let score = message.score.map_or(Value::from(0), number);
    json!({
        "@type": "SvcSecurityEvent",
        "@id": message.id,
        "@timestamp": clock::rfc3339(message.at),
        "event": {
            "kind": "alert", "category": category, "action": "alert", "outcome": "observed", "severity": message.severity,
            "module": "alerts", "dataset": "svc.alert",
        },
        "source": { "ip": of("ip"), "apikey": of("apikey"), "user": of("user") },
        "threat": { "score": score, "tags": message.tags, "signals": [] },
        "incident": { "id": id, "count": count.unwrap_or(0) },
        "route": { "id": or_null(&message.route_id), "name": or_null(&message.route_name), "node": or_null(&message.node) },
        "message": if message.detail.is_empty() {
            message.headline()
        } else {
            format!("{}: {}", message.headline(), message.detail)
        },
        "alert": {
            "rule": { "id": message.rule_id, "name": message.rule_name },
            "trigger": message.trigger.word(),
            "test": message.test,
        },
    })
}
