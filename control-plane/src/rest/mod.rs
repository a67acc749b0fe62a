//! The admin API over HTTP.

mod body;
mod bulk;
mod collections;
mod error;
mod etag;
mod layers;
mod list;
pub mod log_level;
pub mod nodes;
mod operations;
pub mod report;
mod state;

use axum::Router;

use crate::access::guard;

pub use error::ApiError;
pub use state::{AppState, RestConfig};

/// The whole admin API. Requests carry their peer's address when it is served with connect info.
pub fn router(state: AppState) -> Router {
    router_with(state, Router::new())
}

/// The admin API with further routes beside it, which get the same request ids, logs, metrics and error bodies. They
/// bring their own access control (see [`guard`]).
pub fn router_with(state: AppState, further: Router) -> Router {
    let entities = guard(collections::router(&state).merge(bulk::router(&state)), state.access.clone(), None);
    let routes = Router::new().merge(entities).merge(operations::router()).with_state(state.clone()).merge(further);
    layers::wrap(routes, &state)
}
