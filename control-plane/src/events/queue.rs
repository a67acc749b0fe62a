//! A bounded queue that forgets the oldest.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// Lines on their way to one exporter. A slow exporter loses the oldest lines, never the newest, and never holds up a node.
#[derive(Debug)]
pub(super) struct Queue {
    state: Mutex<State>,
    filled: Notify,
    emptied: Notify,
    capacity: usize,
}

#[derive(Debug, Default)]
struct State {
    lines: VecDeque<Arc<[u8]>>,
    /// Lines that were taken out and are not written yet.
    writing: usize,
    dropped: u64,
    written: u64,
    error: Option<String>,
}

/// The figures of a queue: (waiting, written, dropped, last error).
pub(super) type Figures = (usize, u64, u64, Option<String>);

impl Queue {
    pub(super) fn new(capacity: usize) -> Queue {
        Queue { state: Mutex::default(), filled: Notify::new(), emptied: Notify::new(), capacity: capacity.max(1) }
    }

    /// Adds a line; false when the oldest had to go for it.
    pub(super) fn push(&self, line: Arc<[u8]>) -> bool {
        let mut state = self.lock();
        let full = state.lines.len() >= self.capacity;
        if full {
            state.lines.pop_front();
            state.dropped += 1;
        }
        state.lines.push_back(line);
        drop(state);
        self.filled.notify_one();
        !full
    }

    /// Waits for lines and takes all that are there.
    pub(super) async fn take(&self) -> Vec<Arc<[u8]>> {
        loop {
            // Registered before the look, so that a line that comes in between is not missed.
            let filled = self.filled.notified();
            {
                let mut state = self.lock();
                if !state.lines.is_empty() {
                    state.writing = state.lines.len();
                    return state.lines.drain(..).collect();
                }
            }
            filled.await;
        }
    }

    /// What was taken is written, or lost for the reason in `error`.
    pub(super) fn done(&self, error: Option<String>) {
        let mut state = self.lock();
        let count = u64::try_from(std::mem::take(&mut state.writing)).unwrap_or(u64::MAX);
        if error.is_some() {
            state.dropped += count;
        } else {
            state.written += count;
        }
        state.error = error;
        drop(state);
        self.emptied.notify_waiters();
    }

    /// Waits until everything that was pushed before is written or lost.
    pub(super) async fn drained(&self) {
        loop {
            let emptied = self.emptied.notified();
            tokio::pin!(emptied);
            emptied.as_mut().enable();
            {
                let state = self.lock();
                if state.lines.is_empty() && state.writing == 0 {
                    return;
                }
            }
            emptied.await;
        }
    }

    pub(super) fn figures(&self) -> Figures {
        let state = self.lock();
        (state.lines.len(), state.written, state.dropped, state.error.clone())
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_oldest_go_first_and_are_counted() {
        let queue = Queue::new(2);
        for line in ["1", "2", "3"] {
            queue.push(line.as_bytes().into());
        }
        let lines = queue.take().await;
        assert_eq!(lines.iter().map(|line| line.to_vec()).collect::<Vec<_>>(), [b"2".to_vec(), b"3".to_vec()]);
        queue.done(None);
        assert_eq!(queue.figures(), (0, 2, 1, None));
        queue.drained().await;
    }
}
