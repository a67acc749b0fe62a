//! The OpenAPI document, put together from the routes.
#![allow(clippy::indexing_slicing, reason = "fields of JSON objects that are made here")]

use serde_json::{Map, Value, json};

use super::operation::{Answer, JSON, Operation, Security, reference};
use super::routes::Routes;
use crate::names::{COOKIE, CSRF_HEADER, NAMESPACE};

/// What holds for all of it.
const ABOUT: &str = "The control plane's admin API: the entities that say what gateways do, many changes at once, what \
gateways report, and what the console's operators use.

- Entities and reports want an admin key as HTTP basic authentication: its id is the user name, its secret the password \
(`palisade admin-key create`). The console wants the cookie of a session and, for everything but reads, its token in \
`x-csrf-token`. Neither is accepted in the place of the other; the entities are on both sides.
- Errors are `{error, error_description}`: a word for programs and a sentence for people; `errors` has each wrong field.
- A path that does not exist is 404 `not_found`; a method that a path does not have is 405 `method_not_allowed` with `allow`. \
Every GET can be a HEAD. A request for a host that `--admin-host` does not list is 421 `wrong_host`. What is no HTTP is \
answered with 400, and headers that are too long with 431, without a body.
- A query with a parameter that is not described is answered with 400 `invalid_query`, which names those that are; only \
`/healthz`, `/readyz` and `/metrics` take any.
- A body of `application/x-ndjson` is one line of JSON for each entry of the array that its schema describes.
- Every answer has an `x-request-id`: the request's own where it is 1 to 128 of `A-Z a-z 0-9 . _ -`, else a new one.";

/// The document of these routes: OpenAPI 3.1, the same for the same release and entity group.
#[must_use]
pub fn document<S: Clone + Send + Sync + 'static>(routes: &Routes<S>) -> Value {
    let mut paths = Map::new();
    let mut groups: Vec<Value> = Vec::new();
    for operation in routes.operations() {
        let group = &operation.group;
        if !groups.iter().any(|known| known["name"] == group.name.as_str()) {
            groups.push(json!({ "name": group.name, "description": group.about }));
        }
        let path = paths.entry(operation.path.clone()).or_insert_with(|| json!({}));
        if let Some(methods) = path.as_object_mut() {
            methods.insert(operation.method.as_str().to_ascii_lowercase(), described(operation));
        }
    }
    let mut schemas = routes.schemas().clone();
    schemas.insert("Error".to_owned(), error());
    schemas.sort_keys();
    json!({
        "openapi": "3.1.1",
        "info": {
            "title": "Palisade admin API",
            "version": env!("CARGO_PKG_VERSION"),
            "summary": "The control plane of Palisade",
            "description": ABOUT,
            "license": { "name": "Apache-2.0", "identifier": "Apache-2.0" },
        },
        "jsonSchemaDialect": "https://json-schema.org/draft/2020-12/schema",
        "servers": [{ "url": "/", "description": "The control plane that this document comes from" }],
        "tags": groups,
        "paths": paths,
        "components": { "schemas": schemas, "headers": headers(), "securitySchemes": security_schemes() },
    })
}

fn described(operation: &Operation) -> Value {
    let mut described = Map::new();
    described.insert("operationId".to_owned(), operation.id.as_str().into());
    described.insert("tags".to_owned(), json!([operation.group.name]));
    described.insert("summary".to_owned(), operation.summary.as_str().into());
    if !operation.description.is_empty() {
        described.insert("description".to_owned(), operation.description.as_str().into());
    }
    described.insert("security".to_owned(), security(&operation.security));
    if let Some(role) = operation.role {
        described.insert("x-palisade-role".to_owned(), role.as_str().into());
    }
    if !operation.role_note.is_empty() {
        described.insert("x-palisade-role-note".to_owned(), operation.role_note.as_str().into());
    }
    if !operation.parameters.is_empty() {
        described.insert("parameters".to_owned(), operation.parameters.clone().into());
    }
    if let Some(body) = &operation.body {
        described.insert("requestBody".to_owned(), body.clone());
    }
    let answers: Map<String, Value> =
        operation.answers.iter().map(|(status, answer)| (status.to_string(), answered(answer))).collect();
    described.insert("responses".to_owned(), answers.into());
    described.into()
}

fn answered(answer: &Answer) -> Value {
    let mut headers =
        Map::from_iter([("x-request-id".to_owned(), json!({ "$ref": "#/components/headers/x-request-id" }))]);
    headers.extend(answer.headers.clone());
    let mut described = json!({ "description": answer.texts.join(" "), "headers": headers });
    let mut content = Map::new();
    if !answer.words.is_empty() {
        let mut schema = reference("Error");
        schema["properties"] = json!({ "error": { "enum": answer.words } });
        content.insert(JSON.to_owned(), json!({ "schema": schema }));
    }
    for (media_type, schema) in &answer.content {
        // Where both shapes can come, either will do.
        let schema = match content.shift_remove(*media_type) {
            Some(other) => json!({ "anyOf": [schema, other["schema"]] }),
            None => schema.clone(),
        };
        content.insert((*media_type).to_owned(), json!({ "schema": schema }));
    }
    if let Some(described) = described.as_object_mut() {
        if !content.is_empty() {
            described.insert("content".to_owned(), content.into());
        }
        if !answer.links.is_empty() {
            described.insert("links".to_owned(), answer.links.clone().into());
        }
    }
    described
}

fn security(security: &Security) -> Value {
    match security {
        Security::Open => json!([]),
        Security::AdminKey(scope) => json!([{ "adminKey": [scope] }]),
        Security::Session { csrf: false } => json!([{ "session": [] }]),
        Security::Session { csrf: true } => json!([{ "session": [], "csrf": [] }]),
    }
}

fn security_schemes() -> Value {
    json!({
        "adminKey": {
            "type": "http",
            "scheme": "basic",
            "description": "The id and the secret of an admin key. What an operation needs is one of the scopes `read`, \
                            `write` and `report`. A key that is revoked or has expired is refused from the next request \
                            on. After 10 wrong keys a minute from one address further wrong ones are 429.",
        },
        "session": {
            "type": "apiKey",
            "in": "cookie",
            "name": COOKIE,
            "description": format!("The session of an operator; `POST {NAMESPACE}/session/_login` sets it."),
        },
        "csrf": {
            "type": "apiKey",
            "in": "header",
            "name": CSRF_HEADER.as_str(),
            "description": "The `csrf_token` of the session, which login and `_me` answer.",
        },
    })
}

fn error() -> Value {
    json!({
        "type": "object",
        "description": "What went wrong.",
        "required": ["error", "error_description"],
        "properties": {
            "error": { "type": "string", "description": "A code for programs.", "pattern": "^[a-z_]+$" },
            "error_description": { "type": "string", "description": "A description for people." },
            "errors": {
                "type": "array",
                "description": "The faulty fields, if the fault is in fields.",
                "items": reference("FieldProblem"),
            },
        },
        "example": {
            "error": "invalid_entity",
            "error_description": "/enabled: invalid type: string \"yes\" (expected a boolean)",
            "errors": [{ "pointer": "/enabled", "message": "invalid type: string \"yes\"", "expected": "a boolean" }],
        },
    })
}

/// The headers of answers; each that need not be there also as `NAME.optional`.
fn headers() -> Value {
    let all = [
        (
            "x-request-id",
            json!({ "type": "string", "pattern": "^[A-Za-z0-9._-]{1,128}$" }),
            "The request's id, as the log has it.",
        ),
        (
            "etag",
            json!({ "type": "string", "pattern": "^\"[0-9]+\"$" }),
            "The revision of the entity, for `if-match` and `if-none-match`.",
        ),
        ("x-pages", json!({ "type": "integer", "minimum": 1 }), "How many pages there are."),
        ("x-total", json!({ "type": "integer", "minimum": 0 }), "How many entries there are on all pages."),
        ("location", json!({ "type": "string" }), "Where the new entity is."),
        (
            "x-palisade-warnings",
            json!({ "type": "string" }),
            "Warnings on the write, those about the written entity first: a JSON array of strings, in ASCII. At most 20 and 3072 bytes; the last entry then says how many more there are. Those about one entity begin with its collection, its id and a JSON pointer.",
        ),
        ("retry-after", json!({ "type": "integer", "minimum": 1 }), "Seconds to wait before a retry."),
        ("www-authenticate", json!({ "type": "string" }), "The expected authentication."),
        ("set-cookie", json!({ "type": "string" }), "The session's cookie, or its removal."),
        ("cache-control", json!({ "const": "no-store" }), "The answer must not be stored."),
        ("content-security-policy", json!({ "type": "string" }), "The page runs no script and loads nothing."),
    ];
    let mut headers = Map::new();
    for (name, schema, text) in all {
        headers.insert(name.to_owned(), json!({ "description": text, "required": true, "schema": schema }));
        headers.insert(format!("{name}.optional"), json!({ "description": text, "schema": schema }));
    }
    headers.into()
}
