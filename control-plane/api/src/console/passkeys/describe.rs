//! The endpoints of passkeys for the document of the API.

use axum::http::{Method, StatusCode};
use serde_json::{Value, json};

use crate::console::describe::{self, Common as _};
use crate::console::operators;
use crate::openapi::{Group, JSON, Operation, reference};
use accounts::PASSKEYS;

fn group() -> Group {
    let about = "Passkeys (WebAuthn): with user verification they log in alone, and else they are a second factor.";
    Group { name: "console: passkeys".to_owned(), about: about.to_owned() }
}

fn shown() -> Value {
    describe::object(json!({
        "id": { "type": "string" }, "name": { "type": "string" },
        "created_at": { "type": "string", "format": "date-time" },
        "used_at": { "type": ["string", "null"], "format": "date-time" },
    }))
}

fn options(what: &str) -> Value {
    describe::done(json!({ "options": { "type": "object", "description": what } }))
}

fn signed() -> Value {
    json!({ "id": "AQID", "response": { "clientDataJSON": "e30", "authenticatorData": "AQID", "signature": "AQID" } })
}

pub(super) fn list() -> Operation {
    let passkeys = json!({ "type": "array", "items": shown(), "maxItems": PASSKEYS });
    let answer = describe::object(json!({ "passkeys": passkeys, "most": { "type": "integer" } }));
    describe::operation(Method::GET, "/session/_passkeys", "passkeys", group(), "List the own passkeys").answers(
        StatusCode::OK,
        "In the order in which they were added.",
        answer,
    )
}

pub(super) fn begin() -> Operation {
    describe::post("/session/_passkey_begin", "passkeyBegin", group(), "Begin to add a passkey")
        .describe("Needs the password, if there is one, and a second factor, if there is one. The challenge holds for five minutes.")
        .takes("The proofs.", [(JSON, reference("PasskeyAddBegin"))])
        .example(json!({ "password": "the current password" }))
        .answers(StatusCode::OK, "The challenge.", options("`publicKey` of `navigator.credentials.create`, bytes in base64url."))
        .fails(StatusCode::CONFLICT, "too_many_passkeys", "the operator has ten.")
        .asks_for_proofs()
}

pub(super) fn add() -> Operation {
    let example = json!({ "response": { "clientDataJSON": "e30", "authenticatorData": "AQID" } });
    describe::post("/session/_passkey_add", "passkeyAdd", group(), "Add a passkey")
        .describe(
            "Logins by password, link and provider need a second step from then on. The operator's other sessions end.",
        )
        .takes("The credential.", [(JSON, reference("PasskeyAdd"))])
        .example(json!({ "name": "key ring", "credential": example }))
        .answers(StatusCode::OK, "The passkey.", describe::done(json!({ "passkey": shown() })))
        .fails(StatusCode::BAD_REQUEST, "invalid_name", "the name is empty or too long.")
        .fails(
            StatusCode::FORBIDDEN,
            "passkey_refused",
            "the answer of the authenticator is not the one that was asked for.",
        )
        .fails(StatusCode::CONFLICT, "too_many_passkeys", "the operator has ten, or the credential is there already.")
        .needs_a_site()
        .reads_a_body()
}

pub(super) fn confirm_begin() -> Operation {
    describe::post("/session/_passkey_confirm_begin", "passkeyConfirmBegin", group(), "Ask for one of the own passkeys")
        .describe("For calls that need a second factor as a proof.")
        .answers(
            StatusCode::OK,
            "The challenge.",
            options("`publicKey` of `navigator.credentials.get`, bytes in base64url."),
        )
        .fails(StatusCode::NOT_FOUND, "unknown_passkey", "the operator has none.")
        .fails(StatusCode::INTERNAL_SERVER_ERROR, "no_randomness", "the operating system gives no random bytes.")
        .needs_a_site()
}

pub(super) fn remove() -> Operation {
    describe::post("/session/_passkey_remove", "passkeyRemove", group(), "Remove one of the own passkeys")
        .takes("The passkey and the proofs.", [(JSON, reference("PasskeyRemove"))])
        .example(json!({ "id": "AQID", "password": "the current password", "code": "123456" }))
        .answers(StatusCode::OK, "It is removed.", describe::done(json!({})))
        .fails(StatusCode::NOT_FOUND, "unknown_passkey", "there is no such passkey of the operator.")
        .fails(StatusCode::CONFLICT, "required", "it is the last second factor, and one is required.")
        .asks_for_proofs()
}

pub(super) fn remove_all() -> Operation {
    let summary = "Remove the passkeys of an operator";
    operators::by_name("/operators/_remove_passkeys", "operatorRemovePasskeys", summary, json!({}))
        .describe("Their sessions end.")
        .fails(StatusCode::CONFLICT, "no_passkey", "they have none.")
}

pub(super) fn login_begin() -> Operation {
    describe::post(
        "/session/_passkey_login_begin",
        "passkeyLoginBegin",
        describe::sessions(),
        "Begin a login by a passkey",
    )
    .describe("With the ticket of a first step for its operator's passkeys, without one for any of the site.")
    .takes("The ticket, if there is one.", [(JSON, reference("PasskeyLoginBegin"))])
    .example(json!({}))
    .answers(
        StatusCode::OK,
        "The challenge.",
        options("`publicKey` of `navigator.credentials.get`, bytes in base64url."),
    )
    .fails(
        StatusCode::UNAUTHORIZED,
        "ticket_ended",
        "the ticket is not known, has ended, or its operator has no passkey.",
    )
    .needs_a_site()
    .logs_in(false)
}

pub(super) fn login() -> Operation {
    describe::post("/session/_passkey_login", "passkeyLogin", describe::sessions(), "Log in by a passkey")
        .takes("The answer of the passkey.", [(JSON, reference("PasskeyLogin"))])
        .example(json!({ "credential": signed() }))
        .answers(StatusCode::OK, "The session.", describe::session(true))
        .fails(StatusCode::UNAUTHORIZED, "passkey_refused", "the passkey is not known, or its answer is wrong.")
        .fails(StatusCode::UNAUTHORIZED, "ticket_ended", "the ticket is not known or has ended.")
        .needs_a_site()
        .logs_in(true)
}

/// What several of these operations have.
pub(in crate::console) trait ForPasskeys {
    fn needs_a_site(self) -> Self;
    fn asks_for_proofs(self) -> Self;
}

impl ForPasskeys for Operation {
    fn needs_a_site(self) -> Operation {
        self.fails(
            StatusCode::CONFLICT,
            "no_passkeys",
            "the control plane has no host name for passkeys (`--console-url`).",
        )
    }

    fn asks_for_proofs(self) -> Operation {
        self.fails(StatusCode::FORBIDDEN, "passkey_refused", "the passkey is not known, or its answer is wrong.")
            .fails(StatusCode::FORBIDDEN, "second_factor_needed", "a code or the answer of a passkey is missing.")
            .fails(StatusCode::INTERNAL_SERVER_ERROR, "no_randomness", "the operating system gives no random bytes.")
            .needs_a_site()
            .asks_for_the_password()
            .asks_for_a_code()
            .reads_a_body()
    }
}
