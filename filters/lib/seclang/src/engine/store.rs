//! Collections of one transaction.

use std::sync::{Mutex, PoisonError};

use super::arena::{Arena, Value};
use super::build::Names;
use super::collect::Item;
use super::gates::Known;
use super::limits::DYNAMIC_NAMES;

/// How many transactions' memory is kept for the next ones, of about 2 MiB each at most.
const POOLED: usize = 4;

/// The memory of one transaction that the next one uses again.
#[derive(Default)]
pub(super) struct Memory {
    pub(super) arena: Arena,
    pub(super) known: Known,
    pub(super) items: Vec<Item>,
    pub(super) name: Vec<u8>,
}

/// The memory of transactions that are over.
#[derive(Default)]
pub(super) struct Pool(Mutex<Vec<Memory>>);

impl Pool {
    pub(super) fn take(&self) -> Memory {
        let mut memory = self.0.lock().unwrap_or_else(PoisonError::into_inner).pop().unwrap_or_default();
        memory.arena.clear();
        memory
    }

    pub(super) fn give_back(&self, mut memory: Memory) {
        memory.arena.clear();
        memory.known.shrink();
        memory.items.shrink_to(4096);
        memory.name.shrink_to(4096);
        let mut pool = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if pool.len() < POOLED {
            pool.push(memory);
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
}

impl Collection {
    pub(super) fn push(&mut self, name: Value, value: Value) {
        self.entries.push(Entry { name, value });
    }
}

/// TX: slots for the names rules mention, entries for the names they make up.
#[derive(Debug, Default)]
pub(super) struct TxStore {
    pub(super) slots: Vec<Option<Value>>,
    pub(super) dynamic: Vec<Entry>,
}

impl TxStore {
    pub(super) fn new(names: &Names) -> Self {
        Self { slots: vec![None; names.list.len()], dynamic: Vec::new() }
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
