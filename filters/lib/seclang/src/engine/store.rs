//! The collections of a transaction, and the pool of memory that transactions share.

use std::sync::{Mutex, PoisonError};

use super::arena::{Arena, Value};
use super::collect::Item;
use super::hot_cache::HotCache;
use super::limits::MATCHED_VARS;
use super::names::Names;
use super::phase_summary::PhaseSummary;
use super::transaction::ArgumentSource;

/// The most transactions whose memory is pooled: as many as are often open at once in a worker.
const POOLED: usize = 64;

/// The pool keeps up to this many memories of any size, about 2 MiB at most; further ones only up to [`SMALL`] bytes.
const POOLED_LARGE: usize = 4;
const SMALL: usize = 128 * 1024;

/// The memory of a transaction, reused by the next one.
#[derive(Default)]
pub(super) struct Memory {
    pub(super) arena: Arena,
    pub(super) summary: PhaseSummary,
    pub(super) items: Vec<Item>,
    pub(super) name: Vec<u8>,
    pub(super) arguments: Vec<(ArgumentSource, Entry)>,
    pub(super) long_names: Vec<(ArgumentSource, Entry)>,
    pub(super) request_headers: Collection,
    pub(super) response_headers: Collection,
    pub(super) cookies: Collection,
    pub(super) matched: Matches,
    pub(super) argument: Vec<u8>,
    pub(super) key: Vec<u8>,
    pub(super) text: Vec<u8>,
    pub(super) tx: TxStore,
    pub(super) order: Vec<u32>,
}

impl Memory {
    /// The memory that grows with the content of transactions, in bytes.
    fn size(&self) -> usize {
        self.arena.size() + self.summary.size() + self.items.capacity() * size_of::<Item>()
    }

    /// Clears everything and releases memory beyond a limit.
    fn clear(&mut self) {
        self.arena.clear();
        self.summary.shrink();
        self.items.clear();
        self.items.shrink_to(4096);
        self.name.shrink_to(4096);
        for arguments in [&mut self.arguments, &mut self.long_names] {
            arguments.clear();
            arguments.shrink_to(1024);
        }
        self.order.clear();
        self.tx.dynamic.clear();
        self.tx.dynamic.shrink_to(256);
        self.tx.digests.clear();
        self.tx.digests.shrink_to(256);
        self.matched.clear();
        for buffer in [&mut self.argument, &mut self.key, &mut self.text] {
            buffer.clear();
            buffer.shrink_to(4096);
        }
        for collection in [&mut self.request_headers, &mut self.response_headers, &mut self.cookies] {
            collection.entries.clear();
            collection.entries.shrink_to(256);
            collection.digests.clear();
            collection.digests.shrink_to(256);
        }
    }
}

/// The memory of finished transactions, and the hot caches that no transaction borrows.
#[derive(Default)]
pub(super) struct Pool {
    memory: Mutex<Vec<Memory>>,
    /// One per thread: many transactions are open, but only one runs rules at a time.
    hot_caches: Mutex<Vec<HotCache>>,
}

impl Pool {
    /// Memory with the constants of the engine only.
    pub(super) fn take(&self, constants: &[Box<[u8]>]) -> Memory {
        let pooled = self.memory.lock().unwrap_or_else(PoisonError::into_inner).pop();
        pooled.unwrap_or_else(|| Memory { arena: Arena::with_constants(constants), ..Memory::default() })
    }

    pub(super) fn give_back(&self, mut memory: Memory) {
        memory.clear();
        let mut pool = self.memory.lock().unwrap_or_else(PoisonError::into_inner);
        if pool.len() < POOLED_LARGE || pool.len() < POOLED && memory.size() <= SMALL {
            pool.push(memory);
        }
    }

    /// Lends a hot cache to a transaction while it runs rules.
    pub(super) fn lend_hot_cache(&self) -> HotCache {
        let pooled = self.hot_caches.lock().unwrap_or_else(PoisonError::into_inner).pop();
        pooled.unwrap_or_else(HotCache::with_slots)
    }

    /// Takes a lent hot cache back.
    pub(super) fn take_back_hot_cache(&self, hot_cache: HotCache) {
        let mut pool = self.hot_caches.lock().unwrap_or_else(PoisonError::into_inner);
        if pool.len() < POOLED_LARGE {
            pool.push(hot_cache);
        }
    }
}

/// A name and a value, both in the arena.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) name: Value,
    pub(super) value: Value,
}

/// An ordered multimap. Names are compared without regard to case, as ModSecurity v3 does in every collection.
#[derive(Debug, Default)]
pub(super) struct Collection {
    pub(super) entries: Vec<Entry>,
    /// [`digest`] of each name, for collections in which rules often look up names.
    pub(super) digests: Vec<u32>,
}

/// A digest that distinguishes most names: the length, and the first and the last byte without their case.
pub(super) fn digest(name: &[u8]) -> u32 {
    let byte = |byte: Option<&u8>| u32::from(byte.copied().unwrap_or(0) | 0x20);
    (name.len() as u32) << 16 | byte(name.first()) << 8 | byte(name.last())
}

impl Collection {
    pub(super) fn push(&mut self, name: Value, value: Value) {
        self.entries.push(Entry { name, value });
    }

    /// Adds a header; `text` is its name, which `name` holds as a value.
    pub(super) fn push_header(&mut self, text: &[u8], name: Value, value: Value) {
        self.digests.push(digest(text));
        self.push(name, value);
    }
}

/// A value that matched.
#[derive(Debug, Clone, Copy)]
pub(super) struct Match {
    pub(super) item: Item,
    /// The transformed value.
    pub(super) value: Value,
}

/// The matches of the current chain.
#[derive(Debug, Default)]
pub(super) struct Matches {
    /// The first [`MATCHED_VARS`].
    pub(super) list: Vec<Match>,
    pub(super) last: Option<Match>,
    /// The first matches of the list with their full names, made for rules that read them.
    pub(super) named: Vec<Entry>,
    /// The limit that cut the list or a value of it: its name and its size.
    pub(super) limit: Option<(&'static str, usize)>,
    /// How many of the matches are noted to be masked.
    pub(super) sanitised: usize,
}

impl Matches {
    pub(super) fn clear(&mut self) {
        self.sanitised = 0;
        self.list.clear();
        self.named.clear();
        self.last = None;
        self.limit = None;
    }

    pub(super) fn push(&mut self, found: Match) {
        self.last = Some(found);
        if self.list.len() < MATCHED_VARS {
            self.list.push(found);
        } else {
            self.limit = Some(("values that matched", MATCHED_VARS));
        }
    }
}

/// TX: slots for the names that rules contain, entries for names made at run time.
#[derive(Debug, Default)]
pub(super) struct TxStore {
    pub(super) slots: Vec<Option<Value>>,
    pub(super) dynamic: Vec<Entry>,
    /// [`whole_digest`] of each of their names.
    pub(super) digests: Vec<u32>,
}

/// A digest of a name that ignores case: FNV-1a.
pub(super) fn whole_digest(name: &[u8]) -> u32 {
    name.iter()
        .fold(0x811c_9dc5, |digest, byte| (digest ^ u32::from(byte.to_ascii_lowercase())).wrapping_mul(0x0100_0193))
}

impl TxStore {
    /// Empties every slot of the names.
    pub(super) fn reset(&mut self, names: &Names) {
        self.slots.clear();
        self.slots.resize(names.list.len(), None);
    }

    pub(super) fn get(&self, slot: u32) -> Option<Value> {
        self.slots.get(slot as usize).copied().flatten()
    }

    pub(super) fn set(&mut self, slot: u32, value: Option<Value>) {
        if let Some(cell) = self.slots.get_mut(slot as usize) {
            *cell = value;
        }
    }
}
