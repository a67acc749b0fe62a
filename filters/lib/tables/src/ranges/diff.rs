//! The delta between two tables.

use super::address::{Address, Span};
use super::layout::{BaseRows, LabelWidth};
use super::overlay::Assigned;
use super::{MAX_LABEL, RangeOps, Ranges};
use crate::{MAX_DELTA, MAX_OPS, TableIndex};

impl Ranges {
    /// Deltas that lead from this table to `newer`, in their order; none if they are equal. Each keeps to the limits of a
    /// delta. `None` if their labels differ in width: then only a new base leads there.
    ///
    /// This looks at every row of both: it is for the control plane.
    #[must_use]
    pub fn deltas_to(&self, newer: &Self) -> Option<Vec<Vec<u8>>> {
        if self.width() != newer.width() {
            return None;
        }
        let (old, new) = (Self::load(self.save()).ok()?, Self::load(newer.save()).ok()?);
        let mut deltas = Deltas::new(self.width());
        let labels = old.layout.names(&old.base).count().max(new.layout.names(&new.base).count());
        for label in 0..u32::try_from(labels).ok()? {
            let name = new.name(label);
            if old.name(label) != name {
                deltas.name(label, name.unwrap_or_default());
            }
        }
        changes(&old.layout.v4(&old.base), &new.layout.v4(&new.base), |Assigned { first, last, label }| {
            deltas.put(Span::V4(first, last), label);
        });
        changes(&old.layout.v6(&old.base), &new.layout.v6(&new.base), |Assigned { first, last, label }| {
            deltas.put(Span::V6(first, last), label);
        });
        Some(deltas.finish())
    }
}

/// Deltas that are being written, each within its limits.
pub(crate) struct Deltas {
    done: Vec<Vec<u8>>,
    open: RangeOps,
}

impl Deltas {
    pub(crate) fn new(width: LabelWidth) -> Self {
        Self { done: Vec::new(), open: RangeOps::new(width) }
    }

    pub(crate) fn put(&mut self, span: Span, label: Option<u32>) {
        self.open.put(span, label);
        self.close_full();
    }

    /// Names a label of a table, whose limits are those of a delta.
    pub(crate) fn name(&mut self, label: u32, name: &[u8]) {
        self.open.name(label, name).unwrap_or_default();
        self.close_full();
    }

    pub(crate) fn finish(mut self) -> Vec<Vec<u8>> {
        self.close();
        self.done
    }

    fn close_full(&mut self) {
        if self.open.len() >= MAX_OPS || self.open.size() > MAX_DELTA - MAX_LABEL - 64 {
            self.close();
        }
    }

    fn close(&mut self) {
        if !self.open.is_empty() {
            let next = RangeOps::new(self.open.width());
            self.done.push(std::mem::replace(&mut self.open, next).finish());
        }
    }
}

/// Calls `found` with each range whose label differs between two tables, with the newer one's.
fn changes<A: Address>(old: &BaseRows<'_, A>, new: &BaseRows<'_, A>, mut found: impl FnMut(Assigned<A>)) {
    let (mut old_row, mut new_row) = (0, 0);
    let mut open: Option<Assigned<A>> = None;
    let mut next = Some(A::LOWEST);
    while let Some(first) = next {
        let (before, old_end) = piece(old, &mut old_row, first);
        let (label, new_end) = piece(new, &mut new_row, first);
        let Some(last) = old_end.into_iter().chain(new_end).min() else { break };
        if before != label {
            match &mut open {
                Some(open) if open.label == label && open.last.next() == Some(first) => open.last = last,
                _ => open.replace(Assigned { first, last, label }).into_iter().for_each(&mut found),
            }
        }
        next = last.next();
    }
    open.into_iter().for_each(found);
}

/// The label of an address, and the last address of the row or gap that it is in; `None` for the gap behind all rows. `row` is
/// a row that does not end before those that earlier calls found.
fn piece<A: Address>(rows: &BaseRows<'_, A>, row: &mut usize, address: A) -> (Option<u32>, Option<A>) {
    while let Some(found) = rows.row(*row) {
        if found.first > address {
            return (None, found.first.before());
        }
        if found.last >= address {
            return (Some(found.label), Some(found.last));
        }
        *row += 1;
    }
    (None, None)
}
