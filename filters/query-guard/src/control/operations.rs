//! The console's endpoint: which operations, methods and tools were asked for.

use kit::{
    BodyKind, NamedSchema, Operation, OperationAnswer, OperationBody, OperationContext, OperationGroup, OperationMethod,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::seen::{Counted, Key, MAX_OPERATIONS, Seen};

/// The operations of an answer where nothing is said.
const PAGE: usize = 1000;

const OPERATION: NamedSchema = NamedSchema { name: "SeenQueryOperation", schema: operation_schema };
const GROUP: OperationGroup =
    OperationGroup { name: "query endpoints", about: "What GraphQL, JSON-RPC and MCP endpoints are asked for." };

/// The operations of the plugin.
pub(super) const OPERATIONS: &[Operation] = &[Operation {
    path: "/query-guard/_operations",
    method: OperationMethod::Post,
    id: "queryOperations",
    group: &GROUP,
    summary: "Show which operations, methods and tools were asked for",
    description: "Those that were asked for most come first. Gateways report every 10 seconds; what was not asked for in 180 days is forgotten.",
    body: BodyKind::of::<QueryOperationsBody>(),
    body_text: "A JSON object, at most 4 KiB.",
    max_body: 4096,
    example: || json!({ "route": "shop" }),
    answer_text: "The operations, and how many there are.",
    answer: answer_schema,
    schemas: &[OPERATION],
    refusal: None,
    busy: "others are reading",
    at_once: true,
    audit: None,
}];

/// Which operations.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct QueryOperationsBody {
    /// Those of this route alone.
    route: Option<String>,
    /// Those of this endpoint alone.
    path: Option<String>,
    /// The operations of the answer, 1 to 10000. Default 1000.
    limit: usize,
}

impl Default for QueryOperationsBody {
    fn default() -> Self {
        Self { route: None, path: None, limit: PAGE }
    }
}

impl OperationBody for QueryOperationsBody {
    const SCHEMA: &'static str = "QueryOperationsBody";

    fn run(self, context: &OperationContext<'_>) -> OperationAnswer {
        let Some(seen) = context.runtime::<Seen>() else {
            return OperationAnswer::Done(json!({ "total": 0, "operations": [] }));
        };
        let fits = |wanted: &Option<String>, own: &str| wanted.as_deref().is_none_or(|wanted| wanted == own);
        let mut found: Vec<(Key, Counted)> = seen
            .operations()
            .iter()
            .filter(|((route, path, ..), _)| fits(&self.route, route) && fits(&self.path, path))
            .map(|(key, counted)| (key.clone(), *counted))
            .collect();
        found.sort_by(|(left, of_left), (right, of_right)| {
            of_right.count.cmp(&of_left.count).then_with(|| left.cmp(right))
        });
        let total = found.len();
        let shown =
            found.into_iter().take(self.limit.clamp(1, MAX_OPERATIONS)).map(|((route, path, kind, name), counted)| {
                json!({
                    "route": route, "path": path, "kind": kind, "name": name,
                    "count": counted.count, "mismatches": counted.mismatches,
                    "first_seen": counted.first, "last_seen": counted.last,
                })
            });
        OperationAnswer::Done(json!({ "total": total, "operations": shown.collect::<Vec<Value>>() }))
    }
}

fn operation_schema() -> Value {
    let text = || json!({ "type": "string" });
    let number = || json!({ "type": "integer", "minimum": 0 });
    let time = || json!({ "type": "integer", "description": "in milliseconds since 1970" });
    let kinds = ["query", "mutation", "subscription", "persisted", "method", "tool"];
    json!({
        "type": "object",
        "required": ["route", "path", "kind", "name", "count", "mismatches", "first_seen", "last_seen"],
        "properties": {
            "route": text(), "path": text(), "kind": { "enum": kinds }, "name": text(),
            "count": number(), "mismatches": number(), "first_seen": time(), "last_seen": time(),
        },
    })
}

fn answer_schema() -> Value {
    json!({
        "type": "object",
        "required": ["total", "operations"],
        "properties": {
            "total": { "type": "integer", "minimum": 0 },
            "operations": { "type": "array", "items": OPERATION.reference() },
        },
    })
}
