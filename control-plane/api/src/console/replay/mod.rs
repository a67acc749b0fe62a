//! `replay/…`: recordings that are kept, and replays of them with a changed policy.
//!
//! A call that fails is answered with its status and an error. Recordings and replays are those of all control planes that share the store.

mod describe;
mod events;
mod jobs;
mod recordings;
mod start;
mod traffic;

use std::sync::Arc;

use axum::extract::DefaultBodyLimit;
use axum::http::{StatusCode, header};

use super::guard::protect;
use super::state::Console;
use crate::error::ApiError;
use crate::openapi::Routes;
use compiler::Compiler;
use replays::{ReplayError, Replays};
use store::EventStore;
use tokio::sync::Semaphore;
pub(super) use traffic::LatestTraffic;
pub use traffic::recorded_exchange;

/// The bytes of a body that has no documents, at most.
const MAX_BODY: usize = 16 * 1024;
/// The bytes of a body with changed documents, at most.
const MAX_CHANGES: usize = 8 * 1024 * 1024;

/// What the endpoints of this module need beside the console. Cheap to clone.
#[derive(Clone)]
pub struct Replaying {
    /// The recordings and jobs.
    pub replays: Replays,
    /// What makes the snapshots: the compiler that publishes as well, so that what it has gathered is in them.
    pub compiler: Arc<Compiler>,
    /// The stored events; `None` if they are not stored.
    pub stored: Option<Arc<dyn EventStore>>,
    /// Snapshots are made for one replay at a time.
    pub compiling: Arc<Semaphore>,
}

impl Replaying {
    /// Snapshots by this compiler, recordings of these events.
    #[must_use]
    pub fn new(replays: Replays, compiler: Arc<Compiler>, stored: Option<Arc<dyn EventStore>>) -> Replaying {
        Replaying { replays, compiler, stored, compiling: Arc::new(Semaphore::new(1)) }
    }
}

/// The endpoints of this module, for those with a session of `console`. The operations of plugins have its recordings from now on.
pub fn router(console: &Console, replaying: Replaying) -> Routes {
    console.give_traffic(LatestTraffic::new(replaying.replays.clone()));
    let small = || DefaultBodyLimit::max(MAX_BODY);
    let of_events = events::routes().layered(|router| router.layer(small()));
    let start = start::routes().layered(|router| router.layer(DefaultBodyLimit::max(MAX_CHANGES)));
    // An upload is no body in memory: the number of its bytes is checked as they come.
    let others = recordings::routes().merge(jobs::routes()).layered(|router| router.layer(small()));
    let routes = describe::schemas(others.merge(of_events).merge(start));
    protect(routes.with_state((console.clone(), replaying)), console.clone())
}

/// What a handler gets.
type State = axum::extract::State<(Console, Replaying)>;

/// What an error is answered with.
fn refused(error: &ReplayError) -> ApiError {
    if let ReplayError::Store(error) = error {
        return error.clone().into();
    }
    let (status, word) = match error {
        ReplayError::Unavailable(_) => (StatusCode::SERVICE_UNAVAILABLE, "replay_unavailable"),
        ReplayError::Busy(_) => (StatusCode::TOO_MANY_REQUESTS, "busy"),
        ReplayError::Full(_) => (StatusCode::CONFLICT, "full"),
        ReplayError::TooLarge(_) => (StatusCode::PAYLOAD_TOO_LARGE, "payload_too_large"),
        ReplayError::Name(_) => (StatusCode::BAD_REQUEST, "invalid_name"),
        ReplayError::UnknownRecording => (StatusCode::NOT_FOUND, "unknown_recording"),
        ReplayError::UnknownJob => (StatusCode::NOT_FOUND, "unknown_replay"),
        ReplayError::InUse => (StatusCode::CONFLICT, "in_use"),
        ReplayError::Ended => (StatusCode::CONFLICT, "ended"),
        ReplayError::Unreadable(_) => (StatusCode::BAD_REQUEST, "unreadable_recording"),
        ReplayError::Io(_, why) if why.kind() == std::io::ErrorKind::StorageFull => {
            (StatusCode::INSUFFICIENT_STORAGE, "insufficient_storage")
        }
        _ => {
            tracing::error!(%error, "a recording or a replay has failed");
            (StatusCode::INTERNAL_SERVER_ERROR, "failed")
        }
    };
    let answer = ApiError::new(status, word, error.to_string());
    match error {
        ReplayError::Busy(_) => answer.with_header(header::RETRY_AFTER, "10"),
        _ => answer,
    }
}
