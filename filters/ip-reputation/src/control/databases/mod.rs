//! Keeps databases of networks and of places up to date: fetches them when they are due, keeps their files in the store, and publishes the
//! tables that gateways get of them.

mod classes;
mod download;
mod iptoasn;
mod keep;
mod metrics;
mod mmdb;
mod networks;
mod places;
mod publish;
mod spans;
mod state;
mod tables;
#[cfg(test)]
mod tests;
mod tracked;
pub(super) mod url;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use kit::{Entity as _, Item, Sources, View};
use lists::Failure;
use tokio::sync::{mpsc, oneshot};
use tokio::task::{Id, JoinSet};

use super::runtime::{Order, Refused, Reputation, Want};
use super::{AsnDatabase, GeoDatabase, MAX_DATABASES};
use metrics::DatabaseMetrics;
use publish::Published;
use tracked::{Ended, Tracked};

pub(super) use networks::Network;
pub(super) use places::Place;
pub(super) use state::DatabaseState;

/// Databases that are fetched at the same time, at most: each may take the memory of a large file.
const AT_ONCE: usize = 2;
/// The longest sleep: clocks are set, and waits are computed with the one on the wall.
const LONGEST_SLEEP: Duration = Duration::from_secs(60);
/// How long the gatherer waits before it reads again what could not be read.
const LOAD_AGAIN: Duration = Duration::from_secs(5);

/// Those who wait for something.
type Waiting = Vec<oneshot::Sender<Result<(), Refused>>>;

/// A database, by its kind and its id.
pub(super) type DatabaseKey = (DatabaseKind, String);

/// The kinds of databases.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum DatabaseKind {
    /// Networks: `asn-databases`.
    Asn,
    /// Places: `geo-databases`.
    Geo,
}

/// Keeps all databases up to date until the entities end.
pub(super) async fn gather(sources: Sources) {
    let Some(runtime) = sources.runtime::<Reputation>() else { return };
    let Some(orders) = runtime.database_inbox() else { return };
    let mut gatherer = Gatherer {
        sources,
        runtime,
        databases: BTreeMap::new(),
        fetches: JoinSet::new(),
        fetching: HashMap::new(),
        begun: 0,
        published: Published::default(),
        done: Vec::new(),
        metrics: DatabaseMetrics::default(),
    };
    gatherer.load().await;
    gatherer.run(orders).await;
}

struct Gatherer {
    sources: Sources,
    runtime: Arc<Reputation>,
    databases: BTreeMap<DatabaseKey, Tracked>,
    fetches: JoinSet<Result<Option<download::Download>, Failure>>,
    /// The database of each fetch, and the fetch's number.
    fetching: HashMap<Id, (DatabaseKey, u64)>,
    begun: u64,
    published: Published,
    /// Those who are told once what they wait for is published.
    done: Waiting,
    metrics: DatabaseMetrics,
}

impl Gatherer {
    /// Reads what was kept, before anything is fetched.
    async fn load(&mut self) {
        for kind in [DatabaseKind::Asn, DatabaseKind::Geo] {
            while let Err(error) = self.load_all(kind).await {
                // To go on without them would overwrite them.
                self.sources.trouble(&format!("the files of {} could not be read: {error}", kind.collection()));
                tokio::time::sleep(LOAD_AGAIN).await;
            }
        }
    }

    async fn load_all(&mut self, kind: DatabaseKind) -> Result<(), store::StoreError> {
        let store = Arc::clone(&self.sources.store);
        for id in keep::ids(&*store, kind).await? {
            let key = (kind, id);
            let state = keep::restored(&*store, &key).await?;
            self.databases.insert(key, Tracked::restored(state));
        }
        Ok(())
    }

    async fn run(&mut self, mut orders: mpsc::Receiver<Order>) {
        self.follow_entities().await;
        loop {
            let outcome = self.publish().await;
            for done in self.done.drain(..) {
                let _ = done.send(outcome.clone().map_err(Refused::Because));
            }
            let now = (self.sources.clock)();
            self.start_fetches(now);
            let due = self.databases.values_mut().filter_map(|database| database.due(now)).min();
            let sleep = due.map_or(LONGEST_SLEEP, |due| Duration::from_millis(due.saturating_sub(now)));
            let is_full = self.fetches.len() >= AT_ONCE;
            tokio::select! {
                // An order is for the databases as they are by then.
                biased;
                changed = self.sources.entities.changed() => match changed {
                    Ok(()) => self.follow_entities().await,
                    Err(_) => return,
                },
                Some(order) = orders.recv() => self.obey(order),
                Some(ended) = self.fetches.join_next_with_id() => {
                    let (task, outcome) = match ended {
                        Ok((task, outcome)) => (task, outcome),
                        Err(error) => (error.id(), Err(Failure::broken())),
                    };
                    self.ended(task, outcome).await;
                }
                () = tokio::time::sleep(sleep.min(LONGEST_SLEEP)), if !is_full => {}
            }
        }
    }

    /// Takes up new databases and changed ones, and gives up those that are gone.
    async fn follow_entities(&mut self) {
        for key in self.take_up_all() {
            self.give_up(&key).await;
        }
        self.show_all();
    }

    /// Takes up the databases of all entities; the ones that are gone.
    fn take_up_all(&mut self) -> Vec<DatabaseKey> {
        let entities = Arc::clone(&self.sources.entities.borrow_and_update());
        let view = View::new(&*entities);
        let networks: Vec<&Item<AsnDatabase>> = view.all::<AsnDatabase>().collect();
        let places: Vec<&Item<GeoDatabase>> = view.all::<GeoDatabase>().collect();
        let is_there = |(kind, id): &DatabaseKey| match kind {
            DatabaseKind::Asn => networks.iter().any(|entity| entity.head.id == *id),
            DatabaseKind::Geo => places.iter().any(|entity| entity.head.id == *id),
        };
        let missing: Vec<DatabaseKey> = self.databases.keys().filter(|key| !is_there(key)).cloned().collect();
        // The file of a database that this release cannot read is for the one that can.
        let (unreadable, gone): (Vec<DatabaseKey>, Vec<DatabaseKey>) =
            missing.into_iter().partition(|(kind, id)| entities.is_unreadable(kind.collection(), id));
        for key in unreadable {
            self.rest(&key, Some("this release cannot read it".to_owned()));
        }
        let mut enabled = 0_usize;
        for entity in &networks {
            let key = (DatabaseKind::Asn, entity.head.id.clone());
            enabled += usize::from(entity.enabled);
            let plan = || Ok(download::Plan::of_networks(entity));
            self.take_up(&key, (entity.enabled, enabled), plan, entity.refresh_interval_seconds);
        }
        enabled = 0;
        for entity in &places {
            let key = (DatabaseKind::Geo, entity.head.id.clone());
            enabled += usize::from(entity.enabled);
            let plan = || download::Plan::of_places(entity);
            self.take_up(&key, (entity.enabled, enabled), plan, entity.refresh_interval_seconds);
        }
        self.published.follow(&networks);
        gone
    }

    /// Takes up the database of an entity: whether it is enabled, and how many of its kind are up to it.
    fn take_up(
        &mut self,
        key: &DatabaseKey,
        (enabled, number): (bool, usize),
        plan: impl FnOnce() -> Result<download::Plan, String>,
        interval_seconds: u64,
    ) {
        self.databases.entry(key.clone()).or_default();
        if !enabled {
            self.sources.health.ends(&subject(key));
            return self.rest(key, None);
        }
        if number > MAX_DATABASES {
            let why = format!("{MAX_DATABASES} other databases are enabled, and no more are used");
            self.sources.health.fails(&subject(key), &why);
            return self.rest(key, Some(why));
        }
        let now = (self.sources.clock)();
        let Some(database) = self.databases.get_mut(key) else { return };
        match plan() {
            Ok(plan) => database.plan(plan, interval_seconds, now),
            // What is in force stays.
            Err(why) => database.rest(true, Some(why)),
        }
        // It may have failed before the control plane was started.
        if let Some(why) = database.state.trouble() {
            self.sources.health.fails(&subject(key), why);
        }
    }

    fn rest(&mut self, key: &DatabaseKey, why: Option<String>) {
        if let Some(database) = self.databases.get_mut(key) {
            database.rest(false, why);
        }
    }

    async fn give_up(&mut self, key: &DatabaseKey) {
        if let Some(mut database) = self.databases.remove(key) {
            database.stop();
        }
        self.show(key);
        self.sources.health.ends(&subject(key));
        if let Err(error) = keep::remove(&*self.sources.store, key).await {
            self.sources.trouble(&format!("the file of the {} could not be removed: {error}", subject(key)));
        }
    }

    /// Carries out what an operator wants; a fetch is told of when it has ended.
    fn obey(&mut self, Order { what, done }: Order) {
        let Want::RefreshDatabase { key, force } = what else { return };
        let refuse = |why: &str| Err(Refused::Because(format!("the {} {why}", subject(&key))));
        match self.databases.get_mut(&key) {
            None => drop(done.send(Err(Refused::Unknown))),
            Some(database) if !database.used => {
                drop(done.send(refuse(database.state.idle.as_deref().unwrap_or("is not used"))));
            }
            Some(database) if database.plan.is_none() => {
                drop(done.send(refuse("cannot be fetched as it is configured")));
            }
            Some(database) => database.want(force, done),
        }
    }

    /// Starts the fetches that are due, as many as may run.
    fn start_fetches(&mut self, now: u64) {
        while self.fetches.len() < AT_ONCE {
            let due = self.databases.iter_mut().filter_map(|(key, database)| Some((database.due(now)?, key, database)));
            let next = due.filter(|(due, ..)| *due <= now).min_by_key(|(due, ..)| *due);
            let Some((_, key, database)) = next else { return };
            self.begun += 1;
            let Some(start) = database.start(self.begun) else { return };
            let fetch = start.plan.run(self.sources.outbound.clone(), start.validators, start.before, now);
            let task = self.fetches.spawn(fetch);
            self.fetching.insert(task.id(), (key.clone(), self.begun));
            database.runs_in(task);
        }
    }

    /// A fetch has ended.
    async fn ended(&mut self, task: Id, outcome: Result<Option<download::Download>, Failure>) {
        let Some((key, number)) = self.fetching.remove(&task) else { return };
        let now = (self.sources.clock)();
        let random = getrandom::u32().unwrap_or(u32::MAX / 2);
        // A database that was removed while it was fetched.
        let Some(database) = self.databases.get_mut(&key) else { return };
        let (ended, mut told) = database.ended(number, outcome, now, random);
        self.done.append(&mut told);
        let works = database.state.trouble().is_none();
        let file = match ended {
            Ended::Ignored => return,
            Ended::Unchanged => None,
            Ended::Changed(file) => Some(file),
            Ended::Fails(why) => {
                self.metrics.failed(&key);
                self.sources.health.fails(&subject(&key), &why);
                None
            }
        };
        if works {
            self.sources.health.works(&subject(&key));
        }
        self.keep(&key, file).await;
        self.show(&key);
    }

    /// Keeps what is known of a database in the store, and its file where it is another one.
    async fn keep(&mut self, key: &DatabaseKey, file: Option<axum::body::Bytes>) {
        let Some(database) = self.databases.get(key) else { return };
        let store = &*self.sources.store;
        if let Some(file) = file.as_ref().filter(|file| file.len() > keep::MAX_KEPT) {
            let (subject, most) = (subject(key), keep::MAX_KEPT);
            self.sources.trouble(&format!(
                "the file of the {subject} has {} bytes: more than {most} are not kept, and it is fetched again after a restart",
                file.len()
            ));
        }
        let kept = async {
            if let Some(file) = file.filter(|file| file.len() <= keep::MAX_KEPT) {
                keep::put_file(store, key, file).await?;
            }
            keep::put_about(store, key, &database.state).await
        };
        if let Err(error) = kept.await {
            self.sources.trouble(&format!("the file of the {} could not be kept: {error}", subject(key)));
        }
    }

    fn show(&mut self, key: &DatabaseKey) {
        let database = self.databases.get(key);
        self.metrics.show(key, database.filter(|database| database.used).map(|database| &database.state));
        self.runtime.show_database(key, database.map(|database| Arc::new(database.state.clone())));
    }

    fn show_all(&mut self) {
        let keys: Vec<DatabaseKey> = self.databases.keys().cloned().collect();
        keys.iter().for_each(|key| self.show(key));
    }
}

impl DatabaseKind {
    /// Its collection.
    pub(super) fn collection(self) -> &'static str {
        match self {
            Self::Asn => AsnDatabase::COLLECTION,
            Self::Geo => GeoDatabase::COLLECTION,
        }
    }
}

/// A database as operators are told of it.
fn subject((kind, id): &DatabaseKey) -> String {
    match kind {
        DatabaseKind::Asn => format!("ASN database `{id}`"),
        DatabaseKind::Geo => format!("geolocation database `{id}`"),
    }
}
