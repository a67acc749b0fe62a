//! What happens is counted as it comes, for rollups.

use std::collections::BTreeMap;

use serde_json::Value;

use super::event::SecurityEvent;
use store::events::event_time;
use store::rollups::{NamedTallies, Rollup, RollupCounts, RollupStep, Tally};

/// A name that events are counted by. Gateways send it, and rollups have few names: one that is not known counts as other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RollupName<'a> {
    /// Of a plugin.
    Plugin(&'a str),
    /// The id of a route.
    Route(&'a str),
    /// What was done.
    Action(&'a str),
    /// What it was about.
    Category(&'a str),
}

/// Whether a name is known. Its answer for an empty one does not matter: that is no name, and is counted by itself.
pub(super) type IsKnown<'a> = &'a dyn Fn(RollupName<'_>) -> bool;

/// What was counted and is not in the store yet, by the minute.
#[derive(Debug, Default)]
pub(super) struct Tallies(BTreeMap<u64, RollupCounts>);

/// Counts that are on their way to the store.
#[derive(Debug, Default)]
pub(super) struct Taken(BTreeMap<u64, RollupCounts>);

impl Tallies {
    /// Counts an event that comes at `now`. Those about no request are not counted. Events add no more than a day of minutes, because
    /// those of more than a day ago count as of now.
    pub(super) fn count(&mut self, value: &Value, event: &SecurityEvent, is_known: IsKnown<'_>, now: u64) {
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
        counts.total.add(one);
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        let (module, route) = (text(&event.event.module), text(&event.route.id));
        let (action, category) = (text(&event.event.action), text(&event.event.category));
        add(&mut counts.plugins, &module, one, is_known(RollupName::Plugin(&module)));
        add(&mut counts.routes, &route, one, is_known(RollupName::Route(&route)));
        add(&mut counts.actions, &action, one, is_known(RollupName::Action(&action)));
        add(&mut counts.categories, &category, one, is_known(RollupName::Category(&category)));
    }

    /// Counts requests of a route that a gateway reports at `now`; of those outside of all routes the id is empty.
    pub(super) fn count_requests(&mut self, route: &str, requests: u64, is_known: IsKnown<'_>, now: u64) {
        let counts = self.0.entry(RollupStep::Minute.begin(now)).or_default();
        let more = Tally { requests, ..Tally::default() };
        counts.total.add(more);
        add(&mut counts.routes, route, more, is_known(RollupName::Route(route)));
    }

    pub(super) fn take(&mut self) -> Taken {
        Taken(std::mem::take(&mut self.0))
    }

    /// Takes back what the store did not take. Minutes that it would not keep any more are joined to their hours: where the store is away
    /// for weeks they would fill the memory.
    pub(super) fn put_back(&mut self, taken: Taken) {
        for (minute, counts) in taken.0 {
            self.0.entry(minute).or_default().add(&counts);
        }
        let Some((newest, _)) = self.0.last_key_value() else { return };
        let oldest = newest.saturating_sub(RollupStep::Minute.kept_millis());
        let kept = self.0.split_off(&oldest);
        for (minute, counts) in std::mem::replace(&mut self.0, kept) {
            self.0.entry(RollupStep::Hour.begin(minute)).or_default().add(&counts);
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

/// Adds figures to those of a name, of no name, or of all that are not known.
fn add(tallies: &mut NamedTallies, name: &str, more: Tally, is_known: bool) {
    if is_known || name.is_empty() {
        tallies.add(name, more);
    } else {
        tallies.other.add(more);
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize as _;
    use serde_json::json;

    use super::*;

    const NOW: u64 = 1_800_000_000_000;

    fn count(tallies: &mut Tallies, event: &Value, now: u64) {
        tallies.count(event, &SecurityEvent::deserialize(event).unwrap(), &|_| true, now);
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
        tallies.count_requests("shop", 7, &|_| true, NOW);
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
    fn names_that_are_not_known_take_no_room_from_those_that_are() {
        let mut tallies = Tallies::default();
        let is_known = |name: RollupName<'_>| {
            matches!(
                name,
                RollupName::Plugin("waf")
                    | RollupName::Route("shop")
                    | RollupName::Action("deny")
                    | RollupName::Category("threat")
            )
        };
        for number in 0..100 {
            let made_up = format!("made-up-{number}");
            let event = json!({
                "@type": "SvcSecurityEvent", "@timestamp": NOW, "http": {}, "route": { "id": made_up },
                "event": { "outcome": "blocked", "module": made_up, "action": made_up, "category": made_up },
            });
            tallies.count(&event, &SecurityEvent::deserialize(&event).unwrap(), &is_known, NOW);
            tallies.count_requests(&made_up, 1, &is_known, NOW);
        }
        let mut known = event(NOW, "blocked", false);
        known["event"]["category"] = json!("threat");
        tallies.count(&known, &SecurityEvent::deserialize(&known).unwrap(), &is_known, NOW);
        tallies.count_requests("", 5, &is_known, NOW);
        let counts = &tallies.take().rollups()[0].counts;
        for (named, name) in [
            (&counts.plugins, "waf"),
            (&counts.routes, "shop"),
            (&counts.actions, "deny"),
            (&counts.categories, "threat"),
        ] {
            assert_eq!((named.names[name].refused, named.other.refused), (1, 100), "{name}");
        }
        assert_eq!((counts.routes.other.requests, counts.routes.names[""].requests), (100, 5));
        assert_eq!((counts.routes.names.len(), counts.total.requests), (2, 105));
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
    fn a_store_that_is_away_for_weeks_fills_no_memory_and_misses_nothing_that_it_keeps() {
        const DAYS: usize = 20;
        let mut tallies = Tallies::default();
        for minute in 0..DAYS as u64 * 1440 {
            tallies.count_requests("shop", 1 + minute % 7, &|_| true, NOW + minute * 60_000);
        }
        let taken = tallies.take();
        let before = taken.rollups();
        tallies.put_back(taken);
        assert!(tallies.0.len() <= 3 * 1440 + 1 + DAYS * 24, "{}", tallies.0.len());
        let after = tallies.take().rollups();
        for step in [RollupStep::Hour, RollupStep::Day] {
            let of =
                |rollups: &[Rollup]| rollups.iter().filter(|rollup| rollup.step == step).cloned().collect::<Vec<_>>();
            assert_eq!(of(&after), of(&before));
        }
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
