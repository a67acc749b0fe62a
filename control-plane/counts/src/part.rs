//! What one node has counted of a key.

use snapshot::{CountGroup, CountKind, KeyCount, KeyMembers};

/// Whose part it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct By {
    /// The number of the node; 0 for what was asked for, by whichever node.
    pub(crate) node: u32,
    pub(crate) incarnation: u64,
}

/// What was decided in the store on the questions of all nodes.
pub(crate) const ASKED: By = By { node: 0, incarnation: 0 };

/// The part of a node.
#[derive(Debug)]
pub(crate) struct Part {
    pub(crate) by: By,
    /// The number of the newest slice.
    pub(crate) newest: u64,
    /// From the newest slice back; of windows and budgets.
    pub(crate) counts: Vec<u32>,
    /// Each with the slice of its last insertion; of sets.
    pub(crate) members: Vec<(u64, u64)>,
    /// Where it stands among the parts of its node.
    pub(crate) rank: (u8, u64),
    pub(crate) units: u64,
}

/// What a message has changed.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Merged {
    pub(crate) changed: bool,
    /// The node has lost some of its counts since: it has lost what it has learned of others as well.
    pub(crate) behind: bool,
    /// Members that are new or whose time begins anew.
    pub(crate) members: Vec<u64>,
}

impl Part {
    pub(crate) fn new(by: By, group: &CountGroup, newest: u64) -> Self {
        let counts = if group.kind() == CountKind::Set { Vec::new() } else { vec![0; group.slices as usize + 1] };
        Self { by, newest, counts, members: Vec::new(), rank: (0, 0), units: 0 }
    }

    /// Of each slice the larger number stands; none is above the cap of the group, except what was decided in the store.
    pub(crate) fn merge_count(&mut self, count: &KeyCount, cap: u32) -> Merged {
        self.shift(count.newest);
        let cap = if self.by == ASKED { u32::MAX } else { cap };
        let ago = usize::try_from(self.newest.saturating_sub(count.newest)).unwrap_or(usize::MAX);
        let mut merged = Merged::default();
        for (at, known) in self.counts.iter_mut().skip(ago).enumerate() {
            let told = count.counts.get(at).copied().unwrap_or(0).min(cap);
            merged.changed |= told > *known;
            merged.behind |= told < *known;
            *known = (*known).max(told);
        }
        merged
    }

    /// Of each member the later slice stands; those before `first` have left, and a full set takes none.
    pub(crate) fn merge_members(&mut self, told: &KeyMembers, (first, last): (u64, u64), cap: usize) -> Merged {
        let mut merged = Merged::default();
        self.members.retain(|(_, slice)| *slice >= first);
        for (member, slice) in told.members.iter().zip(&told.slices) {
            if *slice < first || *slice > last {
                continue;
            }
            let room = self.members.len() < cap;
            match self.members.iter_mut().find(|(known, _)| known == member) {
                Some((_, known)) if *known < *slice => *known = *slice,
                None if room => self.members.push((*member, *slice)),
                _ => continue,
            }
            self.newest = self.newest.max(*slice);
            merged.members.push(*member);
        }
        merged.changed = !merged.members.is_empty();
        merged
    }

    fn shift(&mut self, newest: u64) {
        let length = self.counts.len();
        let passed = usize::try_from(newest.saturating_sub(self.newest)).unwrap_or(usize::MAX).min(length);
        if passed > 0 {
            self.counts.splice(0..0, std::iter::repeat_n(0, passed));
            self.counts.truncate(length);
            self.newest = newest;
        }
    }

    /// What it counts against other parts for room: the number of digits of its count, so that a flood of keys that are counted
    /// once pushes out its own.
    pub(crate) fn weigh(&mut self, group: &CountGroup) {
        let sum: u64 = self.counts.iter().map(|count| u64::from(*count)).sum::<u64>() + self.members.len() as u64;
        let digits = u8::try_from(u64::BITS - sum.leading_zeros()).unwrap_or(u8::MAX);
        let end = self.newest.saturating_add(u64::from(group.slices) + 1).saturating_mul(group.slice_millis);
        self.rank = (digits, end);
        self.units = 1 + self.members.len() as u64 / 4;
    }

    /// When it has left the window, in milliseconds since the Unix epoch.
    pub(crate) fn end(&self) -> u64 {
        self.rank.1
    }
}
