//! Single writes, taken together: those that wait while another is judged and committed share the next commit.
//!
//! Each is still judged by itself, in its turn, and has an answer of its own. Two writes to one entity never share a commit:
//! a revision, and so an ETag, stands for one state.

use std::collections::{BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::oneshot;

use super::EntityService;
use super::batch::{Batch, BatchEntry, BatchOptions, BatchOutcome};
use super::service::{Shared, WriteError, Written};
use crate::store::StoreError;

/// The most writes that share a commit: bounds how long the first of them waits.
const MOST: usize = 128;

/// Writes that wait.
#[derive(Default)]
pub(super) struct Desk {
    waiting: Mutex<VecDeque<Waiting>>,
}

struct Waiting {
    entry: BatchEntry,
    tell: oneshot::Sender<Result<Written, WriteError>>,
}

impl EntityService {
    /// Makes one change.
    pub(super) async fn write(&self, entry: BatchEntry) -> Result<Written, WriteError> {
        let (tell, mut told) = oneshot::channel();
        self.detached(move |shared| async move {
            shared.desk.put(Waiting { entry, tell });
            let _writing = shared.writing.lock().await;
            loop {
                // Whoever had the turn before may have taken this one along.
                match told.try_recv() {
                    Ok(result) => return result,
                    Err(oneshot::error::TryRecvError::Closed) => return Err(WriteError::Store(StoreError::Closed)),
                    Err(oneshot::error::TryRecvError::Empty) => shared.write_waiting().await,
                }
            }
        })
        .await
    }
}

impl Desk {
    fn put(&self, waiting: Waiting) {
        self.lock().push_back(waiting);
    }

    /// The writes of the next commit: the first that wait, each of another entity.
    fn take(&self) -> Vec<Waiting> {
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

impl Shared {
    /// Makes the changes of one commit. The caller holds the right to write.
    async fn write_waiting(&self) {
        let taken = self.desk.take();
        let alone = taken.len() == 1;
        let (entries, tells): (Vec<BatchEntry>, Vec<_>) =
            taken.into_iter().map(|waiting| (waiting.entry, waiting.tell)).unzip();
        let again = if alone { Vec::new() } else { entries.clone() };
        let BatchOutcome { results, warnings } = self.write_entries(entries).await;
        for (index, (result, tell)) in results.into_iter().zip(tells).enumerate() {
            // Another one's conflict with the store is no answer to this.
            let outcome = match (result, again.get(index)) {
                (Err(WriteError::NotApplied), Some(entry)) => {
                    let BatchOutcome { mut results, warnings } = self.write_entries(vec![entry.clone()]).await;
                    let result = results.pop().unwrap_or(Err(WriteError::NotApplied));
                    result.map(|slot| Written { slot, warnings })
                }
                (result, _) => result.map(|slot| Written { slot, warnings: warnings.clone() }),
            };
            // Who asked may have gone; what is written stands all the same.
            let _gone = tell.send(outcome);
        }
    }

    async fn write_entries(&self, entries: Vec<BatchEntry>) -> BatchOutcome {
        let set = Arc::clone(&self.current.borrow());
        Batch::new(self, set, entries, BatchOptions::default()).run().await
    }
}
