//! Failed logins per source address, or per name.

use std::collections::HashMap;
use std::hash::Hash;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Mutex, PoisonError};

/// Failures that one source may have within a window before it is told to wait.
pub const MAX_FAILURES: u32 = 10;
/// The length of a window in milliseconds.
pub const WINDOW_MILLIS: u64 = 60_000;
/// Sources that are remembered at most; those with the oldest windows make room.
const MAX_SOURCES: usize = 10_000;

/// Counts failures in fixed windows, by source address where nothing else is said. An IPv6 source is its /64, which is
/// what one subscriber holds.
#[derive(Debug)]
pub struct Throttle<K = IpAddr> {
    windows: Mutex<HashMap<K, Window>>,
}

#[derive(Clone, Copy, Debug)]
struct Window {
    began_millis: u64,
    failures: u32,
}

impl Throttle {
    /// Counts one failure at `now_millis`. `Some(seconds)` when the source has had too many and should come back in
    /// that many seconds.
    pub fn failed(&self, source: IpAddr, now_millis: u64) -> Option<u64> {
        self.count(subscriber(source), now_millis)
    }

    /// Takes one failure of a source back: what was counted beforehand has succeeded.
    pub fn succeeded(&self, source: IpAddr) {
        self.forgive(&subscriber(source));
    }
}

impl<K: Copy + Eq + Hash> Throttle<K> {
    /// [`Throttle::failed`] for keys of any kind.
    pub fn count(&self, key: K, now_millis: u64) -> Option<u64> {
        let mut windows = self.windows.lock().unwrap_or_else(PoisonError::into_inner);
        if !windows.contains_key(&key) && windows.len() >= MAX_SOURCES {
            make_room(&mut windows, now_millis);
        }
        let window = windows.entry(key).or_insert(Window { began_millis: now_millis, failures: 0 });
        if now_millis.saturating_sub(window.began_millis) >= WINDOW_MILLIS {
            *window = Window { began_millis: now_millis, failures: 0 };
        }
        window.failures = window.failures.saturating_add(1);
        let left = (window.began_millis + WINDOW_MILLIS).saturating_sub(now_millis);
        (window.failures > MAX_FAILURES).then(|| left.div_ceil(1000).max(1))
    }

    /// [`Throttle::succeeded`] for keys of any kind.
    pub fn forgive(&self, key: &K) {
        let mut windows = self.windows.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(window) = windows.get_mut(key) {
            window.failures = window.failures.saturating_sub(1);
        }
    }
}

impl<K> Default for Throttle<K> {
    fn default() -> Throttle<K> {
        Throttle { windows: Mutex::new(HashMap::new()) }
    }
}

/// Forgets windows that have ended and, where that is not enough, the oldest eighth: a share, so that many new sources
/// do not pay for a search each.
fn make_room<K: Eq + Hash>(windows: &mut HashMap<K, Window>, now_millis: u64) {
    windows.retain(|_, window| now_millis.saturating_sub(window.began_millis) < WINDOW_MILLIS);
    if windows.len() < MAX_SOURCES {
        return;
    }
    let mut leaving = windows.len() / 8;
    let mut ages: Vec<u64> = windows.values().map(|window| window.began_millis).collect();
    let cutoff = *ages.select_nth_unstable(leaving).1;
    windows.retain(|_, window| {
        let leaves = window.began_millis <= cutoff && leaving > 0;
        leaving -= usize::from(leaves);
        !leaves
    });
}

fn subscriber(source: IpAddr) -> IpAddr {
    match source.to_canonical() {
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

    #[test]
    fn the_eleventh_failure_of_a_minute_is_told_to_wait() {
        let throttle = Throttle::default();
        let source: IpAddr = "192.0.2.1".parse().unwrap();
        for _ in 0..MAX_FAILURES {
            assert_eq!(throttle.failed(source, 1000), None);
        }
        assert_eq!(throttle.failed(source, 31_000), Some(30));
        assert_eq!(throttle.failed("192.0.2.2".parse().unwrap(), 31_000), None);
        assert_eq!(throttle.failed(source, 61_000), None, "a new minute");
    }

    #[test]
    fn what_has_succeeded_is_no_failure() {
        let throttle = Throttle::<[u8; 32]>::default();
        for _ in 0..3 * MAX_FAILURES {
            assert_eq!(throttle.count([7; 32], 1000), None);
            throttle.forgive(&[7; 32]);
        }
        for _ in 0..MAX_FAILURES {
            assert_eq!(throttle.count([7; 32], 1000), None);
        }
        assert_eq!(throttle.count([7; 32], 1000), Some(60));
        assert_eq!(throttle.count([8; 32], 1000), None);
    }

    #[test]
    fn a_subscriber_with_many_addresses_counts_as_one_and_memory_is_bounded() {
        let throttle = Throttle::default();
        let answers: Vec<_> = (0..=MAX_FAILURES)
            .map(|host| throttle.failed(IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, host as u16)), 0))
            .collect();
        assert_eq!(answers.last(), Some(&Some(60)));
        for host in 0..30_000_u32 {
            throttle.failed(IpAddr::V4(host.into()), u64::from(host % 100));
        }
        assert!(throttle.windows.lock().unwrap().len() <= MAX_SOURCES);
    }
}
