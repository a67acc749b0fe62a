//! Numbers of each feed and each bouncer, for monitoring.

use std::collections::BTreeSet;

use metrics::{counter, gauge};

use super::bouncers::Counts;
use super::state::FeedState;

/// The most feeds, and the most bouncers, that have numbers of their own: a label that was used once stays for as long as the process lives.
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

/// The bouncers that have numbers of their own.
#[derive(Default)]
pub(super) struct BouncerLabels(BTreeSet<String>);

impl BouncerLabels {
    pub(super) fn takes(&mut self, id: &str) -> bool {
        self.0.contains(id) || (self.0.len() < MAX_LABELS && self.0.insert(id.to_owned()))
    }
}

/// Shows what is in force of a bouncer, and whether it has an error.
pub(super) fn show_bouncer(id: &str, counts: Counts, is_failing: bool) {
    for (kind, count) in [("exact", counts.exact), ("ranges", counts.ranges), ("named", counts.named)] {
        let count = u32::try_from(count).unwrap_or(u32::MAX);
        gauge!("palisade_bouncers_decisions", "bouncer" => id.to_owned(), "kind" => kind).set(count);
    }
    gauge!("palisade_bouncers_failing", "bouncer" => id.to_owned()).set(u32::from(is_failing));
}

/// Counts a call for decisions.
pub(super) fn bouncer_called(id: &str, works: bool) {
    let outcome = if works { "done" } else { "failed" };
    counter!("palisade_bouncers_syncs_total", "bouncer" => id.to_owned(), "outcome" => outcome).increment(1);
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
