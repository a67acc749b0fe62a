//! What stands in the path of a request.

use axum::extract::{FromRequestParts, Path};
use axum::http::StatusCode;
use axum::http::request::Parts;
use serde::de::DeserializeOwned;

use crate::error::ApiError;

/// axum's `Path`, whose refusals are errors of the API: 400 `invalid_path` for what is no UTF-8.
pub(super) struct Segments<T>(pub(super) T);

impl<T: DeserializeOwned + Send, S: Send + Sync> FromRequestParts<S> for Segments<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Segments<T>, ApiError> {
        let Path(segments) = Path::from_request_parts(parts, state).await.map_err(|rejection| {
            let message = format!("the path cannot be read: {}", rejection.body_text());
            ApiError::new(StatusCode::BAD_REQUEST, "invalid_path", message)
        })?;
        Ok(Segments(segments))
    }
}
