//! A count over the last seconds.

use std::collections::{BTreeMap, VecDeque};

use store::alerts::Burst;

/// The parts of a window: an event leaves it with its part, up to a thousandth of the window early.
const PARTS: u64 = 1000;

/// How many events there were within a window that moves on with the time.
#[derive(Debug, Default)]
pub(super) struct Window {
    millis: u64,
    /// When a part begins, and its events, oldest first; at most [`PARTS`] and one of this control plane.
    parts: VecDeque<(u64, u64)>,
    count: u64,
    /// Events that other control planes do not know of, by parts.
    unshared: BTreeMap<u64, u64>,
}

impl Window {
    /// Counts an event at `now` in; answers how many there were in the last `millis`, this one included. A window of another
    /// length begins anew.
    pub(super) fn add(&mut self, millis: u64, now: u64) -> u64 {
        if self.millis != millis || self.parts.back().is_some_and(|(at, _)| *at > now) {
            *self = Window { millis, ..Window::default() };
        }
        let begin = self.part(now);
        self.leave(now);
        match self.parts.back_mut() {
            Some((at, count)) if *at == begin => *count += 1,
            _ => self.parts.push_back((begin, 1)),
        }
        *self.unshared.entry(begin).or_default() += 1;
        self.count += 1;
        self.count
    }

    /// What other control planes do not know of yet, for the store; none where that is nothing.
    pub(super) fn unshared(&mut self, rule: &str, now: u64) -> Option<Burst> {
        let added: Vec<(u64, u64)> = std::mem::take(&mut self.unshared).into_iter().collect();
        let since = now.saturating_sub(self.millis).saturating_add(1);
        (!added.is_empty()).then(|| Burst { rule: rule.to_owned(), window: self.millis, added, since })
    }

    /// The store did not take it.
    pub(super) fn put_back(&mut self, burst: Burst) {
        if burst.window == self.millis {
            for (begin, count) in burst.added {
                *self.unshared.entry(begin).or_default() += count;
            }
        }
    }

    /// The events of all control planes that the store knows, this one's among them; answers how many there were in the window.
    pub(super) fn take_all(&mut self, parts: Vec<(u64, u64)>, now: u64) -> u64 {
        let latest = self.part(now);
        let mut all: BTreeMap<u64, u64> = BTreeMap::new();
        // Another clock may be ahead of this one.
        for (begin, count) in parts.into_iter().chain(self.unshared.clone()) {
            let part = all.entry(begin.min(latest)).or_default();
            *part = part.saturating_add(count);
        }
        self.count = all.values().fold(0, |sum, count| sum.saturating_add(*count));
        self.parts = all.into_iter().collect();
        self.leave(now);
        self.count
    }

    fn part(&self, now: u64) -> u64 {
        now - now % (self.millis / PARTS).max(1)
    }

    fn leave(&mut self, now: u64) {
        while self.parts.front().is_some_and(|(at, _)| now.saturating_sub(*at) >= self.millis) {
            let left = self.parts.pop_front().map_or(0, |(_, count)| count);
            self.count = self.count.saturating_sub(left);
        }
        while self.unshared.first_key_value().is_some_and(|(at, _)| now.saturating_sub(*at) >= self.millis) {
            self.unshared.pop_first();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_leave_the_window_one_after_the_other() {
        let mut window = Window::default();
        assert_eq!([0, 10, 20].map(|at| window.add(1000, at)), [1, 2, 3]);
        assert_eq!(window.add(1000, 999), 4);
        assert_eq!(window.add(1000, 1000), 4, "the first has left");
        assert_eq!(window.add(1000, 1015), 4, "and the second");
        assert_eq!(window.add(1000, 9000), 1);
        assert_eq!(window.add(2000, 9000), 1, "another window");
        assert_eq!(window.add(2000, 10), 1, "a clock that was set back");
    }

    #[test]
    fn a_long_window_takes_little_room() {
        let mut window = Window::default();
        for at in 0..200_000 {
            window.add(100_000, at);
        }
        assert!(window.parts.len() <= 1001 && window.unshared.len() <= 1001, "{}", window.parts.len());
        assert!((99_900..=100_000).contains(&window.count), "{}", window.count);
    }

    #[test]
    fn events_of_other_control_planes_count_as_well() {
        let mut window = Window::default();
        assert_eq!(window.add(1000, 10), 1);
        let burst = window.unshared("r", 500).unwrap();
        let added = vec![(10, 1)];
        assert_eq!(burst, Burst { rule: "r".into(), window: 1000, added: added.clone(), since: 1 });
        assert_eq!(window.unshared("r", 500), None);
        window.put_back(burst.clone());
        assert_eq!(window.unshared("r", 500), Some(burst));
        // One more here while the store was asked; one of the others is ahead of this clock.
        assert_eq!(window.add(1000, 501), 2);
        assert_eq!(window.take_all(vec![(5, 2), (10, 1), (700, 4)], 600), 8);
        assert_eq!(window.add(1000, 601), 9);
        assert_eq!(window.add(1000, 1011), 7, "those at 5 and at 10 have left");
        assert_eq!(window.add(2000, 1012), 1, "another window");
        let unshared = window.unshared("r", 1012).unwrap();
        assert_eq!((unshared.window, unshared.added), (2000, vec![(1012, 1)]));
    }
}
