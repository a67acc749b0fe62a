//! What the operations of tuning answer, as JSON Schemas.

use serde_json::{Value, json};

/// A call that cannot be answered.
pub(super) fn refused() -> Value {
    json!({
        "type": "object",
        "required": ["error"],
        "properties": {
            "error": { "type": "string" },
            "preview": { "type": "object", "description": "What was tried." },
        },
    })
}

/// An exclusion that was not written.
pub(super) fn not_applied() -> Value {
    json!({
        "type": "object",
        "required": ["error", "needs_force"],
        "properties": {
            "error": { "type": "string" },
            "needs_force": { "type": "boolean", "description": "`force` writes it all the same; false where another operator was first." },
            "preview": { "type": "object", "description": "What was tried." },
        },
    })
}

/// What an exclusion would change.
pub(super) fn preview() -> Value {
    let sample = json!({
        "type": ["object", "null"],
        "properties": {
            "rule_ids": { "type": "array", "items": { "type": "integer" } },
            "blocked": { "type": "boolean", "description": "It is refused, or would be if the config blocked." },
        },
    });
    json!({
        "type": "object",
        "required": ["compiles", "error", "reproduced", "effective", "safe", "regressions", "by_chance", "collateral_rules", "corpus", "also_ended", "is_covered", "recording", "recording_error"],
        "properties": {
            "compiles": { "type": "boolean" },
            "error": { "type": ["string", "null"], "description": "Why it does not compile." },
            "reproduced": { "type": "boolean", "description": "The match was had again." },
            "effective": { "type": "boolean", "description": "The exclusion ends it; says nothing without `reproduced`." },
            "safe": { "type": "boolean", "description": "It compiles and is effective, without regressions other than those by chance, and without collateral." },
            "regressions": { "type": "array", "description": "Attacks that pass from then on, at most 50.", "items": {
                "type": "object",
                "required": ["name", "category", "family", "paranoia", "at", "caught_before", "caught_after"],
                "properties": {
                    "name": { "type": "string" },
                    "category": { "type": "string" },
                    "family": { "type": "integer", "description": "The number of the core rule set's file that is meant to catch it." },
                    "paranoia": { "type": "integer", "description": "The lowest paranoia level at which it does." },
                    "at": { "enum": ["input", "alone"], "description": "At the input of the match, or in a request of its own." },
                    "caught_before": { "type": "boolean" },
                    "caught_after": { "type": "boolean" },
                },
            } },
            "by_chance": { "type": "integer", "description": "Regressions that were caught by chance: attacks of a higher paranoia level than the \
                           config's, made of letters, digits and a few marks, which no rule for such attacks has found. Only where the exclusion holds for values \
                           of a shape." },
            "collateral_rules": { "type": "array", "items": { "type": "integer" }, "description": "Other rules that it silences." },
            "sample_before": sample,
            "sample_after": sample,
            "corpus": {
                "type": "object",
                "required": ["attacks", "injected", "caught_before", "caught_after"],
                "properties": {
                    "attacks": { "type": "integer", "description": "Requests with a known attack." },
                    "injected": { "type": "integer", "description": "Those of them with the attack at the input of the match." },
                    "caught_before": { "type": "integer" },
                    "caught_after": { "type": "integer" },
                },
            },
            "also_ended": { "type": "array", "items": { "type": "string" }, "description": "Keys of other matches that it ends as well." },
            "is_covered": { "type": "boolean", "description": "The attacks at the input were in a request in which rules find nothing else, and on the path \
                            of the exclusion; a method was used by a caller whom the backend has answered well. Without, the exclusion is not \
                            safe." },
            "recording": {
                "type": ["object", "null"],
                "description": "What the first distinct requests of the recording that was uploaded last come to, at most 1,000; null where there is none, \
                                or the exclusion does not compile. It does not count for `safe`: recorded traffic may have attacks in it.",
                "required": ["id", "name", "total", "requests", "refused_before", "refused_after", "matched_before", "matched_after"],
                "properties": {
                    "id": { "type": "string" },
                    "name": { "type": "string" },
                    "total": { "type": "integer", "description": "The requests of the whole recording." },
                    "requests": { "type": "integer", "description": "Those that were replayed." },
                    "refused_before": { "type": "integer", "description": "Those that are refused without the exclusion, or would be if the config blocked." },
                    "refused_after": { "type": "integer", "description": "The same with the exclusion." },
                    "matched_before": { "type": "integer", "description": "Those in which the rule matches at the input of the match." },
                    "matched_after": { "type": "integer" },
                },
            },
            "recording_error": { "type": ["string", "null"], "description": "Why the recording could not be replayed." },
        },
    })
}

/// An input.
pub(super) fn target() -> Value {
    json!({
        "type": "object",
        "required": ["collection", "member", "full", "excludable"],
        "properties": {
            "collection": { "type": "string" },
            "member": { "type": ["string", "null"] },
            "full": { "type": "string" },
            "excludable": { "type": "boolean", "description": "An exclusion can name it; otherwise only the whole rule can be excluded." },
        },
    })
}

/// What `_matches` answers.
pub(super) fn matches() -> Value {
    json!({
        "type": "object",
        "required": ["store", "scope", "matches"],
        "properties": {
            "store": {
                "type": "object",
                "required": ["retained", "max"],
                "properties": { "retained": { "type": "integer" }, "max": { "const": 500 } },
            },
            "scope": { "const": "cluster", "description": "The matches of all gateways." },
            "matches": { "type": "array", "items": {
                "type": "object",
                "required": ["key", "id", "count", "rule_id", "target", "method", "path", "blocked"],
                "properties": {
                    "key": { "type": "string", "description": "`<config>|<rule>|<target>|<path>`." },
                    "id": { "type": "string", "description": "Stands for the key." },
                    "count": { "type": "integer", "description": "Exchanges." },
                    "would_block": { "type": "integer", "description": "Those that were refused, or would have been." },
                    "callers": { "type": "integer", "description": "Distinct callers, at most 256." },
                    "rule_id": { "type": "integer" },
                    "target": target(),
                    "method": { "type": "string" },
                    "path": { "type": "string", "description": "Without its query, identifiers as `{id}`." },
                    "blocked": { "type": "boolean", "description": "The last one was refused." },
                    "at": { "type": "integer", "description": "The first one, in milliseconds since 1970." },
                    "last_seen": { "type": "integer", "description": "The last one, in milliseconds since 1970." },
                    "references": { "type": "array", "items": { "type": "string" }, "description": "The ids of its last requests, the oldest first, at most 32." },
                    "config_ref": { "type": "string" },
                    "route_id": { "type": "string" },
                    "route_name": { "type": "string" },
                    "msg": { "type": "string" },
                    "phase": { "type": "integer" },
                    "matched_value": { "type": "string", "description": "Secrets are masked." },
                },
            } },
        },
    })
}

/// What `_propose` answers.
pub(super) fn proposed() -> Value {
    let proposal = json!({
        "type": "object",
        "required": ["kind", "placement", "title", "seclang", "reach", "reach_rank", "rationale", "still_caught", "no_longer_caught",
                     "recommended", "preview"],
        "properties": {
            "kind": { "enum": ["scoped_target", "update_target", "scoped_remove", "remove_rule"] },
            "placement": { "enum": ["before", "after"], "description": "Before the rules that it changes, or behind them." },
            "title": { "type": "string" },
            "seclang": { "type": "string" },
            "reach": { "type": "string", "description": "What it ends, in a sentence." },
            "reach_rank": { "type": "integer", "minimum": 1, "maximum": 4, "description": "1 is the narrowest." },
            "rationale": { "type": "string" },
            "still_caught": { "type": "integer", "description": "Known attacks." },
            "no_longer_caught": { "type": "integer", "description": "Known attacks." },
            "recommended": { "type": "boolean", "description": "The narrowest one that is safe." },
            "preview": { "$ref": "#/$defs/TuningPreview" },
        },
    });
    json!({
        "type": "object",
        "required": ["config", "rule_id", "target", "path", "sample_id", "others", "proposals"],
        "properties": {
            "config": { "type": "object", "required": ["id"], "properties": { "id": { "type": "string" } } },
            "sample_id": { "type": ["string", "null"], "description": "The match, for `_preview` and `_apply`; null where none is kept." },
            "others": { "type": "array", "items": { "type": "string" }, "description": "Ids of other matches of the request that was named." },
            "rule_id": { "type": "integer" },
            "target": target(),
            "path": { "type": "string" },
            "proposals": { "type": "array", "items": proposal },
        },
    })
}

/// An exclusion that was written or taken back.
pub(super) fn written() -> Value {
    json!({
        "type": "object",
        "required": ["ruleset_id", "ruleset_name", "ruleset_created", "config_updated", "exclusion", "entry"],
        "properties": {
            "ruleset_id": { "type": "string" },
            "ruleset_name": { "type": "string" },
            "ruleset_created": { "type": "boolean" },
            "config_updated": { "type": "boolean", "description": "The WAF config names the ruleset from now on." },
            "exclusion": { "type": "integer", "description": "Its number, for `_revert`." },
            "entry": { "type": "string", "description": "The rule, with a comment that says who wrote it, when and why." },
        },
    })
}

/// What `_apply` answers.
pub(super) fn applied() -> Value {
    json!({
        "type": "object",
        "required": ["done", "applied", "preview"],
        "properties": { "done": { "const": true }, "applied": written(), "preview": { "$ref": "#/$defs/TuningPreview" } },
    })
}

/// What `_revert` answers.
pub(super) fn reverted() -> Value {
    json!({
        "type": "object",
        "required": ["done", "reverted"],
        "properties": { "done": { "const": true }, "reverted": written() },
    })
}
