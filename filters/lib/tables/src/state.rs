//! Which base and deltas a table is made of, and the checks that rest on it.

use sha2::{Digest, Sha256};

use crate::{BaseError, MAX_BASE, MAX_DELTA, Progress, TableError, TableIndex};

/// The state of a table: the SHA-256 of its base; after a delta, the SHA-256 of the state before and the delta's operations.
///
/// Compaction does not change the state: it names a history, not a layout.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct State(pub [u8; 32]);

impl State {
    /// The fewest bytes of a state that a delta may name it by.
    pub const SHORT: usize = 8;

    /// The state of a table that has this base and no delta.
    #[must_use]
    pub fn of_base(base: &[u8]) -> Self {
        Self(Sha256::digest(base).into())
    }

    /// The state after a delta with these operations.
    #[must_use]
    pub fn after(&self, ops: &[u8]) -> Self {
        Self(Sha256::new().chain_update(self.0).chain_update(ops).finalize().into())
    }

    /// Whether these bytes, at least eight, are the first ones of the state.
    #[must_use]
    pub fn begins_with(&self, prefix: &[u8]) -> bool {
        prefix.len() >= Self::SHORT && self.0.starts_with(prefix)
    }
}

impl std::fmt::Debug for State {
    /// The first bytes, as a delta names them.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.iter().take(Self::SHORT).try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// A base that arrives in chunks. Each chunk is hashed as it comes: the last one costs no more than the others.
pub struct Loading {
    size: usize,
    state: State,
    hash: Sha256,
    bytes: Vec<u8>,
}

impl Loading {
    /// Begins a base of `size` bytes whose hash is `state`.
    ///
    /// # Errors
    ///
    /// [`BaseError::TooLarge`] beyond [`MAX_BASE`].
    pub fn new(size: usize, state: State) -> Result<Self, BaseError> {
        if size > MAX_BASE {
            return Err(BaseError::TooLarge);
        }
        Ok(Self { size, state, hash: Sha256::new(), bytes: Vec::with_capacity(size) })
    }

    /// How many bytes are there: the offset of the next chunk.
    #[must_use]
    pub fn offset(&self) -> usize {
        self.bytes.len()
    }

    /// Whether all bytes are there.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.bytes.len() == self.size
    }

    /// Takes the next chunk.
    ///
    /// # Errors
    ///
    /// [`BaseError::Length`] if that is more than was announced. The chunk is not taken.
    pub fn push(&mut self, chunk: &[u8]) -> Result<(), BaseError> {
        if chunk.len() > self.size.saturating_sub(self.bytes.len()) {
            return Err(BaseError::Length);
        }
        self.hash.update(chunk);
        self.bytes.extend_from_slice(chunk);
        Ok(())
    }

    /// The table.
    ///
    /// # Errors
    ///
    /// Bytes that are missing, another hash, or an error of [`TableIndex::load`].
    pub fn finish<I: TableIndex>(self) -> Result<Table<I>, BaseError> {
        if !self.is_complete() {
            return Err(BaseError::Length);
        }
        if self.hash.finalize().as_slice() != self.state.0 {
            return Err(BaseError::Hash);
        }
        Ok(Table { state: self.state, index: I::load(self.bytes)? })
    }
}

/// A table and its state.
#[derive(Debug, Clone)]
pub struct Table<I> {
    state: State,
    index: I,
}

impl<I: TableIndex> Table<I> {
    /// The table of a base that is here as a whole.
    ///
    /// # Errors
    ///
    /// As of [`TableIndex::load`].
    pub fn new(base: Vec<u8>) -> Result<Self, BaseError> {
        Ok(Self { state: State::of_base(&base), index: I::load(base)? })
    }

    /// The state.
    #[must_use]
    pub fn state(&self) -> State {
        self.state
    }

    /// What lookups go to.
    #[must_use]
    pub fn index(&self) -> &I {
        &self.index
    }

    /// Applies a delta. `from` is the state that it changes, or the first bytes of it (at least eight), `to` the state that
    /// it leads to.
    ///
    /// # Errors
    ///
    /// The delta does not belong here, is damaged, or finds no room. The table is as it was.
    pub fn delta(&mut self, from: &[u8], to: &State, ops: &[u8]) -> Result<(), TableError> {
        if ops.len() > MAX_DELTA {
            return Err(TableError::TooLarge);
        }
        if !self.state.begins_with(from) {
            return Err(TableError::Gap);
        }
        let after = self.state.after(ops);
        if after != *to {
            return Err(TableError::Mismatch);
        }
        self.index.apply(ops)?;
        self.state = after;
        Ok(())
    }

    /// This table with the [changes](TableIndex::changes) of another one on the same base, and its state: a worker that starts
    /// anew takes both from one that runs, without the deltas that led there.
    ///
    /// # Errors
    ///
    /// [`TableError::Op`] for an operation that cannot be read.
    pub fn restore<C: AsRef<[u8]>>(mut self, state: State, changes: &[C]) -> Result<Self, TableError> {
        for ops in changes {
            let mut applied = self.index.apply(ops.as_ref());
            if applied == Err(TableError::OverlayFull) {
                self.index.compact(usize::MAX);
                applied = self.index.apply(ops.as_ref());
            }
            applied?;
        }
        self.state = state;
        Ok(self)
    }

    /// Takes the state of a base with the same content, so that a table with many deltas behind it goes on as one that began
    /// with that base. `from` is as in [`Table::delta`]. That the contents are the same is for the control plane to know.
    ///
    /// # Errors
    ///
    /// [`TableError::Gap`] if the table has another state than `from`.
    pub fn rebase(&mut self, from: &[u8], to: State) -> Result<(), TableError> {
        if !self.state.begins_with(from) {
            return Err(TableError::Gap);
        }
        self.state = to;
        Ok(())
    }

    /// Merges deltas into a new base, as [`TableIndex::compact`] does. The state stays.
    pub fn compact(&mut self, budget: usize) -> Progress {
        self.index.compact(budget)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{KeyOps, Keys, KeysBuilder};

    fn base() -> Vec<u8> {
        let mut builder = KeysBuilder::default();
        builder.put(b"key", b"1").unwrap();
        builder.build().unwrap()
    }

    fn ops(value: &[u8]) -> Vec<u8> {
        let mut ops = KeyOps::default();
        ops.put(b"key", value).unwrap();
        ops.finish()
    }

    #[test]
    fn a_delta_is_applied_once_in_its_order_and_whole() {
        let mut table: Table<Keys> = Table::new(base()).unwrap();
        let first = table.state();
        let (one, two) = (ops(b"2"), ops(b"3"));
        let second = first.after(&one);
        let third = second.after(&two);
        assert_eq!(table.delta(&second.0, &third, &two), Err(TableError::Gap), "out of order");
        assert_eq!(table.delta(&first.0[..8], &third, &one), Err(TableError::Mismatch));
        let mut damaged = one.clone();
        *damaged.last_mut().unwrap() ^= 1;
        assert_eq!(table.delta(&first.0, &second, &damaged), Err(TableError::Mismatch));
        assert_eq!(table.delta(&first.0[..7], &second, &one), Err(TableError::Gap), "too short a name");
        assert_eq!((table.state(), table.index().find(b"key")), (first, Some(&b"1"[..])));
        assert_eq!(table.delta(&first.0[..8], &second, &one), Ok(()));
        assert_eq!(table.delta(&first.0, &second, &one), Err(TableError::Gap), "repeated");
        assert_eq!(table.delta(&second.0, &third, &two), Ok(()));
        assert_eq!((table.state(), table.index().find(b"key")), (third, Some(&b"3"[..])));
        table.compact(100);
        assert_eq!((table.state(), table.index().overlay()), (third, 0), "compaction keeps the state");
    }

    #[test]
    fn a_table_with_deltas_goes_on_as_one_that_began_with_a_base_of_the_same_content() {
        let mut table: Table<Keys> = Table::new(base()).unwrap();
        let (first, one, two) = (table.state(), ops(b"2"), ops(b"3"));
        table.delta(&first.0, &first.after(&one), &one).unwrap();
        let mut anew: Table<Keys> = Table::new(table.index().save()).unwrap();
        assert_eq!(table.rebase(&first.0[..8], anew.state()), Err(TableError::Gap), "that is not its state any more");
        assert_eq!(table.rebase(&first.after(&one).0[..8], anew.state()), Ok(()));
        for table in [&mut table, &mut anew] {
            let from = table.state();
            table.delta(&from.0, &from.after(&two), &two).unwrap();
        }
        assert_eq!((table.state(), table.index().save()), (anew.state(), anew.index().save()));
    }

    #[test]
    fn operations_that_cannot_be_read_change_nothing() {
        let mut table: Table<Keys> = Table::new(base()).unwrap();
        let mut ops = ops(b"2");
        let at = ops.len();
        ops.push(99);
        let (from, to) = (table.state(), table.state().after(&ops));
        assert_eq!(
            table.delta(&from.0, &to, &ops),
            Err(TableError::Op(at, crate::OpError::Unknown(99))),
            "behind a good one"
        );
        assert_eq!((table.state(), table.index().find(b"key")), (from, Some(&b"1"[..])));
        let ops = vec![0; MAX_DELTA + 1];
        assert_eq!(table.delta(&from.0, &from.after(&ops), &ops), Err(TableError::TooLarge));
    }

    #[test]
    fn a_worker_that_starts_anew_takes_the_changes_of_another_one() {
        let mut table: Table<Keys> = Table::new(base()).unwrap();
        let update = |table: &mut Table<Keys>, from: u32, count: u32| {
            let mut ops = KeyOps::default();
            (from..from + count).for_each(|key| ops.put(&key.to_le_bytes(), &from.to_le_bytes()).unwrap());
            ops.remove(b"key").unwrap();
            let ops = ops.finish();
            let before = table.state();
            table.delta(&before.0, &before.after(&ops), &ops).unwrap();
        };
        // Two full overlays: one that is being merged, and one that is newer and has some keys of both.
        (0..4).for_each(|round| update(&mut table, round * 2000, 2000));
        assert_eq!(table.compact(1), Progress::More);
        (3..7).for_each(|round| update(&mut table, round * 2000 + 1, 2000));
        let changes = table.index().changes();
        let anew = Table::<Keys>::new(table.index().base().to_vec()).unwrap();
        let anew = anew.restore(table.state(), &changes).unwrap();
        assert_eq!((anew.state(), anew.index().save()), (table.state(), table.index().save()));
        let bad: [&[u8]; 1] = [&[99]];
        let refused = Table::<Keys>::new(base()).unwrap().restore(table.state(), &bad);
        assert_eq!(refused.err(), Some(TableError::Op(0, crate::OpError::Unknown(99))));
    }

    #[test]
    fn a_base_in_chunks_is_checked() {
        let base = base();
        let load = |state: State, chunks: &[&[u8]]| {
            let mut loading = Loading::new(base.len(), state)?;
            for chunk in chunks {
                let before = loading.offset();
                loading.push(chunk)?;
                assert_eq!(loading.offset(), before + chunk.len());
            }
            loading.finish::<Keys>()
        };
        let state = State::of_base(&base);
        let (one, two) = base.split_at(5);
        assert_eq!(load(state, &[one, two]).unwrap().index().find(b"key"), Some(&b"1"[..]));
        assert_eq!(load(state, &[one]).unwrap_err(), BaseError::Length);
        assert_eq!(load(state, &[one, two, b"x"]).unwrap_err(), BaseError::Length);
        assert_eq!(load(state.after(b""), &[one, two]).unwrap_err(), BaseError::Hash);
        assert_eq!(Loading::new(MAX_BASE + 1, state).err(), Some(BaseError::TooLarge));
        assert_eq!(format!("{state:?}").len(), 16);
    }
}
