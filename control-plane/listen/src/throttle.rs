//! Failed logins per source address, or per name.

use std::collections::HashMap;
use std::hash::Hash;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Mutex, PoisonError};

use base::identity::canonical;

/// Failures that one source may have within a window before it is told to wait, where nothing else is said.
pub const MAX_FAILURES: u32 = 10;
/// The length of a window in milliseconds.
pub const WINDOW_MILLIS: u64 = 60_000;
/// Sources that are remembered at most; those with the fewest failures make room, of these the oldest.
pub const MAX_SOURCES: usize = 10_000;

/// Counts failures in fixed windows, by source address where nothing else is said. An IPv6 source is its /64, which is
/// what one subscriber holds.
#[derive(Debug)]
pub struct Throttle<K = IpAddr> {
    windows: Mutex<HashMap<K, Window>>,
    max_failures: u32,
}

/// What a source is told that has had too many failures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wait {
    /// When to come back, in seconds from now; at least 1.
    pub seconds: u64,
    /// It is the first within its window that is told so: worth telling others about, which the rest are not.
    pub first: bool,
}

#[derive(Clone, Copy, Debug)]
struct Window {
    began_millis: u64,
    failures: u32,
}

impl Window {
    /// Whether it goes on. One that begins far in the future is of a clock that was set back, and ends; one that begins a little later
    /// goes on, because callers read the clock before they have the lock: they must not end each other's windows.
    fn holds(&self, now_millis: u64) -> bool {
        now_millis.abs_diff(self.began_millis) < WINDOW_MILLIS
    }
}

impl Throttle {
    /// Counts one failure at `now_millis`; `Some` when the source has had too many and has to wait.
    pub fn failed(&self, source: IpAddr, now_millis: u64) -> Option<Wait> {
        self.count(subscriber(source), now_millis)
    }

    /// Takes one failure of a source back: what was counted beforehand has succeeded.
    pub fn succeeded(&self, source: IpAddr) {
        self.forgive(&subscriber(source));
    }
}

impl<K: Copy + Eq + Hash> Throttle<K> {
    /// One that tells a source to wait after `max_failures` within a window.
    pub fn after(max_failures: u32) -> Throttle<K> {
        Throttle { windows: Mutex::new(HashMap::new()), max_failures }
    }

    /// [`Throttle::failed`] for keys of any kind.
    pub fn count(&self, key: K, now_millis: u64) -> Option<Wait> {
        let mut windows = self.windows.lock().unwrap_or_else(PoisonError::into_inner);
        if !windows.contains_key(&key) && windows.len() >= MAX_SOURCES {
            make_room(&mut windows, now_millis);
        }
        let window = windows.entry(key).or_insert(Window { began_millis: now_millis, failures: 0 });
        if !window.holds(now_millis) {
            *window = Window { began_millis: now_millis, failures: 0 };
        }
        window.failures = window.failures.saturating_add(1);
        let left = window.began_millis.saturating_add(WINDOW_MILLIS).saturating_sub(now_millis).min(WINDOW_MILLIS);
        let over = window.failures.saturating_sub(self.max_failures);
        (over > 0).then(|| Wait { seconds: left.div_ceil(1000).max(1), first: over == 1 })
    }

    /// [`Throttle::succeeded`] for keys of any kind.
    pub fn forgive(&self, key: &K) {
        let mut windows = self.windows.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(window) = windows.get_mut(key) {
            window.failures = window.failures.saturating_sub(1);
            if window.failures == 0 {
                windows.remove(key);
            }
        }
    }
}

impl<K: Copy + Eq + Hash> Default for Throttle<K> {
    fn default() -> Throttle<K> {
        Throttle::after(MAX_FAILURES)
    }
}

/// Forgets windows that have ended and, where that is not enough, the eighth with the fewest failures: a share, so that
/// many new sources do not pay for a search each. By failures before age, because a stranger who makes up names would
/// else push out the one that is being guessed at, and its count with it.
fn make_room<K: Eq + Hash>(windows: &mut HashMap<K, Window>, now_millis: u64) {
    windows.retain(|_, window| window.holds(now_millis));
    if windows.len() < MAX_SOURCES {
        return;
    }
    let worth = |window: &Window| (window.failures, window.began_millis);
    let mut leaving = windows.len() / 8;
    let mut all: Vec<(u32, u64)> = windows.values().map(worth).collect();
    let cutoff = *all.select_nth_unstable(leaving).1;
    // Those below the cutoff first: of those at it, only as many as are still to go.
    leaving -= all.iter().filter(|worth| **worth < cutoff).count();
    windows.retain(|_, window| {
        let ties = worth(window) == cutoff && leaving > 0;
        leaving -= usize::from(ties);
        worth(window) > cutoff || (worth(window) == cutoff && !ties)
    });
}

fn subscriber(source: IpAddr) -> IpAddr {
    match canonical(source) {
        IpAddr::V6(address) => {
            let network = u128::from(address) & !u128::from(u64::MAX);
            IpAddr::V6(Ipv6Addr::from(network))
        }
        v4 => v4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Seconds to wait.
    fn seconds(wait: Option<Wait>) -> Option<u64> {
        wait.map(|wait| wait.seconds)
    }

    #[test]
    fn the_eleventh_failure_of_a_minute_is_told_to_wait() {
        let throttle = Throttle::default();
        let source: IpAddr = "192.0.2.1".parse().unwrap();
        for _ in 0..MAX_FAILURES {
            assert_eq!(throttle.failed(source, 1000), None);
        }
        assert_eq!(throttle.failed(source, 31_000), Some(Wait { seconds: 30, first: true }));
        assert_eq!(throttle.failed(source, 60_999), Some(Wait { seconds: 1, first: false }));
        assert_eq!(throttle.failed("192.0.2.2".parse().unwrap(), 31_000), None);
        assert_eq!(throttle.failed(source, 61_000), None, "a new minute");
    }

    #[test]
    fn a_clock_that_is_set_back_makes_no_window_longer_than_two() {
        let throttle = Throttle::<u8>::after(1);
        let day = 24 * 3_600_000;
        throttle.count(1, day);
        assert_eq!(seconds(throttle.count(1, day)), Some(60));
        assert_eq!(throttle.count(1, 1000), None, "a day back: a new window");
        // A little back, as two callers at once may have the time: the window goes on, and no wait is longer than one.
        let throttle = Throttle::<u8>::after(1);
        throttle.count(1, day);
        assert_eq!(seconds(throttle.count(1, day - 1)), Some(60));
        assert_eq!(seconds(throttle.count(1, day - WINDOW_MILLIS + 1)), Some(60));
        assert_eq!(throttle.count(1, day - WINDOW_MILLIS), None);
    }

    #[test]
    fn how_many_are_too_many_can_be_said() {
        let throttle = Throttle::<u8>::after(2);
        let answers: Vec<_> = (0..4).map(|_| seconds(throttle.count(1, 0))).collect();
        assert_eq!(answers, [None, None, Some(60), Some(60)]);
    }

    #[test]
    fn what_has_succeeded_is_no_failure() {
        let throttle = Throttle::<[u8; 32]>::default();
        for _ in 0..3 * MAX_FAILURES {
            assert_eq!(throttle.count([7; 32], 1000), None);
            throttle.forgive(&[7; 32]);
        }
        assert!(throttle.windows.lock().unwrap().is_empty(), "and takes no room");
        for _ in 0..MAX_FAILURES {
            assert_eq!(throttle.count([7; 32], 1000), None);
        }
        assert_eq!(seconds(throttle.count([7; 32], 1000)), Some(60));
        assert_eq!(throttle.count([8; 32], 1000), None);
    }

    #[test]
    fn a_subscriber_with_many_addresses_counts_as_one_and_memory_is_bounded() {
        let throttle = Throttle::default();
        let answers: Vec<_> = (0..=MAX_FAILURES)
            .map(|host| throttle.failed(IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, host as u16)), 0))
            .collect();
        assert_eq!(answers.last().copied().map(seconds), Some(Some(60)));
        // Behind a translator of IPv4 each address is a subscriber.
        for host in 1..=3 * MAX_FAILURES {
            let translated: IpAddr = format!("64:ff9b::192.0.2.{host}").parse().unwrap();
            assert_eq!(throttle.failed(translated, 0), None);
        }
        for host in 0..30_000_u32 {
            throttle.failed(IpAddr::V4(host.into()), u64::from(host % 100));
            assert!(throttle.windows.lock().unwrap().len() <= MAX_SOURCES);
        }
    }

    #[test]
    fn made_up_names_do_not_push_out_the_one_that_is_guessed_at() {
        let throttle = Throttle::<u32>::default();
        for _ in 0..=MAX_FAILURES {
            throttle.count(0, 0);
        }
        // All of them younger, and all of the same time.
        for name in 1..30_000 {
            throttle.count(name, 1);
        }
        assert_eq!(seconds(throttle.count(0, 1)), Some(60));
        // When the minute is over, so is its claim to a place.
        for name in 30_000..60_000 {
            throttle.count(name, WINDOW_MILLIS + 1);
        }
        assert!(!throttle.windows.lock().unwrap().contains_key(&0));
    }
}
