//! A set of rule ids, as ranges that do not touch.

use std::collections::BTreeMap;

use crate::program::wire::IdRange;

/// Ids by ranges: the first id of each with its last one. Both operations take the logarithm of the number of ranges.
#[derive(Debug, Default)]
pub(crate) struct IdSet(BTreeMap<u64, u64>);

impl IdSet {
    /// Adds a range. A range that ends before it begins adds nothing.
    pub(crate) fn insert(&mut self, range: IdRange) {
        let IdRange { mut first, mut last } = range;
        if first > last {
            return;
        }
        // Each range that is taken out here was put in once: over all calls, that is one step for each.
        while let Some((&from, &to)) = self.0.range(..=last.saturating_add(1)).next_back() {
            if to.saturating_add(1) < first {
                break;
            }
            (first, last) = (first.min(from), last.max(to));
            self.0.remove(&from);
        }
        self.0.insert(first, last);
    }

    /// Whether a range has the id.
    pub(crate) fn contains(&self, id: u64) -> bool {
        self.0.range(..=id).next_back().is_some_and(|(_, last)| *last >= id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(ranges: &[(u64, u64)]) -> IdSet {
        let mut set = IdSet::default();
        for &(first, last) in ranges {
            set.insert(IdRange { first, last });
        }
        set
    }

    #[test]
    fn ranges_that_meet_become_one() {
        for (ranges, merged) in [
            (&[(1, 3), (5, 7), (4, 4)][..], &[(1, 7)][..]),
            (&[(5, 7), (1, 3)], &[(1, 3), (5, 7)]),
            (&[(1, 2), (4, 5), (9, 9), (2, 8)], &[(1, 9)]),
            (&[(1, 100), (5, 7)], &[(1, 100)]),
            (&[(7, 5)], &[]),
            (&[(u64::MAX, u64::MAX), (0, 0)], &[(0, 0), (u64::MAX, u64::MAX)]),
            (&[(0, u64::MAX), (3, 4)], &[(0, u64::MAX)]),
        ] {
            assert_eq!(of(ranges).0.into_iter().collect::<Vec<_>>(), merged, "{ranges:?}");
        }
    }

    #[test]
    fn it_has_what_a_range_has() {
        let ranges = [(10, 20), (15, 30), (40, 40), (5, 5)];
        let set = of(&ranges);
        for id in 0..50 {
            assert_eq!(set.contains(id), ranges.iter().any(|&(first, last)| (first..=last).contains(&id)), "{id}");
        }
    }
}
