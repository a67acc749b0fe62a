//! State that all workers of a node share: bans, and what plugins count, collect, rank and elect together.
//!
//! | Type | Answers | Memory |
//! |---|---|---|
//! | [`Windows`] | how often a key came up in the last minutes | 30 to 94 bytes for each key |
//! | [`Sets`] | which different members came up with a key, up to a cap | 34 bytes, and 8 for each member |
//! | [`ClusterWindows`], [`ClusterSets`] | the same over all nodes, as far as this one has learned of the others | twice that of a window; 9 bytes for each member |
//! | [`Records`] | a record of its plugin for each key; the lightest give way | 18 bytes and the value for each key |
//! | [`Sketch`] | at most how often any of an unlimited number of keys came up | fixed: 32 bytes for each place of its width |
//! | [`Top`] | which keys came up most | fixed |
//! | [`Shares`] | a number that workers make up together | 20 bytes for each worker |
//! | [`Lease`] | which worker does a task for all of them | 24 bytes |
//! | [`Table`] | a value under a key until its end | key, value, and 12 bytes |
//! | [`KeptParts`] | large parts of a configuration by their hashes | those in use, and 8 MiB of those before |
//!
//! Every one of them is bounded; all but the last end by themselves, take the time from their caller, and count what they had to
//! drop ([`WorkerMemory::take_losses`]).
//!
//! The gateway's shared data is a plain map: it has no expiry, no listing and no delete, and one global lock. So a table
//! lives in a fixed number of shards, each one value of that map holding a bounded list of entries; expired entries
//! leave whenever their shard is written. What a table can take is therefore known before the first request arrives.
//! A request reads one shard, so a table that every request asks has many small ones.
//!
//! Ranges of addresses cannot be found by a key. Their list is one value, which each worker keeps in its own memory
//! ([`RangeCache`]) and reads again once it has changed.

use std::rc::Rc;

pub mod allowlist;
pub mod bans;
mod cas;
mod cluster;
mod codec;
mod index;
mod kept;
mod keyed;
mod lease;
mod memory;
mod ranged;
mod records;
mod secret;
mod sets;
mod shares;
mod sketch;
mod table;
#[cfg(test)]
mod testing;
mod top;
mod windows;

pub use cluster::{ClusterCount, ClusterKey, ClusterSets, ClusterWindows, Joined, Slices};
pub use codec::MAX_FIELD;
pub use index::RangeCache;
pub use kept::KeptParts;
pub use keyed::MAX_KEYS;
pub use lease::{Holder, Lease};
pub use memory::{Losses, WorkerMemory};
pub use ranged::MAX_RANGES;
pub use records::{Records, Updated};
pub use sets::{Inserted, MAX_MEMBERS, Membership, Sets};
pub use shares::Shares;
pub use sketch::{MAX_WIDTH, Sketch};
pub use table::{Entry, Table, Update};
pub use top::{MAX_RANKS, MAX_TOP_KEY, Ranked, Top};
pub use windows::{Counted, MAX_SLICES, Windows};

/// The hash of a key under the secret of this node, the same on all of its workers. `name` is unique on the node: equal keys of other names
/// have unrelated hashes. No client can tell which keys have the same hash.
#[must_use]
pub fn keyed_hash(data: &dyn SharedData, name: &str, key: &[u8]) -> u64 {
    data.memory().secret(data).hash(name, key)
}

/// Replaces the value under `key` (empty if it is missing) by the one that `change` returns; `None` leaves it as it is. `change`
/// runs again, on the newer value, each time another worker wrote first. What the last run returned; `None` where other workers
/// wrote first at each of sixteen tries.
pub fn edit<R>(data: &dyn SharedData, key: &str, change: impl FnMut(&[u8]) -> (R, Option<Vec<u8>>)) -> Option<R> {
    let edited = cas::edit(data, key, change);
    (!edited.lost).then_some(edited.result)
}

/// The part of a gateway that this crate stands on: shared data with compare-and-set.
pub trait SharedData {
    /// The value under `key` and the token to hand to [`SharedData::set`]; `None` where nothing was ever stored.
    fn get(&self, key: &str) -> Option<(Vec<u8>, u32)>;

    /// Stores `value` under `key`. With a token the write happens only if the value under the key has this token, or the key
    /// has no value yet.
    ///
    /// # Errors
    ///
    /// [`Conflict`] where another worker wrote first: read again and retry.
    fn set(&self, key: &str, value: &[u8], token: Option<u32>) -> Result<(), Conflict>;

    /// What this worker keeps in its own memory for this shared data: the same on every call.
    fn memory(&self) -> Rc<WorkerMemory>;

    /// A random number that no client can predict. A node's first worker makes the key of its hashes of two of them.
    fn random(&self) -> u64;
}

impl<T: SharedData + ?Sized> SharedData for Rc<T> {
    fn get(&self, key: &str) -> Option<(Vec<u8>, u32)> {
        (**self).get(key)
    }

    fn set(&self, key: &str, value: &[u8], token: Option<u32>) -> Result<(), Conflict> {
        (**self).set(key, value, token)
    }

    fn memory(&self) -> Rc<WorkerMemory> {
        (**self).memory()
    }

    fn random(&self) -> u64 {
        (**self).random()
    }
}

/// Another worker wrote the same value between a read and a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Conflict;

/// Shared data in memory, for tests and for the replay of recorded traffic. Its random numbers are the same in every run, so
/// that a replay has one outcome.
#[derive(Debug, Default)]
pub struct MemorySharedData {
    values: std::cell::RefCell<std::collections::HashMap<String, (Vec<u8>, u32)>>,
    memory: Rc<WorkerMemory>,
}

impl MemorySharedData {
    /// How many bytes its keys and values have.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.values.borrow().iter().map(|(key, (value, _))| key.len().saturating_add(value.len())).sum()
    }
}

impl SharedData for MemorySharedData {
    fn get(&self, key: &str) -> Option<(Vec<u8>, u32)> {
        self.values.borrow().get(key).cloned()
    }

    fn set(&self, key: &str, value: &[u8], token: Option<u32>) -> Result<(), Conflict> {
        let mut values = self.values.borrow_mut();
        let slot = values.entry(key.to_owned()).or_default();
        // Like the gateway: a first write succeeds whatever the token.
        if slot.1 != 0 && token.is_some_and(|token| token != slot.1) {
            return Err(Conflict);
        }
        *slot = (value.to_vec(), slot.1.wrapping_add(1).max(1));
        Ok(())
    }

    fn memory(&self) -> Rc<WorkerMemory> {
        Rc::clone(&self.memory)
    }

    fn random(&self) -> u64 {
        0x5eed
    }
}
