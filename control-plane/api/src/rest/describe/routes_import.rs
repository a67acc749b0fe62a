//! The import of what an Envoy checks on routes.

use axum::http::{Method, StatusCode};
use serde_json::{Value, json};

use super::WARNINGS;
use super::collections::{Collection, Common as _};
use crate::openapi::{JSON, Operation, reference};

/// `routes/_import`.
pub(in crate::rest) fn import(of: Collection<'_>) -> Operation {
    let schema = json!({ "type": "object", "description": "A configuration of Envoy 1.40." });
    let text = json!({ "type": "string" });
    of.operation(Method::POST, "/_import", "import", "Import what an Envoy checks on routes")
        .describe(
            "Reads a bootstrap, a listener, a file of `resources`, or the `config_dump` of the admin interface, and notes on each \
             route which filters check credentials there (`credentials.envoy`), for the audit of credentials. Routes are found by \
             the name of the Envoy route; those that are missing are created, none is deleted. An import speaks for the listeners \
             that it has read. All changes are made at once, or none. Secrets of the configuration are not kept.",
        )
        .in_query("listener", json!({ "type": "string" }), "Only the listener of this name.")
        .switch("dry_run", "Say what would change, and change nothing.")
        .takes("The configuration, at most 50 MiB.", [(JSON, schema), ("application/yaml", text)])
        .example(json!({ "static_resources": { "listeners": [] } }))
        .answers(StatusCode::OK, "What was changed.", reference("RoutesImport"))
        .with_header(StatusCode::OK, &WARNINGS, false)
        .fails(StatusCode::BAD_REQUEST, "invalid_configuration", "the body is no configuration that can be used, or does not have the listener.")
        .fails(StatusCode::BAD_REQUEST, "invalid_entity", "a route cannot be as the configuration has it; `errors` has each field.")
        .fails(StatusCode::BAD_REQUEST, "invalid_query", "a query parameter is invalid or unknown.")
        .fails(StatusCode::BAD_REQUEST, "invalid_body", "the body ended early.")
        .fails(StatusCode::CONFLICT, "conflict", "a route with such an id was created in between; try again.")
        .fails(StatusCode::PRECONDITION_FAILED, "precondition_failed", "a route has changed in between; try again.")
        .fails(StatusCode::REQUEST_TIMEOUT, "too_slow", "the body was not received in time.")
        .fails(StatusCode::PAYLOAD_TOO_LARGE, "payload_too_large", "the body exceeds 50 MiB.")
        .fails(StatusCode::UNSUPPORTED_MEDIA_TYPE, "unsupported_media_type", "the body has another media type.")
        .store_may_refuse()
}

/// What an import is answered with.
pub(in crate::rest) fn answer() -> Value {
    let count = json!({ "type": "integer", "minimum": 0 });
    let text = json!({ "type": "string" });
    let may_be_absent = json!({ "type": ["string", "null"] });
    let difference = json!({
        "type": "object",
        "required": ["pointer", "before", "after"],
        "properties": {
            "pointer": { "type": "string", "description": "The field that differs: a JSON pointer." },
            "before": may_be_absent,
            "after": may_be_absent,
        },
    });
    let change = json!({
        "type": "object",
        "required": ["action", "id", "envoy_route", "differences"],
        "properties": {
            "action": { "enum": ["create", "change"] },
            "id": text,
            "envoy_route": { "type": "string", "description": "The name of the Envoy route." },
            "differences": { "type": "array", "items": difference },
        },
    });
    let warning = json!({
        "type": "object",
        "required": ["pointer", "message"],
        "properties": { "pointer": { "type": "string", "description": "A JSON pointer into the configuration." }, "message": text },
    });
    json!({
        "type": "object",
        "description": "What an import has changed, or would change.",
        "required": ["dry_run", "listeners", "created", "changed", "unchanged", "changes", "warnings", "more_warnings"],
        "properties": {
            "dry_run": { "type": "boolean" },
            "listeners": { "type": "array", "items": text, "description": "The listeners that were read." },
            "created": count,
            "changed": count,
            "unchanged": count,
            "changes": { "type": "array", "items": change },
            "warnings": { "type": "array", "items": warning, "description": "What was not understood, or is worth knowing." },
            "more_warnings": { "type": "integer", "minimum": 0, "description": "The warnings beyond those that are listed." },
        },
    })
}
