//! How long requests took, in bounded memory.

use serde::{Deserialize, Serialize};

/// Steps per power of two: a value is known to an eighth of itself.
const STEPS: u32 = 8;

/// What requests took in real time, in microseconds, to within an eighth (never too low).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Latency {
    /// The requests that were measured.
    pub measured: u64,
    /// Half of them took at most this.
    pub p50: u64,
    /// 90 % of them took at most this.
    pub p90: u64,
    /// 99 % of them took at most this.
    pub p99: u64,
    /// The longest, exactly.
    pub longest: u64,
}

/// Counts by size, in steps that grow with it.
#[derive(Debug)]
pub(super) struct Histogram {
    steps: Vec<u64>,
    measured: u64,
    longest: u64,
}

impl Default for Histogram {
    fn default() -> Self {
        Self { steps: vec![0; (64 * STEPS) as usize], measured: 0, longest: 0 }
    }
}

impl Histogram {
    pub(super) fn add(&mut self, micros: u64) {
        self.steps[step(micros)] += 1;
        self.measured += 1;
        self.longest = self.longest.max(micros);
    }

    /// `None` where nothing was measured.
    pub(super) fn latency(&self) -> Option<Latency> {
        (self.measured > 0).then(|| Latency {
            measured: self.measured,
            p50: self.quantile(50),
            p90: self.quantile(90),
            p99: self.quantile(99),
            longest: self.longest,
        })
    }

    fn quantile(&self, percent: u64) -> u64 {
        let rank = (self.measured * percent).div_ceil(100);
        let mut counted = 0;
        for (step, count) in self.steps.iter().enumerate() {
            counted += count;
            if counted >= rank {
                return highest(step as u32).min(self.longest);
            }
        }
        self.longest
    }
}

/// Small values have a step each; from 8 on there are eight steps from one power of two to the next.
fn step(value: u64) -> usize {
    let Some(power) = value.checked_ilog2() else { return 0 };
    let shift = power.saturating_sub(STEPS.ilog2());
    (shift * STEPS) as usize + (value >> shift) as usize
}

/// The highest value in a step.
fn highest(step: u32) -> u64 {
    if step < 2 * STEPS {
        return u64::from(step);
    }
    let shift = step / STEPS - 1;
    let base = u64::from(step - shift * STEPS);
    (base << shift) | ((1 << shift) - 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::Dice;

    #[test]
    fn every_value_is_in_a_step_that_is_at_most_an_eighth_wide() {
        let mut dice = Dice(1);
        let edges = (0..64).flat_map(|power| [1_u64 << power, (1 << power) - 1, (1 << power) + 1]);
        for value in edges.chain((0..10_000).map(|_| dice.next())).chain([u64::MAX]) {
            let high = highest(step(value) as u32);
            assert!(value <= high && high - value <= value / 8, "{value}: {high}");
        }
    }

    #[test]
    fn quantiles_are_those_of_the_values() {
        let mut histogram = Histogram::default();
        assert_eq!(histogram.latency(), None);
        (1..=1_000).for_each(|micros| histogram.add(micros));
        let latency = histogram.latency().unwrap();
        assert_eq!((latency.measured, latency.longest), (1_000, 1_000));
        for (found, truth) in [(latency.p50, 500), (latency.p90, 900), (latency.p99, 990)] {
            assert!(found >= truth && found - truth <= truth / 8, "{found} for {truth}");
        }
    }
}
