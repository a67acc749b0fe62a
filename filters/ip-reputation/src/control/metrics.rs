//! Numbers of each feed, for monitoring.

use std::collections::BTreeSet;

use metrics::{counter, gauge};

use super::state::FeedState;

/// The most feeds that have numbers of their own: a label that was used once stays for as long as the process lives.
const MAX_LABELS: usize = 256;

/// Shows the numbers of feeds.
#[derive(Default)]
pub(super) struct FeedMetrics {
    known: BTreeSet<String>,
}

impl FeedMetrics {
    /// Shows a feed; `None` for one that is not used, or gone.
    pub(super) fn show(&mut self, id: &str, state: Option<&FeedState>) {
        if !(self.known.contains(id) || state.is_some() && self.takes(id)) {
            return;
        }
        let list = state.and_then(|state| state.current.as_ref());
        // Whole numbers up to 2^53 are exact.
        #[allow(clippy::cast_precision_loss)]
        let number = |number: u64| number as f64;
        let label = || id.to_owned();
        gauge!("palisade_feeds_entries", "feed" => label()).set(number(list.map_or(0, |list| list.entries)));
        gauge!("palisade_feeds_ranges", "feed" => label()).set(number(list.map_or(0, |list| list.ranges)));
        let fetched = number(list.map_or(0, |list| list.fetched_at)) / 1000.0;
        gauge!("palisade_feeds_fetched_timestamp_seconds", "feed" => label()).set(fetched);
        let failing = state.is_some_and(|state| state.trouble().is_some());
        gauge!("palisade_feeds_failing", "feed" => label()).set(f64::from(u8::from(failing)));
    }

    /// Counts a fetch that failed.
    pub(super) fn failed(&mut self, id: &str) {
        if self.takes(id) {
            counter!("palisade_feeds_failures_total", "feed" => id.to_owned()).increment(1);
        }
    }

    fn takes(&mut self, id: &str) -> bool {
        self.known.contains(id) || (self.known.len() < MAX_LABELS && self.known.insert(id.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_bounded() {
        let mut metrics = FeedMetrics::default();
        for number in 0..10_000 {
            metrics.show(&format!("feed-{number}"), Some(&FeedState::default()));
            metrics.failed(&format!("feed-{number}"));
        }
        assert_eq!(metrics.known.len(), MAX_LABELS);
        let mut unused = FeedMetrics::default();
        unused.show("a", None);
        assert!(unused.known.is_empty(), "what is not used has none");
    }
}
