//! What the endpoints of the console are for, for the document of the API. See [`crate::openapi`] for how to add one.
#![allow(clippy::indexing_slicing, reason = "fields of JSON objects that are made here")]

use axum::http::{Method, StatusCode, header};
use serde_json::{Value, json};

use crate::names::NAMESPACE;
use crate::openapi::{Group, JSON, Operation, Security, reference};

/// The endpoints of sessions.
fn sessions() -> Group {
    let about = "Operators log in to the console. The session is in a cookie; requests that change something also carry its \
                 CSRF token in `x-csrf-token`.";
    Group { name: "console: sessions".to_owned(), about: about.to_owned() }
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

pub(super) fn operation(method: Method, below: &str, id: &str, group: Group, summary: &str) -> Operation {
    Operation::new(method, format!("{NAMESPACE}{below}"), format!("console.{id}"), group, summary)
}

/// What several operations have.
pub(super) trait Common {
    fn reads_a_body(self) -> Self;
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
