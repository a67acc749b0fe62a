//! Keeps all feeds up to date: fetches them when they are due, keeps their lists in the store, and publishes the table of all of them.
//!
//! Of several control planes with one store, the one that leads fetches; the others take over what it has kept.

#[cfg(test)]
mod tests;
mod tracked;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use kit::{Entity as _, Item, Sources, View};
use lists::{Failure, Fetched};
use store::{Elsewhere, Others};
use tokio::sync::{mpsc, oneshot};
use tokio::task::{Id, JoinSet};

use super::fetch::plan;
use super::keep;
use super::metrics::FeedMetrics;
use super::runtime::{Order, Refused, Reputation, Want};
use super::{MAX_FEEDS, ThreatFeed, table};
use crate::TABLE;
use table::Flattened;
use tables::SourceLabels;
use tracked::{Ended, TrackedFeeds};

/// Feeds that are fetched at the same time, at most: each may take the memory of a large list.
const AT_ONCE: usize = 4;
/// The longest sleep: clocks are set, and waits are computed with the one on the wall.
const LONGEST_SLEEP: Duration = Duration::from_secs(60);
/// The bytes of all lists together, the previous ones included, at most.
const MAX_BYTES: usize = 512 << 20;
/// A feed and the hash of its list.
type ListHash = (String, [u8; 32]);
/// How long the gatherer waits before it reads again what could not be read.
const LOAD_AGAIN: Duration = Duration::from_secs(5);

/// Those who wait for something.
type Waiting = Vec<oneshot::Sender<Result<(), Refused>>>;

/// Keeps all feeds up to date until the entities end.
pub(super) async fn gather(sources: Sources) {
    let Some(runtime) = sources.runtime::<Reputation>() else { return };
    let Some(orders) = runtime.inbox() else { return };
    // From before the lists are read: nothing that is kept meanwhile is missed.
    let others = sources.store.elsewhere();
    let mut gatherer = Gatherer::new(sources, runtime);
    gatherer.load().await;
    gatherer.run(orders, others).await;
}

struct Gatherer {
    sources: Sources,
    runtime: Arc<Reputation>,
    feeds: TrackedFeeds,
    fetches: JoinSet<Result<Fetched, Failure>>,
    /// The feed of each fetch, and the fetch's number.
    fetching: HashMap<Id, (String, u64)>,
    /// How many fetches there were.
    begun: u64,
    /// The lists that the last table was made of, feeds and hashes, and the outcome of publishing it.
    published: Option<(Vec<ListHash>, Result<(), String>)>,
    /// The labels of that table, which sets of feeds keep.
    labels: SourceLabels,
    /// Those who are told once what they wait for is published.
    done: Waiting,
    metrics: FeedMetrics,
}

impl Gatherer {
    fn new(sources: Sources, runtime: Arc<Reputation>) -> Gatherer {
        let (feeds, fetches, fetching) = (TrackedFeeds::default(), JoinSet::new(), HashMap::new());
        let metrics = FeedMetrics::default();
        let (labels, done) = (SourceLabels::default(), Vec::new());
        Gatherer { sources, runtime, feeds, fetches, fetching, begun: 0, published: None, labels, done, metrics }
    }

    /// Reads what was kept of feeds, before any of them is fetched.
    async fn load(&mut self) {
        let kept = loop {
            match self.sources.store.feeds().await {
                Ok(kept) => break kept,
                // To go on without them would overwrite them.
                Err(error) => self.sources.trouble(&format!("the lists of threat feeds could not be read: {error}")),
            }
            tokio::time::sleep(LOAD_AGAIN).await;
        };
        for kept in kept {
            let id = kept.id.clone();
            // Decoding a large list takes a while.
            let restoring = tokio::task::spawn_blocking(move || keep::restored(kept));
            self.feeds.restore(&id, restoring.await.unwrap_or_default());
        }
    }

    async fn run(&mut self, mut orders: mpsc::Receiver<Order>, mut others: Others) {
        let mut leads = self.sources.store.leads();
        self.follow_entities().await;
        loop {
            let scheduled = *leads.borrow_and_update();
            let published = self.publish().await;
            for done in self.done.drain(..) {
                let _ = done.send(published.clone().map_err(Refused::Because));
            }
            self.start_fetches(scheduled);
            let sleep = self.feeds.next_due(scheduled).map_or(LONGEST_SLEEP, |due| {
                let wait = due.saturating_sub((self.sources.clock)());
                Duration::from_millis(wait).min(LONGEST_SLEEP)
            });
            let is_full = self.fetches.len() >= AT_ONCE;
            tokio::select! {
                // An order is for the feeds as they are by then.
                biased;
                changed = self.sources.entities.changed() => match changed {
                    Ok(()) => self.follow_entities().await,
                    Err(_) => return,
                },
                Some(order) = orders.recv() => self.obey(order).await,
                Some(changed) = others.next() => self.follow_others(&changed).await,
                Ok(()) = leads.changed() => {}
                Some(ended) = self.fetches.join_next_with_id() => {
                    let (task, outcome) = match ended {
                        Ok((task, outcome)) => (task, outcome),
                        Err(error) => (error.id(), Err(Failure::broken())),
                    };
                    self.ended(task, outcome).await;
                }
                () = tokio::time::sleep(sleep), if !is_full => {}
            }
        }
    }

    /// Takes over what another control plane has kept of feeds.
    async fn follow_others(&mut self, changed: &Elsewhere) {
        let ids: Vec<String> = match changed {
            Elsewhere::Keys(keys) => keys.feeds.iter().cloned().collect(),
            Elsewhere::Anything => self.feeds.ids().map(str::to_owned).collect(),
        };
        for id in ids.into_iter().filter(|id| self.feeds.get(id).is_some()).collect::<Vec<_>>() {
            match self.sources.store.feed(&id).await {
                Ok(Some(kept)) => {
                    let restoring = tokio::task::spawn_blocking(move || keep::restored(kept));
                    if let Ok(state) = restoring.await {
                        self.feeds.follow(&id, state, (self.sources.clock)());
                        self.show(&id);
                    }
                }
                // It is deleted, which the entities say as well, or nothing was fetched yet.
                Ok(None) => {}
                Err(error) => {
                    self.sources.trouble(&format!("the list of the threat feed `{id}` could not be read: {error}"))
                }
            }
        }
    }

    /// Takes up new feeds and changed ones, and gives up those that are gone.
    async fn follow_entities(&mut self) {
        let entities = Arc::clone(&self.sources.entities.borrow_and_update());
        let all: Vec<&Item<ThreatFeed>> = View::new(&*entities).all::<ThreatFeed>().collect();
        for id in self.feeds.ids_other_than(&all) {
            // The lists of a feed that this release cannot read are for the one that can.
            match entities.is_unreadable(ThreatFeed::COLLECTION, &id) {
                true => self.feeds.set_aside(&id),
                false => self.give_up(&id).await,
            }
        }
        let mut enabled = 0_usize;
        for entity in all {
            enabled += usize::from(entity.enabled);
            let used = entity.enabled && enabled <= MAX_FEEDS;
            self.feeds.take_up(entity, used);
            if used {
                self.replan(&entity.head.id, &entity.body);
                continue;
            }
            self.sources.health.ends(&subject(&entity.head.id));
            let why = entity.enabled.then(|| format!("{MAX_FEEDS} other feeds are enabled, and no more are used"));
            self.feeds.rest(&entity.head.id, why);
        }
        self.show_all();
    }

    fn replan(&mut self, id: &str, entity: &ThreatFeed) {
        let now = (self.sources.clock)();
        match plan(entity) {
            Ok(plan) => self.feeds.plan(id, plan, entity.refresh_interval_seconds, now),
            Err(why) => self.feeds.rest(id, Some(why)),
        }
        // It may have failed before the control plane was started.
        if let Some(why) = self.feeds.get(id).and_then(|feed| feed.state.trouble()) {
            self.sources.health.fails(&subject(id), why);
        }
    }

    async fn give_up(&mut self, id: &str) {
        self.feeds.remove(id);
        self.show(id);
        self.sources.health.ends(&subject(id));
        if let Err(error) = self.sources.store.feed_remove(id).await {
            self.sources.trouble(&format!("the list of the threat feed `{id}` could not be removed: {error}"));
        }
    }

    /// Carries out what an operator wants; a fetch is told of when it has ended.
    async fn obey(&mut self, Order { what, done }: Order) {
        let (Want::Refresh { feed: id, .. } | Want::RollBack { feed: id }) = &what else { return };
        let Some(feed) = self.feeds.get_mut(id) else {
            let _ = done.send(Err(Refused::Unknown));
            return;
        };
        let refuse = |why: &str| Err(Refused::Because(format!("the feed `{id}` {why}")));
        match what {
            Want::Refresh { .. } if !feed.used => drop(done.send(refuse("is not used"))),
            Want::Refresh { .. } if feed.plan.is_none() => {
                drop(done.send(refuse("cannot be fetched as it is configured")));
            }
            Want::Refresh { force, .. } => feed.want(force, done),
            Want::Sync { .. } | Want::RefreshDatabase { .. } => {}
            Want::RollBack { .. } => {
                if feed.roll_back() {
                    let id = id.clone();
                    if self.keep(&id).await {
                        self.done.push(done);
                    } else {
                        let why = format!("the feed `{id}` is rolled back, but could not be kept: a restart undoes it");
                        let _ = done.send(Err(Refused::Because(why)));
                    }
                } else {
                    let _ = done.send(refuse("has no previous snapshot"));
                }
            }
        }
    }

    /// Starts the fetches that are due, as many as may run.
    fn start_fetches(&mut self, scheduled: bool) {
        let now = (self.sources.clock)();
        while self.fetches.len() < AT_ONCE {
            let Some((id, feed)) = self.feeds.due(now, scheduled) else { return };
            let id = id.to_owned();
            self.begun += 1;
            let Some(start) = feed.start(self.begun) else { return };
            let fetch = start.plan.run(self.sources.outbound.clone(), start.validators, start.before, now);
            let task = self.fetches.spawn(fetch);
            self.fetching.insert(task.id(), (id, self.begun));
            feed.runs_in(task);
        }
    }

    /// A fetch has ended.
    async fn ended(&mut self, task: Id, outcome: Result<Fetched, Failure>) {
        let Some((id, number)) = self.fetching.remove(&task) else { return };
        let now = (self.sources.clock)();
        let random = getrandom::u32().unwrap_or(u32::MAX / 2);
        let outcome = match outcome {
            Ok(Fetched::List(list)) if !self.feeds.have_room_for(&id, &list, MAX_BYTES) => {
                Err(Failure::new(format!("the lists of all feeds together would take more than {MAX_BYTES} bytes")))
            }
            other => other,
        };
        // A feed that was removed while it was fetched.
        let Some(feed) = self.feeds.get_mut(&id) else { return };
        let taken = feed.ended(number, outcome, now, random);
        let left_out = feed.state.left_out.is_some();
        self.done.append(&mut feed.told);
        match taken {
            Ended::Ignored => return,
            Ended::Works if left_out => {}
            Ended::Works => self.sources.health.works(&subject(&id)),
            Ended::Fails(why) => {
                self.metrics.failed(&id);
                self.sources.health.fails(&subject(&id), &why);
            }
        }
        // Failures as well: after a restart they are still shown, and not repeated too soon.
        self.keep(&id).await;
    }

    /// Keeps what is known of a feed in the store; whether it could be.
    async fn keep(&mut self, id: &str) -> bool {
        let Some(feed) = self.feeds.get_mut(id) else { return true };
        let put = self.sources.store.feed_put(keep::kept(id, &feed.state)).await;
        match &put {
            Ok(true) => {}
            Ok(false) => self.sources.trouble(&format!("there is no room to keep the list of the threat feed `{id}`")),
            Err(error) => {
                self.sources.trouble(&format!("the list of the threat feed `{id}` could not be kept: {error}"));
            }
        }
        self.show(id);
        matches!(put, Ok(true))
    }

    /// Publishes the table where it is not made of the lists in force; what went wrong if gateways have another one.
    async fn publish(&mut self) -> Result<(), String> {
        let lists = self.feeds.lists();
        let made_of: Vec<ListHash> = lists.iter().map(|(id, list)| (id.clone(), list.hash)).collect();
        if let Some((published, outcome)) = self.published.as_ref()
            && *published == made_of
        {
            return outcome.clone();
        }
        // Gateways keep the table of the control plane before until there is a list: right after a start there may be none.
        if made_of.is_empty() && self.published.is_none() && self.feeds.any_used() {
            return Ok(());
        }
        let lists: Vec<(String, Arc<[u8]>)> = lists.into_iter().map(|(id, list)| (id, list.bytes)).collect();
        let before = self.labels.clone();
        let making = tokio::task::spawn_blocking(move || table::flatten(&lists, tables::MAX_ROWS, &before));
        let made = making.await.unwrap_or_else(|_| Err("the table of all threat feeds could not be made".to_owned()));
        let outcome = match made {
            Ok(Flattened { base, labels, left_out }) => {
                let published = self.sources.publish_ranges(TABLE, base).await.map_err(|error| error.to_string());
                if published.is_ok() {
                    self.labels = labels;
                    self.leave_out(&left_out);
                }
                published
            }
            Err(error) => Err(error),
        };
        match &outcome {
            Ok(()) => self.sources.health.works("the table of threat feeds"),
            // The table before stays in force.
            Err(error) => {
                self.sources.trouble(error);
                self.sources.health.fails("the table of threat feeds", error);
            }
        }
        self.published = Some((made_of, outcome.clone()));
        outcome
    }

    /// Notes which lists are not in the table, each with the reason.
    fn leave_out(&mut self, left_out: &BTreeMap<String, String>) {
        let ids: Vec<String> = self.feeds.ids().map(str::to_owned).collect();
        for id in ids {
            let Some(feed) = self.feeds.get_mut(&id) else { continue };
            let why = left_out.get(&id).cloned();
            let was_left_out = std::mem::replace(&mut feed.state.left_out, why.clone()).is_some();
            let works = feed.used && feed.state.trouble().is_none();
            match why {
                Some(why) => self.sources.health.fails(&subject(&id), &why),
                None if was_left_out && works => self.sources.health.works(&subject(&id)),
                None => {}
            }
            self.show(&id);
        }
    }

    fn show(&mut self, id: &str) {
        let feed = self.feeds.get(id);
        self.metrics.show(id, feed.filter(|feed| feed.used).map(|feed| &feed.state));
        self.runtime.show(id, feed.map(|feed| Arc::new(feed.state.clone())));
    }

    fn show_all(&mut self) {
        let ids: Vec<String> = self.feeds.ids().map(str::to_owned).collect();
        ids.iter().for_each(|id| self.show(id));
    }
}

/// A feed as operators are told of it.
fn subject(id: &str) -> String {
    format!("threat feed `{id}`")
}
