//! `session/_sessions`, `_revoke`, `_revoke_others`, `_password`: what operators do with their own account.

use axum::Json;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::response::Response;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::body::{self, Body};
use super::describe::{self, Common as _};
use super::enter::Caller;
use super::passkeys::{ForPasskeys as _, PasskeyCredential, Proofs};
use super::state::Console;
use super::who::Who;
use crate::error::ApiError;
use crate::openapi::{JSON, Operation, Routes, reference};
use accounts::{Session, hash_password, password_problem};
use base::clock;
use events::AuditAction;
use store::AccessChange;

/// The bytes of a body, at most: keys and signatures of RSA have some hundred.
const MAX_BODY: usize = 32 * 1024;

/// A session.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SessionName {
    /// Its `id`.
    pub(super) id: String,
}

/// A new password.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct NewPassword {
    /// The current password, if there is one.
    password: Option<String>,
    /// A code of the app or a recovery code, if the operator has the app.
    code: Option<String>,
    /// Or the answer of a passkey to `session/_passkey_confirm_begin`.
    credential: Option<PasskeyCredential>,
    /// The new one: 12 characters to 1024 bytes.
    new_password: String,
}

pub(super) fn router() -> Routes<Console> {
    Routes::new()
        .on(describe_list(), list)
        .on(describe_revoke(), revoke)
        .on(describe_revoke_others(), revoke_others)
        .on(describe_password(), password)
        .schema::<SessionName>()
        .schema::<NewPassword>()
        .schema_as("OperatorSession", schema())
        .layered(|router| router.layer(DefaultBodyLimit::max(MAX_BODY)))
}

async fn list(State(console): State<Console>, who: Who) -> Result<Json<Value>, ApiError> {
    console.show_sessions(Some(&who.operator.name), &who).await
}

async fn revoke(
    State(console): State<Console>,
    who: Who,
    headers: HeaderMap,
    body: Body,
) -> Result<Json<Value>, ApiError> {
    let SessionName { id } = body::read(&headers, body)?;
    console.revoke_session(Some(&who.operator.name), &id, &who).await
}

async fn revoke_others(State(console): State<Console>, who: Who) -> Result<Json<Value>, ApiError> {
    let (name, keep) = (&who.operator.name, Some(who.current.session.token_sha256));
    let ended = console.inner.store.sessions_end(name, keep).await?;
    if ended > 0 {
        console.tell_of_revocation(&who, name, ended);
    }
    Ok(Json(json!({ "done": true, "ended": ended })))
}

async fn password(
    State(console): State<Console>,
    who: Who,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ApiError> {
    let NewPassword { password, code, credential, new_password } = body::read(&headers, body)?;
    let now = console.now();
    if let Some(problem) = password_problem(&new_password) {
        return Err(ApiError::new(StatusCode::BAD_REQUEST, "invalid_password", problem));
    }
    console.demand_proofs(&who.operator, Proofs { password, code, credential }, who.source, now).await?;
    let hashing = tokio::task::spawn_blocking(move || hash_password(&new_password)).await;
    let failed = |error: String| ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "no_randomness", error);
    let hash = hashing.map_err(|error| failed(error.to_string()))?.map_err(|error| failed(error.to_string()))?;
    let mut operator = who.operator.clone();
    let note = who.note(AuditAction::OperatorPassword, &operator.name, "by the operator", now);
    let change = AccessChange::OperatorPassword { name: operator.name.clone(), hash: hash.clone(), at_millis: now };
    console.inner.store.access_change(change, note).await?;
    // All sessions have ended with that: a new one for the browser that is here, whose second factor was asked for above.
    operator.password_hash = hash;
    let caller = Caller { source: who.source, headers: &headers };
    let begun = console.begin(&operator, (who.current.session.origin.via, true), caller, now).await?;
    begun.ok_or_else(|| ApiError::new(StatusCode::UNAUTHORIZED, "unauthorized", "the operator was changed meanwhile"))
}

impl Console {
    /// The sessions of an operator, or all, that have not ended.
    pub(super) async fn show_sessions(&self, operator: Option<&str>, who: &Who) -> Result<Json<Value>, ApiError> {
        let (now, limits) = (self.now(), &self.inner.limits);
        let sessions = self.inner.store.sessions(operator).await?;
        let live = sessions.iter().filter(|session| session.holds(limits, now));
        let shown = live.map(|session| {
            json!({
                "id": session.id(),
                "operator": session.operator,
                "current": session.token_sha256 == who.current.session.token_sha256,
                "created_at": clock::rfc3339(session.created_at_millis),
                "seen_at": clock::rfc3339(session.seen_at_millis),
                "expires_at": clock::rfc3339(session.ends_at(limits)),
                "address": session.origin.address,
                "user_agent": session.origin.agent,
                "via": session.origin.via.as_str(),
            })
        });
        Ok(Json(json!({ "sessions": shown.collect::<Vec<_>>() })))
    }

    /// Ends the session of this id: of an operator, or of anyone.
    pub(super) async fn revoke_session(
        &self,
        operator: Option<&str>,
        id: &str,
        who: &Who,
    ) -> Result<Json<Value>, ApiError> {
        let found: Option<Session> =
            self.inner.store.sessions(operator).await?.into_iter().find(|session| session.id() == id);
        let unknown =
            || ApiError::new(StatusCode::NOT_FOUND, "unknown_session", "there is no such session, or it has ended");
        let session = found.ok_or_else(unknown)?;
        if !self.inner.store.session_end(session.token_sha256).await? {
            return Err(unknown());
        }
        self.tell_of_revocation(who, &session.operator, 1);
        Ok(Json(json!({ "done": true })))
    }

    pub(super) fn tell_of_revocation(&self, who: &Who, name: &str, ended: u64) {
        let audit = who.audit(AuditAction::SessionRevoke).of(format!("operators/{name}"));
        self.inner.events.audit(audit.detail(format!("{ended} ended")));
    }
}

fn schema() -> Value {
    let time = || json!({ "type": "string", "format": "date-time" });
    describe::object(json!({
        "id": { "type": "string" }, "operator": { "type": "string" },
        "current": { "type": "boolean", "description": "The one that asks." },
        "created_at": time(),
        "seen_at": { "type": "string", "format": "date-time", "description": "The last use, exact to a minute." },
        "expires_at": time(),
        "address": { "type": ["string", "null"], "description": "Of the login." },
        "user_agent": {
            "type": "string", "maxLength": 256, "description": "As the client wrote it at the login, without control characters.",
        },
        "via": { "enum": ["password", "link", "oidc", "passkey"] },
    }))
}

/// The list of sessions.
pub(super) fn list_of_sessions() -> Value {
    describe::object(json!({ "sessions": { "type": "array", "items": reference("OperatorSession") } }))
}

fn describe_list() -> Operation {
    describe::operation(Method::GET, "/session/_sessions", "ownSessions", describe::sessions(), "List the own sessions")
        .answers(StatusCode::OK, "Those last used first.", list_of_sessions())
}

fn describe_revoke() -> Operation {
    describe::post("/session/_revoke", "revokeOwnSession", describe::sessions(), "End one of the own sessions")
        .takes("The session.", [(JSON, reference("SessionName"))])
        .example(json!({ "id": "0f1e2d3c4b5a69788796a5b4c3d2e1f0" }))
        .answers(StatusCode::OK, "It has ended.", describe::done(json!({})))
        .fails(StatusCode::NOT_FOUND, "unknown_session", "there is no such session of the operator.")
        .reads_a_body()
}

fn describe_revoke_others() -> Operation {
    let ended = json!({ "ended": { "type": "integer", "minimum": 0 } });
    describe::post("/session/_revoke_others", "revokeOtherSessions", describe::sessions(), "End the other own sessions")
        .answers(StatusCode::OK, "They have ended.", describe::done(ended))
}

fn describe_password() -> Operation {
    describe::post("/session/_password", "setOwnPassword", describe::sessions(), "Set the own password")
        .describe(
            "Needs the current password, if there is one, and a second factor, if there is one. Ends all sessions and login links of the \
             operator. The answer begins a new session, as a login does.",
        )
        .takes("The proofs and the new password.", [(JSON, reference("NewPassword"))])
        .example(json!({ "password": "the current password", "new_password": "another horse battery" }))
        .answers(StatusCode::OK, "The new session.", describe::session(true))
        .with_header(StatusCode::OK, &header::SET_COOKIE, true)
        .fails(StatusCode::BAD_REQUEST, "invalid_password", "the new password is too short or too long.")
        .asks_for_proofs()
}
