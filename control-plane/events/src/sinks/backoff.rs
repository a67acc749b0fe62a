//! How long to wait before the next attempt.

use std::time::Duration;

/// Doubles the wait from one failure to the next, and spreads it so that many who wait do not come at once.
#[derive(Clone, Debug)]
pub struct Backoff {
    first: Duration,
    most: Duration,
    failures: u32,
    /// A number from 0 to 1, another one each time.
    chance: fn() -> f64,
}

impl Backoff {
    /// Waits of about `first`, twice that, and so on up to `most`: each between the half and the whole of it.
    pub fn new(first: Duration, most: Duration, chance: fn() -> f64) -> Backoff {
        Backoff { first, most, failures: 0, chance }
    }

    /// The wait after one more failure.
    pub fn next_wait(&mut self) -> Duration {
        let whole = self.first.saturating_mul(1 << self.failures.min(20)).min(self.most);
        self.failures = self.failures.saturating_add(1);
        whole.mul_f64(0.5 + 0.5 * (self.chance)().clamp(0.0, 1.0))
    }

    /// The last attempt went well.
    pub(crate) fn reset(&mut self) {
        self.failures = 0;
    }
}

impl Default for Backoff {
    /// From half a second to a minute.
    fn default() -> Backoff {
        // Without randomness all wait the longest, which is no harm.
        let chance = || getrandom::u32().map_or(1.0, |number| f64::from(number) / f64::from(u32::MAX));
        Backoff::new(Duration::from_millis(500), Duration::from_secs(60), chance)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_the_most_and_begin_anew() {
        let mut backoff = Backoff::new(Duration::from_secs(1), Duration::from_secs(5), || 1.0);
        let waits: Vec<u64> = (0..5).map(|_| backoff.next_wait().as_secs()).collect();
        assert_eq!(waits, [1, 2, 4, 5, 5]);
        backoff.reset();
        assert_eq!(backoff.next_wait(), Duration::from_secs(1));
        backoff.chance = || 0.0;
        assert_eq!(backoff.next_wait(), Duration::from_secs(1), "the half of two");
        backoff.failures = u32::MAX;
        assert_eq!(backoff.next_wait(), Duration::from_millis(2500));
    }

    #[test]
    fn chance_is_between_0_and_1() {
        let mut backoff = Backoff::default();
        for _ in 0..100 {
            backoff.reset();
            let wait = backoff.next_wait();
            assert!((Duration::from_millis(250)..=Duration::from_millis(500)).contains(&wait), "{wait:?}");
        }
    }
}
