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

    /// The content as a base, whose state it takes.
    fn rebase(&mut self) -> (Vec<u8>, State) {
        match self {
            Self::Ranges(table) => rebase(table),
            Self::Keys(table) => rebase(table),
        }
    }

    /// Deltas to another content; `None` where only a base leads there.
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

fn rebase<I: TableIndex>(table: &mut Table<I>) -> (Vec<u8>, State) {
    while table.compact(usize::MAX) == Progress::More {}
    let base = table.index().save();
    let state = State::of_base(&base);
    let from = table.state();
    // It is the state that the table has.
    let _same = table.rebase(&from.0, state);
    (base, state)
}

impl History {
    pub(crate) fn begin(kind: TableKind, base: Vec<u8>) -> Result<Self, BaseError> {
        let content = Content::load(kind, base.clone())?;
        let base_state = content.state();
        Ok(Self { content, base: base.into(), base_state, steps: VecDeque::new(), bytes: 0, since_base: (0, 0) })
    }

    /// Leads to another content by deltas; `false` where only a new base leads there or is shorter, and nothing has changed.
    pub(crate) fn replace(&mut self, kind: TableKind, base: &[u8]) -> Result<bool, BaseError> {
        if kind != self.content.kind() {
            return Ok(false);
        }
        let newer = Content::load(kind, base.to_vec())?;
        let deltas = self.content.deltas_to(&newer).filter(|deltas| bytes_of(deltas) <= self.kept_bytes());
        // What was compared applies; if it did not, the base would be the way out.
        Ok(deltas.is_some_and(|deltas| deltas.iter().all(|ops| self.change(ops).is_ok())))
    }

    pub(crate) fn change(&mut self, ops: &[u8]) -> Result<(), TableError> {
        if ops.is_empty() {
            return Ok(());
        }
        let from = self.content.state();
        let to = self.content.delta(ops)?;
        self.push(Step { from, to, ops: ops.to_vec() });
        if self.since_base.0 > MAX_STEPS / 2 || self.since_base.1 > self.kept_bytes() / 2 {
            let from = self.content.state();
            let (base, to) = self.content.rebase();
            (self.base, self.base_state) = (base.into(), to);
            self.push(Step { from, to, ops: Vec::new() });
            self.since_base = (0, 0);
        }
        Ok(())
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
