//! What those who run the control plane ask it: health, readiness, metrics. No key is needed.

use axum::Json;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::json;

use super::{AppState, describe};
use crate::openapi::Routes;
use events::Trouble;

pub(super) fn router() -> Routes<AppState> {
    Routes::new()
        .on(describe::operations::health(), health)
        .on(describe::operations::ready(), ready)
        .on(describe::operations::metrics(), metrics)
        .answer_schema::<Trouble>()
}

/// The process is up and answers.
async fn health() -> Response {
    Json(json!({ "status": "ok" })).into_response()
}

/// The store can be read, and everything that registered is up. What works in part only is no reason to be taken out of
/// service, and is told.
async fn ready(State(state): State<AppState>) -> Response {
    let mut missing = state.readiness.missing();
    if let Err(error) = state.store.ping().await {
        tracing::warn!(%error, "not ready: reading the store failed");
        missing.push("store".to_owned());
    }
    let problems = state.events.troubles();
    if !missing.is_empty() {
        let body = json!({ "status": "not ready", "missing": missing, "problems": problems });
        return (StatusCode::SERVICE_UNAVAILABLE, Json(body)).into_response();
    }
    let status = if problems.is_empty() { "ready" } else { "degraded" };
    let revision = state.entities.current().revision();
    Json(json!({ "status": status, "revision": revision, "problems": problems })).into_response()
}

async fn metrics(State(state): State<AppState>) -> Response {
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], state.metrics.render()).into_response()
}
