//! Request bodies of the console: JSON, typed, with errors that say which field.

use axum::body::Bytes;
use axum::extract::rejection::BytesRejection;
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, StatusCode};
use serde::de::DeserializeOwned;
use serde_json::Value;

use entities::{FieldProblem, typed};
use listen::is_too_slow;

/// A body as the extractor hands it over.
pub(super) type Body = Result<Bytes, BytesRejection>;

/// The description of a body without a byte.
pub(super) const EMPTY: &str = "the body is empty";

/// What is wrong with a body.
#[derive(Clone, Debug)]
pub(super) struct BodyProblem {
    pub(super) status: StatusCode,
    pub(super) error: &'static str,
    pub(super) description: String,
}

/// Reads a body. The media type must be JSON: a form of a foreign page cannot send that without being asked first.
pub(super) fn read<T: DeserializeOwned>(headers: &HeaderMap, body: Body) -> Result<T, BodyProblem> {
    read_as(headers, body, typed)
}

/// [`read`] where something else makes of the JSON object what it is.
pub(super) fn read_as<T>(
    headers: &HeaderMap,
    body: Body,
    reader: impl FnOnce(Value) -> Result<T, FieldProblem>,
) -> Result<T, BodyProblem> {
    let problem = |status, error, description| BodyProblem { status, error, description };
    if !is_json(headers) {
        let description = "send the body with a content-type of application/json".to_owned();
        return Err(problem(StatusCode::UNSUPPORTED_MEDIA_TYPE, "unsupported_media_type", description));
    }
    let body = body.map_err(|rejection| match rejection.status() {
        StatusCode::PAYLOAD_TOO_LARGE => {
            let description = "the body is too large for this endpoint".to_owned();
            problem(StatusCode::PAYLOAD_TOO_LARGE, "payload_too_large", description)
        }
        _ if is_too_slow(&rejection) => {
            problem(StatusCode::REQUEST_TIMEOUT, "too_slow", "the body did not come in time".to_owned())
        }
        _ => problem(StatusCode::BAD_REQUEST, "invalid_body", format!("the body could not be read: {rejection}")),
    })?;
    if body.trim_ascii().is_empty() {
        return Err(problem(StatusCode::BAD_REQUEST, "invalid_json", EMPTY.to_owned()));
    }
    let value: Value = serde_json::from_slice(&body)
        .map_err(|error| problem(StatusCode::BAD_REQUEST, "invalid_json", format!("not JSON: {error}")))?;
    if !value.is_object() {
        // Types with defaults would take an array for their fields in order.
        return Err(problem(StatusCode::BAD_REQUEST, "invalid_body", "the body is not a JSON object".to_owned()));
    }
    reader(value).map_err(BodyProblem::from)
}

impl From<FieldProblem> for BodyProblem {
    fn from(found: FieldProblem) -> BodyProblem {
        BodyProblem { status: StatusCode::BAD_REQUEST, error: "invalid_body", description: found.to_string() }
    }
}

fn is_json(headers: &HeaderMap) -> bool {
    let value = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    value.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case("application/json")
}
