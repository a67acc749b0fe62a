//! Bans, entries of the allowlist and states of incidents as the console shows them. Times are in milliseconds since 1970.

use serde_json::{Value, json};

use store::fabric::{Allowance, Ban, Workflow};

/// A key such as `ip:192.0.2.1` in two parts.
pub(super) fn reference(key: &str) -> Value {
    let (kind, value) = key.split_once(':').unwrap_or(("", key));
    json!({ "kind": kind, "value": value })
}

pub(super) fn ban(ban: &Ban) -> Value {
    let last = ban.timeline.last();
    json!({
        "ref": reference(&ban.key),
        "key": ban.key,
        "reason": ban.reason,
        "tags": ban.tags,
        "score": number(ban.score),
        "issued_at": ban.issued_at,
        "until": ban.until,
        "issued_by": ban.issued_by,
        "signals": ban.signals,
        "timeline": ban.timeline,
        "last_action": last.map(|step| &step.action),
        "last_action_by": last.map(|step| &step.by),
        "last_action_at": last.map(|step| step.at),
    })
}

pub(super) fn allowance(entry: &Allowance) -> Value {
    json!({
        "ref": reference(&entry.key),
        "key": entry.key,
        "reason": entry.reason,
        "added_by": entry.added_by,
        "added_at": entry.added_at,
        "until": entry.until,
        "permanent": entry.until.is_none(),
    })
}

pub(super) fn workflow(workflow: &Workflow) -> Value {
    json!({
        "key": workflow.key, "state": workflow.state, "by": workflow.by, "at": workflow.at, "note": workflow.note,
    })
}

/// A whole number without a fraction, so that `50` is not written `50.0`.
pub(super) fn number(value: f64) -> Value {
    if value.fract() == 0.0 && value.abs() < 1e15 { json!(value as i64) } else { json!(value) }
}
