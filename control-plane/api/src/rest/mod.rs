//! The admin API over HTTP.

mod body;
mod bulk;
mod collections;
mod depth;
mod describe;
mod etag;
mod fields;
mod history;
mod layers;
mod list;
pub mod log_level;
pub mod nodes;
mod operations;
mod path;
pub mod report;
mod routes_import;
mod state;
mod surface;
mod warnings;

use axum::Router;

use crate::access::guard;
use crate::openapi::{self, Routes};
use surface::Surface;

pub use state::{AppState, RestConfig};

/// The whole admin API. Requests carry their peer's address when it is served with connect info.
pub fn router(state: AppState) -> Router {
    router_with(state, Routes::new())
}

/// The admin API with further routes beside it, which get the same request ids, logs, metrics and error bodies, and are
/// described with the rest. They bring their own access control (see [`guard`]).
pub fn router_with(state: AppState, further: Routes) -> Router {
    let routes = openapi::publish(routes(&state).with_state(state.clone()).merge(further));
    layers::wrap(routes.into_router(), &state)
}

/// The routes of this module, guarded.
pub fn routes(state: &AppState) -> Routes<AppState> {
    let surface = Surface::Keys { group: &state.config.entity_group };
    guard(entities(state, surface), state.access.clone(), None).merge(operations::router())
}

/// The same entities for sessions of operators; the console guards them.
pub(crate) fn for_sessions(state: &AppState) -> Routes {
    entities(state, Surface::Sessions).with_state(state.clone())
}

/// The entities on one side; the caller guards them.
fn entities(state: &AppState, surface: Surface<'_>) -> Routes<AppState> {
    let routes = collections::router(state, surface).merge(history::router(surface));
    routes.merge(bulk::router(state, surface)).merge(routes_import::router(surface))
}
