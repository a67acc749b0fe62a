//! What the routes of this module are for, for the document of the API. See [`crate::openapi`] for how to add one.

pub(super) mod bulk;
pub(super) mod collections;
pub(super) mod history;
pub(super) mod log_level;
pub(super) mod operations;
pub(super) mod report;
pub(super) mod routes_import;

use axum::http::HeaderName;

/// Carries the warnings of a write that was made, as a JSON array in ASCII.
pub(super) const WARNINGS: HeaderName = HeaderName::from_static("x-palisade-warnings");
