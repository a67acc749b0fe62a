//! Errors as the API answers them: `{error, error_description}`, with `errors` where several fields are wrong.

use axum::Json;
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde_json::{Map, Value};

use entities::{FieldProblem, WriteError};
use store::StoreError;

/// An error answer.
#[derive(Clone, Debug)]
pub struct ApiError {
    status: StatusCode,
    error: &'static str,
    description: String,
    errors: Vec<FieldProblem>,
    // Boxed, because every fallible step of a handler carries the room for it.
    header: Option<Box<(HeaderName, HeaderValue)>>,
}

impl ApiError {
    /// An answer with a status, a word for machines and a sentence for people.
    pub fn new(status: StatusCode, error: &'static str, description: impl Into<String>) -> ApiError {
        ApiError { status, error, description: description.into(), errors: Vec::new(), header: None }
    }

    /// 400 with what is wrong, field by field.
    pub fn invalid(problems: Vec<FieldProblem>) -> ApiError {
        ApiError::fields(StatusCode::BAD_REQUEST, "invalid_entity", problems)
    }

    /// 404 `not_found`.
    pub fn not_found(description: impl Into<String>) -> ApiError {
        ApiError::new(StatusCode::NOT_FOUND, "not_found", description)
    }

    /// Adds a response header; a value that cannot be one is left out.
    #[must_use]
    pub fn with_header(mut self, name: HeaderName, value: &str) -> ApiError {
        self.header = HeaderValue::from_str(value).ok().map(|value| Box::new((name, value)));
        self
    }

    pub(crate) fn status(&self) -> StatusCode {
        self.status
    }

    /// The fields of the body: `error`, `error_description`, and `errors` where fields are wrong.
    fn body(&self) -> Map<String, Value> {
        let mut body = Map::new();
        body.insert("error".to_owned(), self.error.into());
        body.insert("error_description".to_owned(), self.description.as_str().into());
        if !self.errors.is_empty()
            && let Ok(errors) = serde_json::to_value(&self.errors)
        {
            body.insert("errors".to_owned(), errors);
        }
        body
    }

    /// The body as one of many: with the `status`, and the `pointer` of the first wrong field.
    pub fn line(&self) -> Map<String, Value> {
        let mut line = Map::from_iter([("status".to_owned(), self.status.as_u16().into())]);
        line.extend(self.body());
        if let Some(first) = self.errors.first() {
            line.insert("pointer".to_owned(), first.pointer.as_str().into());
        }
        line
    }

    /// What a failure of the store is answered with; without a line in the log.
    pub(crate) fn store(error: &StoreError) -> ApiError {
        let (status, word) = match error {
            StoreError::Conflict { .. } | StoreError::BatchConflict { .. } => {
                (StatusCode::PRECONDITION_FAILED, "precondition_failed")
            }
            StoreError::DiskFull { .. } => (StatusCode::INSUFFICIENT_STORAGE, "insufficient_storage"),
            StoreError::Moved { .. } => (StatusCode::SERVICE_UNAVAILABLE, "busy"),
            StoreError::Closed => (StatusCode::SERVICE_UNAVAILABLE, "shutting_down"),
            _ => (StatusCode::INTERNAL_SERVER_ERROR, "store_failed"),
        };
        ApiError::new(status, word, error.to_string())
    }

    fn fields(status: StatusCode, error: &'static str, problems: Vec<FieldProblem>) -> ApiError {
        let description = problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ");
        ApiError { errors: problems, ..ApiError::new(status, error, description) }
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let mut response = (self.status, Json(Value::Object(self.body()))).into_response();
        if let Some((name, value)) = self.header.map(|header| *header) {
            response.headers_mut().insert(name, value);
        }
        response
    }
}

impl From<WriteError> for ApiError {
    fn from(error: WriteError) -> ApiError {
        match error {
            WriteError::NotFound => ApiError::not_found("there is no entity with this id"),
            WriteError::NotKept { number } => {
                ApiError::not_found(format!("the history of this entity has no version {number}, or not any more"))
            }
            WriteError::Exists => ApiError::new(
                StatusCode::CONFLICT,
                "conflict",
                "an entity with this id exists already; PUT or PATCH it to change it",
            ),
            WriteError::Stale { current } => ApiError::new(
                StatusCode::PRECONDITION_FAILED,
                "precondition_failed",
                format!(
                    "the entity has changed since: it is at revision {current}; read it again and repeat the change"
                ),
            ),
            WriteError::Invalid(problems) => ApiError::invalid(problems),
            WriteError::Patch(text) => ApiError::new(
                StatusCode::BAD_REQUEST,
                "invalid_patch",
                format!("the patch does not fit the entity: {text}"),
            ),
            WriteError::PatchTest(text) => {
                ApiError::new(StatusCode::CONFLICT, "patch_test_failed", format!("nothing was changed: {text}"))
            }
            WriteError::InUse(problems) => ApiError::fields(StatusCode::CONFLICT, "in_use", problems),
            WriteError::NotApplied => ApiError::new(
                StatusCode::FAILED_DEPENDENCY,
                "not_applied",
                "nothing was written, because another line was refused",
            ),
            WriteError::Store(error) => error.into(),
        }
    }
}

impl From<StoreError> for ApiError {
    fn from(error: StoreError) -> ApiError {
        tracing::error!(%error, "the store failed");
        ApiError::store(&error)
    }
}
