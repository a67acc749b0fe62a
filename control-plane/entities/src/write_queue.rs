//! Writes that wait for the next commit.

use std::collections::{BTreeSet, VecDeque};
use std::sync::{Mutex, PoisonError};

use tokio::sync::oneshot;

use super::change::{BatchEntry, WriteError, Written};
use super::history::Signature;

/// The most writes that share a commit: bounds how long the first of them waits.
const MOST: usize = 128;

/// Writes that wait.
#[derive(Default)]
pub(super) struct WriteQueue {
    waiting: Mutex<VecDeque<Waiting>>,
}

/// A write, and who waits for its outcome.
pub(super) struct Waiting {
    pub(super) entry: BatchEntry,
    pub(super) signature: Signature,
    pub(super) tell: oneshot::Sender<Result<Written, WriteError>>,
}

impl WriteQueue {
    /// Puts a write at the end.
    pub(super) fn put(&self, waiting: Waiting) {
        self.lock().push_back(waiting);
    }

    /// The writes of the next commit: the first that wait, each of another entity.
    pub(super) fn take(&self) -> Vec<Waiting> {
        let mut queue = self.lock();
        let (mut taken, mut left, mut seen) = (Vec::new(), VecDeque::new(), BTreeSet::new());
        while let Some(waiting) = queue.pop_front() {
            let place = waiting.entry.place();
            // A later write to an entity whose earlier one has to wait waits as well.
            let first = place.is_none_or(|place| seen.insert(place));
            if first && taken.len() < MOST { taken.push(waiting) } else { left.push_back(waiting) }
        }
        *queue = left;
        taken
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, VecDeque<Waiting>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
