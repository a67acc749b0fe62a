//! Passkeys: `session/_passkey…` for the own account, `operators/_remove_passkeys` for admins, and logins.

mod check;
mod describe;
mod login;
mod shapes;

use axum::Json;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::{HeaderMap, StatusCode};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::body::{self, Body};
use super::operators::OperatorName;
use super::state::Console;
use super::who::Who;
use crate::error::ApiError;
use crate::openapi::Routes;
use accounts::{CeremonyKind, MAX_PASSKEY_NAME, PASSKEYS, Passkey};
pub(super) use check::Proofs;
use check::options;
pub(super) use describe::ForPasskeys;
use events::AuditAction;
pub(super) use shapes::PasskeyCredential;
use shapes::{NewPasskeyCredential, creation, request, shown};
use store::AccessChange;

/// The bytes of a body, at most: keys and signatures of RSA have some hundred.
const MAX_BODY: usize = 32 * 1024;

/// What is shown before a passkey is added.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct PasskeyAddBegin {
    /// The operator's password, if there is one.
    password: Option<String>,
    /// A code of the app or a recovery code, if the operator has the app.
    code: Option<String>,
    /// Or the answer of a passkey to `session/_passkey_confirm_begin`.
    credential: Option<PasskeyCredential>,
}

/// A new passkey.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct PasskeyAdd {
    /// What to call it: 1 to 64 characters.
    name: String,
    /// What the browser has got from the authenticator.
    credential: NewPasskeyCredential,
}

/// A passkey to remove.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct PasskeyRemove {
    /// Its `id`.
    id: String,
    /// The operator's password, if there is one.
    password: Option<String>,
    /// A code of the app or a recovery code, if the operator has the app.
    code: Option<String>,
    /// Or the answer of a passkey to `session/_passkey_confirm_begin`.
    credential: Option<PasskeyCredential>,
}

/// What needs no session.
pub(super) fn open() -> Routes<Console> {
    login::routes().layered(|router| router.layer(DefaultBodyLimit::max(MAX_BODY)))
}

/// What needs one.
pub(super) fn router() -> Routes<Console> {
    Routes::new()
        .on(describe::list(), list)
        .on(describe::begin(), begin)
        .on(describe::add(), add)
        .on(describe::confirm_begin(), confirm_begin)
        .on(describe::remove(), remove)
        .on(describe::remove_all(), remove_all)
        .schema::<PasskeyAddBegin>()
        .schema::<PasskeyAdd>()
        .schema::<PasskeyRemove>()
        .layered(|router| router.layer(DefaultBodyLimit::max(MAX_BODY)))
}

async fn list(State(console): State<Console>, who: Who) -> Result<Json<Value>, ApiError> {
    let passkeys = console.inner.store.passkeys(&who.operator.name).await?;
    let shown: Vec<Value> = passkeys.iter().map(shown).collect();
    Ok(Json(json!({ "passkeys": shown, "most": PASSKEYS })))
}

async fn begin(
    State(console): State<Console>,
    who: Who,
    headers: HeaderMap,
    body: Body,
) -> Result<Json<Value>, ApiError> {
    let PasskeyAddBegin { password, code, credential } = body::read(&headers, body)?;
    let (now, site) = (console.now(), console.site()?);
    let passkeys = console.inner.store.passkeys(&who.operator.name).await?;
    if passkeys.len() >= usize::try_from(PASSKEYS).unwrap_or(usize::MAX) {
        return Err(too_many());
    }
    console.demand_proofs(&who.operator, Proofs { password, code, credential }, who.source, now).await?;
    let challenge = console.challenge(CeremonyKind::PasskeyAdd, &who.operator.name, now).await?;
    Ok(Json(options(creation(site, &who.operator, &passkeys, &challenge))))
}

async fn add(
    State(console): State<Console>,
    who: Who,
    headers: HeaderMap,
    body: Body,
) -> Result<Json<Value>, ApiError> {
    let PasskeyAdd { name, credential } = body::read(&headers, body)?;
    let now = console.now();
    let name = name.trim().to_owned();
    let characters = name.chars().count();
    if characters == 0 || characters > MAX_PASSKEY_NAME || name.chars().any(char::is_control) {
        let message = format!("a name has 1 to {MAX_PASSKEY_NAME} characters");
        return Err(ApiError::new(StatusCode::BAD_REQUEST, "invalid_name", message));
    }
    let made = console.check_new(&who.operator, &credential, now).await?;
    let passkey = Passkey {
        credential: made.credential,
        operator: who.operator.name.clone(),
        name,
        public_key: made.public_key,
        sign_count: made.sign_count,
        created_at_millis: now,
        used_at_millis: None,
    };
    let note = who.note(AuditAction::PasskeyAdd, &who.operator.name, &passkey.name, now);
    let keep_session = who.current.session.token_sha256;
    let change = AccessChange::PasskeyAdd { passkey: passkey.clone(), keep_session };
    console.change_access(change, note, too_many).await?;
    Ok(Json(json!({ "done": true, "passkey": shown(&passkey) })))
}

async fn confirm_begin(State(console): State<Console>, who: Who) -> Result<Json<Value>, ApiError> {
    let (now, site) = (console.now(), console.site()?);
    let passkeys = console.inner.store.passkeys(&who.operator.name).await?;
    if passkeys.is_empty() {
        return Err(unknown());
    }
    let challenge = console.challenge(CeremonyKind::PasskeyConfirm, &who.operator.name, now).await?;
    Ok(Json(options(request(site, &passkeys, &challenge))))
}

async fn remove(
    State(console): State<Console>,
    who: Who,
    headers: HeaderMap,
    body: Body,
) -> Result<Json<Value>, ApiError> {
    let PasskeyRemove { id, password, code, credential } = body::read(&headers, body)?;
    let (now, name) = (console.now(), &who.operator.name);
    let passkeys = console.inner.store.passkeys(name).await?;
    let passkey = passkeys.iter().find(|passkey| passkey.id() == id).ok_or_else(unknown)?;
    if console.inner.login.requires_second_factor && !who.operator.second_factor && passkeys.len() == 1 {
        let message = "the control plane requires a second factor, and this is the last one; add another one first";
        return Err(ApiError::new(StatusCode::CONFLICT, "required", message));
    }
    console.demand_proofs(&who.operator, Proofs { password, code, credential }, who.source, now).await?;
    let note = who.note(AuditAction::PasskeyRemove, name, &passkey.name, now);
    let credential = Some(passkey.credential.clone());
    let change = AccessChange::PasskeyRemove { name: name.clone(), credential, end_sessions: false };
    console.change_access(change, note, unknown).await?;
    Ok(Json(json!({ "done": true })))
}

async fn remove_all(
    State(console): State<Console>,
    who: Who,
    headers: HeaderMap,
    body: Body,
) -> Result<Json<Value>, ApiError> {
    let OperatorName { name } = body::read(&headers, body)?;
    let name = console.named(&name).await?.name;
    let note = who.note(AuditAction::PasskeyRemove, &name, "all", console.now());
    let change = AccessChange::PasskeyRemove { name, credential: None, end_sessions: true };
    console
        .change_access(change, note, || {
            ApiError::new(StatusCode::CONFLICT, "no_passkey", "the operator has no passkey")
        })
        .await?;
    Ok(Json(json!({ "done": true })))
}

fn too_many() -> ApiError {
    let message = format!("an operator has at most {PASSKEYS} passkeys, and each one once");
    ApiError::new(StatusCode::CONFLICT, "too_many_passkeys", message)
}

fn unknown() -> ApiError {
    ApiError::new(StatusCode::NOT_FOUND, "unknown_passkey", "there is no such passkey")
}
