//! What the operations of learning answer, as JSON Schemas.

use serde_json::{Value, json};

use super::super::schemas::{target, written};

fn mode() -> Value {
    json!({
        "type": "object",
        "required": ["mode", "arming_estimate_reliable", "rule_counts_complete", "note"],
        "properties": {
            "mode": { "enum": ["off", "blocking", "detection_only"] },
            "arming_estimate_reliable": { "type": "boolean", "description": "What blocking would refuse can be said." },
            "rule_counts_complete": { "type": "boolean", "description": "Every rule is run on every request." },
            "note": { "type": "string" },
        },
    })
}

/// What `_start` answers.
pub(super) fn started() -> Value {
    json!({
        "type": "object",
        "required": ["done", "config", "mode"],
        "properties": {
            "done": { "const": true },
            "config": {
                "type": "object",
                "required": ["id", "name"],
                "properties": { "id": { "type": "string" }, "name": { "type": "string" } },
            },
            "mode": mode(),
        },
    })
}

/// What `_stop` and `_discard` answer.
pub(super) fn done() -> Value {
    json!({ "type": "object", "required": ["done"], "properties": { "done": { "const": true } } })
}

/// What `_apply` answers.
pub(super) fn applied() -> Value {
    json!({
        "type": "object",
        "required": ["done", "applied", "count"],
        "properties": {
            "done": { "const": true },
            "applied": { "type": "array", "items": written() },
            "count": { "type": "integer" },
        },
    })
}

/// What `_report` answers.
pub(super) fn report() -> Value {
    let count = |about: &str| json!({ "type": "integer", "description": about });
    let entry = json!({
        "type": "object",
        "required": ["rule_id", "target", "path", "count", "would_block", "paranoia", "callers", "networks"],
        "properties": {
            "rule_id": { "type": "integer" },
            "target": target(),
            "path": { "type": "string" },
            "count": count("Exchanges."),
            "would_block": count("Those that were refused, or would have been."),
            "paranoia": count("The paranoia level of the rule; 0 for none."),
            "callers": count("Distinct callers, at most 64; those that other plugins have found bad are left out."),
            "networks": count("Networks (/24 of IPv4, /48 of IPv6) that they are in."),
        },
    });
    let recommendation = |more: Value| {
        let mut fields = json!({
            "current": { "type": "integer" },
            "recommended": { "type": ["integer", "null"], "description": "Null where it is withheld, or nothing need change." },
            "rationale": { "type": "string" },
        });
        if let (Some(fields), Value::Object(more)) = (fields.as_object_mut(), more) {
            fields.extend(more);
        }
        json!({ "type": "object", "required": ["current", "recommended", "rationale"], "properties": fields })
    };
    json!({
        "type": "object",
        "required": ["running", "distributed", "run", "nodes", "mode", "entries", "left_out", "suspects", "exclusions", "paranoia", "threshold",
                     "impact", "proof", "profile", "verdict"],
        "properties": {
            "running": { "type": "boolean" },
            "distributed": { "type": "boolean", "description": "More than one gateway has counted." },
            "run": {
                "type": "object",
                "required": ["config_ref", "started_at", "stopped_at", "running", "requests", "matched", "would_block", "would_block_rate",
                             "duration_millis"],
                "properties": {
                    "config_ref": { "type": "string" },
                    "started_at": count("In milliseconds since 1970."),
                    "stopped_at": { "type": ["integer", "null"], "description": "In milliseconds since 1970." },
                    "running": { "type": "boolean" },
                    "requests": count("All exchanges."),
                    "matched": count("Those with a match."),
                    "would_block": count("Those that were refused, or would have been."),
                    "would_block_rate": { "type": "number", "description": "Of all exchanges, 0 to 1." },
                    "duration_millis": { "type": "integer" },
                },
            },
            "nodes": count("Gateways that have counted."),
            "mode": mode(),
            "entries": { "type": "array", "items": entry, "description": "Everything counted, the most frequent first, at most 5000." },
            "left_out": count("Matches for which the window had no room."),
            "suspects": count("Callers that other plugins have found bad (feeds, traps, bots, logins): no exclusion is proposed because of them."),
            "exclusions": { "type": "array", "items": {
                "type": "object",
                "required": ["key", "entry", "proposal", "preview", "accepted", "ended", "note"],
                "properties": {
                    "key": { "type": "string", "description": "`<rule>|<target>|<path>`, for `_apply`." },
                    "entry": entry,
                    "proposal": { "type": ["object", "null"] },
                    "preview": { "anyOf": [{ "type": "null" }, { "$ref": "#/$defs/TuningPreview" }] },
                    "accepted": { "type": "boolean", "description": "It is verified, and `_apply` writes it." },
                    "ended": { "type": "boolean", "description": "The exclusion of another entry, for all paths, ends it." },
                    "note": { "type": "string" },
                },
            } },
            "paranoia": recommendation(json!({})),
            "threshold": recommendation(json!({ "curve": { "type": "array", "items": {
                "type": "object",
                "required": ["threshold", "still_denied"],
                "properties": { "threshold": { "type": "integer" }, "still_denied": count("Requests.") },
            } } })),
            "impact": {
                "type": "object",
                "required": ["sampled", "resolved", "residual", "rationale"],
                "properties": {
                    "sampled": count("Samples that are refused."),
                    "resolved": count("Those that pass with all verified exclusions."),
                    "residual": count("Those that do not."),
                    "rationale": { "type": "string" },
                },
            },
            "proof": {
                "type": "object",
                "required": ["attacks", "attacks_missed_before", "attacks_missed_after", "refused_before", "refused_after"],
                "properties": {
                    "attacks": count("Known attacks that were tried."),
                    "attacks_missed_before": count("Those that pass as things are."),
                    "attacks_missed_after": count("Those that pass with all verified exclusions."),
                    "refused_before": count("Requests of the window."),
                    "refused_after": { "type": ["integer", "null"], "description": "An estimate by the share of the samples." },
                },
            },
            "profile": super::profile::schema(),
            "verdict": { "type": "string", "description": "What to do, in a sentence." },
        },
    })
}
