//! The history of entities.

use axum::http::{Method, StatusCode};
use serde_json::{Value, json};

use super::collections::{Collection, Common as _};
use crate::openapi::{JSON, Operation, reference};
use crate::query::PAGES;
use store::AuthorKind;
use store::history::MAX_VERSIONS;

impl Collection<'_> {
    pub(in crate::rest) fn history(self) -> Operation {
        let operation = self
            .operation(Method::GET, "/{id}/_history", "history", "List the versions of an entity")
            .describe(format!(
                "Newest first, without their documents; at most {MAX_VERSIONS}. Those of a deleted entity are listed for 90 days."
            ));
        self.one(list(operation, "Versions", "EntityVersion"))
    }

    pub(in crate::rest) fn deleted(self) -> Operation {
        let operation = self
            .operation(Method::GET, "/_deleted", "deleted", "List the deleted entities that can be restored")
            .describe("The last deleted first. `_revert` of an entity to its `last_version` creates it again.");
        list(operation, "Deleted entities", "DeletedEntity")
    }

    pub(in crate::rest) fn version(self) -> Operation {
        let document = json!({ "anyOf": [self.entity(), { "type": "null" }] });
        let more = json!({
            "type": "object",
            "required": ["document", "problems"],
            "properties": {
                "document": document,
                "problems": {
                    "anyOf": [{ "type": "array", "items": reference("FieldProblem") }, { "type": "null" }],
                    "description": "Where this release cannot read the document, which is null then.",
                },
                "changes": { "anyOf": [reference("VersionChanges"), { "type": "null" }] },
            },
        });
        let operation = self
            .operation(Method::GET, "/{id}/_history/{version}", "version", "Read a version of an entity")
            .in_path("version", json!({ "type": "integer", "minimum": 1 }), "The number of the version.")
            .in_query(
                "since",
                json!({ "type": "integer", "minimum": 1 }),
                "Another version: `changes` says what makes this one of it.",
            )
            .answers(
                StatusCode::OK,
                "The version; `document` is null for a deletion, and secrets are shown as `********`.",
                json!({ "allOf": [reference("EntityVersion"), more] }),
            )
            .pretty();
        self.one(operation)
    }

    pub(in crate::rest) fn revert(self) -> Operation {
        let body = json!({
            "type": "object",
            "required": ["version"],
            "properties": { "version": { "type": "integer", "minimum": 1 } },
            "additionalProperties": false,
        });
        let operation = self
            .operation(Method::POST, "/{id}/_revert", "revert", "Write a version of an entity again")
            .describe(
                "The document of the version is checked as in a PUT and becomes a new version, with the secrets that it had. An \
                 entity that was deleted is created again; `if-match` does not hold for it.",
            )
            .takes("The version.", [(JSON, body)])
            .example(json!({ "version": 7 }));
        self.update(operation)
    }
}

/// A list of these, in pages.
fn list(operation: Operation, entries: &str, of: &str) -> Operation {
    operation
        .paged(entries)
        .answers(StatusCode::OK, &format!("{entries}."), json!({ "type": "array", "items": reference(of) }))
        .with_header(StatusCode::OK, &PAGES, true)
        .pretty()
}

/// A version without its document.
pub(in crate::rest) fn version() -> Value {
    let kinds: Vec<&str> = AuthorKind::ALL.iter().map(|kind| kind.as_str()).filter(|kind| *kind != "unknown").collect();
    let text = json!({ "type": ["string", "null"] });
    json!({
        "type": "object",
        "description": "A change of an entity.",
        "required": ["version", "at", "author", "action", "detail", "in_force"],
        "properties": {
            "version": { "type": "integer", "minimum": 1, "description": "The revision of the change, which was the ETag of the entity." },
            "at": { "type": ["string", "null"], "format": "date-time", "description": "Null if the entity is older than its history." },
            "author": {
                "description": "Null if not known.",
                "anyOf": [{
                    "type": "object",
                    "required": ["kind", "id", "name"],
                    "properties": {
                        "kind": { "enum": kinds },
                        "id": { "type": ["string", "null"], "description": "The id of the admin key, or the name of the operator." },
                        "name": { "type": ["string", "null"], "description": "The name of the admin key." },
                    },
                }, { "type": "null" }],
            },
            "action": { "enum": ["create", "replace", "patch", "delete", "revert", "unknown"] },
            "detail": text,
            "in_force": { "type": "boolean", "description": "Whether the entity is this version." },
        },
    })
}

/// An entity that was deleted.
pub(in crate::rest) fn deleted() -> Value {
    let own = json!({
        "type": "object",
        "required": ["id", "last_version"],
        "properties": {
            "id": { "type": "string" },
            "last_version": { "type": "integer", "minimum": 1, "description": "The version with the last document." },
        },
    });
    json!({ "description": "The version that deleted an entity.", "allOf": [reference("EntityVersion"), own] })
}

/// What has changed between two versions.
pub(in crate::rest) fn changes() -> Value {
    json!({
        "type": "object",
        "description": "What makes one version of another; null if one of them cannot be read.",
        "required": ["since", "patch", "secrets"],
        "properties": {
            "since": { "type": "integer", "minimum": 1, "description": "The other version." },
            "patch": reference("JsonPatch"),
            "secrets": {
                "type": "array",
                "items": { "type": "string" },
                "description": "The pointers of secrets that differ, though both versions show them as `********`.",
            },
        },
    })
}
