//! The request that a task works for, so that what it logs and tells names it.

use std::sync::Arc;

use tokio::task::JoinHandle;
use tracing::Instrument as _;

tokio::task_local! {
    static REQUEST_ID: Arc<str>;
}

/// The id of the request that this task works for; none outside of one.
#[must_use]
pub fn request_id() -> Option<Arc<str>> {
    REQUEST_ID.try_with(Arc::clone).ok()
}

/// Works for the request with this id.
pub async fn within<F: Future>(id: &str, work: F) -> F::Output {
    REQUEST_ID.scope(id.into(), work).await
}

/// Spawns a task that works for the same request as the caller: with its id and its place in the log.
pub fn spawn_within<F>(work: F) -> JoinHandle<F::Output>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    let work = work.in_current_span();
    match request_id() {
        Some(id) => tokio::spawn(REQUEST_ID.scope(id, work)),
        None => tokio::spawn(work),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_task_of_a_request_works_for_it_too() {
        let id = within("r-1", async { spawn_within(async { request_id() }).await.unwrap() }).await;
        assert_eq!(id.as_deref(), Some("r-1"));
        assert_eq!(spawn_within(async { request_id() }).await.unwrap(), None);
    }
}
