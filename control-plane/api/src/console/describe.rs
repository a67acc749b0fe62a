//! What the endpoints of the console are for, for the document of the API. See [`crate::openapi`] for how to add one.
#![allow(clippy::indexing_slicing, reason = "fields of JSON objects that are made here")]

use axum::http::{Method, StatusCode, header};
use schemars::JsonSchema;
use serde_json::{Value, json};

use crate::names::NAMESPACE;
use crate::openapi::{Group, JSON, Operation, Security, reference};

/// The endpoints of sessions.
fn sessions() -> Group {
    let about = "Operators log in to the console. The session is in a cookie; requests that change something also carry its \
                 CSRF token in `x-csrf-token`.";
    Group { name: "console: sessions".to_owned(), about: about.to_owned() }
}

/// The endpoints that rules are tried with.
fn rules() -> Group {
    let about = "Checks and tests of rules on the engine that gateways run, without storing them.";
    Group { name: "console: rules".to_owned(), about: about.to_owned() }
}

pub(super) fn login() -> Operation {
    operation(Method::POST, "/session/_login", "login", sessions(), "Log in")
        .takes("An operator's name and password.", [(JSON, reference("Login"))])
        .example(json!({ "name": "alice", "password": "correct horse battery" }))
        .answers(StatusCode::OK, "The session.", session(true))
        .with_header(StatusCode::OK, &header::SET_COOKIE, true)
        .reads_a_body()
        .fails(StatusCode::UNAUTHORIZED, "unauthorized", "the name is not known or the password is wrong.")
        .fails(
            StatusCode::TOO_MANY_REQUESTS,
            "too_many_failures",
            "too many failed logins from this address or for this name.",
        )
        .with_header(StatusCode::TOO_MANY_REQUESTS, &header::RETRY_AFTER, true)
        .fails(StatusCode::SERVICE_UNAVAILABLE, "busy", "too many logins at the same time.")
        .fails(StatusCode::INTERNAL_SERVER_ERROR, "no_randomness", "the operating system gives no random bytes.")
        .may_fail()
        .not_stored()
}

pub(super) fn me() -> Operation {
    operation(Method::GET, "/session/_me", "me", sessions(), "Show the session").answers(
        StatusCode::OK,
        "The session.",
        session(false),
    )
}

pub(super) fn logout() -> Operation {
    let done = json!({ "type": "object", "required": ["done"], "properties": { "done": { "const": true } } });
    operation(Method::POST, "/session/_logout", "logout", sessions(), "Log out")
        .answers(StatusCode::OK, "The session was ended.", done)
        .with_header(StatusCode::OK, &header::SET_COOKIE, true)
}

pub(super) fn compile() -> Operation {
    let done = json!({
        "type": "object",
        "required": ["done", "missing_rulesets", "crs_ignored", "warning"],
        "properties": composed(),
    });
    operation(Method::POST, "/utils/_compile", "compile", rules(), "Check whether rules work together")
        .describe("Checks what a WAF config with these fields would run. Rules that do not compile are answered with 200 and `done: false`.")
        .takes("The rules, at most 1 MiB.", [(JSON, reference("CompileBody"))])
        .example(json!({ "rules": ["@import_preset crs", "SecRule ARGS:coupon \"!@rx ^[A-Z]{8}$\" \"id:10001,phase:2,deny,status:403\""] }))
        .answers(StatusCode::OK, "The rules compile, or the reason why not.", json!({ "anyOf": [done, reference("RulesRefused")] }))
        .tries_rules()
}

pub(super) fn test() -> Operation {
    let mut properties = composed();
    properties["result"] = reference("TrialResult");
    let done = json!({
        "type": "object",
        "required": ["done", "result", "missing_rulesets", "crs_ignored", "warning"],
        "properties": properties,
    });
    operation(Method::POST, "/utils/_test", "test", rules(), "Try rules on a request")
        .describe("The exchange is processed as by the WAF filter. Rules that do not compile are answered as by `_compile`.")
        .takes("The rules and the exchange, at most 5 MiB.", [(JSON, reference("TestBody"))])
        .example(json!({
            "rules": ["@import_preset crs"],
            "request": { "method": "GET", "uri": "/search", "query": { "q": "1' UNION SELECT password FROM users-- -" } },
        }))
        .answers(StatusCode::OK, "The outcome, or why the rules do not compile.", json!({ "anyOf": [done, reference("RulesRefused")] }))
        .tries_rules()
}

/// Adds what [`super::protect`] demands and answers.
pub(super) fn protected(operation: Operation) -> Operation {
    let reads = matches!(*operation.method(), Method::GET | Method::HEAD);
    let operation = match reads {
        true => operation,
        false => operation.fails(StatusCode::FORBIDDEN, "csrf", "the header `x-csrf-token` is missing or wrong."),
    };
    operation
        .demands(Security::Session { csrf: !reads })
        .fails(StatusCode::UNAUTHORIZED, "unauthorized", "there is no session, or it has ended.")
        .with_header(StatusCode::UNAUTHORIZED, &header::WWW_AUTHENTICATE, true)
        .may_fail()
        .not_stored()
}

fn operation(method: Method, below: &str, id: &str, group: Group, summary: &str) -> Operation {
    Operation::new(method, format!("{NAMESPACE}{below}"), format!("console.{id}"), group, summary)
}

/// What several operations have.
trait Common {
    fn reads_a_body(self) -> Self;
    fn tries_rules(self) -> Self;
    fn may_fail(self) -> Self;
    fn not_stored(self) -> Self;
}

impl Common for Operation {
    fn reads_a_body(self) -> Operation {
        self.fails(StatusCode::BAD_REQUEST, "invalid_json", "the body is not JSON.")
            .fails(StatusCode::BAD_REQUEST, "invalid_body", "the body does not fit the endpoint.")
            .fails(StatusCode::REQUEST_TIMEOUT, "too_slow", "the body was not received in time.")
            .fails(StatusCode::PAYLOAD_TOO_LARGE, "payload_too_large", "the body is too large.")
            .fails(StatusCode::UNSUPPORTED_MEDIA_TYPE, "unsupported_media_type", "the body is not declared as JSON.")
    }

    fn tries_rules(self) -> Operation {
        let refused = || reference("RulesRefused");
        self.answers(StatusCode::BAD_REQUEST, "The body does not fit the endpoint.", refused())
            .answers(StatusCode::REQUEST_TIMEOUT, "The body was not received in time.", refused())
            .answers(StatusCode::PAYLOAD_TOO_LARGE, "The body is too large.", refused())
            .answers(StatusCode::UNSUPPORTED_MEDIA_TYPE, "The body is not declared as JSON.", refused())
            .fails(StatusCode::SERVICE_UNAVAILABLE, "busy", "other rules are being compiled.")
            .fails(StatusCode::SERVICE_UNAVAILABLE, "too_slow", "there was no answer within 30 seconds.")
            .fails(StatusCode::SERVICE_UNAVAILABLE, "failed", "the work was aborted.")
            .with_header(StatusCode::SERVICE_UNAVAILABLE, &header::RETRY_AFTER, false)
    }

    fn may_fail(self) -> Operation {
        self.fails(StatusCode::INTERNAL_SERVER_ERROR, "store_failed", "the store failed.")
            .fails(StatusCode::SERVICE_UNAVAILABLE, "shutting_down", "the control plane is stopping.")
            .fails(StatusCode::INSUFFICIENT_STORAGE, "insufficient_storage", "the volume or `--max-store-mib` is full.")
    }

    fn not_stored(self) -> Operation {
        let statuses = self.statuses();
        statuses.into_iter().fold(self, |operation, status| operation.with_header(status, &header::CACHE_CONTROL, true))
    }
}

/// What login and `_me` answer.
fn session(login: bool) -> Value {
    let mut schema = json!({
        "type": "object",
        "required": ["operator", "csrf_token", "created_at", "expires_at", "idle_seconds"],
        "properties": {
            "operator": {
                "type": "object",
                "required": ["name", "email"],
                "properties": { "name": { "type": "string" }, "email": { "type": "string" } },
            },
            "csrf_token": { "type": "string", "description": "For the header `x-csrf-token`." },
            "created_at": { "type": "string", "format": "date-time" },
            "expires_at": { "type": "string", "format": "date-time", "description": "The time at which it ends in any case." },
            "idle_seconds": { "type": "integer", "description": "Seconds without a request after which it ends." },
        },
    });
    if login {
        schema["properties"]["done"] = json!({ "const": true });
        schema["required"] = json!(["done", "operator", "csrf_token", "created_at", "expires_at", "idle_seconds"]);
    }
    schema
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
pub(super) fn refused() -> Value {
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
pub(super) fn result() -> Value {
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
