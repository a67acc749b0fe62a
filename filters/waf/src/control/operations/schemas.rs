//! What the operations answer, as JSON Schemas.
#![allow(clippy::indexing_slicing, reason = "fields of JSON objects that are made here")]

use schemars::JsonSchema;
use serde_json::{Value, json};

use kit::NamedSchema;

/// Rules that do not compile, or a body that has none.
pub(super) const REFUSED: NamedSchema = NamedSchema { name: "RulesRefused", schema: refused };
/// The outcome of a trial.
pub(super) const RESULT: NamedSchema = NamedSchema { name: "TrialResult", schema: result };

/// What `_compile` answers.
pub(super) fn compiled() -> Value {
    let done = json!({
        "type": "object",
        "required": ["done", "missing_rulesets", "crs_ignored", "warning"],
        "properties": composed(),
    });
    json!({ "anyOf": [done, REFUSED.reference()] })
}

/// What `_test` answers.
pub(super) fn tested() -> Value {
    let mut properties = composed();
    properties["result"] = RESULT.reference();
    let done = json!({
        "type": "object",
        "required": ["done", "result", "missing_rulesets", "crs_ignored", "warning"],
        "properties": properties,
    });
    json!({ "anyOf": [done, REFUSED.reference()] })
}

/// What is said of rules that compile.
fn composed() -> Value {
    json!({
        "done": { "const": true },
        "missing_rulesets": { "type": "array", "items": { "type": "string" }, "description": "Ids without a ruleset." },
        "crs_ignored": { "type": "boolean", "description": "Options of the core rule set were given, but nothing imports it." },
        "warning": { "type": ["string", "null"], "description": "A setting that is valid but probably a mistake." },
    })
}

/// A ruleset where one is named.
pub(super) struct RulesetRefSchema;

impl JsonSchema for RulesetRefSchema {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "RulesetRef".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "description": "The id of a ruleset, or an object with it in `id` or `ref`.",
            "anyOf": [
                { "type": "string" },
                { "type": "object", "required": ["id"], "properties": { "id": { "type": "string" } } },
                { "type": "object", "required": ["ref"], "properties": { "ref": { "type": "string" } } },
            ],
        })
    }
}

/// Rules that do not compile, or a body that has none.
fn refused() -> Value {
    json!({
        "type": "object",
        "description": "The rules do not compile.",
        "required": ["done", "error", "errors"],
        "properties": {
            "done": { "const": false },
            "error": { "type": "string", "description": "The first error in one line." },
            "error_description": { "type": "string", "description": "The same, if the body is invalid." },
            "errors": {
                "type": "array",
                "items": {
                    "type": "object",
                    "required": ["index", "origin", "message"],
                    "properties": {
                        "index": { "type": "integer", "minimum": 0, "description": "Which element of the composition: the rules of the rulesets, the options of the core rule set if they apply, the rules." },
                        "origin": { "type": "string", "description": "The same as a description." },
                        "message": { "type": "string", "description": "The message with the line, a caret and a hint." },
                    },
                },
            },
        },
    })
}

/// What a trial came to.
fn result() -> Value {
    let text = || json!({ "type": ["string", "null"] });
    let number = || json!({ "type": ["integer", "null"] });
    let texts = || json!({ "type": "array", "items": { "type": "string" } });
    let object = |properties: Value| {
        let required: Vec<&String> = properties.as_object().into_iter().flat_map(|fields| fields.keys()).collect();
        json!({ "type": "object", "required": required, "properties": properties })
    };
    let demanded = object(
        json!({ "status": { "type": "integer" }, "msg": { "type": "string" }, "rule_id": { "type": "integer" } }),
    );
    let or_null = |schema: &Value| json!({ "anyOf": [schema, { "type": "null" }] });
    let mut disposition = object(json!({
        "action_type": { "enum": ["continue", "block"] },
        "status": number(), "msg": text(), "rule_id": number(), "phase": number(),
    }));
    disposition["properties"]["would_block"] = or_null(&demanded);
    disposition["properties"]["kind"] = json!({ "enum": ["deny", "drop", "redirect"] });
    disposition["properties"]["location"] = text();
    let event = object(json!({
        "rule_id": { "type": "integer" }, "phase": { "type": "integer" }, "msg": { "type": "string" },
        "logdata": { "type": "string" }, "severity": text(), "tags": texts(), "variable": { "type": "string" },
        "value": { "type": "string" },
    }));
    let matched = object(json!({ "variable": { "type": "string" }, "value": { "type": "string" } }));
    let rule = object(json!({
        "id": { "type": "integer" }, "phase": { "type": "integer" }, "msg": { "type": "string" }, "severity": text(),
        "tags": texts(), "data": { "type": "string" }, "matched": { "type": "array", "items": matched, "maxItems": 32 },
        "count": { "type": "integer", "minimum": 1 }, "disruptive": { "type": "boolean" }, "logged": { "type": "boolean" },
    }));
    let phase = object(json!({
        "phase": { "type": "integer", "minimum": 1, "maximum": 5 }, "name": { "type": "string" },
        "evaluated": { "type": "boolean" }, "rule_ids": { "type": "array", "items": { "type": "integer" } },
        "interruption": or_null(&demanded),
    }));
    let level = object(json!({ "paranoia_level": { "type": "integer" }, "inbound": number(), "outbound": number() }));
    let mut schema = object(json!({
        "disposition": disposition,
        "events": { "type": "array", "items": event, "description": "The logged matches in order." },
        "matched_rules": { "type": "array", "items": rule, "description": "Every rule that matched, once." },
        "phases": { "type": "array", "items": phase, "minItems": 5, "maxItems": 5 },
        "scores": object(json!({
            "inbound": number(), "outbound": number(), "total": { "type": "integer" },
            "inbound_threshold": number(), "outbound_threshold": number(),
            "detection": object(json!({ "inbound": number(), "outbound": number() })),
            "levels": { "type": "array", "items": level },
        })),
        "engine_mode": { "enum": ["on", "detection_only", "off"] },
    }));
    schema["description"] = json!("The outcome of the exchange. Strings of a match are cut at 256 bytes.");
    schema
}
