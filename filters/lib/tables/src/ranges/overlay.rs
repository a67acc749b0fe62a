//! What deltas have assigned, over a base.

use super::address::Address;

/// A range that a delta gave a label, or took out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Assigned<A> {
    pub(crate) first: A,
    pub(crate) last: A,
    pub(crate) label: Option<u32>,
}

/// Assigned ranges, sorted; they do not overlap.
#[derive(Debug, Clone)]
pub(crate) struct Overlay<A>(Vec<Assigned<A>>);

impl<A: Address> Overlay<A> {
    pub(crate) const fn new() -> Self {
        Self(Vec::new())
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Assigned<A>> {
        self.0.iter()
    }

    pub(crate) fn entry(&self, at: usize) -> Option<Assigned<A>> {
        self.0.get(at).copied()
    }

    /// What is assigned to an address; `None` if the base decides.
    pub(crate) fn find(&self, address: A) -> Option<Option<u32>> {
        let at = self.0.partition_point(|entry| entry.first <= address).checked_sub(1)?;
        self.0.get(at).filter(|entry| entry.last >= address).map(|entry| entry.label)
    }

    /// Assigns a range, over whatever was assigned to parts of it. Adds at most two entries.
    pub(crate) fn set(&mut self, new: Assigned<A>) {
        let from = self.0.partition_point(|entry| entry.last < new.first);
        let to = self.0.partition_point(|entry| entry.first <= new.last);
        // Nothing overlaps: both are the place where the new one belongs.
        let covered = self.0.get(from..to).unwrap_or_default();
        let left = covered.first().filter(|entry| entry.first < new.first);
        let right = covered.last().filter(|entry| entry.last > new.last);
        let left = left.zip(new.first.before()).map(|(entry, last)| Assigned { last, ..*entry });
        let right = right.zip(new.last.next()).map(|(entry, first)| Assigned { first, ..*entry });
        let parts = left.into_iter().chain([new]).chain(right);
        self.0.splice(from..to.max(from), parts);
    }
}
