//! What the endpoints of the console are for, for the document of the API. See [`crate::openapi`] for how to add one.

use axum::http::{Method, StatusCode, header};
use serde_json::{Value, json};

use super::roles;
use crate::names::NAMESPACE;
use crate::openapi::{Group, JSON, Operation, Security, reference};
use accounts::Role;

/// The endpoints of sessions.
pub(super) fn sessions() -> Group {
    let about = "Operators log in to the console. The session is in a cookie; requests that change something also carry its \
                 CSRF token in `x-csrf-token`. `x-palisade-role` of an operation is the least role that may call it: `viewer`, \
                 `analyst` or `admin`.";
    Group { name: "console: sessions".to_owned(), about: about.to_owned() }
}

pub(super) fn login() -> Operation {
    operation(Method::POST, "/session/_login", "login", sessions(), "Log in")
        .takes("An operator's name and password.", [(JSON, reference("Login"))])
        .example(json!({ "name": "alice", "password": "correct horse battery" }))
        .answers(StatusCode::OK, "The session, or the ticket of the second step.", first_step())
        .fails(StatusCode::UNAUTHORIZED, "unauthorized", "the name is not known or the password is wrong.")
        .fails(StatusCode::SERVICE_UNAVAILABLE, "busy", "too many logins at the same time.")
        .logs_in(false)
}

pub(super) fn redeem() -> Operation {
    operation(Method::POST, "/session/_redeem", "redeem", sessions(), "Log in by a login link")
        .describe("A link works once, within ten minutes.")
        .takes("The token of the link.", [(JSON, reference("Redeem"))])
        .example(json!({ "token": "k4Yc3vQm0l0yXq1b0n9d6Jw5pT8sRz2uEo7hGf4iA1c" }))
        .answers(StatusCode::OK, "The session, or the ticket of the second step.", first_step())
        .fails(StatusCode::UNAUTHORIZED, "unauthorized", "the link is not known, was used, or has expired.")
        .logs_in(false)
}

pub(super) fn login_code() -> Operation {
    operation(Method::POST, "/session/_login_code", "loginCode", sessions(), "Log in: the second step")
        .describe("For operators with a second factor. A ticket ends after five minutes or five wrong codes.")
        .takes("The ticket and a code.", [(JSON, reference("LoginCode"))])
        .example(json!({ "ticket": "k4Yc3vQm0l0yXq1b0n9d6Jw5pT8sRz2uEo7hGf4iA1c", "code": "123456" }))
        .answers(StatusCode::OK, "The session.", session(true))
        .fails(StatusCode::UNAUTHORIZED, "unauthorized", "the code is wrong or was used before.")
        .fails(StatusCode::UNAUTHORIZED, "ticket_ended", "the ticket is not known or has ended.")
        .may_be_locked()
        .logs_in(true)
}

pub(super) fn me() -> Operation {
    operation(Method::GET, "/session/_me", "me", sessions(), "Show the session").answers(
        StatusCode::OK,
        "The session.",
        session(false),
    )
}

pub(super) fn logout() -> Operation {
    let url = json!({ "type": ["string", "null"], "description": "Where the browser goes to end its session at the provider." });
    post("/session/_logout", "logout", sessions(), "Log out")
        .describe("Where the session was begun at the login provider, `url` is the provider's own logout; null if there is none.")
        .answers(StatusCode::OK, "The session was ended.", done(json!({ "url": url })))
        .with_header(StatusCode::OK, &header::SET_COOKIE, true)
}

/// Adds what [`super::protect`] demands and answers.
pub(super) fn protected(operation: Operation) -> Operation {
    let reads = matches!(*operation.method(), Method::GET | Method::HEAD);
    let operation = match reads {
        true => operation,
        false => operation.fails(StatusCode::FORBIDDEN, "csrf", "the header `x-csrf-token` is missing or wrong."),
    };
    let operation = match roles::is_own_account(operation.path()) {
        true => operation,
        false => operation.fails(
            StatusCode::FORBIDDEN,
            "second_factor_required",
            "a second factor is required and the operator has none.",
        ),
    };
    roles::describe(operation)
        .demands(Security::Session { csrf: !reads })
        .fails(StatusCode::UNAUTHORIZED, "unauthorized", "there is no session, or it has ended.")
        .with_header(StatusCode::UNAUTHORIZED, &header::WWW_AUTHENTICATE, true)
        .may_fail()
        .not_stored()
}

pub(super) fn operation(method: Method, below: &str, id: &str, group: Group, summary: &str) -> Operation {
    Operation::new(method, format!("{NAMESPACE}{below}"), format!("console.{id}"), group, summary)
}

/// [`operation`] of a POST.
pub(super) fn post(below: &str, id: &str, group: Group, summary: &str) -> Operation {
    operation(Method::POST, below, id, group, summary)
}

/// An object with these properties, all of which are there.
pub(super) fn object(properties: Value) -> Value {
    let required: Vec<&String> = properties.as_object().into_iter().flat_map(|fields| fields.keys()).collect();
    json!({ "type": "object", "required": required, "properties": properties })
}

/// [`object`] with `done: true` in front.
pub(super) fn done(properties: Value) -> Value {
    let mut all = json!({ "done": { "const": true } });
    if let (Some(all), Value::Object(properties)) = (all.as_object_mut(), properties) {
        all.extend(properties);
    }
    object(all)
}

/// What several operations have.
pub(super) trait Common {
    /// A way to log in; `always`: every answer of 200 sets the cookie.
    fn logs_in(self, always: bool) -> Self;
    fn asks_for_the_password(self) -> Self;
    fn asks_for_a_code(self) -> Self;
    fn may_be_locked(self) -> Self;
    fn reads_a_body(self) -> Self;
    fn may_fail(self) -> Self;
    fn not_stored(self) -> Self;
}

impl Common for Operation {
    fn logs_in(self, always: bool) -> Operation {
        self.with_header(StatusCode::OK, &header::SET_COOKIE, always)
            .reads_a_body()
            .fails(
                StatusCode::TOO_MANY_REQUESTS,
                "too_many_failures",
                "too many failed logins from this address or for this name.",
            )
            .with_header(StatusCode::TOO_MANY_REQUESTS, &header::RETRY_AFTER, true)
            .fails(StatusCode::INTERNAL_SERVER_ERROR, "no_randomness", "the operating system gives no random bytes.")
            .may_fail()
            .not_stored()
    }

    fn asks_for_the_password(self) -> Operation {
        self.fails(StatusCode::FORBIDDEN, "wrong_password", "the current password is missing or wrong.")
            .fails(StatusCode::TOO_MANY_REQUESTS, "too_many_failures", "too many wrong passwords or codes.")
            .with_header(StatusCode::TOO_MANY_REQUESTS, &header::RETRY_AFTER, true)
            .fails(StatusCode::SERVICE_UNAVAILABLE, "busy", "too many logins at the same time.")
    }

    fn asks_for_a_code(self) -> Operation {
        self.fails(StatusCode::FORBIDDEN, "wrong_code", "the code is wrong or was used before.")
            .fails(StatusCode::TOO_MANY_REQUESTS, "too_many_failures", "too many wrong passwords or codes.")
            .with_header(StatusCode::TOO_MANY_REQUESTS, &header::RETRY_AFTER, true)
            .may_be_locked()
    }

    fn may_be_locked(self) -> Operation {
        self.fails(
            StatusCode::SERVICE_UNAVAILABLE,
            "second_factor_locked",
            "the secret of the app is encrypted with a key that this control plane lacks; a recovery code works.",
        )
    }

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

/// A role.
pub(super) fn role() -> Value {
    json!({ "enum": Role::ALL.map(Role::as_str) })
}

/// What the first step of a login answers.
pub(super) fn first_step() -> Value {
    let ticket = object(json!({
        "done": { "const": false }, "second_factor": { "const": true },
        "code": { "type": "boolean", "description": "A code of the app ends the login." },
        "passkey": { "type": "boolean", "description": "A passkey ends the login." },
        "ticket": { "type": "string", "description": "For `session/_login_code`." },
        "expires_at": { "type": "string", "format": "date-time" },
    }));
    json!({ "anyOf": [session(true), ticket] })
}

/// What login and `_me` answer.
pub(super) fn session(login: bool) -> Value {
    let operator = object(json!({
        "name": { "type": "string" }, "email": { "type": "string" }, "role": role(),
        "has_password": { "type": "boolean", "description": "False if the operator logs in by login links." },
        "second_factor": { "type": "boolean", "description": "There is an authenticator app." },
        "passkeys": { "type": "integer", "minimum": 0, "description": "How many there are." },
    }));
    let fields = json!({
        "operator": operator,
        "second_factor_required": {
            "type": "boolean", "description": "The operator has to add a second factor before anything else.",
        },
        "csrf_token": { "type": "string", "description": "For the header `x-csrf-token`." },
        "created_at": { "type": "string", "format": "date-time" },
        "expires_at": { "type": "string", "format": "date-time", "description": "The time at which it ends in any case." },
        "idle_seconds": { "type": "integer", "description": "Seconds without a request after which it ends." },
    });
    if login { done(fields) } else { object(fields) }
}
