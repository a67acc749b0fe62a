//! Values that recur, and the ends of what was seen.

use std::collections::BTreeMap;

/// How often each of a few values was seen. With more than `CAP` different ones nothing is kept of any.
#[derive(Clone, Debug)]
pub(crate) struct Tally<K, const CAP: usize> {
    values: BTreeMap<K, u64>,
    overflown: bool,
}

/// The lowest and the highest value, and how often each was seen.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Ends {
    pub(crate) low: f64,
    pub(crate) low_seen: u64,
    pub(crate) high: f64,
    pub(crate) high_seen: u64,
}

// === impl Tally ===

impl<K, const CAP: usize> Default for Tally<K, CAP> {
    fn default() -> Self {
        Self { values: BTreeMap::new(), overflown: false }
    }
}

impl<K: Ord + Clone, const CAP: usize> Tally<K, CAP> {
    /// Counts a value.
    pub(crate) fn add<Q>(&mut self, value: &Q, times: u64)
    where
        K: std::borrow::Borrow<Q>,
        Q: Ord + ToOwned<Owned = K> + ?Sized,
    {
        if self.overflown {
            return;
        }
        if let Some(count) = self.values.get_mut(value) {
            *count += times;
        } else if self.values.len() < CAP {
            self.values.insert(value.to_owned(), times);
        } else {
            self.overflow();
        }
    }

    /// Gives up: there are too many values, or one that is not to be kept.
    pub(crate) fn overflow(&mut self) {
        self.overflown = true;
        self.values = BTreeMap::new();
    }

    pub(crate) fn merge(&mut self, other: Self) {
        if other.overflown {
            self.overflow();
        }
        for (value, times) in other.values {
            if self.overflown {
                return;
            }
            *self.values.entry(value).or_default() += times;
            if self.values.len() > CAP {
                self.overflow();
            }
        }
    }

    /// The values, unless there are too many.
    pub(crate) fn known(&self) -> Option<&BTreeMap<K, u64>> {
        (!self.overflown).then_some(&self.values)
    }

    /// Whether all values that occur were probably seen: each of them several times, and on average often. By Good and Turing the
    /// share of what was never seen is about that of what was seen once.
    pub(crate) fn is_complete(&self, evidence: u64) -> bool {
        let total: u64 = self.values.values().sum();
        let distinct = u64::try_from(self.values.len()).unwrap_or(u64::MAX);
        let rarest = self.values.values().min().copied().unwrap_or_default();
        !self.overflown && total >= evidence && total >= distinct.saturating_mul(10) && rarest >= 3
    }
}

// === impl Ends ===

impl Ends {
    /// The ends of one value.
    pub(crate) fn of(value: f64, times: u64) -> Self {
        Self { low: value, low_seen: times, high: value, high_seen: times }
    }

    pub(crate) fn merge(&mut self, other: Self) {
        if other.low < self.low {
            (self.low, self.low_seen) = (other.low, other.low_seen);
        } else if other.low == self.low {
            self.low_seen += other.low_seen;
        }
        if other.high > self.high {
            (self.high, self.high_seen) = (other.high, other.high_seen);
        } else if other.high == self.high {
            self.high_seen += other.high_seen;
        }
    }
}

/// Whether an end that was seen `seen` times among `count` is a limit: values pile up there. At an end that is none the next value may
/// lie beyond it.
pub(crate) fn piles_up(seen: u64, count: u64) -> bool {
    seen >= 5 && seen.saturating_mul(200) >= count
}
