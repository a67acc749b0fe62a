//! The entity collections.

use axum::http::{Method, StatusCode, header};
use serde_json::{Value, json};

use super::WARNINGS;
use crate::openapi::{FIELDS, JSON, Operation, component_name, reference};
use crate::query::PAGES;
use crate::rest::fields::Fields;
use crate::rest::list::DEFAULT_PAGE_SIZE;
use crate::rest::surface::Surface;
use entities::Kind;

/// Describes the operations of one collection.
#[derive(Clone, Copy)]
pub(in crate::rest) struct Collection<'a> {
    pub(in crate::rest) kind: &'static Kind,
    /// The side on which it is described.
    pub(in crate::rest) surface: Surface<'a>,
}

impl Collection<'_> {
    pub(in crate::rest) fn list(self) -> Operation {
        let entity = self.entity();
        let list = json!({ "type": "array", "items": entity });
        let parts = json!({ "type": "array", "items": reference(FIELDS) });
        let field = Fields::of_kind(self.kind).pattern();
        let sorted = listed(&format!("{field}(:asc|:desc)?"));
        self.operation(Method::GET, "", "list", "List the entities")
            .paged("Entities")
            .in_query("sorted", json!({ "type": "string", "pattern": sorted, "examples": ["name:desc,id"] }), "Fields to sort by, separated by commas; `:desc` after a field reverses its order.")
            .in_query("filter.id", json!({ "type": "string" }), "Only the entity with this id.")
            .in_query("filter.name", json!({ "type": "string" }), "Only entities with this name. Any field can follow `filter.`, with dots for nested fields; of a list, one entry must have the value.")
            .in_query("filter.tags", json!({ "type": "string" }), "Only entities with this tag.")
            .in_query_from("filter.")
            .shaped(self.kind)
            .answers(StatusCode::OK, "The entities.", either(list, parts))
            .with_header(StatusCode::OK, &PAGES, true)
            .fails(StatusCode::BAD_REQUEST, "invalid_query", "a query parameter is invalid or unknown.")
    }

    pub(in crate::rest) fn create(self) -> Operation {
        let about = match self.kind.singleton {
            Some(id) => format!(
                "There is exactly one {}: every document is answered with 409. PUT or PATCH `{id}`.",
                self.kind.kind
            ),
            None => format!(
                "Without an `id` it gets `{}_` and a UUID. Fields that the document leaves out have their defaults.",
                self.kind.id_prefix
            ),
        };
        let operation = self
            .operation(Method::POST, "", "create", "Create an entity")
            .describe(about)
            .takes("The document.", [(JSON, self.entity())])
            .example(self.kind.template());
        let operation = match self.kind.singleton {
            Some(_) => operation,
            None => self
                .written(operation, StatusCode::CREATED, "The entity after the change.")
                .with_header(StatusCode::CREATED, &header::LOCATION, true)
                .leads_to(StatusCode::CREATED, &self.id("read"), "id", "/id")
                .leads_to(StatusCode::CREATED, &self.id("replace"), "id", "/id")
                .leads_to(StatusCode::CREATED, &self.id("patch"), "id", "/id")
                .leads_to(StatusCode::CREATED, &self.id("delete"), "id", "/id")
                .fails(StatusCode::BAD_REQUEST, "invalid_entity", "the document is wrong; `errors` has each field.")
                .store_may_refuse(),
        };
        operation.fails(StatusCode::CONFLICT, "conflict", "an entity with this id exists already.").reads_a_body()
    }

    pub(in crate::rest) fn read(self) -> Operation {
        let operation = self.operation(Method::GET, "/{id}", "read", "Read an entity").shaped(self.kind);
        self.one(operation)
            .in_header("if-none-match", json!({ "type": "string" }), "Entity tags of the caller's copies, or `*`.")
            .answers(
                StatusCode::OK,
                "The entity; secrets in it are shown as `********`.",
                either(self.entity(), reference(FIELDS)),
            )
            .with_header(StatusCode::OK, &header::ETAG, true)
            .answers_nothing(StatusCode::NOT_MODIFIED, "The caller's copy is current.")
            .with_header(StatusCode::NOT_MODIFIED, &header::ETAG, true)
            .fails(StatusCode::BAD_REQUEST, "invalid_query", "a query parameter is invalid or unknown.")
    }

    pub(in crate::rest) fn replace(self) -> Operation {
        let operation = self
            .operation(Method::PUT, "/{id}", "replace", "Replace an entity")
            .describe("Fields that the document leaves out get their defaults; a secret sent as `********` is kept.")
            .takes("The document; its `id` may be left out.", [(JSON, self.entity())])
            .example(self.kind.template());
        self.update(operation)
    }

    pub(in crate::rest) fn patch(self) -> Operation {
        let merge = json!({ "type": "object", "description": "A JSON merge patch (RFC 7396)." });
        let either = json!({ "anyOf": [merge, reference("JsonPatch")] });
        let operation = self
            .operation(Method::PATCH, "/{id}", "patch", "Change an entity")
            .describe("An object is a JSON merge patch (RFC 7396): null resets a field to its default. An array is a JSON Patch (RFC 6902).")
            .takes(
                "The patch.",
                [("application/merge-patch+json", merge.clone()), ("application/json-patch+json", reference("JsonPatch")), (JSON, either)],
            )
            .example(json!({ "description": "another one" }))
            .fails(StatusCode::BAD_REQUEST, "invalid_patch", "the body is not a patch, or cannot be applied to the entity.")
            .fails(StatusCode::CONFLICT, "patch_test_failed", "a `test` of the JSON Patch does not hold.");
        self.update(operation)
    }

    pub(in crate::rest) fn delete(self) -> Operation {
        let about = match self.kind.singleton {
            Some(_) => {
                format!(
                    "The {} always exists: this is answered with 409. PUT `{{}}` resets it to its defaults.",
                    self.kind.kind
                )
            }
            None => "An entity that others refer to is not deleted: 409 with these references.".to_owned(),
        };
        let operation = self
            .operation(Method::DELETE, "/{id}", "delete", "Delete an entity")
            .describe(about)
            .switch("force", "Delete it although others refer to it.")
            .fails(StatusCode::BAD_REQUEST, "invalid_query", "a query parameter is invalid or unknown.")
            .fails(
                StatusCode::CONFLICT,
                "in_use",
                "others refer to it, or it cannot be deleted; `errors` has the references.",
            );
        let operation = self.one(operation).conditional().store_may_refuse();
        match self.kind.singleton {
            Some(_) => operation,
            None => self.written(operation, StatusCode::OK, "The entity before it was deleted."),
        }
    }

    pub(in crate::rest) fn count(self) -> Operation {
        let schema = json!({
            "type": "object",
            "required": ["count"],
            "properties": { "count": { "type": "integer", "minimum": 0 } },
        });
        self.operation(Method::GET, "/_count", "count", "Count the entities")
            .answers(StatusCode::OK, "How many there are.", schema)
            .pretty()
    }

    pub(in crate::rest) fn schema(self) -> Operation {
        let schema = json!({
            "type": "object",
            "required": ["$schema", "title", "properties"],
            "properties": { "title": { "const": self.kind.kind }, "properties": { "type": "object" } },
        });
        self.operation(Method::GET, "/_schema", "schema", "The JSON Schema of the documents")
            .describe("The schema of this document, as a document of its own (2020-12).")
            .answers(StatusCode::OK, "The schema.", schema)
            .pretty()
    }

    pub(in crate::rest) fn template(self) -> Operation {
        self.operation(Method::GET, "/_template", "template", "A document to start from")
            .answers(StatusCode::OK, "Every field with its default, without an id.", json!({ "type": "object" }))
            .pretty()
    }

    /// Of one entity.
    pub(super) fn one(self, operation: Operation) -> Operation {
        let kind = self.kind;
        let schema = match kind.singleton {
            Some(id) => json!({ "const": id }),
            None => json!({
                "type": "string",
                "pattern": "^[A-Za-z0-9.-][A-Za-z0-9._-]{0,127}$",
                "examples": [format!("{}_2f0c7d1e-5a0b-4c55-9d2a-6f3f1f7f9a10", kind.id_prefix)],
            }),
        };
        operation
            .in_path("id", schema, "The id of the entity.")
            .fails(StatusCode::BAD_REQUEST, "invalid_path", "the id is not UTF-8.")
            .fails(StatusCode::NOT_FOUND, "not_found", "there is no entity with this id.")
    }

    pub(super) fn update(self, operation: Operation) -> Operation {
        let operation = self
            .one(operation)
            .conditional()
            .fails(StatusCode::BAD_REQUEST, "invalid_entity", "the document is wrong; `errors` has each field.")
            .reads_a_body()
            .store_may_refuse();
        self.written(operation, StatusCode::OK, "The entity after the change.")
    }

    fn written(self, operation: Operation, status: StatusCode, text: &str) -> Operation {
        operation
            .answers(status, text, self.entity())
            .with_header(status, &header::ETAG, true)
            .with_header(status, &WARNINGS, false)
    }

    pub(super) fn entity(self) -> Value {
        reference(&component_name(self.kind))
    }

    fn id(self, action: &str) -> String {
        self.surface.id(&format!("{}.{action}", self.kind.collection))
    }

    /// An operation of this collection; `below` follows the path of the collection.
    pub(in crate::rest) fn operation(self, method: Method, below: &str, action: &str, summary: &str) -> Operation {
        let Collection { kind, surface } = self;
        let about = entities::registry::schema(kind).get("description").and_then(Value::as_str).unwrap_or_default();
        let path = surface.path(&format!("/{}{below}", kind.collection));
        Operation::new(method, path, self.id(action), surface.group(kind.collection, about), summary)
    }
}

/// The parameters and answers that several operations have.
pub(in crate::rest) trait Common: Sized {
    /// Answers of any shape that a caller may ask for.
    fn shaped(self, kind: &Kind) -> Self;
    /// The parameters of a list that has pages; `entries` are what it lists.
    fn paged(self, entries: &str) -> Self;
    /// An answer with line ends.
    fn pretty(self) -> Self;
    /// `if-match`.
    fn conditional(self) -> Self;
    /// What can be wrong with a JSON body before it is looked into.
    fn reads_a_body(self) -> Self;
    /// A write.
    fn store_may_refuse(self) -> Self;
}

impl Common for Operation {
    fn shaped(self, kind: &Kind) -> Operation {
        let pattern = listed(&Fields::of_kind(kind).pattern());
        self.in_query(
            "fields",
            json!({ "type": "string", "pattern": pattern, "examples": ["id,name,metadata.team"] }),
            "Only these fields, separated by commas; dots address nested fields.",
        )
        .switch("envelope", "Answer `{\"data\": …}`.")
        .switch("pretty", "Indented, with line breaks.")
    }

    fn paged(self, entries: &str) -> Operation {
        let number = json!({ "type": "integer", "minimum": 1, "maximum": u32::MAX });
        let size = format!(
            "{entries} per page. Without `page` and `pageSize` there is one page with all; with `page` alone {DEFAULT_PAGE_SIZE}."
        );
        self.in_query("page", number.clone(), "The page, from 1.").in_query("pageSize", number, &size)
    }

    fn pretty(self) -> Operation {
        self.switch("pretty", "Indented, with line breaks.").fails(
            StatusCode::BAD_REQUEST,
            "invalid_query",
            "a query parameter is invalid or unknown.",
        )
    }

    fn conditional(self) -> Operation {
        self.in_header(
            "if-match",
            json!({ "type": "string", "examples": ["\"7\""] }),
            "Only if the entity still has one of these entity tags; `*` means any.",
        )
        .fails(StatusCode::PRECONDITION_FAILED, "precondition_failed", "the entity has changed since.")
    }

    fn reads_a_body(self) -> Operation {
        self.fails(StatusCode::BAD_REQUEST, "invalid_json", "the body is not JSON.")
            .fails(StatusCode::BAD_REQUEST, "invalid_body", "the body ended early.")
            .fails(StatusCode::REQUEST_TIMEOUT, "too_slow", "the body was not received in time.")
            .fails(StatusCode::PAYLOAD_TOO_LARGE, "payload_too_large", "the body exceeds `--max-body-bytes`.")
            .fails(StatusCode::UNSUPPORTED_MEDIA_TYPE, "unsupported_media_type", "the body has another media type.")
    }

    fn store_may_refuse(self) -> Operation {
        self.fails(
            StatusCode::INSUFFICIENT_STORAGE,
            "insufficient_storage",
            "the volume or `--max-store-mib` is full; nothing was written.",
        )
        .fails(
            StatusCode::SERVICE_UNAVAILABLE,
            "busy",
            "other control planes change entities all the time; nothing was written.",
        )
    }
}

/// A regular expression of words separated by commas; none at all is taken as well.
fn listed(word: &str) -> String {
    format!("^( *{word} *(, *{word} *)*)?$")
}

/// The whole or a part, or either in an envelope.
fn either(whole: Value, part: Value) -> Value {
    let data = json!({ "anyOf": [whole, part] });
    let envelope = json!({
        "type": "object",
        "description": "With `envelope`.",
        "required": ["data"],
        "properties": { "data": data },
        "additionalProperties": false,
    });
    json!({ "anyOf": [whole, part, envelope] })
}
