//! The feeds that are kept up to date, and when each is due.

use std::collections::BTreeMap;

use kit::Item;
use store::feeds::FeedList;
use tokio::sync::oneshot;

use super::super::fetch::{Before, Failure, Plan};
use super::super::runtime::Refused;
use super::super::schedule;
use super::super::state::{FeedState, Fetched, Snapshot, Validators};
use super::{ThreatFeed, Waiting};

/// All feeds, by id.
#[derive(Default)]
pub(super) struct TrackedFeeds(BTreeMap<String, TrackedFeed>);

/// A feed.
#[derive(Default)]
pub(super) struct TrackedFeed {
    /// What is known of it.
    pub(super) state: FeedState,
    /// Its addresses are in the table.
    pub(super) used: bool,
    /// How it is fetched; `None` where that cannot be.
    pub(super) plan: Option<Plan>,
    /// Those whose order was carried out.
    pub(super) told: Waiting,
    interval_millis: u64,
    /// When it is fetched next, in milliseconds since 1970.
    due: u64,
    /// A fetch is under way, and takes whatever it gets.
    running: Option<bool>,
    /// Those who wait for the fetch that is under way.
    waiting: Waiting,
    /// Those who wait for another fetch, which takes whatever it gets.
    forced: Waiting,
}

/// A fetch that begins.
pub(super) struct Start {
    pub(super) plan: Plan,
    pub(super) validators: Validators,
    pub(super) before: Before,
}

/// What the end of a fetch means.
pub(super) enum Ended {
    /// Nothing: the feed is not used any more, or is another one by now.
    Ignored,
    /// The feed works.
    Works,
    /// It fails, for people.
    Fails(String),
}

// === impl TrackedFeeds ===

impl TrackedFeeds {
    /// What was known of a feed before the control plane started.
    pub(super) fn restore(&mut self, id: &str, state: FeedState) {
        self.0.insert(id.to_owned(), TrackedFeed { state, ..TrackedFeed::default() });
    }

    /// The feeds that are there and not among these.
    pub(super) fn ids_other_than(&self, entities: &[&Item<ThreatFeed>]) -> Vec<String> {
        let is_there = |id: &str| entities.iter().any(|entity| entity.head.id == id);
        self.ids().filter(|id| !is_there(id)).map(str::to_owned).collect()
    }

    /// Takes up the feed of an entity.
    pub(super) fn take_up(&mut self, entity: &Item<ThreatFeed>, used: bool) {
        let feed = self.0.entry(entity.head.id.clone()).or_default();
        feed.used = used;
        if !used {
            feed.plan = None;
            feed.told.append(&mut feed.waiting);
            feed.told.append(&mut feed.forced);
        }
    }

    /// Says how a feed is fetched from now on. It is due at once where that is another way than before.
    pub(super) fn plan(&mut self, id: &str, plan: Plan, interval_seconds: u64, now: u64) {
        let Some(feed) = self.0.get_mut(id) else { return };
        let interval = interval_seconds.saturating_mul(1000);
        let moved = feed.state.source != plan.source;
        if moved || feed.plan.is_none() || feed.interval_millis != interval {
            let fetched = feed.state.current.as_ref().filter(|_| !moved).map(|list| list.fetched_at);
            feed.due = fetched.map_or(now, |fetched| fetched.saturating_add(interval));
            // Also where the clock was set back.
            feed.due = feed.due.min(now.saturating_add(interval));
            if feed.plan.is_none() {
                feed.state.error = None;
            }
        }
        feed.interval_millis = interval;
        feed.state.moves_to(&plan.source);
        feed.plan = Some(plan);
    }

    /// Notes why a feed is not fetched; `None` for one that its owner has switched off.
    pub(super) fn set_error(&mut self, id: &str, why: Option<String>) {
        if let Some(feed) = self.0.get_mut(id) {
            feed.plan = None;
            feed.state.error = why;
        }
    }

    pub(super) fn remove(&mut self, id: &str) {
        self.0.remove(id);
    }

    pub(super) fn get(&self, id: &str) -> Option<&TrackedFeed> {
        self.0.get(id)
    }

    pub(super) fn get_mut(&mut self, id: &str) -> Option<&mut TrackedFeed> {
        self.0.get_mut(id)
    }

    pub(super) fn ids(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    pub(super) fn any_used(&self) -> bool {
        self.0.values().any(|feed| feed.used)
    }

    /// The lists in force of the feeds that are used.
    pub(super) fn lists(&self) -> Vec<(String, FeedList)> {
        let used = self.0.iter().filter(|(_, feed)| feed.used);
        used.filter_map(|(id, feed)| Some((id.clone(), feed.state.current.as_ref()?.list.clone()))).collect()
    }

    /// A feed that is due and not being fetched; the one that has been due for longest.
    pub(super) fn due(&mut self, now: u64) -> Option<(&str, &mut TrackedFeed)> {
        let due = self.0.iter_mut().filter(|(_, feed)| feed.is_waiting() && feed.due <= now);
        due.min_by_key(|(_, feed)| feed.due).map(|(id, feed)| (id.as_str(), feed))
    }

    /// When the next feed is due.
    pub(super) fn next_due(&self) -> Option<u64> {
        self.0.values().filter(|feed| feed.is_waiting()).map(|feed| feed.due).min()
    }
}

// === impl TrackedFeed ===

impl TrackedFeed {
    fn is_waiting(&self) -> bool {
        self.used && self.running.is_none() && self.plan.is_some()
    }

    /// Has it fetched now. A fetch that is under way will do, unless it is to take what that one would not.
    pub(super) fn want(&mut self, force: bool, done: oneshot::Sender<Result<(), Refused>>) {
        match self.running {
            Some(forced) if forced || !force => self.waiting.push(done),
            _ if force => self.forced.push(done),
            _ => self.waiting.push(done),
        }
        self.due = 0;
    }

    /// Begins a fetch.
    pub(super) fn start(&mut self) -> Option<Start> {
        let plan = self.plan.clone()?;
        let force = !self.forced.is_empty();
        self.waiting.append(&mut self.forced);
        self.running = Some(force);
        // What is taken by force has to be sent, whether it was looked at before or not.
        let validators = if force { Validators::default() } else { self.state.validators.clone() };
        let comparable = |list: &&Snapshot| !force && list.source == self.state.source;
        let before = self.state.current.as_ref().filter(comparable).map(|list| list.list.bytes.clone());
        Some(Start { plan, validators, before })
    }

    /// Ends a fetch that was made from `source`.
    pub(super) fn ended(&mut self, source: &str, outcome: Result<Fetched, Failure>, now: u64, random: u32) -> Ended {
        let force = self.running.take().unwrap_or(false);
        if !self.used || self.state.source != source {
            // It is fetched again as it is configured now; those who wait, wait for that.
            return Ended::Ignored;
        }
        self.told.append(&mut self.waiting);
        let mut wish = 0;
        let ended = match outcome {
            Ok(fetched) => {
                self.state.take(fetched, now, force);
                Ended::Works
            }
            Err(Failure { why, wait_millis }) => {
                self.state.failed(&why);
                wish = wait_millis.unwrap_or(0);
                Ended::Fails(why)
            }
        };
        let wait = schedule::wait(self.interval_millis, self.state.failures, random).max(wish);
        self.due = if self.forced.is_empty() { now.saturating_add(wait) } else { 0 };
        ended
    }

    /// Restores the previous list; false where there is none.
    pub(super) fn roll_back(&mut self) -> bool {
        self.state.roll_back()
    }
}
