//! What happens is counted as it comes, for rollups.

use std::collections::BTreeMap;

use serde_json::Value;

use super::event::SecurityEvent;
use store::events::event_time;
use store::rollups::{Rollup, RollupCounts, RollupStep, Tally};

/// What was counted and is not in the store yet, by the minute.
#[derive(Debug, Default)]
pub(super) struct Tallies(BTreeMap<u64, RollupCounts>);

/// Counts that are on their way to the store.
#[derive(Debug, Default)]
pub(super) struct Taken(BTreeMap<u64, RollupCounts>);

impl Tallies {
    /// Counts an event that comes at `now`. Those about no request are not counted. The number of minutes is bounded, because
    /// events of more than a day count as of now.
    pub(super) fn count(&mut self, value: &Value, event: &SecurityEvent, now: u64) {
        if !value.get("http").is_some_and(Value::is_object) {
            return;
        }
        let is_refused = event.event.outcome.as_deref() == Some("blocked");
        let is_dry_run = !is_refused && value.pointer("/decision/dry_run") == Some(&Value::Bool(true));
        let one = Tally {
            requests: 0,
            refused: u64::from(is_refused),
            observed: u64::from(!is_refused),
            dry_run: u64::from(is_dry_run),
        };
        let minute = RollupStep::Minute.begin(event_time(value, now));
        let counts = self.0.entry(minute).or_default();
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        counts.total.add(one);
        counts.plugins.add(&text(&event.event.module), one);
        counts.routes.add(&text(&event.route.id), one);
        counts.actions.add(&text(&event.event.action), one);
        counts.categories.add(&text(&event.event.category), one);
    }

    /// Counts requests of a route that a gateway reports at `now`; of those outside of all routes the id is empty.
    pub(super) fn count_requests(&mut self, route: &str, requests: u64, now: u64) {
        let counts = self.0.entry(RollupStep::Minute.begin(now)).or_default();
        let more = Tally { requests, ..Tally::default() };
        counts.total.add(more);
        counts.routes.add(route, more);
    }

    pub(super) fn take(&mut self) -> Taken {
        Taken(std::mem::take(&mut self.0))
    }

    /// Takes back what the store did not take.
    pub(super) fn put_back(&mut self, taken: Taken) {
        for (minute, counts) in taken.0 {
            self.0.entry(minute).or_default().add(&counts);
        }
    }
}

impl Taken {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The same in steps of each length.
    pub(super) fn rollups(&self) -> Vec<Rollup> {
        let mut steps: BTreeMap<(RollupStep, u64), RollupCounts> = BTreeMap::new();
        for (minute, counts) in &self.0 {
            for step in RollupStep::ALL {
                steps.entry((step, step.begin(*minute))).or_default().add(counts);
            }
        }
        steps.into_iter().map(|((step, at_millis), counts)| Rollup { step, at_millis, counts }).collect()
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize as _;
    use serde_json::json;

    use super::*;

    const NOW: u64 = 1_800_000_000_000;

    fn count(tallies: &mut Tallies, event: &Value, now: u64) {
        tallies.count(event, &SecurityEvent::deserialize(event).unwrap(), now);
    }

    fn event(at: u64, outcome: &str, dry_run: bool) -> Value {
        json!({
            "@type": "SvcSecurityEvent", "@timestamp": at, "http": {}, "route": { "id": "shop" },
            "event": { "outcome": outcome, "module": "waf", "action": "deny" }, "decision": { "dry_run": dry_run },
        })
    }

    #[test]
    fn requests_are_counted_in_the_steps_of_their_time() {
        let mut tallies = Tallies::default();
        count(&mut tallies, &event(NOW, "blocked", false), NOW);
        count(&mut tallies, &event(NOW - 60_000, "observed", true), NOW);
        // Refused is refused, whatever else it says; a wrong clock counts as of now.
        count(&mut tallies, &event(NOW + 3_600_000, "blocked", true), NOW);
        count(&mut tallies, &event(5, "observed", false), NOW);
        tallies.count_requests("shop", 7, NOW);
        // These are about no request.
        count(&mut tallies, &json!({ "@type": "SvcSecurityEvent", "@timestamp": NOW }), NOW);
        let rollups = tallies.take().rollups();
        let of = |step: RollupStep| rollups.iter().filter(move |rollup| rollup.step == step).collect::<Vec<_>>();
        assert_eq!(of(RollupStep::Minute).len(), 2);
        assert_eq!(of(RollupStep::Minute)[1].counts.total, Tally { requests: 7, refused: 2, observed: 1, dry_run: 0 });
        let day = of(RollupStep::Day);
        assert_eq!(day[0].counts.total, Tally { requests: 7, refused: 2, observed: 2, dry_run: 1 });
        assert_eq!(day[0].counts.routes.names["shop"], day[0].counts.total);
        assert_eq!(day[0].counts.categories.names[""], Tally { requests: 0, ..day[0].counts.total });
        assert!(tallies.take().is_empty(), "each is counted once");
    }

    #[test]
    fn what_the_store_did_not_take_is_taken_again() {
        let mut tallies = Tallies::default();
        count(&mut tallies, &event(NOW, "blocked", false), NOW);
        let taken = tallies.take();
        count(&mut tallies, &event(NOW, "blocked", false), NOW);
        tallies.put_back(taken);
        assert_eq!(tallies.take().rollups()[0].counts.total.refused, 2);
    }

    #[test]
    fn clocks_that_are_wrong_fill_no_memory() {
        let mut tallies = Tallies::default();
        for number in 0..100_000_u64 {
            let mut one = event(number.wrapping_mul(7_919_000_000), "blocked", false);
            one["route"]["id"] = json!(format!("route-{number}"));
            count(&mut tallies, &one, NOW);
        }
        assert!(tallies.0.len() <= 1441);
        assert!(tallies.0.values().all(|counts| counts.routes.names.len() <= store::rollups::MAX_ROLLUP_NAMES));
    }
}
