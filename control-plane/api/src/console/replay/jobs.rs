//! `_jobs`, `_job`, `_cancel`: replays that wait, run or have ended.

use axum::Json;
use axum::extract::Query;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::events::time;
use super::recordings::demand_own;
use super::{Replaying, State, describe, refused};
use crate::console::body::{self, Body};
use crate::console::state::{Console, node};
use crate::console::who::Who;
use crate::error::ApiError;
use crate::openapi::{JSON, Routes};
use crate::query::Parameters;
use base::clock;
use replays::Job;

/// The replay that is meant.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ReplayBody {
    /// Its id.
    id: String,
}

pub(super) fn routes() -> Routes<(Console, Replaying)> {
    Routes::new()
        .on(describe::jobs(), jobs)
        .on(describe::job(), job)
        .on(describe::cancel(), cancel)
        .schema::<ReplayBody>()
}

async fn jobs(axum::extract::State((_, replaying)): State) -> Result<Json<Value>, ApiError> {
    let jobs = replaying.replays.jobs().await.map_err(|error| refused(&error))?;
    Ok(Json(json!({ "node": node(), "jobs": jobs.iter().map(shown).collect::<Vec<_>>() })))
}

async fn job(axum::extract::State((_, replaying)): State, Query(parameters): Parameters) -> Result<Response, ApiError> {
    let [(_, id)] = parameters.as_slice() else {
        return Err(ApiError::new(StatusCode::BAD_REQUEST, "invalid_query", "give the `id` of a replay, once"));
    };
    let (job, result) = replaying.replays.job(id).await.map_err(|error| refused(&error))?;
    let diff = result.unwrap_or_else(|| "null".to_owned());
    // The result is passed on as the program has written it: a document of some MiB is not taken apart for this.
    let answer = format!(r#"{{"node":{},"job":{},"diff":{diff}}}"#, json!(node()), shown(&job));
    Ok(([(header::CONTENT_TYPE, JSON)], answer).into_response())
}

async fn cancel(
    axum::extract::State((_, replaying)): State,
    who: Who,
    headers: HeaderMap,
    body: Body,
) -> Result<Json<Value>, ApiError> {
    let ReplayBody { id } = body::read(&headers, body)?;
    let job = replaying.replays.find(&id).await.map_err(|error| refused(&error))?;
    demand_own(&who, &job.by, "replay")?;
    let job = replaying.replays.cancel(&id).await.map_err(|error| refused(&error))?;
    Ok(Json(json!({ "done": true, "job": shown(&job) })))
}

/// A replay as answers have it.
pub(super) fn shown(job: &Job) -> Value {
    json!({
        "id": job.id,
        "recording": job.recording,
        "recording_name": job.recording_name,
        "by": job.by,
        "changes": job.changes,
        "group": job.group,
        "route": job.route,
        "state": job.state,
        "added_at": clock::rfc3339(job.added_millis),
        "began_at": time(job.began_millis),
        "ended_at": time(job.ended_millis),
        "progress": job.progress,
        "error": job.error,
    })
}
