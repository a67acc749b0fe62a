//! Many changes in one request.
#![allow(clippy::indexing_slicing, reason = "fields of JSON objects that are made here")]

use axum::http::{Method, StatusCode};
use serde_json::{Value, json};

use super::WARNINGS;
use super::collections::Collection;
use crate::openapi::{NDJSON, Operation, component_name, reference};
use crate::rest::surface::Surface;
use entities::registry::KINDS;

/// The lines of a request, at most.
pub(in crate::rest) const MAX_LINES: usize = 10_000;

/// `_bulk` of one collection: what is done with each line.
pub(in crate::rest) fn collection(of: Collection<'_>, method: &Method) -> Operation {
    let entity = reference(&component_name(of.kind));
    let names = |more: Value| json!({ "type": "object", "required": ["id"], "properties": { "id": { "type": "string" } }, "description": more });
    let (action, summary, line) = match *method {
        Method::PUT => ("bulk_replace", "Replace many entities", json!({ "allOf": [entity, { "required": ["id"] }] })),
        Method::PATCH => {
            ("bulk_patch", "Change many entities", names(json!("A JSON merge patch with the id of the entity.")))
        }
        Method::DELETE => ("bulk_delete", "Delete many entities", names(json!("The id of the entity."))),
        _ => ("bulk_create", "Create many entities", entity),
    };
    bulk(of.operation(method.clone(), "/_bulk", action, summary), line, reference("BulkAnswer"))
}

/// `_bulk` over all collections.
pub(in crate::rest) fn everything(surface: Surface<'_>) -> Operation {
    let about = "Changes of any collections in one request, atomically or each by itself.";
    let of = surface.group("many changes", about);
    let (path, id) = (surface.path("/_bulk"), surface.id("bulk"));
    let operation = Operation::new(Method::POST, path, id, of, "Change entities of any collections");
    bulk(operation, reference("BulkChange"), reference("BulkAnswer"))
}

fn bulk(operation: Operation, line: Value, answer: Value) -> Operation {
    let lines = json!({ "type": "array", "minItems": 1, "maxItems": MAX_LINES, "items": line });
    let answers = json!({ "type": "array", "items": answer });
    let whole = "For an atomic batch: the status of the first faulty line, and the answers to all lines.";
    let mut operation = operation
        .describe(
            "One line of JSON per change and one line of the answer per change, in the same order; empty lines are ignored. Lines \
             are judged in their order, so that one may name an entity of a line before it. What is refused is left out; with \
             `atomic` one refused line refuses all, the others are 424 `not_applied`. There is one commit, with one new revision.",
        )
        .switch("atomic", "All or nothing.")
        .switch("dry_run", "Check all changes and write nothing.")
        .takes("The changes, one line each.", [(NDJSON, lines)])
        .answers_as(StatusCode::OK, "An answer for each line.", NDJSON, answers.clone())
        .with_header(StatusCode::OK, &WARNINGS, false)
        .fails(StatusCode::BAD_REQUEST, "invalid_query", "a query parameter is invalid or unknown.")
        .fails(StatusCode::BAD_REQUEST, "invalid_body", "the body has no lines, or ended early.")
        .fails(StatusCode::REQUEST_TIMEOUT, "too_slow", "the body was not received in time.")
        .fails(StatusCode::PAYLOAD_TOO_LARGE, "payload_too_large", "the body exceeds `--max-body-bytes`.")
        .fails(StatusCode::PAYLOAD_TOO_LARGE, "too_many_lines", &format!("there are more than {MAX_LINES} lines."))
        .fails(StatusCode::UNSUPPORTED_MEDIA_TYPE, "unsupported_media_type", "the body has another media type.");
    for status in [400, 404, 409, 412, 500, 503, 507].map(StatusCode::from_u16).into_iter().flatten() {
        operation = operation.answers_as(status, whole, NDJSON, answers.clone());
    }
    operation
}

/// A line of `_bulk` over all collections.
pub(in crate::rest) fn change() -> Value {
    let collections: Vec<&str> = KINDS.iter().map(|kind| kind.collection).collect();
    let id = json!({ "type": "string", "description": "The id of the entity; may be in `entity` or `patch` instead." });
    let collection = json!({ "enum": collections });
    let tag = json!({ "type": "string", "pattern": "^\"[0-9]+\"$", "description": "The ETag that the entity must still have." });
    let line = |op: &str, more: &[(&str, Value)], required: &[&str]| {
        let mut properties = json!({ "op": { "const": op }, "collection": collection });
        for (name, schema) in more {
            properties[*name] = schema.clone();
        }
        let required = [&["op", "collection"], required].concat();
        json!({ "type": "object", "title": op, "required": required, "properties": properties, "additionalProperties": false })
    };
    let entity = json!({ "type": "object", "description": "The document, of the collection's schema." });
    let patch = json!({
        "anyOf": [{ "type": "object", "description": "A JSON merge patch." }, reference("JsonPatch")],
    });
    json!({
        "description": "One change.",
        "oneOf": [
            line("create", &[("entity", entity.clone())], &["entity"]),
            line("update", &[("id", id.clone()), ("entity", entity), ("if_match", tag.clone())], &["entity"]),
            line("patch", &[("id", id.clone()), ("patch", patch), ("if_match", tag.clone())], &["patch"]),
            line("delete", &[("id", id), ("if_match", tag)], &["id"]),
        ],
    })
}

/// What a line is answered with.
pub(in crate::rest) fn answer() -> Value {
    json!({
        "type": "object",
        "description": "The outcome of one line.",
        "required": ["status"],
        "properties": {
            "status": { "type": "integer", "minimum": 200, "maximum": 599, "description": "The status of the line, as for a single request." },
            "id": { "type": "string", "description": "The id of the entity, if known." },
            "collection": { "type": "string", "description": "The collection, if lines name theirs." },
            "etag": { "type": "string", "pattern": "^\"[0-9]+\"$", "description": "The entity tag of the written entity." },
            "error": { "type": "string" },
            "error_description": { "type": "string" },
            "pointer": { "type": "string", "description": "The first faulty field." },
            "errors": { "type": "array", "items": reference("FieldProblem") },
        },
        "additionalProperties": false,
    })
}

/// A JSON Patch.
pub(in crate::rest) fn json_patch() -> Value {
    let pointer = json!({ "type": "string", "pattern": "^(/([^~]|~[01])*)*$" });
    let operation = |op: Value, more: Value, required: Value| {
        let mut properties = json!({ "op": op, "path": pointer });
        if let (Some(properties), Some(more)) = (properties.as_object_mut(), more.as_object()) {
            properties.extend(more.clone());
        }
        json!({ "type": "object", "required": required, "properties": properties })
    };
    json!({
        "type": "array",
        "description": "A JSON Patch (RFC 6902). It applies as a whole or not at all.",
        "items": {
            "oneOf": [
                operation(json!({ "enum": ["add", "replace", "test"] }), json!({ "value": {} }), json!(["op", "path", "value"])),
                operation(json!({ "enum": ["move", "copy"] }), json!({ "from": pointer }), json!(["op", "path", "from"])),
                operation(json!({ "const": "remove" }), json!({}), json!(["op", "path"])),
            ],
        },
    })
}
