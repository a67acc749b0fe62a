//! Request bodies: the right type, within the limit, JSON.

use axum::body::Bytes;
use axum::extract::rejection::BytesRejection;
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, StatusCode};
use serde_json::Value;

use super::depth;
use crate::error::ApiError;
use entities::Replacement;
use listen::is_too_slow;

const TOO_LARGE: &str = "the body exceeds the limit (`--max-body-bytes`)";

/// What a body was declared as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Declared {
    Json,
    MergePatch,
    JsonPatch,
}

/// A body as the extractor hands it over.
pub(super) type Body = Result<Bytes, BytesRejection>;

/// Reads the body of a POST or PUT.
pub(super) fn document(headers: &HeaderMap, body: Body) -> Result<Value, ApiError> {
    document_within(headers, body, TOO_LARGE)
}

/// [`document`] of a body with a limit of its own; `too_large` says what is exceeded.
pub(super) fn document_within(headers: &HeaderMap, body: Body, too_large: &str) -> Result<Value, ApiError> {
    match declared(headers) {
        Some(Declared::Json) => json(&whole_within(body, too_large)?),
        _ => Err(unsupported("application/json")),
    }
}

/// Reads the body of a PATCH: an object is a merge patch, an array a JSON patch.
pub(super) fn patch(headers: &HeaderMap, body: Body) -> Result<Replacement, ApiError> {
    let accepted = "application/json, application/merge-patch+json or application/json-patch+json";
    let declared = declared(headers).ok_or_else(|| unsupported(accepted))?;
    match (json(&whole(body)?)?, declared) {
        (Value::Array(_), Declared::MergePatch) => {
            Err(invalid_patch("a merge patch of an entity is an object".to_owned()))
        }
        (Value::Object(_), Declared::JsonPatch) => {
            Err(invalid_patch("a JSON patch is an array of operations".to_owned()))
        }
        (patch, _) => replacement(patch),
    }
}

/// Reads a patch: an object is a merge patch, an array a JSON patch.
pub(super) fn replacement(patch: Value) -> Result<Replacement, ApiError> {
    match patch {
        Value::Object(_) => Ok(Replacement::Merge(patch)),
        Value::Array(_) => match serde_path_to_error::deserialize(patch) {
            Ok(patch) => Ok(Replacement::Patch(patch)),
            Err(error) => Err(invalid_patch(format!(
                "operation {} of the JSON patch (RFC 6902): {}",
                error.path(),
                error.inner()
            ))),
        },
        _ => Err(invalid_patch(
            "a patch is an object (JSON merge patch, RFC 7396) or an array of operations (JSON patch, RFC 6902)"
                .to_owned(),
        )),
    }
}

/// The bytes of a body, within the limit.
pub(super) fn whole(body: Body) -> Result<Bytes, ApiError> {
    whole_within(body, TOO_LARGE)
}

/// The bytes of a body; `too_large` says what is exceeded by one that is not within the limit.
pub(super) fn whole_within(body: Body, too_large: &str) -> Result<Bytes, ApiError> {
    body.map_err(|rejection| match rejection.status() {
        StatusCode::PAYLOAD_TOO_LARGE => ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, "payload_too_large", too_large),
        _ if is_too_slow(&rejection) => {
            ApiError::new(StatusCode::REQUEST_TIMEOUT, "too_slow", "the body did not come in time")
        }
        _ => ApiError::new(StatusCode::BAD_REQUEST, "invalid_body", format!("the body could not be read: {rejection}")),
    })
}

fn json(body: &[u8]) -> Result<Value, ApiError> {
    serde_json::from_slice(body).map_err(|error| {
        if let Some(problem) = depth::problem(body) {
            return ApiError::invalid(vec![problem]);
        }
        let what =
            if body.trim_ascii().is_empty() { "the body is empty".to_owned() } else { format!("not JSON: {error}") };
        ApiError::new(StatusCode::BAD_REQUEST, "invalid_json", what)
    })
}

fn declared(headers: &HeaderMap) -> Option<Declared> {
    let value = headers.get(CONTENT_TYPE)?.to_str().ok()?;
    let media_type = value.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    match media_type.as_str() {
        "application/json" => Some(Declared::Json),
        "application/merge-patch+json" => Some(Declared::MergePatch),
        "application/json-patch+json" => Some(Declared::JsonPatch),
        _ => None,
    }
}

/// 415 with what is understood.
pub(super) fn unsupported(accepted: &str) -> ApiError {
    let message = format!("send the body with a content-type of {accepted}");
    ApiError::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "unsupported_media_type", message)
}

fn invalid_patch(message: String) -> ApiError {
    ApiError::new(StatusCode::BAD_REQUEST, "invalid_patch", message)
}
