//! Collections of one transaction.

use std::sync::{Mutex, PoisonError};

use super::arena::{Arena, Value};
use super::collect::Item;
use super::familiar::Familiar;
use super::known::Known;
use super::limits::{DYNAMIC_NAMES, MATCHED_VARS};
use super::names::Names;
use super::transaction::ArgumentSource;

/// How many transactions' memory is kept for the next ones: as many as are often under way at once in a worker.
const POOLED: usize = 64;

/// Of how many of them it is kept whatever its size, of about 2 MiB each at most; beyond, if it is not larger than this, in
/// bytes.
const POOLED_LARGE: usize = 4;
const SMALL: usize = 128 * 1024;

/// The memory of one transaction that the next one uses again.
#[derive(Default)]
pub(super) struct Memory {
    pub(super) arena: Arena,
    pub(super) known: Known,
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
    /// How much is kept, in bytes: what grows with what transactions bring.
    fn size(&self) -> usize {
        self.arena.size() + self.known.size() + self.items.capacity() * size_of::<Item>()
    }

    /// Forgets what is there, and keeps some of the room.
    fn clear(&mut self) {
        self.arena.clear();
        self.known.shrink();
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

/// The memory of transactions that are over, and what is known of values that come again.
#[derive(Default)]
pub(super) struct Pool {
    memory: Mutex<Vec<Memory>>,
    /// One where one thread runs transactions: they are many at once, but only one of them in its rules.
    familiar: Mutex<Vec<Familiar>>,
}

impl Pool {
    /// Memory with nothing in it but the constants of the engine.
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

    /// What is known of values that come again, for as long as rules run.
    pub(super) fn take_familiar(&self) -> Familiar {
        let pooled = self.familiar.lock().unwrap_or_else(PoisonError::into_inner).pop();
        pooled.unwrap_or_else(Familiar::with_places)
    }

    pub(super) fn give_familiar_back(&self, familiar: Familiar) {
        let mut pool = self.familiar.lock().unwrap_or_else(PoisonError::into_inner);
        if pool.len() < POOLED_LARGE {
            pool.push(familiar);
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
    /// For collections in which rules look for names again and again, [`digest`] of each name.
    pub(super) digests: Vec<u32>,
}

/// What tells most names apart: the length, and the first and the last byte, in which the case of letters makes no
/// difference.
pub(super) fn digest(name: &[u8]) -> u32 {
    let byte = |byte: Option<&u8>| u32::from(byte.copied().unwrap_or(0) | 0x20);
    (name.len() as u32) << 16 | byte(name.first()) << 8 | byte(name.last())
}

impl Collection {
    pub(super) fn push(&mut self, name: Value, value: Value) {
        self.entries.push(Entry { name, value });
    }

    /// Adds a header, whose name is given twice: as it is, and as a value.
    pub(super) fn push_header(&mut self, text: &[u8], name: Value, value: Value) {
        self.digests.push(digest(text));
        self.push(name, value);
    }
}

/// A value that matched.
#[derive(Debug, Clone, Copy)]
pub(super) struct Match {
    pub(super) item: Item,
    /// What matched: what transformations made of the item's value.
    pub(super) value: Value,
}

/// What matched in the chain of the current rule.
#[derive(Debug, Default)]
pub(super) struct Matches {
    /// The first [`MATCHED_VARS`].
    pub(super) list: Vec<Match>,
    pub(super) last: Option<Match>,
    /// The first ones of the list with their full names: few rules ask for them.
    pub(super) named: Vec<Entry>,
    /// The limit that the list ends at, or at which its values do: what it is of, and how much there may be.
    pub(super) limit: Option<(&'static str, usize)>,
    /// How many of these are noted to be masked.
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

/// TX: slots for the names rules mention, entries for the names they make up.
#[derive(Debug, Default)]
pub(super) struct TxStore {
    pub(super) slots: Vec<Option<Value>>,
    pub(super) dynamic: Vec<Entry>,
    /// [`whole_digest`] of each of their names.
    pub(super) digests: Vec<u32>,
}

/// A number for a name in any case of letters: FNV-1a.
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

/// Adds an entry unless the collection is at its limit.
pub(super) fn push_capped(entries: &mut Vec<Entry>, entry: Entry) {
    if entries.len() < DYNAMIC_NAMES {
        entries.push(entry);
    }
}
