//! The large tables of a worker, which the control plane keeps up to date while requests are served.
//!
//! A plugin asks for a table by its name while it is built, and keeps the handle. [`Tables`] has them for all plugins of the
//! worker: a new snapshot finds the tables of the one before as they are. A table that no plugin keeps any more is given up.

use std::any::Any;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt;
use std::rc::{Rc, Weak};

use ::tables::{Keys, Loading, MAX_OVERLAY, Progress, Ranges, State, Table, TableError, TableIndex};
use snapshot::{KeptTable, KeptTables, TableChange, TableKind};

/// The most tables of a worker.
pub const MAX_TABLES: usize = 64;
/// The longest name of a table, in bytes.
pub const MAX_TABLE_NAME: usize = 128;
/// How many entries beside a base are merged into it in quiet moments.
const MERGE_FROM: usize = MAX_OVERLAY / 16;
/// How many rows of a base are merged at once: some milliseconds.
const MERGE_ROWS: usize = 40_000;

/// All tables of a worker.
#[derive(Default)]
pub struct Tables {
    kept: RefCell<BTreeMap<String, Weak<dyn AnyKept>>>,
}

/// A table of address ranges, as a plugin keeps it.
pub type RangesTable = TableHandle<Ranges>;

/// A table of keys, as a plugin keeps it.
pub type KeysTable = TableHandle<Keys>;

/// A table of a worker, as a plugin keeps it. Clones are the same table.
pub struct TableHandle<I>(Rc<Kept<I>>);

/// The outcome of a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Taken {
    /// The table has it.
    Applied,
    /// It is a part of a base, the rest of which is to come.
    Waits,
    /// The worker keeps no such table: nothing to do.
    NotKept,
    /// The table is as it was, for this reason, and needs the whole base.
    Refused(String),
}

impl<I> Clone for TableHandle<I> {
    fn clone(&self) -> Self {
        Self(Rc::clone(&self.0))
    }
}

impl<I> fmt::Debug for TableHandle<I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("TableHandle").field(&self.0.name).finish()
    }
}

impl<I: TableIndex> TableHandle<I> {
    /// Reads the table; `None` where the control plane has not sent it yet.
    pub fn read<T>(&self, read: impl FnOnce(&I) -> T) -> Option<T> {
        let content = self.0.content.try_borrow().ok()?;
        content.table.as_ref().map(|table| read(table.index()))
    }

    /// Whether the table is there.
    #[must_use]
    pub fn is_there(&self) -> bool {
        self.read(|_| ()).is_some()
    }
}

impl Tables {
    /// The table of address ranges with this name.
    ///
    /// # Errors
    ///
    /// A name that is empty or longer than [`MAX_TABLE_NAME`], a table of that name but another kind, and more than
    /// [`MAX_TABLES`].
    pub fn ranges(&self, name: &str) -> Result<RangesTable, String> {
        self.keep(name, TableKind::Ranges).map(TableHandle)
    }

    /// The table of keys with this name.
    ///
    /// # Errors
    ///
    /// As of [`Tables::ranges`].
    pub fn keys(&self, name: &str) -> Result<KeysTable, String> {
        self.keep(name, TableKind::Keys).map(TableHandle)
    }

    fn keep<I: TableIndex + 'static>(&self, name: &str, kind: TableKind) -> Result<Rc<Kept<I>>, String> {
        if name.is_empty() || name.len() > MAX_TABLE_NAME {
            return Err(format!("the name of a table has 1 to {MAX_TABLE_NAME} bytes"));
        }
        let mut all = self.kept.borrow_mut();
        if let Some(kept) = all.get(name).and_then(Weak::upgrade) {
            let same: Rc<dyn Any> = kept;
            return same.downcast().map_err(|_| format!("the table `{name}` is used as one of another kind already"));
        }
        all.retain(|_, kept| kept.strong_count() > 0);
        if all.len() >= MAX_TABLES {
            return Err(format!("a worker keeps at most {MAX_TABLES} tables"));
        }
        let kept = Rc::new(Kept { name: name.to_owned(), kind, content: RefCell::new(Content::default()) });
        let weak: Weak<dyn AnyKept> = Rc::downgrade(&(Rc::clone(&kept) as Rc<dyn AnyKept>));
        all.insert(name.to_owned(), weak);
        Ok(kept)
    }

    /// What the worker tells the control plane about its tables. Reasons of refusals are told once.
    #[must_use]
    pub fn tell(&self) -> KeptTables {
        let all = self.kept.borrow();
        KeptTables { tables: all.values().filter_map(Weak::upgrade).map(|kept| kept.tell()).collect() }
    }

    /// The names of the tables that plugins keep, in their order.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        let all = self.kept.borrow();
        all.iter().filter(|(_, kept)| kept.strong_count() > 0).map(|(name, _)| name.clone()).collect()
    }

    /// Takes a change of a table.
    pub fn take(&self, change: &TableChange) -> Taken {
        let kept = self.kept.borrow().get(&change.name).and_then(Weak::upgrade);
        match kept {
            Some(kept) => kept.take(change),
            None => Taken::NotKept,
        }
    }

    /// Merges changes into a base, a slice of it in each call; `false` once there is nothing left to do.
    pub fn merge(&self) -> bool {
        let all: Vec<_> = self.kept.borrow().values().filter_map(Weak::upgrade).collect();
        all.iter().any(|kept| kept.merge())
    }
}

/// A table whatever its kind.
trait AnyKept: Any {
    fn tell(&self) -> KeptTable;
    fn take(&self, change: &TableChange) -> Taken;
    fn merge(&self) -> bool;
}

struct Kept<I> {
    name: String,
    kind: TableKind,
    content: RefCell<Content<I>>,
}

struct Content<I> {
    table: Option<Table<I>>,
    /// A base that arrives, and its state.
    loading: Option<(State, Loading)>,
    /// A merge is under way.
    merging: bool,
    /// Why the last change was not taken, until that is told.
    refused: String,
}

impl<I> Default for Content<I> {
    fn default() -> Self {
        Self { table: None, loading: None, merging: false, refused: String::new() }
    }
}

impl<I: TableIndex + 'static> AnyKept for Kept<I> {
    fn tell(&self) -> KeptTable {
        let mut content = self.content.borrow_mut();
        KeptTable {
            name: self.name.clone(),
            kind: self.kind.into(),
            state: content.table.as_ref().map(|table| table.state().0.to_vec()).unwrap_or_default(),
            refused: std::mem::take(&mut content.refused),
        }
    }

    fn take(&self, change: &TableChange) -> Taken {
        let mut content = self.content.borrow_mut();
        let taken = match change.size {
            0 => content.change(change),
            _ => content.chunk(change),
        };
        taken.unwrap_or_else(|reason| {
            content.loading = None;
            content.refused.clone_from(&reason);
            Taken::Refused(reason)
        })
    }

    fn merge(&self) -> bool {
        let mut content = self.content.borrow_mut();
        let Content { table: Some(table), merging, .. } = &mut *content else { return false };
        if !*merging && table.index().overlay() < MERGE_FROM {
            return false;
        }
        *merging = table.compact(MERGE_ROWS) == Progress::More;
        *merging || table.index().overlay() >= MERGE_FROM
    }
}

impl<I: TableIndex> Content<I> {
    fn change(&mut self, change: &TableChange) -> Result<Taken, String> {
        let to = state(&change.state)?;
        let Some(table) = &mut self.table else { return Err("a delta came before the base".to_owned()) };
        if change.data.is_empty() {
            table.rebase(&change.from, to).map_err(|error| error.to_string())?;
            return Ok(Taken::Applied);
        }
        let mut applied = table.delta(&change.from, &to, &change.data);
        if applied == Err(TableError::OverlayFull) {
            // More changes than quiet moments: the merge is paid for now. The overlay may have filled again meanwhile.
            while table.compact(usize::MAX) == Progress::More {}
            self.merging = false;
            applied = table.delta(&change.from, &to, &change.data);
        }
        applied.map(|()| Taken::Applied).map_err(|error| error.to_string())
    }

    /// The table that is there serves until the new base is there as a whole.
    fn chunk(&mut self, change: &TableChange) -> Result<Taken, String> {
        let size = usize::try_from(change.size).unwrap_or(usize::MAX);
        let to = state(&change.state)?;
        if change.offset == 0 {
            self.loading = Some((to, Loading::new(size, to).map_err(|error| error.to_string())?));
        }
        let expected = self.loading.as_mut().filter(|(state, loading)| {
            *state == to && usize::try_from(change.offset).is_ok_and(|offset| offset == loading.offset())
        });
        let Some((_, loading)) = expected else { return Err("a part of the base is missing".to_owned()) };
        loading.push(&change.data).map_err(|error| error.to_string())?;
        if !loading.is_complete() {
            return Ok(Taken::Waits);
        }
        let Some((_, loading)) = self.loading.take() else { return Ok(Taken::Waits) };
        self.table = Some(loading.finish().map_err(|error| error.to_string())?);
        self.merging = false;
        Ok(Taken::Applied)
    }
}

fn state(bytes: &[u8]) -> Result<State, String> {
    bytes.try_into().map(State).map_err(|_| "a state of a table has 32 bytes".to_owned())
}

#[cfg(test)]
mod tests;
