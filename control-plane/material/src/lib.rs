//! What the control plane gathers for filters beside entities: tables that are too large to send with each change.
//!
//! A gatherer (a feed, a bouncer) publishes a table under a name, or changes it. Workers that keep the table get its base once
//! and deltas from then on. See the crate `tables` for the formats.
//!
//! What the compiler needs beside entities ([`Gathered`]) is given to it here as well.

mod gathered;
mod history;
mod published;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use snapshot::TableKind;
use tables::{BaseError, State, TableError};
use tokio::sync::watch;

pub use gathered::{Gathered, GatheredSet};
pub use published::{CHUNK, Next, Published};

use history::History;

/// What a control plane has gathered: tables for workers, and bytes for the compiler. Clones share it.
#[derive(Clone, Default)]
pub struct Material {
    inner: Arc<Inner>,
}

struct Inner {
    published: RwLock<BTreeMap<String, Arc<Published>>>,
    /// What writers work on, one at a time.
    histories: Mutex<BTreeMap<String, History>>,
    /// Counts changes of tables.
    changed: watch::Sender<u64>,
    /// What the compiler is given.
    gathered: watch::Sender<Arc<GatheredSet>>,
}

impl Default for Inner {
    fn default() -> Self {
        let (published, histories) = (RwLock::default(), Mutex::default());
        Self { published, histories, changed: watch::Sender::new(0), gathered: watch::Sender::default() }
    }
}

/// Why a table was not published or changed. It is as it was before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MaterialError {
    /// The bytes are no base of that kind.
    Base(BaseError),
    /// The change does not apply.
    Change(TableError),
    /// There is no such table.
    Unknown,
}

impl fmt::Display for MaterialError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Base(error) => write!(f, "the table was not published: {error}"),
            Self::Change(error) => write!(f, "the table was not changed: {error}"),
            Self::Unknown => f.write_str("there is no table of that name"),
        }
    }
}

impl std::error::Error for MaterialError {}

impl Material {
    /// Publishes a table as a whole. Where one of that name and kind is there, what differs goes to the workers, and where that
    /// is much, the base. This compares both tables row by row: call it where that may take a while.
    ///
    /// # Errors
    ///
    /// [`MaterialError::Base`].
    pub fn publish(&self, name: &str, kind: TableKind, base: Vec<u8>) -> Result<(), MaterialError> {
        let mut histories = self.histories();
        let changed = histories.get_mut(name).map(|history| history.replace(kind, &base));
        if !changed.transpose().map_err(MaterialError::Base)?.unwrap_or(false) {
            histories.insert(name.to_owned(), History::begin(kind, base).map_err(MaterialError::Base)?);
        }
        self.show(name, &histories);
        Ok(())
    }

    /// Changes a table by the operations of a delta ([`tables::RangeOps`], [`tables::KeyOps`]).
    ///
    /// # Errors
    ///
    /// [`MaterialError::Unknown`], [`MaterialError::Change`].
    pub fn change(&self, name: &str, ops: &[u8]) -> Result<(), MaterialError> {
        let mut histories = self.histories();
        let history = histories.get_mut(name).ok_or(MaterialError::Unknown)?;
        history.change(ops).map_err(MaterialError::Change)?;
        self.show(name, &histories);
        Ok(())
    }

    /// Withdraws a table. Workers that have it keep what they have, as they do when the control plane is lost.
    pub fn withdraw(&self, name: &str) {
        let mut histories = self.histories();
        histories.remove(name);
        self.show(name, &histories);
    }

    /// A table as it is now.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<Arc<Published>> {
        self.inner.published.read().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
    }

    /// The names of all tables.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        self.inner.published.read().unwrap_or_else(PoisonError::into_inner).keys().cloned().collect()
    }

    /// Tells of changes of tables: what it holds counts them.
    #[must_use]
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.inner.changed.subscribe()
    }

    /// The next message for a worker that keeps a table and has `state` of it; `None` where it has all, or there is no such
    /// table of that kind. A base is sent by [`Published::chunks`] instead, for which [`Next::Base`] stands.
    #[must_use]
    pub fn next(&self, name: &str, kind: TableKind, state: Option<State>) -> Option<Next> {
        self.get(name).filter(|published| published.kind() == kind)?.next(name, state)
    }

    fn histories(&self) -> MutexGuard<'_, BTreeMap<String, History>> {
        // Only arithmetic happens under the lock, and a change is applied as a whole or not at all.
        self.inner.histories.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn show(&self, name: &str, histories: &BTreeMap<String, History>) {
        let mut published = self.inner.published.write().unwrap_or_else(PoisonError::into_inner);
        match histories.get(name) {
            Some(history) => published.insert(name.to_owned(), Arc::new(history.published())),
            None => published.remove(name),
        };
        drop(published);
        self.inner.changed.send_modify(|count| *count += 1);
    }
}

impl fmt::Debug for Material {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Material").field("tables", &self.names()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
