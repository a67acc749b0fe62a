//! What the endpoints read of a call, and how they answer it.

use std::net::SocketAddr;

use axum::Json;
use axum::body::Bytes;
use axum::extract::rejection::BytesRejection;
use axum::extract::{ConnectInfo, FromRequestParts};
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::error::ApiError;
use accounts::Operator;
use base::identity::Identity;
use entities::typed;
use fabric::{Actor, Fabric};

/// The longest reason or note, in characters.
pub(super) const MAX_TEXT: usize = 2000;

/// The longest time that a ban or an entry of the allowlist can be given, in seconds: ten years.
pub(super) const MAX_SECONDS: u64 = 315_360_000;

/// How long a ban by hand lasts where nothing else is said, in seconds.
pub(super) const BAN_SECONDS: u64 = 3600;

/// A body as the extractor hands it over.
pub(super) type Body = Result<Bytes, BytesRejection>;

/// What an endpoint answers: the call was understood, or why not.
pub(super) type Answer = Result<Response, ApiError>;

/// Reads a body; the error is for `error` of the answer.
pub(super) fn read<T: DeserializeOwned>(body: Body) -> Result<T, String> {
    let body = body.map_err(|rejection| format!("the body could not be read: {rejection}"))?;
    if body.trim_ascii().is_empty() {
        return Err("no body".to_owned());
    }
    let value: Value = serde_json::from_slice(&body).map_err(|_| "invalid json body".to_owned())?;
    if !value.is_object() {
        return Err("invalid json body: it is not an object".to_owned());
    }
    typed(value).map_err(|problem| format!("invalid json body: {problem}"))
}

/// The identity that a body names.
pub(super) fn identity(reference: Option<&str>) -> Result<Identity, String> {
    let text = reference.map(str::trim).filter(|text| !text.is_empty());
    Identity::parse(text.ok_or_else(|| "no identity provided".to_owned())?).map_err(|error| error.to_string())
}

/// The identity under which bans, the ledger and incidents have what a body names: for an IPv6 address without a prefix the
/// network that callers are judged by; `/128` means the address alone.
pub(super) fn charged(fabric: &Fabric, reference: Option<&str>) -> Result<Identity, String> {
    let named = identity(reference)?;
    let exact = reference.is_some_and(|text| text.contains('/'));
    Ok(if exact { named } else { named.charged(fabric.ipv6_prefix()) })
}

/// The key of [`charged`] for a filter.
pub(super) fn charged_key(fabric: &Fabric, text: &str) -> String {
    key_or_text(charged(fabric, Some(text)), text)
}

/// The key of the identity that a filter names; text that is no identity stays as it is and matches nothing.
pub(super) fn key_or_text(read: Result<Identity, String>, text: &str) -> String {
    read.map_or_else(|_| text.to_owned(), |identity| identity.key())
}

/// A time in milliseconds from a body's seconds.
pub(super) fn millis(seconds: u64) -> Result<u64, String> {
    if (1..=MAX_SECONDS).contains(&seconds) {
        return Ok(seconds * 1000);
    }
    Err(format!("`duration_seconds` is {seconds}; expected 1 to {MAX_SECONDS}"))
}

pub(super) fn text(text: Option<String>) -> Result<String, String> {
    let text = text.unwrap_or_default();
    if text.chars().count() > MAX_TEXT {
        return Err(format!("`reason` and `note` have at most {MAX_TEXT} characters"));
    }
    Ok(text)
}

pub(super) fn done(mut fields: Value) -> Answer {
    if let Some(fields) = fields.as_object_mut() {
        fields.shift_insert(0, "done".to_owned(), true.into());
    }
    Ok(Json(fields).into_response())
}

pub(super) fn not_done(error: &str) -> Answer {
    Ok(Json(json!({ "done": false, "error": error })).into_response())
}

/// The caller: the operator of the session, from the address of the connection.
pub(super) struct Caller(pub(super) Actor);

impl<S: Sync> FromRequestParts<S> for Caller {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Caller, ApiError> {
        let operator = parts.extensions.get::<Operator>().ok_or_else(|| {
            let message = "the console session of this call is not known any more; log in again";
            ApiError::new(StatusCode::UNAUTHORIZED, "unauthorized", message)
        })?;
        let source = parts.extensions.get::<ConnectInfo<SocketAddr>>().map(|info| info.0.ip());
        Ok(Caller(Actor { name: operator.name.clone(), email: operator.email.clone(), source }))
    }
}
