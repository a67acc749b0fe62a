//! Bouncers: keeps the decisions of CrowdSec's local API in force on gateways.
//!
//! Each service is asked for all of its decisions once, and then for what has changed. Decisions end by the clock of the control plane.
//! The decisions of all services are one table of address ranges, of which gateways are sent what has changed.
//!
//! Of several control planes with one store, the one that leads asks the services; the others take over what it has kept. A service tells a
//! key each change once, so that one that has asked after another one asks for everything.

mod decisions;
mod duration;
mod keep;
mod pull;
mod stream;
mod table;
#[cfg(test)]
pub(super) mod tests;
mod tracked;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use kit::{Entity as _, Item, Sources, View};
use snapshot::TableKind;
use store::{Elsewhere, Others};
use tables::SourceLabels;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::{Id, JoinSet};
use tokio::time::Instant;

use super::runtime::{Order, Refused, Reputation, ShownBouncer, Want};
use super::{MAX_BOUNCERS, SvcBouncer, metrics};
use crate::{DECISIONS, NAMED_DECISIONS};
pub(super) use decisions::Counts;
use pull::{Failure, Plan};
use stream::Answer;
use table::Flattened;
pub(super) use table::{NamedRows, Row};
use tracked::{Ended, Tracked};

/// Services that are asked at the same time, at most: all of them, so that none waits for a slow one.
const AT_ONCE: usize = MAX_BOUNCERS;
/// The longest sleep: clocks are set.
const LONGEST_SLEEP: Duration = Duration::from_secs(60);
/// How long the gatherer waits before it reads again what could not be read.
const LOAD_AGAIN: Duration = Duration::from_secs(5);
/// Ends of decisions are published at most this often, and take at most a tenth of the time.
const ENDS_APART: Duration = Duration::from_secs(1);
/// So many decisions are kept in the store with each change; more of them at most once in `KEEP_APART`.
const KEPT_AT_ONCE: usize = 10_000;
const KEEP_APART: u64 = 60_000;
/// The same where other control planes take them over from there.
const SHARE_APART: u64 = 10_000;
/// The most bytes that are kept of one bouncer.
const MAX_KEPT: usize = 64 << 20;

type Waiting = Vec<oneshot::Sender<Result<(), Refused>>>;

/// Keeps the decisions of all bouncers up to date until the entities end.
pub(super) async fn gather(sources: Sources) {
    let Some(runtime) = sources.runtime::<Reputation>() else { return };
    let Some(orders) = runtime.sync_inbox() else { return };
    let (others, leads) = (sources.store.elsewhere(), sources.store.leads());
    let mut gatherer = Gatherer {
        leads,
        sources,
        runtime,
        bouncers: BTreeMap::new(),
        calls: JoinSet::new(),
        calling: HashMap::new(),
        begun: 0,
        labels: SourceLabels::default(),
        published: false,
        stale: false,
        ends_after: Instant::now(),
        unknown: BTreeSet::new(),
        done: Vec::new(),
    };
    gatherer.load().await;
    gatherer.run(orders, others).await;
}

struct Gatherer {
    /// Whether this control plane asks the services.
    leads: watch::Receiver<bool>,
    sources: Sources,
    runtime: Arc<Reputation>,
    bouncers: BTreeMap<String, Tracked>,
    calls: JoinSet<Result<Answer, Failure>>,
    /// The bouncer of each call, and the call's number.
    calling: HashMap<Id, (String, u64)>,
    begun: u64,
    /// The labels of the table of addresses that was published last, which the next one keeps.
    labels: SourceLabels,
    published: bool,
    /// A bouncer that is gone is still in the table.
    stale: bool,
    /// When ends of decisions are published next.
    ends_after: Instant,
    /// Scopes that were said to mean nothing here.
    unknown: BTreeSet<String>,
    done: Waiting,
}

impl Gatherer {
    /// Reads what was kept, before any service is asked.
    async fn load(&mut self) {
        let names = loop {
            match self.sources.store.document_names(keep::PREFIX).await {
                Ok(names) => break names,
                Err(error) => self.sources.trouble(&format!("the decisions of bouncers could not be read: {error}")),
            }
            tokio::time::sleep(LOAD_AGAIN).await;
        };
        for name in names {
            let Some(id) = name.strip_prefix(keep::PREFIX).map(str::to_owned) else { continue };
            // Without what was kept the service is asked for everything, as always after a start.
            let Ok(Some(bytes)) = self.sources.store.document(&name).await else { continue };
            let decoding = tokio::task::spawn_blocking(move || keep::decode(&bytes));
            let kept = decoding.await.ok().flatten();
            self.bouncers.insert(id, kept.map(Tracked::restored).unwrap_or_default());
        }
    }

    async fn run(&mut self, mut orders: mpsc::Receiver<Order>, mut others: Others) {
        let mut leads = self.leads.clone();
        self.follow_entities().await;
        loop {
            let now = (self.sources.clock)();
            self.publish(now).await;
            self.keep(now).await;
            for done in self.done.drain(..) {
                let _ = done.send(Ok(()));
            }
            self.start_calls(now);
            let (sleep, is_full) = (self.sleep(now), self.calls.len() >= AT_ONCE);
            tokio::select! {
                // An order is for the bouncers as they are by then.
                biased;
                changed = self.sources.entities.changed() => match changed {
                    Ok(()) => self.follow_entities().await,
                    Err(_) => return,
                },
                Some(order) = orders.recv() => self.obey(order),
                Some(changed) = others.next() => self.follow_others(&changed).await,
                Ok(()) = leads.changed() => {}
                Some(ended) = self.calls.join_next_with_id() => {
                    let (task, outcome) = match ended {
                        Ok((task, outcome)) => (task, outcome),
                        Err(error) => (error.id(), Err(Failure::new("the call broke off".to_owned()))),
                    };
                    self.ended(task, outcome);
                }
                () = tokio::time::sleep(sleep), if !is_full || sleep > Duration::ZERO => {}
            }
        }
    }

    /// Until a service is to be asked, a decision ends, or something is to be kept.
    fn sleep(&mut self, now: u64) -> Duration {
        let (is_full, apart) = (self.calls.len() >= AT_ONCE, self.keeps_apart());
        let scheduled = *self.leads.borrow();
        let calls =
            self.bouncers.values_mut().filter_map(|bouncer| bouncer.due(now, scheduled)).min().filter(|_| !is_full);
        let used = self.bouncers.values().filter(|bouncer| bouncer.used);
        let ends = used.clone().filter_map(|bouncer| bouncer.decisions.next_end()).min();
        let keeps = used.filter(|bouncer| bouncer.dirty).map(|bouncer| bouncer.kept_at.saturating_add(apart)).min();
        let until = |at: u64| Duration::from_millis(at.saturating_sub(now));
        let ends = ends.map(|at| until(at).max(self.ends_after.saturating_duration_since(Instant::now())));
        let all = [calls.map(until), keeps.map(until), ends];
        all.into_iter().flatten().min().map_or(LONGEST_SLEEP, |sleep| sleep.min(LONGEST_SLEEP))
    }

    /// Takes over what another control plane has kept.
    async fn follow_others(&mut self, changed: &Elsewhere) {
        let ids: Vec<String> = match changed {
            Elsewhere::Keys(keys) => {
                keys.documents.iter().filter_map(|name| name.strip_prefix(keep::PREFIX)).map(str::to_owned).collect()
            }
            Elsewhere::Anything => self.bouncers.keys().cloned().collect(),
        };
        for id in ids {
            let kept = match self.sources.store.document(&keep::name(&id)).await {
                Ok(Some(bytes)) => tokio::task::spawn_blocking(move || keep::decode(&bytes)).await.ok().flatten(),
                Ok(None) => None,
                Err(error) => {
                    self.sources.trouble(&format!("the decisions of the bouncer `{id}` could not be read: {error}"));
                    None
                }
            };
            if let (Some(kept), Some(bouncer)) = (kept, self.bouncers.get_mut(&id)) {
                bouncer.follow(kept, (self.sources.clock)());
                self.show(&id, None);
            }
        }
    }

    async fn follow_entities(&mut self) {
        let entities = Arc::clone(&self.sources.entities.borrow_and_update());
        let all: Vec<&Item<SvcBouncer>> = View::new(&*entities).all::<SvcBouncer>().collect();
        // They are in the order of their ids, and may be thousands.
        let is_there = |id: &str| all.binary_search_by(|entity| entity.head.id.as_str().cmp(id)).is_ok();
        let gone: Vec<String> = self.bouncers.keys().filter(|id| !is_there(id)).cloned().collect();
        for id in gone {
            match entities.is_unreadable(SvcBouncer::COLLECTION, &id) {
                true => self.rest(&id, Some("this release cannot read it".to_owned())),
                false => self.give_up(&id).await,
            }
        }
        let now = (self.sources.clock)();
        let (mut enabled, mut readers) = (0_usize, BTreeMap::new());
        for entity in all {
            let id = &entity.head.id;
            self.bouncers.entry(id.clone()).or_default();
            enabled += usize::from(entity.enabled);
            if !entity.enabled || enabled > MAX_BOUNCERS {
                let why = format!("{MAX_BOUNCERS} other bouncers are enabled, and no more are used");
                self.rest(id, entity.enabled.then_some(why));
                continue;
            }
            let plan = Plan::of(entity).and_then(|plan| match readers.insert(plan.reader.clone(), id.clone()) {
                None => Ok(plan),
                Some(other) => Err(format!("it has the key of `{other}`: the service sends each change to a key once")),
            });
            match plan {
                Ok(plan) => {
                    if let Some(bouncer) = self.bouncers.get_mut(id) {
                        bouncer.plan(plan, entity.poll_interval_seconds, now);
                    }
                }
                Err(why) => {
                    self.sources.health.fails(&subject(id), &why);
                    self.rest(id, Some(why));
                }
            }
        }
        self.show_all();
    }

    fn rest(&mut self, id: &str, why: Option<String>) {
        if why.is_none() {
            self.sources.health.ends(&subject(id));
        }
        if let Some(bouncer) = self.bouncers.get_mut(id) {
            bouncer.rest(id, why);
        }
    }

    async fn give_up(&mut self, id: &str) {
        if let Some(mut bouncer) = self.bouncers.remove(id) {
            bouncer.stop();
            self.runtime.show_bouncer(id, None);
            self.stale |= bouncer.used;
        }
        self.sources.health.ends(&subject(id));
        if let Err(error) = self.sources.store.document_remove(&keep::name(id)).await {
            self.sources.trouble(&format!("the decisions of the bouncer `{id}` could not be removed: {error}"));
        }
    }

    fn obey(&mut self, Order { what, done }: Order) {
        let Want::Sync { bouncer: id } = &what else { return };
        let refuse = |why: &str| Err(Refused::Because(format!("the bouncer `{id}` {why}")));
        match self.bouncers.get_mut(id) {
            None => drop(done.send(Err(Refused::Unknown))),
            Some(bouncer) if !bouncer.used => drop(done.send(refuse(bouncer.idle.as_deref().unwrap_or("is not used")))),
            Some(bouncer) => bouncer.want(done),
        }
    }

    fn start_calls(&mut self, now: u64) {
        let scheduled = *self.leads.borrow();
        while self.calls.len() < AT_ONCE {
            let due =
                self.bouncers.iter_mut().filter_map(|(id, bouncer)| Some((bouncer.due(now, scheduled)?, id, bouncer)));
            let next = due.filter(|(due, ..)| *due <= now).min_by_key(|(due, ..)| *due);
            let Some((_, id, bouncer)) = next else { return };
            self.begun += 1;
            let Some((plan, all)) = bouncer.start(self.begun, now) else { return };
            let task = self.calls.spawn(plan.run(self.sources.outbound.clone(), all));
            self.calling.insert(task.id(), (id.clone(), self.begun));
            bouncer.runs_in(task);
        }
    }

    fn ended(&mut self, task: Id, outcome: Result<Answer, Failure>) {
        let Some((id, number)) = self.calling.remove(&task) else { return };
        let now = (self.sources.clock)();
        for scope in outcome.iter().flat_map(|answer| &answer.unknown) {
            // Each once, and not without end.
            if self.unknown.len() < 64 && self.unknown.insert(scope.clone()) {
                self.sources
                    .trouble(&format!("the bouncer `{id}` has decisions of the scope `{scope}`, which are not used"));
            }
        }
        let Some(bouncer) = self.bouncers.get_mut(&id) else { return };
        let (ended, mut told) = bouncer.ended(number, outcome, now);
        self.done.append(&mut told);
        if self.runtime.has_metrics(&id) && !matches!(ended, Ended::Ignored) {
            metrics::bouncer_called(&id, matches!(ended, Ended::Works));
        }
        match ended {
            Ended::Ignored => {}
            Ended::Works if bouncer.left_out.is_some() => {}
            Ended::Works => self.sources.health.works(&subject(&id)),
            Ended::Fails(why) => self.sources.health.fails(&subject(&id), &why),
        }
        self.show(&id, None);
    }

    /// Publishes the tables where they are not of the decisions in force.
    async fn publish(&mut self, now: u64) {
        let may_end = Instant::now() >= self.ends_after;
        if may_end {
            self.bouncers.values_mut().for_each(|bouncer| bouncer.expire(now));
        }
        let any_used = self.bouncers.values().any(|bouncer| bouncer.used);
        let begins = !self.published && self.bouncers.values().any(|bouncer| bouncer.used && bouncer.initialized);
        let ends = !self.published && !any_used && self.sources.material.get(DECISIONS).is_some();
        let changed = self.published && (self.stale || self.bouncers.values().any(|bouncer| bouncer.changed));
        if !(begins || ends || changed) {
            return;
        }
        let started = Instant::now();
        let used = self.bouncers.iter().filter(|(_, bouncer)| bouncer.used);
        let all: Vec<(String, Arc<decisions::Decisions>)> =
            used.map(|(id, bouncer)| (id.clone(), Arc::clone(&bouncer.decisions))).collect();
        let (labels, material) = (self.labels.clone(), self.sources.material.clone());
        let making = tokio::task::spawn_blocking(move || match table::flatten(&all, &labels) {
            Ok(made) => publish_tables(made, |name, kind, base| {
                material.publish(name, kind, base).map_err(|error| error.to_string())
            }),
            Err(error) => (None, Err(error)),
        });
        let (labels, made): (Option<SourceLabels>, Result<Flattened, String>) =
            making.await.unwrap_or_else(|_| (None, Err("the table of all decisions could not be made".to_owned())));
        if let Some(labels) = labels {
            self.labels = labels;
        }
        match made {
            Ok(made) => self.is_published(made),
            // The tables before stay in force.
            Err(error) => {
                self.sources.trouble(&error);
                self.sources.health.fails(TABLE_SUBJECT, &error);
            }
        }
        self.bouncers.values_mut().for_each(|bouncer| bouncer.changed = false);
        (self.published, self.stale) = (true, false);
        self.ends_after = Instant::now() + ENDS_APART.max(started.elapsed() * 10);
    }

    fn is_published(&mut self, mut made: Flattened) {
        self.sources.health.works(TABLE_SUBJECT);
        for (id, bouncer) in &mut self.bouncers {
            let why = made.left_out.remove(id);
            let was_left_out = bouncer.left_out.is_some();
            bouncer.left_out = why;
            match &bouncer.left_out {
                Some(why) => self.sources.health.fails(&subject(id), why),
                None if was_left_out && bouncer.used && bouncer.trouble().is_none() => {
                    self.sources.health.works(&subject(id));
                }
                None => {}
            }
        }
        let ids: Vec<String> = self.bouncers.keys().cloned().collect();
        for id in ids {
            let rows = (made.rows.remove(&id).unwrap_or_default(), made.named_rows.remove(&id).unwrap_or_default());
            self.show(&id, Some(rows));
        }
    }

    fn keeps_apart(&self) -> u64 {
        if self.sources.store.is_dedicated() { SHARE_APART } else { KEEP_APART }
    }

    /// Keeps in the store what has changed.
    async fn keep(&mut self, now: u64) {
        let apart = self.keeps_apart();
        for (id, bouncer) in &mut self.bouncers {
            let few = bouncer.decisions.len() <= KEPT_AT_ONCE;
            let late = now >= bouncer.kept_at.saturating_add(apart) || now < bouncer.kept_at;
            if !bouncer.dirty || !bouncer.initialized || !(few || late) {
                continue;
            }
            let (source, last_sync, decisions) =
                (bouncer.source.clone(), bouncer.last_sync, Arc::clone(&bouncer.decisions));
            let encoding = tokio::task::spawn_blocking(move || keep::encode(&source, last_sync, &decisions));
            let bytes = encoding.await.unwrap_or_default();
            (bouncer.dirty, bouncer.kept_at) = (false, now);
            let kept = match bytes.len() {
                1..=MAX_KEPT => {
                    self.sources.store.document_put(&keep::name(id), bytes).await.map_err(|why| why.to_string())
                }
                length => Err(format!("they take {length} bytes")),
            };
            if let Err(error) = kept {
                self.sources.trouble(&format!("the decisions of the bouncer `{id}` could not be kept: {error}"));
            }
        }
    }

    /// Shows a bouncer; with other rows where they are published.
    fn show(&self, id: &str, rows: Option<(Arc<Vec<Row>>, Arc<NamedRows>)>) {
        let Some(bouncer) = self.bouncers.get(id) else { return };
        let (rows, named_rows) = rows.unwrap_or_else(|| {
            let shown = self.runtime.bouncer(id);
            (Arc::clone(&shown.rows), Arc::clone(&shown.named_rows))
        });
        let counts = bouncer.decisions.counts();
        if self.runtime.has_metrics(id) {
            // Those of a bouncer that is not used are not in force.
            let in_force = if bouncer.used { counts } else { decisions::Counts::default() };
            metrics::show_bouncer(id, in_force, bouncer.used && bouncer.trouble().is_some());
        }
        let shown = ShownBouncer {
            initialized: bouncer.initialized,
            last_error: bouncer.trouble().map(str::to_owned),
            decisions: bouncer.decisions.len(),
            exact: counts.exact,
            ranges: counts.ranges,
            named: counts.named,
            rejected: bouncer.rejected,
            last_sync: (bouncer.last_sync > 0).then_some(bouncer.last_sync),
            rows,
            named_rows,
        };
        self.runtime.show_bouncer(id, Some(Arc::new(shown)));
    }

    fn show_all(&self) {
        self.bouncers.keys().for_each(|id| self.show(id, None));
    }
}

/// Publishes both tables. Answers the labels of the one of addresses where that is published, whatever became of the other one: the next
/// follows it. And what belongs to both, or why one of them is not published.
fn publish_tables(
    mut made: Flattened,
    publish: impl Fn(&str, TableKind, Vec<u8>) -> Result<(), String>,
) -> (Option<SourceLabels>, Result<Flattened, String>) {
    let ranges = publish(DECISIONS, TableKind::Ranges, std::mem::take(&mut made.ranges));
    let named = publish(NAMED_DECISIONS, TableKind::Keys, std::mem::take(&mut made.named));
    let labels = ranges.is_ok().then(|| std::mem::take(&mut made.labels));
    (labels, ranges.and(named).map(|()| made))
}

const TABLE_SUBJECT: &str = "the table of decisions";

/// A bouncer as operators are told of it.
fn subject(id: &str) -> String {
    format!("bouncer `{id}`")
}
