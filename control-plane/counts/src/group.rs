//! The keys of one group, with the parts of all nodes.

use std::collections::{BTreeSet, HashMap};

use snapshot::{CountGroup, KeyCount};

use crate::part::{ASKED, By, Part};

/// What is counted, by whom.
#[derive(Debug)]
pub(crate) struct Group {
    pub(crate) described: CountGroup,
    pub(crate) keys: HashMap<u64, Key>,
    /// The nodes that count it.
    pub(crate) nodes: BTreeSet<u32>,
}

/// A key.
#[derive(Debug, Default)]
pub(crate) struct Key {
    pub(crate) parts: Vec<Part>,
    /// Every node is sent it, because its total has reached the group's bound.
    pub(crate) everywhere: bool,
}

impl Group {
    pub(crate) fn new(described: CountGroup) -> Self {
        Self { described, keys: HashMap::new(), nodes: BTreeSet::new() }
    }

    /// The slices that are within the window at `now`, and one more for clocks that are a little ahead.
    pub(crate) fn window(&self, now: u64) -> (u64, u64) {
        let current = now / self.described.slice_millis;
        (current.saturating_sub(u64::from(self.described.slices)), current.saturating_add(1))
    }
}

impl Key {
    /// The sum of all parts but that of `by`, in each slice.
    pub(crate) fn others(&self, key: u64, by: By) -> Option<KeyCount> {
        let others = || self.parts.iter().filter(|part| part.by != by);
        let newest = others().map(|part| part.newest).max()?;
        let length = others().map(|part| part.counts.len()).max()?;
        let mut sums = vec![0_u64; length];
        for part in others() {
            let ago = usize::try_from(newest - part.newest).unwrap_or(usize::MAX);
            for (sum, count) in sums.iter_mut().skip(ago).zip(&part.counts) {
                *sum += u64::from(*count);
            }
        }
        while sums.pop_if(|sum| *sum == 0).is_some() {}
        let counts: Vec<u32> = sums.into_iter().map(|sum| u32::try_from(sum).unwrap_or(u32::MAX)).collect();
        (!counts.is_empty()).then_some(KeyCount { key, newest, counts })
    }

    /// The latest slice of a member in all parts but that of `by`.
    pub(crate) fn slice_of(&self, member: u64, by: By) -> Option<u64> {
        let others = self.parts.iter().filter(|part| part.by != by).flat_map(|part| &part.members);
        others.filter(|(known, _)| *known == member).map(|(_, slice)| *slice).max()
    }

    /// The members of all parts but that of `by`.
    pub(crate) fn members_but(&self, by: Option<By>, first: u64) -> BTreeSet<u64> {
        let parts = self.parts.iter().filter(|part| Some(part.by) != by).flat_map(|part| &part.members);
        parts.filter(|(_, slice)| *slice >= first).map(|(member, _)| *member).collect()
    }

    /// The count of all parts; with `asked` false of those that were not decided in the store.
    pub(crate) fn total(&self, first: u64, asked: bool) -> u64 {
        let parts = self.parts.iter().filter(|part| asked || part.by != ASKED);
        let live = |part: &Part| -> u64 {
            let counts = (0..=part.newest).rev().zip(&part.counts);
            counts.take_while(|(slice, _)| *slice >= first).map(|(_, count)| u64::from(*count)).sum()
        };
        parts.map(live).sum()
    }
}
