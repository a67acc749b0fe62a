//! A count over the last seconds.

use std::collections::VecDeque;

/// The parts of a window: an event leaves it with its part, up to a thousandth of the window early.
const PARTS: u64 = 1000;

/// How many events there were within a window that moves on with the time.
#[derive(Debug, Default)]
pub(super) struct Window {
    millis: u64,
    /// When a part begins, and its events; at most [`PARTS`] and one.
    parts: VecDeque<(u64, u64)>,
    count: u64,
}

impl Window {
    /// Counts an event at `now` in; answers how many there were in the last `millis`, this one included. A window of another
    /// length begins anew.
    pub(super) fn add(&mut self, millis: u64, now: u64) -> u64 {
        if self.millis != millis || self.parts.back().is_some_and(|(at, _)| *at > now) {
            *self = Window { millis, ..Window::default() };
        }
        let part = (millis / PARTS).max(1);
        let begin = now - now % part;
        while self.parts.front().is_some_and(|(at, _)| now - at >= millis) {
            self.count -= self.parts.pop_front().map_or(0, |(_, count)| count);
        }
        match self.parts.back_mut() {
            Some((at, count)) if *at == begin => *count += 1,
            _ => self.parts.push_back((begin, 1)),
        }
        self.count += 1;
        self.count
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
        assert!(window.parts.len() <= 1001, "{}", window.parts.len());
        assert!((99_900..=100_000).contains(&window.count), "{}", window.count);
    }
}
