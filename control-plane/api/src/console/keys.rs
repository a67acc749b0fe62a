//! `keys/…`: the admin keys, for admins.

use axum::Json;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::{HeaderMap, Method, StatusCode};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::body::{self, Body};
use super::describe::{self, Common as _};
use super::enter::no_randomness;
use super::state::Console;
use super::who::Who;
use crate::error::ApiError;
use crate::openapi::{Group, JSON, Operation, Routes, reference};
use accounts::{AdminKey, Scope};
use base::clock;
use events::AuditAction;
use store::AccessChange;

/// The bytes of a body, at most.
const MAX_BODY: usize = 16 * 1024;
/// The characters of a key's name, at most.
const MAX_NAME: usize = 200;
/// How long a key that is replaced goes on where nothing else is said, and at most, in seconds: a day, 30 days.
const GRACE: (u64, u64) = (86_400, 2_592_000);
/// The longest lifetime that can be set, in seconds: ten years.
const MAX_SECONDS: u64 = 315_360_000;

/// A new key.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct NewKey {
    /// What people call it, at most 200 characters; may be empty.
    name: String,
    /// What it may do.
    scopes: Vec<Scope>,
    /// Its lifetime in seconds, at most ten years; without it the key does not expire.
    expires_in_seconds: Option<u64>,
}

/// The end of a key.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct KeyEnd {
    /// The id of the key.
    id: String,
    /// In how many seconds it ends, at most in ten years; 0 for now, null for never.
    in_seconds: Option<u64>,
}

/// A key.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct KeyName {
    /// Its id.
    id: String,
}

/// The replacement of a key.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct KeyRotation {
    /// The id of the key.
    id: String,
    /// For how many seconds it goes on beside the new one, at most 30 days. Default a day.
    grace_seconds: Option<u64>,
    /// The lifetime of the new one in seconds, at most ten years; without it the new key does not expire.
    expires_in_seconds: Option<u64>,
}

pub(super) fn router() -> Routes<Console> {
    Routes::new()
        .on(describe_list(), list)
        .on(describe_create(), create)
        .on(describe_expire(), expire)
        .on(describe_revoke(), revoke)
        .on(describe_rotate(), rotate)
        .schema::<NewKey>()
        .schema::<KeyEnd>()
        .schema::<KeyName>()
        .schema::<KeyRotation>()
        .schema_as("AdminKeyEntry", schema())
        .layered(|router| router.layer(DefaultBodyLimit::max(MAX_BODY)))
}

async fn list(State(console): State<Console>) -> Result<Json<Value>, ApiError> {
    let (keys, now) = (console.inner.store.admin_keys().await?, console.now());
    Ok(Json(json!({ "keys": keys.iter().map(|key| shown(key, now)).collect::<Vec<_>>() })))
}

async fn create(
    State(console): State<Console>,
    who: Who,
    headers: HeaderMap,
    body: Body,
) -> Result<Json<Value>, ApiError> {
    let NewKey { name, scopes, expires_in_seconds } = body::read(&headers, body)?;
    let now = console.now();
    let scopes: Vec<Scope> = Scope::ALL.into_iter().filter(|scope| scopes.contains(scope)).collect();
    if scopes.is_empty() {
        return Err(invalid("`scopes` is empty: a key without a scope may do nothing"));
    }
    if name.chars().count() > MAX_NAME || name.chars().any(char::is_control) {
        return Err(invalid(&format!("`name` has at most {MAX_NAME} characters and no control characters")));
    }
    let issued = AdminKey::issue(&name, &scopes, now, end(expires_in_seconds, now)?).map_err(no_randomness)?;
    let note = who.audit(AuditAction::KeyCreate).of(reference_of(&issued.key.id)).detail(about(&issued.key)).note(now);
    console.inner.store.access_change(AccessChange::KeyPut(issued.key.clone()), note).await?;
    Ok(Json(json!({ "done": true, "key": shown(&issued.key, now), "secret": issued.secret })))
}

async fn expire(
    State(console): State<Console>,
    who: Who,
    headers: HeaderMap,
    body: Body,
) -> Result<Json<Value>, ApiError> {
    let KeyEnd { id, in_seconds } = body::read(&headers, body)?;
    let now = console.now();
    let at_millis = end(in_seconds, now)?;
    if console.key(&id).await?.revoked_at_millis.is_some() {
        return Err(ended());
    }
    let detail = at_millis.map_or("never expires".to_owned(), |at| format!("expires {}", clock::rfc3339(at)));
    let note = who.audit(AuditAction::KeyExpire).of(reference_of(&id)).detail(detail).note(now);
    console.inner.store.access_change(AccessChange::KeyExpire { id: id.clone(), at_millis }, note).await?;
    Ok(Json(json!({ "done": true, "key": shown(&console.key(&id).await?, now) })))
}

async fn revoke(
    State(console): State<Console>,
    who: Who,
    headers: HeaderMap,
    body: Body,
) -> Result<Json<Value>, ApiError> {
    let KeyName { id } = body::read(&headers, body)?;
    let now = console.now();
    console.key(&id).await?;
    let note = who.audit(AuditAction::KeyRevoke).of(reference_of(&id)).note(now);
    console.inner.store.access_change(AccessChange::KeyRevoke { id: id.clone(), at_millis: now }, note).await?;
    Ok(Json(json!({ "done": true, "key": shown(&console.key(&id).await?, now) })))
}

async fn rotate(
    State(console): State<Console>,
    who: Who,
    headers: HeaderMap,
    body: Body,
) -> Result<Json<Value>, ApiError> {
    let KeyRotation { id, grace_seconds, expires_in_seconds } = body::read(&headers, body)?;
    let (now, old) = (console.now(), console.key(&id).await?);
    let grace = grace_seconds.unwrap_or(GRACE.0);
    if grace > GRACE.1 {
        return Err(invalid(&format!("`grace_seconds` is {grace}; {} are the most", GRACE.1)));
    }
    let until_millis = now.saturating_add(grace * 1000);
    let expires = end(expires_in_seconds, now)?;
    let issued = AdminKey::issue(&old.name, &old.scopes, now, expires).map_err(no_randomness)?;
    let detail = format!("replaced by {}; works until {} at most", issued.key.id, clock::rfc3339(until_millis));
    let note = who.audit(AuditAction::KeyRotate).of(reference_of(&id)).detail(detail).note(now);
    let key = issued.key.clone();
    let change = AccessChange::KeyRotate { id: id.clone(), until_millis, now_millis: now, key };
    console.change_access(change, note, ended).await?;
    let (key, old) = (shown(&issued.key, now), shown(&console.key(&id).await?, now));
    Ok(Json(json!({ "done": true, "key": key, "secret": issued.secret, "old": old })))
}

impl Console {
    async fn key(&self, id: &str) -> Result<AdminKey, ApiError> {
        let unknown = || ApiError::new(StatusCode::NOT_FOUND, "unknown_key", "there is no such key");
        self.inner.store.admin_key(id).await?.ok_or_else(unknown)
    }
}

/// The end of a key with this lifetime.
fn end(seconds: Option<u64>, now: u64) -> Result<Option<u64>, ApiError> {
    match seconds {
        Some(seconds) if seconds > MAX_SECONDS => {
            Err(invalid(&format!("{seconds} seconds are too many; {MAX_SECONDS} are the most")))
        }
        seconds => Ok(seconds.map(|seconds| now.saturating_add(seconds * 1000))),
    }
}

fn about(key: &AdminKey) -> String {
    let scopes: Vec<&str> = key.scopes.iter().map(|scope| scope.as_str()).collect();
    let end = key.expires_at_millis.map_or("never expires".to_owned(), |at| format!("expires {}", clock::rfc3339(at)));
    format!("scopes {}; {end}", scopes.join(","))
}

fn reference_of(id: &str) -> String {
    format!("admin-keys/{id}")
}

fn shown(key: &AdminKey, now: u64) -> Value {
    let state = match (key.revoked_at_millis, key.expires_at_millis) {
        (Some(_), _) => "revoked",
        (None, Some(end)) if end <= now => "expired",
        _ => "active",
    };
    json!({
        "id": key.id, "name": key.name, "scopes": key.scopes, "state": state,
        "created_at": clock::rfc3339(key.created_at_millis),
        "expires_at": key.expires_at_millis.map(clock::rfc3339),
        "revoked_at": key.revoked_at_millis.map(clock::rfc3339),
    })
}

fn invalid(message: &str) -> ApiError {
    ApiError::new(StatusCode::BAD_REQUEST, "invalid_key", message)
}

fn ended() -> ApiError {
    ApiError::new(StatusCode::CONFLICT, "ended", "the key is revoked or has expired")
}

fn group() -> Group {
    let about = "The admin keys of the API. Secrets are shown once, when a key is made.";
    Group { name: "console: admin keys".to_owned(), about: about.to_owned() }
}

fn schema() -> Value {
    let time_or_null = || json!({ "type": ["string", "null"], "format": "date-time" });
    describe::object(json!({
        "id": { "type": "string" }, "name": { "type": "string" },
        "scopes": { "type": "array", "items": { "enum": Scope::ALL.map(Scope::as_str) } },
        "state": { "enum": ["active", "expired", "revoked"] },
        "created_at": { "type": "string", "format": "date-time" },
        "expires_at": time_or_null(), "revoked_at": time_or_null(),
    }))
}

fn describe_list() -> Operation {
    let answer = json!({ "keys": { "type": "array", "items": reference("AdminKeyEntry") } });
    describe::operation(Method::GET, "/keys/_list", "adminKeys", group(), "List the admin keys").answers(
        StatusCode::OK,
        "The oldest first, those that have ended included.",
        describe::object(answer),
    )
}

/// The new key and its secret.
fn issued() -> Value {
    let secret =
        json!({ "type": "string", "description": "The password of HTTP basic authentication. It is not shown again." });
    json!({ "key": reference("AdminKeyEntry"), "secret": secret })
}

fn describe_create() -> Operation {
    describe::post("/keys/_create", "adminKeyCreate", group(), "Create an admin key")
        .takes("The key.", [(JSON, reference("NewKey"))])
        .example(json!({ "name": "ci", "scopes": ["read", "write"], "expires_in_seconds": 7_776_000 }))
        .answers(StatusCode::OK, "The key with its secret.", describe::done(issued()))
        .fails(StatusCode::INTERNAL_SERVER_ERROR, "no_randomness", "the operating system gives no random bytes.")
        .fails(StatusCode::BAD_REQUEST, "invalid_key", "a field is out of its bounds.")
        .reads_a_body()
}

fn describe_expire() -> Operation {
    describe::post("/keys/_expire", "adminKeyExpire", group(), "Set when an admin key expires")
        .takes("The key and its end.", [(JSON, reference("KeyEnd"))])
        .example(json!({ "id": "admin-key_1", "in_seconds": 0 }))
        .answers(StatusCode::OK, "The key.", describe::done(json!({ "key": reference("AdminKeyEntry") })))
        .fails(StatusCode::BAD_REQUEST, "invalid_key", "a field is out of its bounds.")
        .fails(StatusCode::NOT_FOUND, "unknown_key", "there is no such key.")
        .fails(StatusCode::CONFLICT, "ended", "the key is revoked.")
        .reads_a_body()
}

fn describe_revoke() -> Operation {
    describe::post("/keys/_revoke", "adminKeyRevoke", group(), "Revoke an admin key permanently")
        .takes("The key.", [(JSON, reference("KeyName"))])
        .example(json!({ "id": "admin-key_1" }))
        .answers(StatusCode::OK, "The key.", describe::done(json!({ "key": reference("AdminKeyEntry") })))
        .fails(StatusCode::NOT_FOUND, "unknown_key", "there is no such key.")
        .reads_a_body()
}

fn describe_rotate() -> Operation {
    let mut answer = issued();
    if let Some(answer) = answer.as_object_mut() {
        answer.insert("old".to_owned(), reference("AdminKeyEntry"));
    }
    describe::post("/keys/_rotate", "adminKeyRotate", group(), "Replace an admin key")
        .describe("The new one has the same name and scopes. The old one ends after `grace_seconds`, or at its own end if that is earlier.")
        .takes("The key.", [(JSON, reference("KeyRotation"))])
        .example(json!({ "id": "admin-key_1", "grace_seconds": 3600 }))
        .answers(StatusCode::OK, "The new key with its secret, and the old one.", describe::done(answer))
        .fails(StatusCode::INTERNAL_SERVER_ERROR, "no_randomness", "the operating system gives no random bytes.")
        .fails(StatusCode::BAD_REQUEST, "invalid_key", "a field is out of its bounds.")
        .fails(StatusCode::NOT_FOUND, "unknown_key", "there is no such key.")
        .fails(StatusCode::CONFLICT, "ended", "the key is revoked or has expired.")
        .reads_a_body()
}
