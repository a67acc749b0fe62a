//! The admin API over HTTP.

mod body;
mod bulk;
mod collections;
mod depth;
mod describe;
mod etag;
mod fields;
mod layers;
mod list;
pub mod log_level;
pub mod nodes;
mod operations;
mod path;
pub mod report;
mod routes_import;
mod state;
mod warnings;

use axum::Router;

use crate::access::guard;
use crate::openapi::{self, Routes};

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
    let entities = collections::router(state).merge(bulk::router(state)).merge(routes_import::router(state));
    guard(entities, state.access.clone(), None).merge(operations::router())
}
