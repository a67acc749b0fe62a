//! Single writes, taken together: those that wait while another is judged and committed share the next commit.
//!
//! Each is still judged by itself, in its turn, and has an answer of its own. Two writes to one entity never share a commit:
//! a revision, and so an ETag, stands for one state.

use std::sync::Arc;

use serde_json::Value;
use tokio::sync::oneshot;

use super::EntityService;
use super::admission::Warning;
use super::batch::{Batch, Signed};
use super::change::{
    BatchEntry, BatchOptions, BatchOutcome, BatchWrite, Precondition, Replacement, WriteError, Written,
};
use super::service::Shared;
use super::write_queue::Waiting;
use kit::Kind;
use store::StoreError;

impl EntityService {
    /// Adds an entity; gives it an id where the document has none.
    ///
    /// # Errors
    /// See [`WriteError`].
    pub async fn create(&self, kind: &'static Kind, mut document: Value) -> Result<Written, WriteError> {
        kind.give_id(&mut document);
        self.write(BatchEntry { kind, write: BatchWrite::Create(document), precondition: None }).await
    }

    /// Changes an entity that exists.
    ///
    /// # Errors
    /// See [`WriteError`].
    pub async fn update(
        &self,
        kind: &'static Kind,
        id: &str,
        replacement: Replacement,
        precondition: Option<Precondition>,
    ) -> Result<Written, WriteError> {
        let write = BatchWrite::Update(id.to_owned(), replacement);
        self.write(BatchEntry { kind, write, precondition }).await
    }

    /// Removes an entity that nothing needs any more.
    ///
    /// # Errors
    /// See [`WriteError`].
    pub async fn delete(
        &self,
        kind: &'static Kind,
        id: &str,
        precondition: Option<Precondition>,
    ) -> Result<Written, WriteError> {
        self.write(BatchEntry { kind, write: BatchWrite::Delete(id.to_owned()), precondition }).await
    }

    /// Removes an entity although others name it, see [`BatchWrite::DeleteAnyway`].
    ///
    /// # Errors
    /// See [`WriteError`].
    pub async fn delete_anyway(
        &self,
        kind: &'static Kind,
        id: &str,
        precondition: Option<Precondition>,
    ) -> Result<Written, WriteError> {
        self.write(BatchEntry { kind, write: BatchWrite::DeleteAnyway(id.to_owned()), precondition }).await
    }

    /// Makes one change.
    pub(super) async fn write(&self, entry: BatchEntry) -> Result<Written, WriteError> {
        let (tell, mut told) = oneshot::channel();
        let signature = self.signature.clone();
        self.detached(move |shared| async move {
            shared.queue.put(Waiting { entry, signature, tell });
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

impl Shared {
    /// Makes the changes of one commit. The caller holds the right to write.
    async fn write_waiting(&self) {
        let taken = self.queue.take();
        let alone = taken.len() == 1;
        let (entries, tells): (Vec<Signed>, Vec<_>) =
            taken.into_iter().map(|waiting| ((waiting.entry, waiting.signature), waiting.tell)).unzip();
        let again = if alone { Vec::new() } else { entries.clone() };
        let BatchOutcome { results, warnings } = self.write_entries(entries).await;
        let of = |index: usize, warnings: &[Warning]| -> Vec<String> {
            let own = warnings.iter().filter(|(about, _)| about.is_none_or(|about| about == index));
            own.map(|(_, text)| text.clone()).collect()
        };
        for (index, (result, tell)) in results.into_iter().zip(tells).enumerate() {
            // Another one's conflict with the store is no answer to this.
            let outcome = match (result, again.get(index)) {
                (Err(WriteError::NotApplied), Some(entry)) => {
                    let BatchOutcome { mut results, warnings } = self.write_entries(vec![entry.clone()]).await;
                    let result = results.pop().unwrap_or(Err(WriteError::NotApplied));
                    result.map(|slot| Written { slot, warnings: of(0, &warnings) })
                }
                (result, _) => result.map(|slot| Written { slot, warnings: of(index, &warnings) }),
            };
            // Who asked may have gone; what is written stands all the same.
            let _gone = tell.send(outcome);
        }
    }

    async fn write_entries(&self, entries: Vec<Signed>) -> BatchOutcome {
        let set = Arc::clone(&self.current.borrow());
        Batch::new(self, set, entries, BatchOptions::default()).run().await
    }
}
