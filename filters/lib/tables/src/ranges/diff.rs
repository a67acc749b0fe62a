//! The delta between two tables.

use std::collections::BTreeSet;

use super::address::{Address, Span};
use super::layout::{BaseRows, LabelWidth};
use super::overlay::Assigned;
use super::{MAX_LABEL, RangeOps, Ranges};
use crate::{MAX_DELTA, MAX_OPS, TableIndex};

impl Ranges {
    /// Deltas that lead from this table to `newer`, in their order; none if they are equal. Each keeps to the limits of a
    /// delta. While they are applied, each address has what this table says of it or what `newer` says, the name of its label included.
    /// `None` if their labels differ in width, or exchange their names: then only a new base leads there.
    ///
    /// This looks at every row of both: it is for the control plane.
    #[must_use]
    pub fn deltas_to(&self, newer: &Self) -> Option<Vec<Vec<u8>>> {
        if self.width() != newer.width() {
            return None;
        }
        let (old, new) = (Self::load(self.save()).ok()?, Self::load(newer.save()).ok()?);
        let Renames { first, between, last } = Renames::new(&old, &new);
        let (mut deltas, mut later) = (Deltas::new(self.width()), Vec::new());
        let name = |deltas: &mut Deltas, label| deltas.name(label, new.name(label).unwrap_or_default());
        first.into_iter().for_each(|label| name(&mut deltas, label));
        let mut put = |span, label: Option<u32>| match label {
            Some(label) if between.contains(&label) => later.push((span, label)),
            label => deltas.put(span, label),
        };
        let apart = changes(&old.layout.v4(&old.base), &new.layout.v4(&new.base), &between, |entry| {
            put(Span::V4(entry.first, entry.last), entry.label);
        }) && changes(&old.layout.v6(&old.base), &new.layout.v6(&new.base), &between, |entry| {
            put(Span::V6(entry.first, entry.last), entry.label);
        });
        if !apart {
            return None;
        }
        between.iter().for_each(|label| name(&mut deltas, *label));
        later.into_iter().for_each(|(span, label)| deltas.put(span, Some(label)));
        last.into_iter().for_each(|label| name(&mut deltas, label));
        Some(deltas.finish())
    }

    /// Which of these labels rows of the base have.
    fn rows_with(&self, labels: &BTreeSet<u32>) -> BTreeSet<u32> {
        fn of<'a, A: Address>(rows: &'a BaseRows<'_, A>) -> impl Iterator<Item = u32> + 'a {
            (0..rows.len()).filter_map(|at| rows.row(at)).map(|row| row.label)
        }
        let (v4, v6) = (self.layout.v4(&self.base), self.layout.v6(&self.base));
        of(&v4).chain(of(&v6)).filter(|label| labels.contains(label)).collect()
    }
}

/// The labels whose names differ between two tables, by when they get the new one.
#[derive(Default)]
struct Renames {
    /// Before any row changes: no row of the older table has them.
    first: Vec<u32>,
    /// Once the rows that leave them have changed, and before others come to them.
    between: BTreeSet<u32>,
    /// When all rows have changed: none of the newer table has them.
    last: Vec<u32>,
}

impl Renames {
    /// Those between two tables without overlays.
    fn new(old: &Ranges, new: &Ranges) -> Self {
        let labels = old.layout.names(&old.base).count().max(new.layout.names(&new.base).count());
        let labels = 0..u32::try_from(labels).unwrap_or(u32::MAX);
        let differ: BTreeSet<u32> = labels.filter(|label| old.name(*label) != new.name(*label)).collect();
        let mut renames = Self::default();
        if differ.is_empty() {
            return renames;
        }
        let (before, after) = (old.rows_with(&differ), new.rows_with(&differ));
        for label in differ {
            match (before.contains(&label), after.contains(&label)) {
                (false, _) => renames.first.push(label),
                (true, true) => drop(renames.between.insert(label)),
                (true, false) => renames.last.push(label),
            }
        }
        renames
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

/// Calls `found` with each range whose label differs between two tables, with the newer one's. False where a range goes from one to
/// another of the labels `apart`: then it stops there.
fn changes<A: Address>(
    old: &BaseRows<'_, A>,
    new: &BaseRows<'_, A>,
    apart: &BTreeSet<u32>,
    mut found: impl FnMut(Assigned<A>),
) -> bool {
    let is_apart = |label: Option<u32>| label.is_some_and(|label| apart.contains(&label));
    let (mut old_row, mut new_row) = (0, 0);
    let mut open: Option<Assigned<A>> = None;
    let mut next = Some(A::LOWEST);
    while let Some(first) = next {
        let (before, old_end) = piece(old, &mut old_row, first);
        let (label, new_end) = piece(new, &mut new_row, first);
        let Some(last) = old_end.into_iter().chain(new_end).min() else { break };
        if before != label {
            if is_apart(before) && is_apart(label) {
                return false;
            }
            match &mut open {
                Some(open) if open.label == label && open.last.next() == Some(first) => open.last = last,
                _ => open.replace(Assigned { first, last, label }).into_iter().for_each(&mut found),
            }
        }
        next = last.next();
    }
    open.into_iter().for_each(found);
    true
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
