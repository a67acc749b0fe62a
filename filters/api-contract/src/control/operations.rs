//! The endpoints of the console: check a contract, fetch one. A call that asks for something impossible is answered with 200 and
//! `done: false`.

use contract::compile::{Options, compile};
use kit::{
    BodyKind, BodyRefusal, NamedSchema, Operation, OperationAnswer, OperationBody, OperationContext, OperationGroup,
    OperationMethod, View,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::ApiContract;
use super::runtime::AtWork;

/// The largest body of a check, in bytes: 32 MiB.
const MAX_CHECKED: usize = 32 << 20;
/// The most operations that an answer lists.
const MAX_LISTED: usize = 5000;

pub(super) const GROUP: OperationGroup = OperationGroup {
    name: "API contracts",
    about: "OpenAPI documents. Calls that fail are answered with 200 too, `done` being false.",
};
const FAILED: NamedSchema = NamedSchema { name: "ContractFailed", schema: failed_schema };
const REFUSAL: BodyRefusal = BodyRefusal { as_done: true, schema: FAILED, conflict: None, answer: failed };

/// The operations of the plugin.
pub(super) const OPERATIONS: &[Operation] = &[
    Operation {
        path: "/security/_contract_check",
        method: OperationMethod::Post,
        id: "contractCheck",
        group: &GROUP,
        summary: "Compile an API contract",
        description: "Compiles a document, or that of an entity, and lists its operations (at most 5,000) and what of it checks nothing. \
                      Nothing is saved.",
        body: BodyKind::of::<CheckBody>(),
        body_text: "Either `spec` with `base_path`, or `id`; at most 32 MiB.",
        max_body: MAX_CHECKED,
        example: || json!({ "spec": "openapi: 3.1.0\npaths: {/items: {get: {}}}", "base_path": "/api" }),
        answer_text: "What the contract has, or why it does not compile.",
        answer: checked_schema,
        schemas: &[FAILED],
        refusal: Some(REFUSAL),
        busy: "other contracts are being checked",
        at_once: false,
        audit: None,
    },
    Operation {
        path: "/security/_contract_fetch",
        method: OperationMethod::Post,
        id: "contractFetch",
        group: &GROUP,
        summary: "Fetch the text of an API contract",
        description: "One GET request with at most 3 redirects, 15 seconds and 5 MB. Private addresses are refused. Nothing is saved.",
        body: BodyKind::of::<FetchBody>(),
        body_text: "The URL, at most 8 KiB.",
        max_body: 8192,
        example: || json!({ "url": "https://shop.example/openapi.json" }),
        answer_text: "The text, or why there is none.",
        answer: fetched_schema,
        schemas: &[FAILED],
        refusal: Some(REFUSAL),
        busy: "other contracts are being fetched",
        at_once: false,
        audit: None,
    },
];

/// A contract to check.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct CheckBody {
    /// The document, JSON or YAML.
    spec: Option<String>,
    /// The prefix of its paths; empty means the path of its first server.
    #[serde(default)]
    base_path: String,
    /// The id of an API contract, in place of a document.
    id: Option<String>,
}

/// A contract to fetch.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct FetchBody {
    /// `http://` or `https://`.
    url: String,
}

impl OperationBody for CheckBody {
    const SCHEMA: &'static str = "ContractCheckBody";

    fn run(self, context: &OperationContext<'_>) -> OperationAnswer {
        let view = View::new(context.entities);
        let outcome = match (&self.spec, &self.id) {
            (Some(spec), None) => compile(spec, &self.base_path, Options { responses: true }),
            (None, Some(id)) => match view.get::<ApiContract>(id) {
                Some(item) => compile(&item.body.spec, &item.body.base_path, Options { responses: true }),
                None => return not_done(format!("there is no API contract `{}`", id.escape_debug())),
            },
            _ => return not_done("either `spec` or `id`"),
        };
        let compiled = match outcome {
            Ok(compiled) => compiled,
            Err(error) => return not_done(error.to_string()),
        };
        let operations = compiled.operations.iter().take(MAX_LISTED).map(|operation| {
            let parameters =
                operation.parameters.iter().map(|(place, name)| json!({ "in": place, "name": name })).collect::<Vec<_>>();
            json!({
                "method": operation.method,
                "path": operation.path,
                "operation_id": operation.operation_id,
                "parameters": parameters,
                "body": operation.body.as_ref().map(|(required, media)| json!({ "required": required, "media": media })),
                "responses": operation.responses,
            })
        });
        OperationAnswer::Done(json!({
            "done": true,
            "version": compiled.version,
            "base_path": compiled.base_path,
            "operations": operations.collect::<Vec<_>>(),
            "warnings": compiled.warnings,
        }))
    }
}

impl OperationBody for FetchBody {
    const SCHEMA: &'static str = "ContractFetchBody";

    fn run(self, context: &OperationContext<'_>) -> OperationAnswer {
        let Some(at_work) = context.runtime::<AtWork>() else { return not_done("this control plane fetches nothing") };
        match at_work.fetches.fetch(self.url) {
            Ok(spec) => OperationAnswer::Done(json!({ "done": true, "spec": spec })),
            Err(error) => not_done(error),
        }
    }
}

fn failed(error: &str) -> Value {
    json!({ "done": false, "error": error })
}

fn not_done(error: impl AsRef<str>) -> OperationAnswer {
    OperationAnswer::Done(failed(error.as_ref()))
}

fn failed_schema() -> Value {
    json!({
        "type": "object",
        "required": ["done", "error"],
        "properties": { "done": { "const": false }, "error": { "type": "string" } },
    })
}

fn checked_schema() -> Value {
    let operation = json!({
        "type": "object",
        "required": ["method", "path", "operation_id", "parameters", "body", "responses"],
        "properties": {
            "method": { "type": "string" },
            "path": { "type": "string", "description": "Without the base path." },
            "operation_id": { "type": "string", "description": "Empty where it has none." },
            "parameters": { "type": "array", "items": {
                "type": "object",
                "required": ["in", "name"],
                "properties": { "in": { "enum": ["path", "query", "header", "cookie"] }, "name": { "type": "string" } },
            } },
            "body": { "type": ["object", "null"], "required": ["required", "media"], "properties": {
                "required": { "type": "boolean" },
                "media": { "type": "array", "items": { "type": "string" } },
            } },
            "responses": { "type": "array", "items": { "type": "string" }, "description": "Statuses, classes, `default`." },
        },
    });
    let done = json!({
        "type": "object",
        "required": ["done", "version", "base_path", "operations", "warnings"],
        "properties": {
            "done": { "const": true },
            "version": { "type": "string" },
            "base_path": { "type": "string" },
            "operations": { "type": "array", "items": operation },
            "warnings": { "type": "array", "items": { "type": "string" }, "description": "What checks nothing, each with a JSON pointer." },
        },
    });
    json!({ "oneOf": [done, FAILED.reference()] })
}

fn fetched_schema() -> Value {
    let done = json!({
        "type": "object",
        "required": ["done", "spec"],
        "properties": { "done": { "const": true }, "spec": { "type": "string" } },
    });
    json!({ "oneOf": [done, FAILED.reference()] })
}
