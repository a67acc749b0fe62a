//! The console's endpoints: known bots, robots.txt, and how the verification of crawlers is going.

use kit::{
    BodyKind, BodyRefusal, NamedSchema, Operation, OperationAnswer, OperationBody, OperationContext, OperationGroup,
    OperationMethod, View,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::fingerprints;
use super::robots::robots_txt;
use super::verify::Verification;
use super::{BotCategory, BotPolicy};

pub(super) const FAILED: NamedSchema = NamedSchema { name: "BotsFailed", schema: failed_schema };
const SIGNATURE: NamedSchema = NamedSchema { name: "KnownBotSignature", schema: signature };
const DIRECTORY_TYPES: [&str; 3] = ["directory", "jwks_uri", "cimd"];
const GROUP: OperationGroup = OperationGroup {
    name: "bots",
    about: "Known bots, and how they are verified. Calls that fail are answered with 200 too, `done` being false.",
};

/// The operations of the plugin.
pub(super) const OPERATIONS: &[Operation] = &[
    Operation {
        path: "/security/_bot_catalog",
        id: "botCatalog",
        summary: "Show every known bot signature",
        description: "A new bot policy has all of them.",
        answer: catalog,
        schemas: &[SIGNATURE],
        ..GET
    },
    Operation {
        path: "/security/_bot_status",
        id: "botStatus",
        summary: "Show how the verification of crawlers is going",
        body: BodyKind::of::<BotStatusBody>(),
        answer: status,
        ..GET
    },
    Operation {
        path: "/security/_robots_txt",
        method: OperationMethod::Post,
        id: "robotsTxt",
        summary: "Make the robots.txt that a bot policy enforces",
        description: "Bots that the policy denies, or gives a weight of 50 or more, are disallowed. Gateways serve it at /robots.txt if the policy \
                      has `serve_robots_txt`.",
        body: BodyKind::of::<RobotsTxtBody>(),
        example: || json!({ "policy": "bot-policy_site" }),
        answer_text: "Both texts, or why there are none.",
        answer: robots,
        busy: "others are being made",
        ..GET
    },
    fingerprints::list_operation(),
    fingerprints::decide_operation(),
];

/// What the operations share.
pub(super) const GET: Operation = Operation {
    path: "",
    method: OperationMethod::Get,
    id: "",
    group: &GROUP,
    summary: "",
    description: "",
    body: BodyKind::of::<BotCatalogBody>(),
    body_text: "A JSON object, at most 4 KiB.",
    max_body: 4096,
    example: || json!({}),
    answer_text: "All of it.",
    answer: catalog,
    schemas: &[],
    refusal: Some(BodyRefusal { as_done: true, schema: FAILED, conflict: None, answer: failed }),
    busy: "others are reading",
    at_once: false,
    audit: None,
};

/// Nothing.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct BotCatalogBody {}

/// Nothing.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct BotStatusBody {}

/// A policy.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RobotsTxtBody {
    /// The id of a bot policy.
    policy: String,
}

impl OperationBody for BotCatalogBody {
    const SCHEMA: &'static str = "BotCatalogBody";

    fn run(self, _context: &OperationContext<'_>) -> OperationAnswer {
        let entries = BotPolicy::known_signatures();
        OperationAnswer::Done(json!({ "categories": BotCategory::WORDS, "entries": entries }))
    }
}

impl OperationBody for BotStatusBody {
    const SCHEMA: &'static str = "BotStatusBody";

    fn run(self, context: &OperationContext<'_>) -> OperationAnswer {
        let runtime = context.runtime::<Verification>();
        let state = runtime.as_ref().and_then(|verification| verification.state());
        let lists = runtime.as_ref().map(|verification| verification.lists()).unwrap_or_default();
        let directories = runtime.map(|verification| verification.directories()).unwrap_or_default();
        OperationAnswer::Done(json!({ "verification": state, "ranges": lists, "key_directories": directories }))
    }
}

impl OperationBody for RobotsTxtBody {
    const SCHEMA: &'static str = "RobotsTxtBody";

    fn run(self, context: &OperationContext<'_>) -> OperationAnswer {
        let Some(policy) = View::new(context.entities).get::<BotPolicy>(&self.policy) else {
            let why = format!("there is no bot policy `{}`", self.policy.escape_debug());
            return OperationAnswer::Done(failed(&why));
        };
        let (robots, llms) = (robots_txt(&policy.body), &policy.llms_txt);
        OperationAnswer::Done(json!({ "done": true, "robots_txt": robots, "llms_txt": llms }))
    }
}

pub(super) fn failed(error: &str) -> Value {
    json!({ "done": false, "error": error })
}

pub(super) fn text() -> Value {
    json!({ "type": "string" })
}

fn list(items: Value) -> Value {
    json!({ "type": "array", "items": items })
}

/// An object that has all of these fields.
pub(super) fn object(properties: Value) -> Value {
    let names: Vec<String> = properties.as_object().into_iter().flat_map(|fields| fields.keys().cloned()).collect();
    json!({ "type": "object", "required": names, "properties": properties })
}

fn failed_schema() -> Value {
    object(json!({ "done": { "const": false }, "error": text() }))
}

fn signature() -> Value {
    object(json!({
        "name": text(),
        "category": { "enum": BotCategory::WORDS },
        "ua_contains": list(text()),
        "rdns_suffixes": list(text()),
        "homepage": text(),
        "verifiable": { "type": "boolean", "description": "it can be verified by reverse DNS" },
        "ip_ranges": { "type": "array", "items": text(), "description": "lists of addresses that its owner publishes" },
        "key_directory": { "type": "string", "description": "where the keys are that it signs requests with; empty for none" },
        "key_directory_type": { "enum": DIRECTORY_TYPES },
    }))
}

fn catalog() -> Value {
    object(json!({ "categories": list(text()), "entries": list(SIGNATURE.reference()) }))
}

fn status() -> Value {
    let count = |about: &str| json!({ "type": "integer", "minimum": 0, "description": about });
    let mut state = object(json!({
        "resolvers": list(text()),
        "error": { "type": ["string", "null"], "description": "why the resolvers fail; null while they work" },
        "verified": count("addresses that are those of the bot that they say they are"),
        "impersonators": count("addresses that are not"),
        "unverifiable": count("addresses of which it could not be found out"),
        "waiting": count("addresses that wait for their verification"),
        "dropped": count("addresses that were not taken in since the start, because too many waited"),
    }));
    if let Some(fields) = state.as_object_mut() {
        fields.insert("type".to_owned(), json!(["object", "null"]));
    }
    let list_of_ranges = object(json!({
        "url": text(),
        "bot": { "type": "string", "description": "the first bot that names it" },
        "in_force": { "type": "boolean", "description": "gateways verify by it" },
        "ranges": count("ranges of the list in force"),
        "fetched_at": { "type": ["integer", "null"], "description": "when it was fetched or found unchanged, in milliseconds since 1970" },
        "error": { "type": ["string", "null"], "description": "why the last fetch failed" },
    }));
    let directory = object(json!({
        "url": { "type": "string", "description": "what is fetched" },
        "type": { "enum": DIRECTORY_TYPES },
        "bot": { "type": "string", "description": "the first bot that names it" },
        "in_force": { "type": "boolean", "description": "gateways verify by it" },
        "keys": count("keys in force"),
        "ignored": count("keys that cannot be used: not of Ed25519, for another purpose, or known to everyone"),
        "fetched_at": { "type": ["integer", "null"], "description": "when it was fetched or found unchanged, in milliseconds since 1970" },
        "error": { "type": ["string", "null"], "description": "why the last fetch failed" },
    }));
    object(json!({ "verification": state, "ranges": list(list_of_ranges), "key_directories": list(directory) }))
}

fn robots() -> Value {
    let done = object(json!({ "done": { "const": true }, "robots_txt": text(), "llms_txt": text() }));
    json!({ "anyOf": [done, FAILED.reference()] })
}
