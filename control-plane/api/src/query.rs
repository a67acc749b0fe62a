//! What lists of the API share: their parameters and the header of their pages.

use axum::extract::Query;
use axum::http::{HeaderName, StatusCode};

use crate::error::ApiError;

/// How many pages there are.
pub(crate) const PAGES: HeaderName = HeaderName::from_static("x-pages");

/// Query parameters in the order they came.
pub(crate) type Parameters = Query<Vec<(String, String)>>;

/// A parameter that is a number from 1.
pub(crate) fn positive(name: &str, value: &str) -> Result<usize, ApiError> {
    let number = value.parse::<u32>().ok().and_then(|number| usize::try_from(number).ok());
    number.filter(|number| *number > 0).ok_or_else(|| {
        let message = format!("`{name}` is a whole number from 1 to {}, not `{}`", u32::MAX, value.escape_debug());
        ApiError::new(StatusCode::BAD_REQUEST, "invalid_query", message)
    })
}
