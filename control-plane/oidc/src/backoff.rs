//! How long the provider is not asked again after a failure.

/// The pause after the first failure, in milliseconds; each further one doubles it.
const FIRST_MILLIS: u64 = 5_000;
/// The longest pause, in milliseconds: a minute.
const MAX_MILLIS: u64 = 60_000;

/// The failures of one kind of request since it has last succeeded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Backoff {
    failures: u32,
    /// Why the last one has failed, and when, in milliseconds since 1970.
    last: Option<(String, u64)>,
}

// === impl Backoff ===

impl Backoff {
    /// Notes a failure.
    pub(super) fn failed(&mut self, why: String, now_millis: u64) {
        self.failures = self.failures.saturating_add(1);
        self.last = Some((why, now_millis));
    }

    /// Forgets the failures.
    pub(super) fn succeeded(&mut self) {
        *self = Backoff::default();
    }

    /// Why the last request has failed; `None` if it has not.
    pub(super) fn reason(&self) -> Option<&str> {
        self.last.as_ref().map(|(why, _)| why.as_str())
    }

    /// The same while no new request is to be made.
    pub(super) fn pause(&self, now_millis: u64) -> Option<&str> {
        let (why, at) = self.last.as_ref()?;
        // A clock that was set back makes no pause longer.
        let since = now_millis.checked_sub(*at)?;
        (since < self.millis()).then_some(why.as_str())
    }

    fn millis(&self) -> u64 {
        let doubled = 1_u64.checked_shl(self.failures.saturating_sub(1)).unwrap_or(u64::MAX);
        FIRST_MILLIS.saturating_mul(doubled).min(MAX_MILLIS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_doubles_up_to_a_minute_and_ends_with_a_success() {
        let (mut backoff, mut now) = (Backoff::default(), 1_000_000);
        assert_eq!((backoff.pause(now), backoff.reason()), (None, None));
        for seconds in [5, 10, 20, 40, 60, 60] {
            backoff.failed(format!("before {seconds} s"), now);
            let why = format!("before {seconds} s");
            assert_eq!(backoff.pause(now + seconds * 1000 - 1), Some(why.as_str()));
            now += seconds * 1000;
            assert_eq!((backoff.pause(now), backoff.reason()), (None, Some(why.as_str())));
        }
        assert_eq!(backoff.pause(0), None, "the clock was set back");
        for _ in 0..100 {
            backoff.failed(String::new(), now);
        }
        assert_eq!(backoff.pause(now + MAX_MILLIS), None);
        backoff.succeeded();
        backoff.failed(String::new(), now);
        assert_eq!(backoff.pause(now + FIRST_MILLIS), None, "the first pause again");
    }
}
