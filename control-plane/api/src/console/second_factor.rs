//! `session/_second_factor…`: the second factor of one's own account.

use axum::Json;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::{HeaderMap, Method, StatusCode};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::body::{self, Body};
use super::describe::{self, Common as _};
use super::enter::{code_key, no_randomness, wrong_code};
use super::passkeys::{ForPasskeys as _, PasskeyCredential, Proofs};
use super::state::Console;
use super::who::Who;
use crate::error::ApiError;
use crate::openapi::{Group, JSON, Operation, Routes, reference};
use accounts::{Proof, RECOVERY_CODES, RecoveryCodes, SecondFactor, StoredSecret, is_app_code, new_secret};
use base::clock;
use events::AuditAction;
use store::AccessChange;

/// The bytes of a body, at most: keys and signatures of RSA have some hundred.
const MAX_BODY: usize = 32 * 1024;

/// What begins a second factor.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SecondFactorEnrol {
    /// The operator's password, if there is one.
    password: Option<String>,
    /// The answer of a passkey to `session/_passkey_confirm_begin`, if the operator has one.
    credential: Option<PasskeyCredential>,
}

/// What confirms a second factor.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SecondFactorConfirm {
    /// A code of the app that has got the secret.
    code: String,
}

/// What removes a second factor.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SecondFactorRemove {
    /// The operator's password, if there is one.
    password: Option<String>,
    /// A code of the app, or a recovery code.
    code: String,
}

pub(super) fn router() -> Routes<Console> {
    Routes::new()
        .on(describe_status(), status)
        .on(describe_enrol(), enrol)
        .on(describe_confirm(), confirm)
        .on(describe_remove(), remove)
        .schema::<SecondFactorEnrol>()
        .schema::<SecondFactorConfirm>()
        .schema::<SecondFactorRemove>()
        .layered(|router| router.layer(DefaultBodyLimit::max(MAX_BODY)))
}

async fn status(State(console): State<Console>, who: Who) -> Result<Json<Value>, ApiError> {
    let factor = console.inner.store.second_factor(&who.operator.name).await?;
    let confirmed = factor.as_ref().and_then(|factor| factor.confirmed_at_millis);
    let codes = factor.filter(|_| confirmed.is_some()).map_or(0, |factor| factor.recovery_codes);
    Ok(Json(json!({
        "enrolled": confirmed.is_some(),
        "since": confirmed.map(clock::rfc3339),
        "recovery_codes": codes,
        "required": console.inner.login.requires_second_factor,
    })))
}

async fn enrol(
    State(console): State<Console>,
    who: Who,
    headers: HeaderMap,
    body: Body,
) -> Result<Json<Value>, ApiError> {
    let SecondFactorEnrol { password, credential } = body::read(&headers, body)?;
    if who.operator.second_factor {
        return Err(enrolled());
    }
    // The app and its recovery codes replace a passkey at a login: a session alone must not get them where there are passkeys.
    let proofs = Proofs { password, code: None, credential };
    console.demand_proofs(&who.operator, proofs, who.source, console.now()).await?;
    let factor = SecondFactor::new(new_secret().map_err(no_randomness)?);
    let stored = console.inner.login.factor_keys.lock(&who.operator.name, &factor.secret).map_err(no_randomness)?;
    if !console.inner.store.second_factor_begin(&who.operator.name, stored).await? {
        return Err(enrolled());
    }
    let (secret, uri) = (factor.secret_base32(), factor.uri(&who.operator.name));
    Ok(Json(json!({ "done": true, "secret": secret, "uri": uri })))
}

async fn confirm(
    State(console): State<Console>,
    who: Who,
    headers: HeaderMap,
    body: Body,
) -> Result<Json<Value>, ApiError> {
    let SecondFactorConfirm { code } = body::read(&headers, body)?;
    let (now, name) = (console.now(), &who.operator.name);
    let Some(factor) = console.inner.store.second_factor(name).await? else {
        let message = "no second factor was begun; `session/_second_factor_enrol` begins one";
        return Err(ApiError::new(StatusCode::CONFLICT, "not_begun", message));
    };
    if factor.confirmed_at_millis.is_some() {
        return Err(enrolled());
    }
    let key = code_key(name);
    console.throttle(who.source, Some((name, &key)), now).await?;
    let Some(Proof::Step(step)) = console.proof_of(name, &factor, &code, now)? else { return Err(wrong_code()) };
    let codes = RecoveryCodes::random().map_err(no_randomness)?;
    let note = who.note(AuditAction::SecondFactorAdd, name, "by the operator", now);
    let change = AccessChange::SecondFactorConfirm {
        name: name.clone(),
        step,
        at_millis: now,
        recovery_codes: codes.sha256,
        keep_session: who.current.session.token_sha256,
    };
    console.change_access(change, note, enrolled).await?;
    console.forgive(who.source, Some(&key));
    Ok(Json(json!({ "done": true, "recovery_codes": codes.shown })))
}

async fn remove(
    State(console): State<Console>,
    who: Who,
    headers: HeaderMap,
    body: Body,
) -> Result<Json<Value>, ApiError> {
    let SecondFactorRemove { password, code } = body::read(&headers, body)?;
    let (now, name) = (console.now(), &who.operator.name);
    if !who.operator.second_factor {
        return Err(not_enrolled());
    }
    if console.inner.login.requires_second_factor && who.operator.passkeys == 0 {
        let message = "the control plane requires a second factor; an admin can reset it";
        return Err(ApiError::new(StatusCode::CONFLICT, "required", message));
    }
    console.demand_password(&who.operator, password, who.source, now).await?;
    console.demand_code(name, &code, who.source, now).await?;
    let note = who.note(AuditAction::SecondFactorRemove, name, "by the operator", now);
    let change = AccessChange::SecondFactorRemove { name: name.clone(), end_sessions: false };
    console.change_access(change, note, not_enrolled).await?;
    Ok(Json(json!({ "done": true })))
}

impl Console {
    /// What a code is, by a second factor as the store has it.
    ///
    /// # Errors
    /// 503 `second_factor_locked`: it is no recovery code, and the secret is encrypted with a key that is not here. That is no wrong code.
    pub(super) fn proof_of(
        &self,
        name: &str,
        factor: &SecondFactor,
        code: &str,
        now: u64,
    ) -> Result<Option<Proof>, ApiError> {
        match self.inner.login.factor_keys.open(name, &factor.secret) {
            StoredSecret::Open { secret, .. } => Ok(SecondFactor { secret, ..factor.clone() }.proof(code, now)),
            StoredSecret::Locked { key } if is_app_code(code) => {
                tracing::error!(operator = %name, "the secret of a second factor is encrypted with the key {key}, which --second-factor-key-file lacks");
                Err(locked())
            }
            StoredSecret::Locked { .. } => Ok(factor.proof(code, now)),
        }
    }

    /// Stores the secret as a new one would be, if it is not: encrypted, and with the key that encrypts now. The login does not depend on it.
    pub(super) async fn rewrite_secret(&self, name: &str, factor: &SecondFactor) {
        let keys = &self.inner.login.factor_keys;
        let StoredSecret::Open { secret, is_current: false } = keys.open(name, &factor.secret) else { return };
        let failed = match keys.lock(name, &secret) {
            Ok(stored) => {
                let rewritten = self.inner.store.second_factor_rewrite(name, factor.secret.clone(), stored).await;
                rewritten.err().map(|error| error.to_string())
            }
            Err(error) => Some(error.to_string()),
        };
        if let Some(why) = failed {
            tracing::warn!(operator = %name, "the secret of a second factor is still stored as before: {why}");
        }
    }
}

fn locked() -> ApiError {
    let message = "the code cannot be checked: this control plane lacks the key of the secret; the log names it. A recovery code works";
    ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "second_factor_locked", message)
}

fn enrolled() -> ApiError {
    let message = "there is a second factor already; remove it before another one is added";
    ApiError::new(StatusCode::CONFLICT, "enrolled", message)
}

pub(super) fn not_enrolled() -> ApiError {
    ApiError::new(StatusCode::CONFLICT, "not_enrolled", "there is no second factor")
}

fn group() -> Group {
    let about =
        "Codes of an authenticator app (TOTP, RFC 6238) that a login needs beside the password or the login link.";
    Group { name: "console: second factor".to_owned(), about: about.to_owned() }
}

fn describe_status() -> Operation {
    let answer = describe::object(json!({
        "enrolled": { "type": "boolean" },
        "since": { "type": ["string", "null"], "format": "date-time" },
        "recovery_codes": { "type": "integer", "minimum": 0, "description": "Those that are left." },
        "required": { "type": "boolean", "description": "The control plane requires one of every operator." },
    }));
    describe::operation(Method::GET, "/session/_second_factor", "secondFactor", group(), "Show the own second factor")
        .answers(StatusCode::OK, "Whether there is one.", answer)
}

fn describe_enrol() -> Operation {
    let answer = describe::done(json!({
        "secret": { "type": "string", "description": "Base32, for an app that cannot read the URI. It is not shown again." },
        "uri": { "type": "string", "description": "`otpauth://totp/…`, for a QR code." },
    }));
    describe::post("/session/_second_factor_enrol", "secondFactorEnrol", group(), "Begin a second factor")
        .describe(
            "Needs the password, if there is one, and a passkey, if there is one. Logins do not need the factor until it is confirmed. \
             Called again, it replaces the secret.",
        )
        .takes("The proofs.", [(JSON, reference("SecondFactorEnrol"))])
        .example(json!({ "password": "the current password" }))
        .answers(StatusCode::OK, "The secret.", answer)
        .fails(StatusCode::CONFLICT, "enrolled", "there is a second factor already.")
        .asks_for_proofs()
}

fn describe_confirm() -> Operation {
    let codes = json!({ "type": "array", "items": { "type": "string" }, "minItems": RECOVERY_CODES, "maxItems": RECOVERY_CODES });
    describe::post("/session/_second_factor_confirm", "secondFactorConfirm", group(), "Confirm a second factor")
        .describe("Logins need it from then on. The operator's other sessions end.")
        .takes("A code.", [(JSON, reference("SecondFactorConfirm"))])
        .example(json!({ "code": "123456" }))
        .answers(
            StatusCode::OK,
            "Recovery codes, each for one login without the app. They are not shown again.",
            describe::done(json!({ "recovery_codes": codes })),
        )
        .fails(StatusCode::CONFLICT, "enrolled", "there is a second factor already.")
        .fails(StatusCode::CONFLICT, "not_begun", "no second factor was begun.")
        .fails(StatusCode::INTERNAL_SERVER_ERROR, "no_randomness", "the operating system gives no random bytes.")
        .asks_for_a_code()
        .reads_a_body()
}

fn describe_remove() -> Operation {
    describe::post("/session/_second_factor_remove", "secondFactorRemove", group(), "Remove the own second factor")
        .takes("The password and a code.", [(JSON, reference("SecondFactorRemove"))])
        .example(json!({ "password": "the current password", "code": "123456" }))
        .answers(StatusCode::OK, "It is removed.", describe::done(json!({})))
        .fails(StatusCode::CONFLICT, "not_enrolled", "there is no second factor.")
        .fails(StatusCode::CONFLICT, "required", "the control plane requires a second factor.")
        .asks_for_the_password()
        .asks_for_a_code()
        .reads_a_body()
}
