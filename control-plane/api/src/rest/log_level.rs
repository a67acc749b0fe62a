//! What is logged: to be seen with scope `read`, to be changed with scope `write`.

use std::time::Duration;

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::{Extension, Json};
use schemars::JsonSchema;
use serde::Deserialize;

use super::body::{self, Body};
use super::describe;
use crate::access::Caller;
use crate::error::ApiError;
use crate::openapi::Routes;
use entities::FieldProblem;
use events::{Audit, AuditAction, EventHub};
use telemetry::{LogControl, LogLevel, LogLevelError};

/// The longest time of a passing level, in seconds: a day.
const MAX_SECONDS: u64 = 86_400;

/// What a change is made of.
#[derive(Clone, Debug)]
pub struct Logging {
    /// The logs of this process.
    pub logs: LogControl,
    /// Where it is told who has changed them.
    pub events: EventHub,
}

/// A change of the log level.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct LogLevelChange {
    /// Levels separated by commas, as in `RUST_LOG`: `info`, `info,palisade::xds=debug`.
    level: String,
    /// Seconds after which the previous level is restored, 1 to 86400. Null: it is not restored.
    #[serde(default)]
    #[schemars(range(min = 1, max = 86400))]
    for_seconds: Option<u64>,
}

/// `_log-level`; the caller guards it.
pub fn router(logging: Logging) -> Routes {
    Routes::new()
        .on(describe::log_level::show(), show)
        .on(describe::log_level::change(), change)
        .answer_schema::<LogLevel>()
        .schema::<LogLevelChange>()
        .with_state(logging)
}

async fn show(State(logging): State<Logging>) -> Json<LogLevel> {
    Json(logging.logs.level())
}

async fn change(
    State(logging): State<Logging>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
    body: Body,
) -> Result<Json<LogLevel>, ApiError> {
    let wrong = |pointer: &str, message: String| ApiError::invalid(vec![FieldProblem::new(pointer, message)]);
    let document = body::document(&headers, body)?;
    let change: LogLevelChange = serde_path_to_error::deserialize(document).map_err(|error| {
        let path = error.path().to_string();
        let pointer = if path == "." { String::new() } else { format!("/{path}") };
        wrong(&pointer, error.inner().to_string())
    })?;
    if let Some(seconds) = change.for_seconds
        && !(1..=MAX_SECONDS).contains(&seconds)
    {
        return Err(wrong("/for_seconds", format!("1 to {MAX_SECONDS} seconds are expected")));
    }
    let level = logging.logs.set(&change.level, change.for_seconds.map(Duration::from_secs)).map_err(|error| {
        let message = error.to_string();
        match error {
            LogLevelError::Filter(_) => wrong("/level", message),
            LogLevelError::Unavailable(_) => ApiError::new(StatusCode::CONFLICT, "unavailable", message),
        }
    })?;
    let until = level.until.as_ref().map(|until| format!(" until {until}")).unwrap_or_default();
    tracing::info!(key = caller.key_id, level = level.level, until = level.until, "the log level was changed");
    let audit = Audit::new(AuditAction::LogLevel).admin_key(&caller.key_id, &caller.key_name).from(caller.source);
    logging.events.audit(audit.detail(format!("{}{until}", level.level)));
    Ok(Json(level))
}
