//! Bouncers on a service in the test, up to what the plugin finds in the table.

mod reading;
pub(in crate::control) mod real;
mod service;
mod whole;

use std::cell::Cell;
use std::collections::BTreeMap;
use std::path::Path;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Mutex;

use exchange::fake::FakeHost;
use exchange::{Build, Exchange, Slot, Tables, Taken, Verdict};
use kit::{Collection, EntitySource, EventStream, Gateways, Head, Plugin, Runtimes, SourceHealth, Surroundings};
use material::{Material, Next};
use outbound::{Outbound, SystemResolver, Trust};
use prost::Message as _;
use store::fabric::{Allowance, Note};
use store::{SqliteOptions, SqliteStore, Store};
use tables::{Keys, TableIndex as _};
use tokio::sync::{broadcast, watch};

use super::super::runtime::Ordered;
use super::super::table::bouncer_key;
use super::super::tests::Told;
use super::super::{PLUGIN, SourceAction};
use super::*;
use crate::{FeedOfStep, IpReputationStep};
use service::{Service, ban, decision};

pub(in crate::control) const KEY: &str = "the-key-of-this-bouncer";
const THE_PLUGIN: &Plugin = &PLUGIN;

/// All bouncers.
struct Entities(Arc<Collection>);

impl EntitySource for Entities {
    fn slot(&self, _collection: &str, id: &str) -> Option<&kit::Slot> {
        self.0.get(id)
    }

    fn collection(&self, collection: &str) -> Option<&Arc<Collection>> {
        (collection == "svc-bouncers").then_some(&self.0)
    }
}

/// Events of gateways.
struct Tap(broadcast::Receiver<Arc<[u8]>>);

impl EventStream for Tap {
    fn next(&mut self) -> Pin<Box<dyn Future<Output = Vec<Arc<[u8]>>> + Send + '_>> {
        Box::pin(async { vec![self.0.recv().await.unwrap()] })
    }
}

thread_local! {
    /// How far the clock of a test was set forward, in milliseconds.
    static AHEAD: Cell<u64> = const { Cell::new(0) };
    static BEGAN: Instant = Instant::now();
}

/// Sets the clock forward.
pub(in crate::control) fn forward(millis: u64) {
    AHEAD.set(AHEAD.get() + millis);
}

fn clock() -> u64 {
    let passed = BEGAN.with(Instant::elapsed);
    1_800_000_000_000 + AHEAD.get() + u64::try_from(passed.as_millis()).unwrap()
}

/// A control plane with nothing but bouncers.
pub(in crate::control) struct World {
    bouncers: Mutex<BTreeMap<String, SvcBouncer>>,
    entities: watch::Sender<Arc<dyn EntitySource + Send + Sync>>,
    store: Arc<dyn Store>,
    material: Material,
    told: Arc<Told>,
    log: Arc<Mutex<Vec<String>>>,
    pub(in crate::control) runtime: Arc<Reputation>,
    events: broadcast::Sender<Arc<[u8]>>,
}

impl World {
    pub(in crate::control) fn start(folder: &Path, bouncers: &[(&str, SvcBouncer)]) -> World {
        let outbound = Outbound::with(vec!["127.0.0.1/32".parse().unwrap()], Arc::new(SystemResolver), Trust::system());
        let store: Arc<dyn Store> = Arc::new(SqliteStore::open(folder, SqliteOptions::default()).unwrap());
        let bouncers: BTreeMap<String, SvcBouncer> =
            bouncers.iter().map(|(id, bouncer)| ((*id).to_owned(), bouncer.clone())).collect();
        let (entities, seen) = watch::channel(shown(&bouncers));
        let runtimes = Runtimes::of([THE_PLUGIN].into_iter());
        let (material, told, log) = (Material::default(), Arc::<Told>::default(), Arc::<Mutex<Vec<String>>>::default());
        let lines = Arc::clone(&log);
        let (events, _) = broadcast::channel(8_192);
        let opened = events.clone();
        let around = Surroundings {
            entities: seen,
            material: material.clone(),
            store: Arc::clone(&store),
            outbound,
            health: Arc::clone(&told) as Arc<dyn SourceHealth>,
            clock,
            trouble: Arc::new(move |_, what| lines.lock().unwrap().push(what.to_owned())),
            runtimes: runtimes.clone(),
            reports: Arc::new(|kind| panic!("nothing is received of `{kind}`")),
            gateways: Gateways {
                events: Arc::new(move |_| Box::new(Tap(opened.subscribe()))),
                has_trail: |module| module == "detector-with-trail",
                ..Gateways::none()
            },
        };
        let runtime = runtimes.get(PLUGIN.name).unwrap().downcast().unwrap();
        // With the gatherer of feeds, which must leave alone what is not its own.
        tokio::spawn(PLUGIN.gather.unwrap()(Sources::new(THE_PLUGIN, &around)));
        World { bouncers: Mutex::new(bouncers), entities, store, material, told, log, runtime, events }
    }

    /// Puts an identity on the allowlist.
    pub(in crate::control) async fn allow(&self, key: &str) {
        let entry = Allowance {
            key: key.to_owned(),
            reason: "a partner".to_owned(),
            added_by: "ada".to_owned(),
            added_at: clock(),
            until: None,
        };
        self.store.allow(entry, "", false, Note::none()).await.unwrap();
    }

    pub(in crate::control) fn set(&self, id: &str, bouncer: Option<SvcBouncer>) {
        let mut bouncers = self.bouncers.lock().unwrap();
        match bouncer {
            Some(bouncer) => bouncers.insert(id.to_owned(), bouncer),
            None => bouncers.remove(id),
        };
        self.entities.send_replace(shown(&bouncers));
    }

    async fn sync(&self, id: &str) -> Ordered {
        let runtime = Arc::clone(&self.runtime);
        let want = Want::Sync { bouncer: id.to_owned() };
        tokio::task::spawn_blocking(move || runtime.order(vec![want])).await.unwrap().remove(0)
    }

    /// A gateway sends an event; whether anything listens.
    pub(in crate::control) fn event(&self, event: &serde_json::Value) -> bool {
        self.events.send(event.to_string().into_bytes().into()).is_ok()
    }

    /// Asks for everything; the error afterwards.
    pub(in crate::control) async fn synced(&self, id: &str) -> Option<String> {
        assert_eq!(self.sync(id).await, Ordered::Done);
        self.runtime.bouncer(id).last_error.clone()
    }

    pub(in crate::control) async fn until(&self, what: &str, holds: impl Fn(&World) -> bool) {
        for _ in 0..2_000 {
            if holds(self) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        panic!("not within 10 s: {what}");
    }

    /// The tables as a worker has them.
    fn tables(&self) -> Option<(Rc<Tables>, Box<dyn exchange::Plugin>)> {
        self.material.get(DECISIONS)?;
        let known = self.bouncers.lock().unwrap();
        let feeds = known.keys().map(|id| FeedOfStep {
            key: bouncer_key(id),
            id: id.clone(),
            name: id.clone(),
            tag: id.clone(),
            weight: 1.0,
            blocks: true,
            bouncer: true,
            ..FeedOfStep::default()
        });
        let mut feeds: Vec<FeedOfStep> = feeds.collect();
        feeds.push(FeedOfStep { key: "~".into(), bouncer: true, ..FeedOfStep::default() });
        let step = IpReputationStep { feeds, status: 403, ..IpReputationStep::default() };
        let tables = Rc::new(Tables::default());
        let mut build = Build::new(std::iter::empty()).with_tables(Rc::clone(&tables));
        let plugin = (crate::PLUGIN.build)(&step.encode_to_vec(), &mut build).unwrap();
        for (name, kind) in [(DECISIONS, TableKind::Ranges), (NAMED_DECISIONS, TableKind::Keys)] {
            let mut state = None;
            while let Some(next) = self.material.next(name, kind, state) {
                state = Some(match next {
                    Next::Base(published) => {
                        for chunk in published.chunks(name) {
                            assert!(matches!(tables.take(&chunk), Taken::Applied | Taken::Waits));
                        }
                        published.base_state()
                    }
                    Next::Change(change, state) => {
                        assert_eq!(tables.take(&change), Taken::Applied);
                        state
                    }
                });
            }
        }
        Some((tables, plugin))
    }

    /// The bouncers that have a decision on an address, and whether it is refused; `None` where there is no table.
    fn finds(&self, address: &str) -> Option<(Vec<String>, bool)> {
        let (_tables, plugin) = self.tables()?;
        let mut exchange = Exchange::default();
        exchange.caller.ip = address.into();
        let refused =
            matches!(plugin.access(&mut exchange, &mut Slot::default(), &FakeHost::at(0)), Verdict::Refuse(_));
        let tags = exchange.score.tags().into_iter().filter(|tag| !tag.starts_with("reputation:"));
        Some((tags.map(str::to_owned).collect(), refused))
    }

    /// Whether an address is refused.
    pub(in crate::control) fn bans(&self, address: &str) -> bool {
        self.finds(address).is_some_and(|(_, refused)| refused)
    }

    /// The keys of the bouncers of a country or network.
    fn named(&self, name: &str) -> Option<String> {
        let published = self.material.get(NAMED_DECISIONS)?;
        let base: Vec<u8> = published.chunks(NAMED_DECISIONS).flat_map(|chunk| chunk.data).collect();
        let mut keys = Keys::load(base).unwrap();
        let mut state = Some(published.base_state());
        while let Some(Next::Change(change, next)) = self.material.next(NAMED_DECISIONS, TableKind::Keys, state) {
            keys.apply(&change.data).unwrap();
            state = Some(next);
        }
        keys.find(name.as_bytes()).map(|value| String::from_utf8(value.to_vec()).unwrap())
    }

    pub(in crate::control) fn told(&self) -> Vec<String> {
        std::mem::take(&mut *self.told.0.lock().unwrap())
    }
}

fn shown(bouncers: &BTreeMap<String, SvcBouncer>) -> Arc<dyn EntitySource + Send + Sync> {
    let slot = |(id, bouncer): (&String, &SvcBouncer)| {
        let entity = Arc::new(Item { head: Head { id: id.clone(), ..Head::default() }, body: bouncer.clone() });
        (id.clone(), kit::Slot { revision: 1, entity })
    };
    Arc::new(Entities(Arc::new(bouncers.iter().map(slot).collect())))
}

fn bouncer(service: &Service) -> SvcBouncer {
    SvcBouncer {
        lapi_url: service.url(),
        api_key: KEY.into(),
        allow_private: true,
        poll_interval_seconds: 1,
        timeout_millis: 2_000,
        action: SourceAction::Block,
        ..SvcBouncer::default()
    }
}

/// A world with the bouncer `a`, whose service has these decisions, which are in force.
async fn world(folder: &Path, decisions: &[String]) -> (World, Service) {
    let service = Service::start().await;
    service.has(decisions);
    let world = World::start(folder, &[("a", bouncer(&service))]);
    world.until("the first list", |world| world.finds("::").is_some()).await;
    (world, service)
}

pub(in crate::control) fn folder() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}
