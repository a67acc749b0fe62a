//! What happened, counted by steps of time, for much longer than events are kept.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Pending;

/// The names that are counted by themselves in one step, at most; what is beyond counts as other.
pub const MAX_ROLLUP_NAMES: usize = 64;
/// The longest name, in bytes; a longer one is cut off.
const MAX_NAME_BYTES: usize = 128;

/// The part of a [`Store`](super::Store) that keeps rollups.
pub trait RollupStore: Send + Sync + 'static {
    /// Adds figures to those that there are, and removes what is too old at `now_millis`. Several control planes add to the same
    /// steps.
    fn rollups_add(&self, rollups: Vec<Rollup>, now_millis: u64) -> Pending<'_, ()>;

    /// The steps of this length that begin from `from_millis` on and before `until_millis`, oldest first. Steps in which nothing
    /// happened are left out.
    fn rollups(&self, step: RollupStep, from_millis: u64, until_millis: u64) -> Pending<'_, Vec<Rollup>>;
}

/// How long a step is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RollupStep {
    /// A minute, kept for 3 days.
    Minute,
    /// An hour, kept for 60 days.
    Hour,
    /// A day of UTC, kept for 2 years.
    Day,
}

/// What happened in one step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rollup {
    /// How long it is.
    pub step: RollupStep,
    /// When it begins, in milliseconds since 1970.
    pub at_millis: u64,
    /// What was counted.
    pub counts: RollupCounts,
}

/// What was counted in a step.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RollupCounts {
    /// Everything.
    #[serde(rename = "all", default)]
    pub total: Tally,
    /// By plugin.
    #[serde(default)]
    pub plugins: NamedTallies,
    /// By id of the route; the empty one is outside of all routes.
    #[serde(default)]
    pub routes: NamedTallies,
    /// By action.
    #[serde(default)]
    pub actions: NamedTallies,
    /// By category.
    #[serde(default)]
    pub categories: NamedTallies,
}

/// Figures by name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NamedTallies {
    /// Those that are counted by themselves.
    #[serde(default)]
    pub names: BTreeMap<String, Tally>,
    /// All others together.
    #[serde(default)]
    pub other: Tally,
}

/// Numbers of requests, and of events about them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "(u64, u64, u64, u64)", into = "(u64, u64, u64, u64)")]
pub struct Tally {
    /// All requests, as gateways count them; only in the total and by route.
    pub requests: u64,
    /// Refused requests.
    pub refused: u64,
    /// Those that were observed and went on.
    pub observed: u64,
    /// Those of [`Tally::observed`] that a dry run kept from being enforced.
    pub dry_run: u64,
}

// === impl RollupStep ===

impl RollupStep {
    /// All of them.
    pub const ALL: [RollupStep; 3] = [Self::Minute, Self::Hour, Self::Day];

    /// Its length, in milliseconds.
    #[must_use]
    pub fn millis(self) -> u64 {
        match self {
            Self::Minute => 60_000,
            Self::Hour => 3_600_000,
            Self::Day => 86_400_000,
        }
    }

    /// How long it is kept after it began, in milliseconds.
    #[must_use]
    pub fn kept_millis(self) -> u64 {
        const DAY: u64 = 86_400_000;
        match self {
            Self::Minute => 3 * DAY,
            Self::Hour => 60 * DAY,
            Self::Day => 731 * DAY,
        }
    }

    /// When the step begins that a time is in, in milliseconds since 1970.
    #[must_use]
    pub fn begin(self, at_millis: u64) -> u64 {
        at_millis - at_millis % self.millis()
    }
}

// === impl RollupCounts ===

impl RollupCounts {
    /// Adds others to these.
    pub fn add(&mut self, more: &RollupCounts) {
        self.total.add(more.total);
        self.plugins.add_all(&more.plugins);
        self.routes.add_all(&more.routes);
        self.actions.add_all(&more.actions);
        self.categories.add_all(&more.categories);
    }
}

// === impl NamedTallies ===

impl NamedTallies {
    /// Adds figures to those of a name.
    pub fn add(&mut self, name: &str, more: Tally) {
        let name = name.get(..name.floor_char_boundary(MAX_NAME_BYTES)).unwrap_or_default();
        let has_room = self.names.len() < MAX_ROLLUP_NAMES;
        match self.names.get_mut(name) {
            Some(tally) => tally.add(more),
            None if has_room => {
                self.names.insert(name.to_owned(), more);
            }
            None => self.other.add(more),
        }
    }

    fn add_all(&mut self, more: &NamedTallies) {
        self.other.add(more.other);
        for (name, tally) in &more.names {
            self.add(name, *tally);
        }
    }
}

// === impl Tally ===

impl Tally {
    /// Adds others to these.
    pub fn add(&mut self, more: Tally) {
        self.requests = self.requests.saturating_add(more.requests);
        self.refused = self.refused.saturating_add(more.refused);
        self.observed = self.observed.saturating_add(more.observed);
        self.dry_run = self.dry_run.saturating_add(more.dry_run);
    }

    /// The events.
    #[must_use]
    pub fn events(self) -> u64 {
        self.refused.saturating_add(self.observed)
    }
}

impl From<(u64, u64, u64, u64)> for Tally {
    fn from((requests, refused, observed, dry_run): (u64, u64, u64, u64)) -> Tally {
        Tally { requests, refused, observed, dry_run }
    }
}

impl From<Tally> for (u64, u64, u64, u64) {
    fn from(tally: Tally) -> (u64, u64, u64, u64) {
        (tally.requests, tally.refused, tally.observed, tally.dry_run)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_bounded_and_nothing_is_lost() {
        let one = Tally { requests: 5, refused: 1, observed: 2, dry_run: 1 };
        let mut tallies = NamedTallies::default();
        for number in 0..1000 {
            tallies.add(&format!("{number}"), one);
        }
        tallies.add("7", one);
        assert_eq!((tallies.names.len(), tallies.other.refused), (MAX_ROLLUP_NAMES, 1000 - 64));
        assert_eq!(tallies.names["7"], Tally { requests: 10, refused: 2, observed: 4, dry_run: 2 });
        let mut sum = NamedTallies::default();
        sum.add_all(&tallies);
        sum.add_all(&tallies);
        let all: u64 = sum.names.values().map(|tally| tally.refused).sum::<u64>() + sum.other.refused;
        assert_eq!(all, 2002);
        let mut long = NamedTallies::default();
        long.add(&"é".repeat(1000), one);
        assert_eq!(long.names.keys().next().map(String::len), Some(128));
    }

    #[test]
    fn steps_begin_at_whole_ones_of_utc() {
        let at = 1_800_000_123_456;
        assert_eq!(RollupStep::ALL.map(|step| at - step.begin(at)), [3_456, 123_456, 28_923_456]);
    }
}
