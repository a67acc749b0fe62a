//! How a batch is judged and committed beside the entities that the store has.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;

use store::{EntityChange, StoreError};

use super::super::EntitySet;
use super::super::admission::Change;
use super::super::change::{BatchOutcome, WriteError};
use super::Batch;

/// How often a batch is judged at most, where each time another control plane has changed entities before it could be committed.
const ATTEMPTS: usize = 5;

/// The store has other entities by now than those that changes were judged beside.
struct Moved(StoreError);

impl Batch<'_> {
    /// Judges the batch and commits it, unless it is only tried. The caller holds the right to write.
    pub(in super::super) async fn run(mut self) -> BatchOutcome {
        let mut attempts = 0;
        loop {
            let candidate = if self.options.atomic { self.together().await } else { Some(self.each().await) };
            let Some(candidate) = candidate.filter(|_| !self.options.dry_run) else { break };
            let Err(Moved(moved)) = self.commit(candidate).await else { break };
            attempts += 1;
            let again = if attempts < ATTEMPTS { self.shared.reload().await } else { Err(moved) };
            if let Err(error) = again {
                self.take_back(&WriteError::Store(error));
                break;
            }
            self.begin_again();
        }
        self.warnings.sort_by_key(|(about, _)| about.is_none());
        BatchOutcome { results: self.results, warnings: self.warnings }
    }

    /// As it was before it was judged, beside the entities that were read since.
    fn begin_again(&mut self) {
        self.set = Arc::clone(&self.shared.current.borrow());
        self.results.fill(Err(WriteError::NotApplied));
        self.copied.fill(0);
        self.warnings.clear();
    }

    /// Commits what is other than before, and makes it visible. An error, and nothing noted, where it was judged beside other entities than
    /// the store has.
    async fn commit(&mut self, candidate: EntitySet) -> Result<(), Moved> {
        // Of several changes of an entity the last one says what it is now.
        let last: BTreeMap<(&'static str, String), usize> = (0..self.entries.len())
            .filter(|index| matches!(self.results.get(*index), Some(Ok(_))))
            .filter_map(|index| self.reference(index).map(|changed| ((changed.collection, changed.id), index)))
            .collect();
        let changes: Vec<EntityChange> = last
            .into_iter()
            .filter_map(|((collection, id), index)| {
                let (entry, signature) = self.entries.get(index)?;
                let expected = self.set.slot(collection, &id).map(|slot| slot.revision);
                let body = candidate.slot(collection, &id).map(|slot| slot.entity.stored().to_string());
                let origin = signature.origin(&entry.write, expected.is_some(), body.is_some());
                // Created and deleted again: the store never hears of it.
                (expected.is_some() || body.is_some()).then(|| EntityChange {
                    collection: collection.to_owned(),
                    id,
                    expected: expected.unwrap_or(0),
                    body,
                    origin,
                })
            })
            .collect();
        if changes.is_empty() {
            return Ok(());
        }
        match self.shared.store.entities_write(changes.clone(), Some(self.set.revision())).await {
            Ok(revision) => self.shared.publish(candidate, revision),
            Err(moved @ StoreError::Moved { .. }) => return Err(Moved(moved)),
            Err(StoreError::BatchConflict { index, current }) => {
                let at_fault: Vec<usize> = (0..self.entries.len())
                    .filter(|entry| {
                        self.reference(*entry).is_some_and(|changed| {
                            changes.get(index).is_some_and(|change| {
                                (changed.collection, &changed.id) == (change.collection.as_str(), &change.id)
                            })
                        })
                    })
                    .collect();
                self.take_back(&WriteError::NotApplied);
                for entry in at_fault {
                    let creates = self.reference(entry).is_some_and(|changed| changed.change == Change::Created);
                    self.note(entry, Err(if creates { WriteError::Exists } else { WriteError::Stale { current } }));
                }
            }
            Err(error) => self.take_back(&WriteError::Store(error)),
        }
        Ok(())
    }
}
