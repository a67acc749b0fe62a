//! Requests over time.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Effects;
use crate::row::Effect;

/// Buckets at most.
const BUCKETS: u64 = 240;
/// The width of a bucket at first, in milliseconds.
const FIRST_WIDTH: u64 = 1_000;

/// Requests over the replay's clock, in buckets of one width without a gap: a time without requests has zeros.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Timeline {
    /// Where the first bucket begins, in milliseconds since the Unix epoch, a multiple of the width.
    pub start: u64,
    /// A bucket's width in milliseconds: a second, doubled until at most 240 buckets are enough.
    pub width_millis: u64,
    /// The buckets; none without a request.
    pub buckets: Vec<Effects>,
}

/// Counts by time; the order of the times does not matter.
#[derive(Debug)]
pub(super) struct Counts {
    width: u64,
    /// By time divided by the width; only those that are not empty.
    buckets: BTreeMap<u64, Effects>,
}

impl Default for Counts {
    fn default() -> Self {
        Self { width: FIRST_WIDTH, buckets: BTreeMap::new() }
    }
}

impl Counts {
    pub(super) fn add(&mut self, at: u64, effect: Effect) {
        self.buckets.entry(at / self.width).or_default().add(effect);
        while self.span() > BUCKETS {
            self.double();
        }
    }

    fn span(&self) -> u64 {
        match (self.buckets.first_key_value(), self.buckets.last_key_value()) {
            (Some((first, _)), Some((last, _))) => last - first + 1,
            _ => 0,
        }
    }

    fn double(&mut self) {
        self.width *= 2;
        let mut wider = BTreeMap::<u64, Effects>::new();
        for (place, counts) in &self.buckets {
            wider.entry(place / 2).or_default().join(counts);
        }
        self.buckets = wider;
    }

    /// How many buckets are held.
    #[cfg(test)]
    pub(super) fn held(&self) -> usize {
        self.buckets.len()
    }

    pub(super) fn timeline(&self) -> Timeline {
        let Some((&first, _)) = self.buckets.first_key_value() else { return Timeline::default() };
        let buckets = (first..first + self.span()).map(|place| self.buckets.get(&place).copied().unwrap_or_default());
        Timeline { start: first * self.width, width_millis: self.width, buckets: buckets.collect() }
    }
}

impl Timeline {
    /// Where the last bucket ends, in milliseconds since the Unix epoch.
    pub fn end(&self) -> u64 {
        self.start.saturating_add(self.width_millis.saturating_mul(self.buckets.len() as u64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::Dice;

    fn counts(times: &[u64]) -> Counts {
        let mut counts = Counts::default();
        times.iter().for_each(|at| counts.add(*at, Effect::Passed));
        counts
    }

    #[test]
    fn a_gap_is_shown_as_one() {
        let timeline = counts(&[10_500, 10_900, 14_000]).timeline();
        assert_eq!((timeline.start, timeline.width_millis, timeline.end()), (10_000, 1_000, 15_000));
        let passed: Vec<_> = timeline.buckets.iter().map(|bucket| bucket.passed).collect();
        assert_eq!(passed, [2, 0, 0, 0, 1]);
        assert_eq!(Counts::default().timeline(), Timeline::default());
    }

    #[test]
    fn buckets_widen_with_the_span_and_lose_nothing() {
        let mut dice = Dice(3);
        for span in [1_000, 239_000, 240_000, 10_000_000, 3_000_000_000, 1 << 50] {
            let times: Vec<_> = (0..3_000).map(|_| 1_700_000_000_000 + dice.below(span)).collect();
            let counts = counts(&times);
            assert!(counts.held() as u64 <= BUCKETS);
            let timeline = counts.timeline();
            assert!(timeline.buckets.len() as u64 <= BUCKETS);
            assert_eq!(timeline.buckets.iter().map(|bucket| bucket.passed).sum::<u64>(), 3_000);
            assert!((timeline.width_millis / FIRST_WIDTH).is_power_of_two());
            let (first, last) = (*times.iter().min().unwrap(), *times.iter().max().unwrap());
            assert!(timeline.start <= first && last < timeline.end());
            let half = timeline.width_millis / 2;
            assert!(half < FIRST_WIDTH || last / half - first / half + 1 > BUCKETS, "wider than it needs to be");
        }
    }

    #[test]
    fn the_order_of_the_times_does_not_matter() {
        let mut dice = Dice(5);
        let mut times: Vec<_> = (0..500).map(|_| dice.below(9_000_000)).collect();
        let timeline = counts(&times).timeline();
        times.sort_unstable();
        assert_eq!(counts(&times).timeline(), timeline);
        times.reverse();
        assert_eq!(counts(&times).timeline(), timeline);
    }

    #[test]
    fn times_from_end_to_end_are_counted() {
        let timeline = counts(&[0, u64::MAX]).timeline();
        assert_eq!(timeline.buckets.iter().map(|bucket| bucket.passed).sum::<u64>(), 2);
        assert_eq!(timeline.end(), u64::MAX);
    }
}
