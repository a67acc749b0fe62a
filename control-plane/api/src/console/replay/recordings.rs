//! `_recordings`, `_upload`, `_delete`: what is kept.

use axum::Json;
use axum::body::Body as RawBody;
use axum::extract::{Query, Request};
use axum::http::{HeaderMap, StatusCode, header};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio_stream::StreamExt as _;

use super::events::time;
use super::{Replaying, State, describe, refused};
use crate::console::body::{self, Body};
use crate::console::state::{Console, node};
use crate::console::who::Who;
use crate::error::ApiError;
use crate::openapi::Routes;
use crate::query::Parameters;
use accounts::Role;
use base::clock;
use events::AuditAction;
use listen::is_too_slow;
use replays::{Recording, Source, Upload};

/// The recording that is meant.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RecordingBody {
    /// Its id.
    id: String,
}

pub(super) fn routes() -> Routes<(Console, Replaying)> {
    Routes::new()
        .on(describe::recordings(), recordings)
        .on(describe::upload(), upload)
        .on(describe::delete(), delete)
        .schema::<RecordingBody>()
}

async fn recordings(axum::extract::State((_, replaying)): State) -> Result<Json<Value>, ApiError> {
    let Replaying { replays, stored, .. } = replaying;
    let limits = replays.limits();
    let recordings = replays.recordings().await.map_err(|error| refused(&error))?;
    let bytes: u64 = recordings.iter().map(|recording| recording.bytes).sum();
    Ok(Json(json!({
        "node": node(),
        "unavailable": replays.find_program().err().map(|error| error.to_string()),
        "stored_events": stored.is_some(),
        "recordings": recordings.iter().rev().map(shown).collect::<Vec<_>>(),
        "bytes": bytes,
        "limits": {
            "upload_bytes": limits.upload_bytes, "recordings": limits.recordings, "total_bytes": limits.total_bytes,
            "waiting": limits.waiting, "seconds": limits.cpu_seconds, "memory_mib": limits.memory_mib,
        },
    })))
}

async fn upload(
    axum::extract::State((console, replaying)): State,
    who: Who,
    Query(parameters): Parameters,
    request: Request,
) -> Result<Json<Value>, ApiError> {
    let name = match parameters.as_slice() {
        [(_, name)] => name.as_str(),
        [] => "",
        _ => return Err(ApiError::new(StatusCode::BAD_REQUEST, "invalid_query", "`name` comes twice")),
    };
    let length = request.headers().get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse().ok());
    let upload = replaying.replays.upload(name, Source::Upload, length).await.map_err(|error| refused(&error))?;
    let upload = receive(upload, request.into_body()).await?;
    keep(&console, &who, upload).await
}

/// Takes a body as it comes.
async fn receive(mut upload: Upload, body: RawBody) -> Result<Upload, ApiError> {
    let mut pieces = body.into_data_stream();
    while let Some(piece) = pieces.next().await {
        let piece = piece.map_err(|error| match is_too_slow(&error) {
            true => ApiError::new(
                StatusCode::REQUEST_TIMEOUT,
                "too_slow",
                "the recording did not come in time; compress it with gzip",
            ),
            false => {
                ApiError::new(StatusCode::BAD_REQUEST, "invalid_body", format!("the recording was cut off: {error}"))
            }
        })?;
        upload.write(&piece).await.map_err(|error| refused(&error))?;
    }
    Ok(upload)
}

/// Keeps what has come, and answers with it.
pub(super) async fn keep(console: &Console, who: &Who, upload: Upload) -> Result<Json<Value>, ApiError> {
    let kept = upload.finish(&who.operator.name, clock::now_millis()).await;
    let recording = kept.map_err(|error| refused(&error))?;
    let detail = format!("{}: {} requests", recording.name, recording.requests);
    let audit = who.audit(AuditAction::RecordingAdd).of(format!("recordings/{}", recording.id));
    console.inner.events.audit(audit.detail(detail));
    Ok(Json(json!({ "done": true, "node": node(), "recording": shown(&recording) })))
}

async fn delete(
    axum::extract::State((console, replaying)): State,
    who: Who,
    headers: HeaderMap,
    body: Body,
) -> Result<Json<Value>, ApiError> {
    let RecordingBody { id } = body::read(&headers, body)?;
    let recording = replaying.replays.recording(&id).await.map_err(|error| refused(&error))?;
    demand_own(&who, &recording.by, "recording")?;
    let recording = replaying.replays.delete(&id).await.map_err(|error| refused(&error))?;
    let audit = who.audit(AuditAction::RecordingDelete).of(format!("recordings/{id}"));
    console.inner.events.audit(audit.detail(format!("{}: {} requests", recording.name, recording.requests)));
    Ok(Json(json!({ "done": true })))
}

/// An error if something belongs to another operator, and the one who asks is no admin.
pub(super) fn demand_own(who: &Who, owner: &str, what: &str) -> Result<(), ApiError> {
    if who.operator.role >= Role::Admin || who.operator.name == owner {
        return Ok(());
    }
    metrics::counter!("palisade_console_refusals_total", "reason" => "role").increment(1);
    let message = format!("this {what} is of another operator: that needs the role `{}`", Role::Admin);
    Err(ApiError::new(StatusCode::FORBIDDEN, "role", message))
}

/// A recording as answers have it.
pub(super) fn shown(recording: &Recording) -> Value {
    json!({
        "id": recording.id,
        "name": recording.name,
        "source": recording.source,
        "by": recording.by,
        "added_at": clock::rfc3339(recording.added_millis),
        "bytes": recording.bytes,
        "requests": recording.requests,
        "unreadable": recording.unreadable,
        "reasons": recording.reasons,
        "first_at": time(recording.first_millis),
        "last_at": time(recording.last_millis),
        "unrouted": recording.unrouted,
    })
}
