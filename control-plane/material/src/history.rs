//! A table as it is written: its content, and the deltas that workers may still need.

use std::collections::VecDeque;
use std::sync::Arc;

use snapshot::TableKind;
use tables::{BaseError, Keys, Progress, Ranges, State, Table, TableError, TableIndex};

use crate::published::{Published, Step};

/// The most deltas that are kept for workers that are behind.
const MAX_STEPS: usize = 4096;
/// How many bytes of deltas are kept for them, beside a quarter of the base.
const STEP_BYTES: usize = 64 * 1024;

/// A table, its base, and how it got from there to where it is.
pub(crate) struct History {
    content: Content,
    base: Arc<[u8]>,
    base_state: State,
    steps: VecDeque<Arc<Step>>,
    /// The bytes of all steps.
    bytes: usize,
    /// Those behind the base, and their bytes.
    since_base: (usize, usize),
}

enum Content {
    Ranges(Box<Table<Ranges>>),
    Keys(Table<Keys>),
}

impl Content {
    fn load(kind: TableKind, base: Vec<u8>) -> Result<Self, BaseError> {
        Ok(match kind {
            TableKind::Ranges => Self::Ranges(Box::new(Table::new(base)?)),
            TableKind::Keys => Self::Keys(Table::new(base)?),
        })
    }

    fn kind(&self) -> TableKind {
        match self {
            Self::Ranges(_) => TableKind::Ranges,
            Self::Keys(_) => TableKind::Keys,
        }
    }

    fn state(&self) -> State {
        match self {
            Self::Ranges(table) => table.state(),
            Self::Keys(table) => table.state(),
        }
    }

    /// Applies a delta to the state that it has; the state afterwards.
    fn delta(&mut self, ops: &[u8]) -> Result<State, TableError> {
        match self {
            Self::Ranges(table) => delta(table, ops),
            Self::Keys(table) => delta(table, ops),
        }
    }

    /// Merges all deltas into the base; `false` where no base has room for them. Then some stay beside the base, and comparing or saving it
    /// leaves them out. The content and its state stay.
    fn settle(&mut self) -> bool {
        match self {
            Self::Ranges(table) => settle(table),
            Self::Keys(table) => settle(table),
        }
    }

    /// The content as a base, whose state it takes; `None` where no base has room for it: content and state are as they were.
    fn rebase(&mut self) -> Option<(Vec<u8>, State)> {
        match self {
            Self::Ranges(table) => rebase(table),
            Self::Keys(table) => rebase(table),
        }
    }

    /// Deltas to another content; `None` where only a base leads there. Both are settled.
    fn deltas_to(&self, newer: &Self) -> Option<Vec<Vec<u8>>> {
        match (self, newer) {
            (Self::Ranges(old), Self::Ranges(new)) => old.index().deltas_to(new.index()),
            (Self::Keys(old), Self::Keys(new)) => Some(old.index().deltas_to(new.index())),
            _ => None,
        }
    }
}

fn delta<I: TableIndex>(table: &mut Table<I>, ops: &[u8]) -> Result<State, TableError> {
    let from = table.state();
    let to = from.after(ops);
    let mut applied = table.delta(&from.0, &to, ops);
    if applied == Err(TableError::OverlayFull) {
        while table.compact(usize::MAX) == Progress::More {}
        applied = table.delta(&from.0, &to, ops);
    }
    applied.map(|()| to)
}

fn settle<I: TableIndex>(table: &mut Table<I>) -> bool {
    // The first round ends a compaction that has begun, the second one takes the deltas since.
    for _ in 0..2 {
        while table.compact(usize::MAX) == Progress::More {}
    }
    // What is left beside the base was merged into one beyond the limits: the base is not this content.
    table.index().overlay() == 0
}

fn rebase<I: TableIndex>(table: &mut Table<I>) -> Option<(Vec<u8>, State)> {
    if !settle(table) {
        return None;
    }
    let base = table.index().base().to_vec();
    let state = State::of_base(&base);
    let from = table.state();
    // It is the state that the table has.
    let _same = table.rebase(&from.0, state);
    Some((base, state))
}

impl History {
    pub(crate) fn begin(kind: TableKind, base: Vec<u8>) -> Result<Self, BaseError> {
        let content = Content::load(kind, base.clone())?;
        let base_state = content.state();
        Ok(Self { content, base: base.into(), base_state, steps: VecDeque::new(), bytes: 0, since_base: (0, 0) })
    }

    /// Leads to another content by deltas; `false` where only a new base leads there or is shorter: the table is to begin anew with it, as
    /// some of the deltas may be applied by then.
    ///
    /// # Errors
    ///
    /// `base` is no base of that kind; nothing has changed.
    pub(crate) fn replace(&mut self, kind: TableKind, base: &[u8]) -> Result<bool, BaseError> {
        if kind != self.content.kind() {
            return Ok(false);
        }
        let newer = Content::load(kind, base.to_vec())?;
        if !self.content.settle() {
            return Ok(false);
        }
        let deltas = self.content.deltas_to(&newer).filter(|deltas| bytes_of(deltas) <= self.kept_bytes());
        // What was compared applies; if it did not, the base would be the way out.
        Ok(deltas.is_some_and(|deltas| deltas.iter().all(|ops| self.change(ops).is_ok())))
    }

    /// Applies a delta. Those that no base can take in any more are bounded: then the table needs a smaller base.
    pub(crate) fn change(&mut self, ops: &[u8]) -> Result<(), TableError> {
        if ops.is_empty() {
            return Ok(());
        }
        if self.needs_base() {
            return Err(TableError::OverlayFull);
        }
        let from = self.content.state();
        let to = self.content.delta(ops)?;
        self.push(Step { from, to, ops: ops.to_vec() });
        if self.needs_base() {
            let from = self.content.state();
            if let Some((base, to)) = self.content.rebase() {
                (self.base, self.base_state) = (base.into(), to);
                self.push(Step { from, to, ops: Vec::new() });
                self.since_base = (0, 0);
            }
        }
        Ok(())
    }

    /// Whether the deltas behind the base are as many as one may have. After a change they are only where no base takes them in.
    fn needs_base(&self) -> bool {
        self.since_base.0 > MAX_STEPS / 2 || self.since_base.1 > self.kept_bytes() / 2
    }

    fn push(&mut self, step: Step) {
        self.bytes += cost(&step);
        self.since_base = (self.since_base.0 + 1, self.since_base.1 + cost(&step));
        self.steps.push_back(Arc::new(step));
        // Those behind the base stay: workers that got it go on with them.
        while self.steps.len() > self.since_base.0 && (self.steps.len() > MAX_STEPS || self.bytes > self.kept_bytes()) {
            let Some(oldest) = self.steps.pop_front() else { break };
            self.bytes -= cost(&oldest);
        }
    }

    /// How many bytes of deltas are worth keeping: beyond them the base is as good.
    fn kept_bytes(&self) -> usize {
        self.base.len() / 4 + STEP_BYTES
    }

    pub(crate) fn published(&self) -> Published {
        Published {
            kind: self.content.kind(),
            state: self.content.state(),
            base: Arc::clone(&self.base),
            base_state: self.base_state,
            steps: self.steps.clone(),
        }
    }
}

fn bytes_of(deltas: &[Vec<u8>]) -> usize {
    deltas.iter().map(Vec::len).sum()
}

/// What a step costs to send: its operations, and what a message has around them.
fn cost(step: &Step) -> usize {
    step.ops.len() + 64
}

#[cfg(test)]
mod tests {
    use tables::{KeyOps, KeysBuilder, MAX_BASE};

    use super::*;

    fn key(number: u32) -> [u8; 255] {
        let mut key = [b'k'; 255];
        key[..4].copy_from_slice(&number.to_be_bytes());
        key
    }

    fn put(number: u32, value: &[u8]) -> Vec<u8> {
        let mut ops = KeyOps::default();
        ops.put(&key(number), value).unwrap();
        ops.finish()
    }

    /// A base that has room for a few keys more, and the number of its keys.
    fn nearly_full() -> (Vec<u8>, u32) {
        let count = u32::try_from(MAX_BASE / (255 + 255 + 5)).unwrap() - 10;
        let mut builder = KeysBuilder::default();
        (0..count).for_each(|number| builder.put(&key(number), &[b'v'; 255]).unwrap());
        (builder.build().unwrap(), count)
    }

    #[test]
    fn a_table_that_no_base_takes_in_begins_anew_with_the_one_that_replaces_it() {
        let (base, count) = nearly_full();
        let state = State::of_base(&base);
        let changed = |added: u32| {
            let mut history = History::begin(TableKind::Keys, base.clone()).unwrap();
            (count..count + added).for_each(|number| history.change(&put(number, &[b'w'; 255])).unwrap());
            history
        };
        // Back to the base: a few keys fit beside those of the base, and deltas remove them.
        let mut few = changed(2);
        assert_eq!(few.replace(TableKind::Keys, &base), Ok(true));
        let Content::Keys(table) = &few.content else { panic!("another kind") };
        assert_eq!([count, count + 1].map(|number| table.index().find(&key(number))), [None; 2]);
        // Many do not: comparing bases would find nothing to remove.
        assert_eq!(changed(40).replace(TableKind::Keys, &base), Ok(false));
        let material = crate::Material::default();
        material.publish("t", TableKind::Keys, base.clone()).unwrap();
        (count..count + 40).for_each(|number| material.change("t", &put(number, &[b'w'; 255])).unwrap());
        material.publish("t", TableKind::Keys, base).unwrap();
        assert_eq!(material.get("t").unwrap().state(), state, "it is the base, and all that was added is gone");
    }

    #[test]
    fn what_no_base_takes_in_stays_beside_the_base_and_is_bounded() {
        let (base, count) = nearly_full();
        let mut history = History::begin(TableKind::Keys, base).unwrap();
        let mut added = count;
        let refused = loop {
            match history.change(&put(added, &[b'w'; 255])) {
                Ok(()) => added += 1,
                Err(error) => break error,
            }
            assert!(added - count <= MAX_STEPS as u32, "it grows without end");
        };
        assert_eq!(refused, TableError::OverlayFull);
        assert_eq!(history.change(&put(0, b"")), Err(refused), "and it stays so");
        // A worker that begins with the base comes to all that was added.
        let published = history.published();
        let mut worker = Table::<Keys>::new(published.base.to_vec()).unwrap();
        assert_eq!(worker.state(), published.base_state);
        for step in &published.steps {
            assert_eq!(step.from, worker.state());
            match step.ops.as_slice() {
                [] => worker.rebase(&step.from.0, step.to).unwrap(),
                ops => worker.delta(&step.from.0, &step.to, ops).unwrap(),
            }
        }
        assert_eq!(worker.state(), published.state);
        let lost = (count..added).find(|number| worker.index().find(&key(*number)).is_none());
        assert_eq!(lost, None);
    }
}
