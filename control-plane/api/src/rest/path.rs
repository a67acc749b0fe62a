//! What stands in the path of a request.

use axum::extract::{FromRequestParts, Path};
use axum::http::StatusCode;
use axum::http::request::Parts;
use serde::Deserialize;

use super::AppState;
use super::surface::Surface;
use crate::error::ApiError;
use entities::{Kind, registry};

/// What the path of a request to the entities names; an extractor. A path that is no UTF-8 is 400 `invalid_path`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Place {
    /// The API group; paths of the console have none.
    group: Option<String>,
    /// The collection; empty for all of them.
    collection: String,
    /// The entity; empty for the whole collection.
    pub(super) id: String,
    /// The number of a version; empty for the entity itself.
    pub(super) version: String,
}

impl Place {
    /// The collection, where the group is the control plane's own.
    pub(super) fn kind(&self, state: &AppState) -> Result<&'static Kind, ApiError> {
        self.own_group(state)?;
        let name = &self.collection;
        registry::by_collection(name).ok_or_else(|| ApiError::not_found(registry::unknown_collection(name)))
    }

    /// Whether the entities are under this group.
    pub(super) fn own_group(&self, state: &AppState) -> Result<(), ApiError> {
        let own = &state.config.entity_group;
        let Some(group) = self.group.as_ref().filter(|group| *group != own) else { return Ok(()) };
        let message =
            format!("there is no API group `{}`; the entities are under /apis/{own}/v1/", group.escape_debug());
        Err(ApiError::not_found(message))
    }

    /// The path of an entity of this collection, on the side that the request came to.
    pub(super) fn path_of(&self, id: &str) -> String {
        let surface = self.group.as_deref().map_or(Surface::Sessions, |group| Surface::Keys { group });
        surface.path(&format!("/{}/{id}", self.collection))
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Place {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Place, ApiError> {
        let Path(place) = Path::from_request_parts(parts, state).await.map_err(|rejection| {
            let message = format!("the path cannot be read: {}", rejection.body_text());
            ApiError::new(StatusCode::BAD_REQUEST, "invalid_path", message)
        })?;
        Ok(place)
    }
}
