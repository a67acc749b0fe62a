//! Small tables that every worker of a node shares: bans, windows and counters with an expiry.
//!
//! The gateway's shared data is a plain map: it has no expiry, no listing and no delete, and one global lock. So a table
//! lives in a fixed number of shards, each one value of that map holding a bounded list of entries; expired entries
//! leave whenever their shard is written. What a table can take is therefore known before the first request arrives.
//! A request reads one shard, so a table that every request asks has many small ones.
//!
//! Ranges of addresses cannot be found by a key. Their list is one value, which each worker keeps in its own memory
//! ([`SharedData::ranges`]) and reads again when somebody has changed it.

use std::rc::Rc;

pub mod allowlist;
pub mod bans;
mod codec;
mod index;
mod ranged;
mod shares;
mod table;

pub use codec::MAX_FIELD;
pub use index::RangeCache;
pub use ranged::MAX_RANGES;
pub use shares::Shares;
pub use table::{Entry, Table, Update};

/// The part of a gateway that this crate stands on: shared data with compare-and-set.
pub trait SharedData {
    /// The value under `key` and the token to hand to [`SharedData::set`]; `None` where nothing was ever stored.
    fn get(&self, key: &str) -> Option<(Vec<u8>, u32)>;

    /// Stores `value` under `key`. With a token the write happens only where nobody wrote in between.
    ///
    /// # Errors
    ///
    /// [`Conflict`] where another worker wrote first: read again and retry.
    fn set(&self, key: &str, value: &[u8], token: Option<u32>) -> Result<(), Conflict>;

    /// What this worker knows of the ranges in this shared data: the same cache on every call.
    fn ranges(&self) -> Rc<RangeCache>;
}

impl<T: SharedData + ?Sized> SharedData for Rc<T> {
    fn get(&self, key: &str) -> Option<(Vec<u8>, u32)> {
        (**self).get(key)
    }

    fn set(&self, key: &str, value: &[u8], token: Option<u32>) -> Result<(), Conflict> {
        (**self).set(key, value, token)
    }

    fn ranges(&self) -> Rc<RangeCache> {
        (**self).ranges()
    }
}

/// Another worker wrote the same value between a read and a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Conflict;

/// Shared data in memory, for tests and for the replay of recorded traffic.
#[derive(Debug, Default)]
pub struct MemorySharedData {
    values: std::cell::RefCell<std::collections::HashMap<String, (Vec<u8>, u32)>>,
    ranges: Rc<RangeCache>,
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

    fn ranges(&self) -> Rc<RangeCache> {
        Rc::clone(&self.ranges)
    }
}
