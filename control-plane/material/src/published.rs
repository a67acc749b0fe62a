//! A table as links read it.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

use snapshot::{TableChange, TableKind};
use tables::State;

/// The bytes of a base in one message: a worker takes a message whole, between two requests.
pub const CHUNK: usize = 64 * 1024;
/// How many bytes of its state a delta names: enough to tell the states of one table apart.
const NAME: usize = 8;

/// A table at one moment.
#[derive(Clone)]
pub struct Published {
    pub(crate) kind: TableKind,
    pub(crate) state: State,
    pub(crate) base: Arc<[u8]>,
    pub(crate) base_state: State,
    /// What led here, the oldest first; the base is the state of one of them, or the one before.
    pub(crate) steps: VecDeque<Arc<Step>>,
}

/// What a worker is sent next.
#[derive(Debug, Clone)]
pub enum Next {
    /// A delta, or another name of its state; the state that the worker has afterwards.
    Change(TableChange, State),
    /// The base of this table, from which it goes on.
    Base(Arc<Published>),
}

/// From one state to the next.
#[derive(Debug)]
pub(crate) struct Step {
    pub(crate) from: State,
    pub(crate) to: State,
    /// The operations of a delta; none where the same content got another state.
    pub(crate) ops: Vec<u8>,
}

impl Published {
    /// What it maps.
    #[must_use]
    pub fn kind(&self) -> TableKind {
        self.kind
    }

    /// The state of workers that have all of it.
    #[must_use]
    pub fn state(&self) -> State {
        self.state
    }

    /// The state of the base, from which a worker goes on.
    #[must_use]
    pub fn base_state(&self) -> State {
        self.base_state
    }

    /// The length of the base, in bytes.
    #[must_use]
    pub fn base_len(&self) -> usize {
        self.base.len()
    }

    /// The base in messages, in their order.
    pub fn chunks(&self, name: &str) -> impl Iterator<Item = TableChange> {
        let size = u32::try_from(self.base.len()).unwrap_or(u32::MAX);
        self.base.chunks(CHUNK).scan(0_u32, move |offset, data| {
            let change = TableChange {
                name: name.to_owned(),
                from: Vec::new(),
                state: self.base_state.0.to_vec(),
                data: data.to_vec(),
                offset: *offset,
                size,
            };
            *offset = offset.saturating_add(u32::try_from(data.len()).unwrap_or(u32::MAX));
            Some(change)
        })
    }

    /// What a worker with `state` is sent next.
    pub(crate) fn next(self: &Arc<Self>, name: &str, state: Option<State>) -> Option<Next> {
        if state == Some(self.state) {
            return None;
        }
        // The newest first: a table may come back to a state that it had before.
        let step = state.and_then(|state| self.steps.iter().rev().find(|step| step.from == state));
        let Some(step) = step else { return Some(Next::Base(Arc::clone(self))) };
        let change = TableChange {
            name: name.to_owned(),
            from: step.from.0.get(..NAME).unwrap_or_default().to_vec(),
            state: step.to.0.to_vec(),
            data: step.ops.clone(),
            ..TableChange::default()
        };
        Some(Next::Change(change, step.to))
    }
}

impl fmt::Debug for Published {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, state, base, base_state, steps } = self;
        f.debug_struct("Published")
            .field("kind", kind)
            .field("state", state)
            .field("base", &base.len())
            .field("base_state", base_state)
            .field("steps", &steps.len())
            .finish()
    }
}
