//! When a list is fetched again.

/// The wait after a first failure, in milliseconds, unless the interval is shorter.
const FIRST_RETRY: u64 = 30_000;
/// The longest wait after failures, in milliseconds, unless the interval is longer.
const LONGEST_RETRY: u64 = 3_600_000;
/// The longest wait that a server may ask for, in milliseconds.
pub const LONGEST_WISH: u64 = 86_400_000;

/// How long to wait after a fetch, in milliseconds. `failures` is how many there were in a row; `random` is any number: waits
/// differ by a tenth from it, so that control planes and lists do not all fetch at once.
#[must_use]
pub fn wait(interval_millis: u64, failures: u32, random: u32) -> u64 {
    let wait = match failures.checked_sub(1) {
        None => interval_millis,
        Some(doublings) => {
            let first = FIRST_RETRY.min(interval_millis);
            let doubled = first.saturating_mul(1_u64.checked_shl(doublings).unwrap_or(u64::MAX));
            doubled.min(interval_millis.max(LONGEST_RETRY))
        }
    };
    // From nine tenths to eleven tenths.
    let spread = wait / 5;
    let offset = u128::from(spread) * u128::from(random) / u128::from(u32::MAX);
    (wait - wait / 10).saturating_add(u64::try_from(offset).unwrap_or(spread))
}

/// The longest wait that there is with this interval, both in milliseconds.
#[must_use]
pub fn longest(interval_millis: u64) -> u64 {
    wait(interval_millis, 0, u32::MAX).max(LONGEST_WISH)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIDDLE: u32 = u32::MAX / 2;

    #[test]
    fn waits_are_spread_around_the_interval() {
        assert_eq!(wait(3_600_000, 0, 0), 3_240_000);
        assert_eq!(wait(3_600_000, 0, u32::MAX), 3_960_000);
        assert!((3_599_000..=3_600_000).contains(&wait(3_600_000, 0, MIDDLE)));
        assert_eq!((wait(0, 0, MIDDLE), wait(u64::MAX, 0, 0)), (0, u64::MAX - u64::MAX / 10));
    }

    #[test]
    fn failures_wait_longer_each_time_up_to_a_bound() {
        let waits = |interval| (1..=9).map(|failures| wait(interval, failures, 0) / 900).collect::<Vec<u64>>();
        assert_eq!(waits(3_600_000), [30, 60, 120, 240, 480, 960, 1920, 3600, 3600]);
        assert_eq!(waits(1_000), [1, 2, 4, 8, 16, 32, 64, 128, 256]);
        assert_eq!(wait(1_000, 64, 0), 3_240_000, "at most an hour");
        assert_eq!(wait(86_400_000, u32::MAX, 0), 77_760_000, "at most the interval");
    }
}
