//! Merging an overlay into a new base, row by row.

use super::address::Address;
use super::layout::{BaseRows, LabelWidth, Row, Rows};
use super::overlay::Overlay;

/// How far the merge of one family is.
#[derive(Debug, Clone)]
pub(crate) struct Merge<A> {
    /// The next row of the base, and the next entry of the overlay.
    row: usize,
    entry: usize,
    /// The first address that is not written yet: a row may be written in parts.
    from: Option<A>,
    pub(crate) out: Rows<A>,
}

impl<A: Address> Merge<A> {
    pub(crate) fn new(width: LabelWidth, rows: usize) -> Self {
        Self { row: 0, entry: 0, from: Some(A::LOWEST), out: Rows::new(width, rows) }
    }

    /// Goes on, and takes the rows and entries that were looked at off the budget. True at the end.
    pub(crate) fn run(&mut self, base: &BaseRows<'_, A>, overlay: &Overlay<A>, budget: &mut usize) -> bool {
        while let Some(from) = self.from {
            let (row, entry) = (base.row(self.row), overlay.entry(self.entry));
            if row.is_none() && entry.is_none() {
                break;
            }
            if *budget == 0 {
                return false;
            }
            *budget -= 1;
            // The part of the row that is left; none of a row that entries have covered.
            let left = row.map(|row| Row { first: row.first.max(from), ..row });
            if left.is_some_and(|row| row.first > row.last) {
                self.row += 1;
                continue;
            }
            match (left, entry) {
                (Some(row), Some(entry)) if row.first < entry.first && row.last >= entry.first => {
                    if let Some(last) = entry.first.before() {
                        self.out.push(Row { last, ..row });
                    }
                    self.from = Some(entry.first);
                }
                (Some(row), entry) if entry.is_none_or(|entry| row.last < entry.first) => {
                    self.out.push(row);
                    self.row += 1;
                    self.from = row.last.next();
                }
                (_, Some(entry)) => {
                    if let Some(label) = entry.label {
                        self.out.push(Row { first: entry.first, last: entry.last, label });
                    }
                    self.entry += 1;
                    self.from = entry.last.next();
                }
                (_, None) => break,
            }
        }
        true
    }
}
