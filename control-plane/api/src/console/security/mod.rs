//! `security/…`: what the decision fabric remembers, and what operators change of it.
//!
//! A call that asks for something impossible is answered with 200 and `done: false`; other statuses are for calls that did
//! not get that far. `docs/console.md` describes the shapes.

mod alerts;
mod bans;
mod describe;
mod incidents;
mod ledger;
mod paging;
mod shapes;
mod status;

use std::net::SocketAddr;

use axum::Json;
use axum::body::Bytes;
use axum::extract::rejection::BytesRejection;
use axum::extract::{ConnectInfo, DefaultBodyLimit, FromRequestParts};
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::{Console, protect};
use crate::error::ApiError;
use crate::openapi::Routes;
use ::alerts::Alerts;
use accounts::Operator;
use base::identity::Identity;
use entities::typed;
use fabric::{Actor, Fabric};
use xds::Hub;

/// The bytes of a body, at most.
const MAX_BODY: usize = 64 * 1024;
/// The longest reason or note, in characters.
const MAX_TEXT: usize = 2000;
/// The longest time that a ban or an entry of the allowlist can be given, in seconds: ten years.
const MAX_SECONDS: u64 = 315_360_000;
/// How long a ban by hand lasts where nothing else is said, in seconds.
const BAN_SECONDS: u64 = 3600;

/// The endpoints of this module, for those with a session of `console`. `hub` knows the gateways.
pub fn router(console: &Console, fabric: Fabric, hub: Hub, alerts: Alerts) -> Routes {
    let limit = || DefaultBodyLimit::max(MAX_BODY);
    let tests = alerts::routes().layered(|router| router.layer(limit())).with_state(alerts);
    let status = status::routes().layered(|router| router.layer(limit())).with_state((fabric.clone(), hub));
    let routes = Routes::new()
        .merge(bans::routes())
        .merge(incidents::routes())
        .merge(ledger::routes())
        .layered(|router| router.layer(limit()));
    protect(status.merge(describe::schemas(routes).with_state(fabric)).merge(tests), console.clone())
}

/// A body as the extractor hands it over.
type Body = Result<Bytes, BytesRejection>;

/// What an endpoint answers: the call was understood, or why not.
type Answer = Result<Response, ApiError>;

/// Reads a body; the error is for `error` of the answer.
fn read<T: DeserializeOwned>(body: Body) -> Result<T, String> {
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
fn identity(reference: Option<&str>) -> Result<Identity, String> {
    let text = reference.map(str::trim).filter(|text| !text.is_empty());
    Identity::parse(text.ok_or_else(|| "no identity provided".to_owned())?).map_err(|error| error.to_string())
}

/// The identity under which bans, the ledger and incidents have what a body names: for an IPv6 address without a prefix the
/// network that callers are judged by; `/128` means the address alone.
fn charged(fabric: &Fabric, reference: Option<&str>) -> Result<Identity, String> {
    let named = identity(reference)?;
    let exact = reference.is_some_and(|text| text.contains('/'));
    Ok(if exact { named } else { named.charged(fabric.ipv6_prefix()) })
}

/// The key of [`charged`] for a filter.
fn charged_key(fabric: &Fabric, text: &str) -> String {
    key_or_text(charged(fabric, Some(text)), text)
}

/// The key of the identity that a filter names; text that is no identity stays as it is and matches nothing.
fn key_or_text(read: Result<Identity, String>, text: &str) -> String {
    read.map_or_else(|_| text.to_owned(), |identity| identity.key())
}

/// A time in milliseconds from a body's seconds.
fn millis(seconds: u64) -> Result<u64, String> {
    if (1..=MAX_SECONDS).contains(&seconds) {
        return Ok(seconds * 1000);
    }
    Err(format!("`duration_seconds` is {seconds}; expected 1 to {MAX_SECONDS}"))
}

fn text(text: Option<String>) -> Result<String, String> {
    let text = text.unwrap_or_default();
    if text.chars().count() > MAX_TEXT {
        return Err(format!("`reason` and `note` have at most {MAX_TEXT} characters"));
    }
    Ok(text)
}

fn done(mut fields: Value) -> Answer {
    if let Some(fields) = fields.as_object_mut() {
        fields.shift_insert(0, "done".to_owned(), true.into());
    }
    Ok(Json(fields).into_response())
}

fn not_done(error: &str) -> Answer {
    Ok(Json(json!({ "done": false, "error": error })).into_response())
}

/// The caller: the operator of the session, from the address of the connection.
struct Caller(Actor);

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
