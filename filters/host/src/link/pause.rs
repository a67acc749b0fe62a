//! How long a lost link waits before it is tried again.

/// The first and the longest pause, in milliseconds.
const FIRST: u64 = 500;
const LONGEST: u64 = 30_000;

/// The pause after so many failures, in milliseconds.
pub(super) fn after(failures: u32) -> u64 {
    (FIRST << failures.min(6)).min(LONGEST)
}

/// Whether a pause until a time is over, both in milliseconds since the Unix epoch. One that is longer than any is from before the clock
/// was set back.
pub(super) fn is_over(until: u64, now: u64) -> bool {
    until.checked_sub(now).is_none_or(|left| left == 0 || left > 2 * LONGEST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_doubles_up_to_its_longest() {
        assert_eq!([0, 1, 5, 6, 99].map(after), [500, 1000, 16_000, 30_000, 30_000]);
    }

    #[test]
    fn a_pause_ends_at_its_time_or_with_a_clock_that_is_set_back() {
        let until = 86_400_000;
        assert_eq!([0, 29_999].map(|before| is_over(until, until - 1 - before)), [false; 2]);
        assert!(is_over(until, until) && is_over(until, until + 1) && is_over(0, 0));
        assert!(is_over(until, until - 3_600_000), "an hour back");
        assert!(!is_over(until, until - 2 * LONGEST), "within what a pause may last");
    }
}
