//! The feeds that are kept up to date, and when each is due.

use std::collections::BTreeMap;

use kit::Item;
use lists::{Before, Failure, Fetched, ListFetch, Snapshot, Validators, longest, wait};
use store::feeds::FeedList;
use tokio::sync::oneshot;
use tokio::task::AbortHandle;

use super::super::runtime::Refused;
use super::super::state::FeedState;
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
    pub(super) plan: Option<ListFetch>,
    /// Those whose order was carried out.
    pub(super) told: Waiting,
    interval_millis: u64,
    /// When it is fetched next, in milliseconds since 1970.
    due: u64,
    /// The longest time until then, in milliseconds: the clock may be set back.
    wait: u64,
    /// The fetch that is under way.
    running: Option<Running>,
    /// Those who wait for the fetch that is under way.
    waiting: Waiting,
    /// Those who wait for another fetch, which takes whatever it gets.
    forced: Waiting,
}

/// A fetch that is under way.
struct Running {
    /// Its number. A feed that was deleted and created again has other ones.
    number: u64,
    /// It takes whatever it gets.
    force: bool,
    task: Option<AbortHandle>,
}

/// A fetch that begins.
pub(super) struct Start {
    pub(super) plan: ListFetch,
    pub(super) validators: Validators,
    pub(super) before: Before,
}

/// What the end of a fetch means.
pub(super) enum Ended {
    /// Nothing: the feed is not used any more, or is another one or fetched in another way by now.
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

    /// What another control plane knows of a feed now. What is being fetched here on an operator's order comes after it.
    pub(super) fn follow(&mut self, id: &str, state: FeedState, now: u64) {
        let Some(feed) = self.0.get_mut(id) else { return };
        let (idle, left_out) = (feed.state.idle.take(), feed.state.left_out.take());
        feed.state = FeedState { idle, left_out, ..state };
        if let Some(plan) = &feed.plan {
            feed.state.moves_to(&plan.source);
        }
        if feed.running.is_none() && !feed.is_ordered() {
            let (due, longest) = feed.next(now);
            feed.is_due(due, longest, now);
        }
    }

    /// The feeds that are there and not among these.
    pub(super) fn ids_other_than(&self, entities: &[&Item<ThreatFeed>]) -> Vec<String> {
        // They are in the order of their ids, and may be thousands.
        let is_there = |id: &str| entities.binary_search_by(|entity| entity.head.id.as_str().cmp(id)).is_ok();
        self.ids().filter(|id| !is_there(id)).map(str::to_owned).collect()
    }

    /// Takes up the feed of an entity.
    pub(super) fn take_up(&mut self, entity: &Item<ThreatFeed>, used: bool) {
        self.0.entry(entity.head.id.clone()).or_default().used = used;
    }

    /// Whether a list may be kept beside those of all feeds, if all of them may take so many bytes.
    pub(super) fn have_room_for(&self, id: &str, list: &Snapshot, most: usize) -> bool {
        let bytes = |list: &Option<Snapshot>| list.as_ref().map_or(0, |list| list.list.bytes.len());
        // The list in force becomes the previous one.
        let kept = self.0.iter().map(|(own, feed)| {
            let previous = if own == id { 0 } else { bytes(&feed.state.previous) };
            bytes(&feed.state.current) + previous
        });
        kept.sum::<usize>() + list.list.bytes.len() <= most
    }

    /// Says how a feed is fetched from now on. It is due at once where that is another way than before.
    pub(super) fn plan(&mut self, id: &str, plan: ListFetch, interval_seconds: u64, now: u64) {
        let Some(feed) = self.0.get_mut(id) else { return };
        let interval = interval_seconds.saturating_mul(1000);
        let moved = feed.state.source != plan.source;
        if moved {
            // Those who wait, wait for the next fetch.
            feed.stop();
        }
        if moved || feed.plan.is_none() || feed.interval_millis != interval {
            feed.interval_millis = interval;
            let (due, longest) = if moved { (now, 0) } else { feed.next(now) };
            feed.is_due(due, longest, now);
        }
        feed.state.moves_to(&plan.source);
        feed.state.idle = None;
        feed.plan = Some(plan);
    }

    /// Notes that a feed is not fetched, and why where its owner has not switched it off. Those who wait for it are told.
    pub(super) fn rest(&mut self, id: &str, why: Option<String>) {
        let Some(feed) = self.0.get_mut(id) else { return };
        feed.stop();
        feed.plan = None;
        (feed.state.error, feed.state.failures) = (None, 0);
        for done in feed.waiting.drain(..).chain(feed.forced.drain(..)) {
            let why = why.as_deref().unwrap_or("it is not used");
            let _ = done.send(Err(Refused::Because(format!("the feed `{id}` was not fetched: {why}"))));
        }
        feed.state.idle = why;
    }

    /// The feed is neither used nor gone.
    pub(super) fn set_aside(&mut self, id: &str) {
        if let Some(feed) = self.0.get_mut(id) {
            feed.used = false;
        }
        self.rest(id, Some("this release cannot read it".to_owned()));
    }

    pub(super) fn remove(&mut self, id: &str) {
        if let Some(mut feed) = self.0.remove(id) {
            feed.stop();
        }
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

    /// A feed that is due and not being fetched; the one that has been due for longest. With `scheduled`, all count; otherwise those that an
    /// operator wants fetched here.
    pub(super) fn due(&mut self, now: u64, scheduled: bool) -> Option<(&str, &mut TrackedFeed)> {
        // Where the clock was set back, nothing is waited for twice.
        self.0.values_mut().for_each(|feed| feed.due = feed.due.min(now.saturating_add(feed.wait)));
        let due = self.0.iter_mut().filter(|(_, feed)| feed.is_waiting(scheduled) && feed.due <= now);
        due.min_by_key(|(_, feed)| feed.due).map(|(id, feed)| (id.as_str(), feed))
    }

    /// When the next feed is due, of those that [`TrackedFeeds::due`] counts.
    pub(super) fn next_due(&self, scheduled: bool) -> Option<u64> {
        self.0.values().filter(|feed| feed.is_waiting(scheduled)).map(|feed| feed.due).min()
    }
}

// === impl TrackedFeed ===

impl TrackedFeed {
    fn is_waiting(&self, scheduled: bool) -> bool {
        self.used && self.running.is_none() && self.plan.is_some() && (scheduled || self.is_ordered())
    }

    /// An operator waits for its next fetch.
    fn is_ordered(&self) -> bool {
        !self.waiting.is_empty() || !self.forced.is_empty()
    }

    /// When it is due by what is known of it, and within how many milliseconds from now.
    fn next(&self, now: u64) -> (u64, u64) {
        match &self.state.current {
            _ if self.state.failures > 0 => (self.state.retry_at, longest(self.interval_millis)),
            Some(list) => (list.fetched_at.saturating_add(self.interval_millis), self.interval_millis),
            None => (now, 0),
        }
    }

    /// Has it fetched now. A fetch that is under way will do, unless it is to take what that one would not.
    pub(super) fn want(&mut self, force: bool, done: oneshot::Sender<Result<(), Refused>>) {
        match &self.running {
            Some(running) if running.force || !force => self.waiting.push(done),
            _ if force => self.forced.push(done),
            _ => self.waiting.push(done),
        }
        self.due = 0;
    }

    /// It is due then, and within `longest` milliseconds from now.
    fn is_due(&mut self, due: u64, longest: u64, now: u64) {
        self.due = due.min(now.saturating_add(longest));
        self.wait = self.due.saturating_sub(now);
    }

    /// Breaks off the fetch that is under way.
    fn stop(&mut self) {
        if let Some(task) = self.running.take().and_then(|running| running.task) {
            task.abort();
        }
    }

    /// Begins a fetch with this number.
    pub(super) fn start(&mut self, number: u64) -> Option<Start> {
        let plan = self.plan.clone()?;
        let force = !self.forced.is_empty();
        self.waiting.append(&mut self.forced);
        self.running = Some(Running { number, force, task: None });
        // What is taken by force has to be sent, whether it was looked at before or not.
        let validators = if force { Validators::default() } else { self.state.validators.clone() };
        let comparable = |list: &&Snapshot| !force && list.source == self.state.source;
        let before = self.state.current.as_ref().filter(comparable).map(|list| list.list.bytes.clone());
        Some(Start { plan, validators, before })
    }

    /// The task that the fetch runs in.
    pub(super) fn runs_in(&mut self, task: AbortHandle) {
        if let Some(running) = &mut self.running {
            running.task = Some(task);
        }
    }

    /// Ends the fetch with this number.
    pub(super) fn ended(&mut self, number: u64, outcome: Result<Fetched, Failure>, now: u64, random: u32) -> Ended {
        let Some(running) = self.running.take_if(|running| running.number == number) else { return Ended::Ignored };
        self.told.append(&mut self.waiting);
        let outcome = match outcome {
            Ok(Fetched::Unchanged) if self.state.current.is_none() => {
                // The next fetch asks for the list.
                self.state.validators = Validators::default();
                Err(Failure::new("the server says that the list is unchanged, and there is none".to_owned()))
            }
            other => other,
        };
        let mut wish = 0;
        let ended = match outcome {
            Ok(fetched) => {
                self.state.take(fetched, now, running.force);
                Ended::Works
            }
            Err(Failure { why, wait_millis }) => {
                self.state.failed(&why);
                wish = wait_millis.unwrap_or(0);
                Ended::Fails(why)
            }
        };
        let wait = wait(self.interval_millis, self.state.failures, random).max(wish);
        self.state.retry_at = now.saturating_add(wait);
        let wait = if self.forced.is_empty() { wait } else { 0 };
        self.is_due(self.state.retry_at, wait, now);
        ended
    }

    /// Restores the previous list; false where there is none.
    pub(super) fn roll_back(&mut self) -> bool {
        self.state.roll_back()
    }
}
