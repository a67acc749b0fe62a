//! Where the operations of plugins run: off the async threads, a few at a time, with an end.

use std::sync::Arc;
use std::time::Duration;

use axum::http::{StatusCode, header};
use tokio::sync::Semaphore;

use crate::error::ApiError;

/// Calls of one plugin that are at work at the same time: each may take a processor.
const CONCURRENT: usize = 2;
/// How long a call waits for its turn.
const WAIT: Duration = Duration::from_secs(10);
/// How long a call waits for its answer. The work itself cannot be cut off; it keeps its turn until it is done.
const WORK: Duration = Duration::from_secs(30);

/// The turns of one plugin's operations.
#[derive(Clone)]
pub(super) struct Turns {
    free: Arc<Semaphore>,
    /// How long a call waits for its turn.
    wait: Duration,
}

impl Default for Turns {
    fn default() -> Turns {
        Turns { free: Arc::new(Semaphore::new(CONCURRENT)), wait: WAIT }
    }
}

impl Turns {
    /// Does the work when its turn comes. `busy` says why a call has to wait, without the end of the sentence.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        busy: &str,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, ApiError> {
        let busy = || {
            let message = format!("{busy}; try again in a few seconds");
            ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "busy", message).with_header(header::RETRY_AFTER, "5")
        };
        let turn = tokio::time::timeout(self.wait, Arc::clone(&self.free).acquire_owned()).await;
        let turn = turn.map_err(|_| busy())?.map_err(|_| busy())?;
        let task = tokio::task::spawn_blocking(move || {
            let _turn = turn;
            work()
        });
        let failed = |word, message: String| ApiError::new(StatusCode::SERVICE_UNAVAILABLE, word, message);
        match tokio::time::timeout(WORK, task).await {
            Ok(Ok(done)) => Ok(done),
            Ok(Err(error)) => Err(failed("failed", format!("the work broke off: {error}"))),
            Err(_) => Err(failed("too_slow", format!("this takes longer than {} s", WORK.as_secs()))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn work_waits_for_its_turn_and_not_for_ever() {
        assert_eq!(WAIT, Duration::from_secs(10));
        let turns = Turns { wait: Duration::from_millis(1), ..Turns::default() };
        assert_eq!(turns.run("others", || 7).await.unwrap(), 7);
        let all = Arc::clone(&turns.free).try_acquire_many_owned(CONCURRENT as u32).unwrap();
        let refused = format!("{:?}", turns.run("others are at work", || 7).await.unwrap_err());
        assert!(refused.contains("\"busy\"") && refused.contains("others are at work; try again"), "{refused}");
        assert!(refused.contains("retry-after"), "{refused}");
        drop(all);
        assert_eq!(turns.run("others", || 7).await.unwrap(), 7);
    }

    #[tokio::test]
    async fn work_that_breaks_off_is_answered_and_gives_its_turn_back() {
        let turns = Turns { wait: Duration::from_millis(1), ..Turns::default() };
        for _ in 0..=CONCURRENT {
            let failed = format!("{:?}", turns.run("others", || panic!("on purpose")).await.map(|(): ()| ()));
            assert!(failed.contains("\"failed\"") && failed.contains("503"), "{failed}");
        }
    }
}
