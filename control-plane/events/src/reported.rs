//! How many requests a gateway can have had.

use std::collections::HashMap;

/// The most requests of a gateway in a second: several times what the fastest one takes.
const PER_SECOND: u64 = 500_000;
/// For so long a gateway may have counted before its report is there, in milliseconds: reports wait while a link is down.
const LONGEST_MILLIS: u64 = 600_000;
/// The most gateways that are remembered; the one that has reported least lately makes room.
const MAX_NODES: usize = 10_000;

/// What gateways have reported of late.
#[derive(Debug, Default)]
pub(super) struct Reported(HashMap<String, Room>);

/// How many more requests a gateway may report.
#[derive(Clone, Copy, Debug)]
struct Room {
    requests: u64,
    at_millis: u64,
}

impl Reported {
    /// How many of the requests count that a gateway reports at `now_millis`.
    pub(super) fn allow(&mut self, node: &str, requests: u64, now_millis: u64) -> u64 {
        if !self.0.contains_key(node) {
            self.make_room();
        }
        let most = LONGEST_MILLIS / 1000 * PER_SECOND;
        let first = Room { requests: most, at_millis: now_millis };
        let room = self.0.entry(node.to_owned()).or_insert(first);
        let passed = now_millis.saturating_sub(room.at_millis).min(LONGEST_MILLIS);
        let had = room.requests.saturating_add(passed.saturating_mul(PER_SECOND) / 1000).min(most);
        let counted = requests.min(had);
        *room = Room { requests: had - counted, at_millis: now_millis };
        counted
    }

    fn make_room(&mut self) {
        if self.0.len() < MAX_NODES {
            return;
        }
        let oldest = self.0.iter().min_by_key(|(_, room)| room.at_millis).map(|(node, _)| node.clone());
        oldest.and_then(|node| self.0.remove(&node));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: u64 = 1_800_000_000_000;

    #[test]
    fn a_gateway_reports_no_more_than_it_can_have_had() {
        let mut reported = Reported::default();
        let first = reported.allow("edge-1", u64::MAX, NOW);
        assert_eq!(first, PER_SECOND * 600);
        assert_eq!(reported.allow("edge-1", 1, NOW), 0);
        assert_eq!(reported.allow("edge-1", 100_000, NOW + 1000), 100_000, "an honest one");
        assert_eq!(reported.allow("edge-1", u64::MAX, NOW + 1000), PER_SECOND - 100_000);
        assert_eq!(reported.allow("edge-1", u64::MAX, NOW + 1000 + 24 * LONGEST_MILLIS), first);
        assert_eq!(reported.allow("edge-1", 1, 5), 0, "a clock that was set back");
        assert_eq!(reported.allow("edge-1", 1, 1005), 1);
        assert_eq!(reported.allow("edge-2", 7, NOW), 7, "each has its own");
    }

    #[test]
    fn made_up_gateways_take_bounded_room() {
        let mut reported = Reported::default();
        for number in 0..MAX_NODES as u64 + 10 {
            reported.allow(&number.to_string(), 1, NOW + number);
        }
        assert_eq!(
            (reported.0.len(), reported.0.contains_key("9"), reported.0.contains_key("10")),
            (MAX_NODES, false, true)
        );
    }
}
