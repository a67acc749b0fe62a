//! The loop as it runs in a control plane: reports in, verdicts out.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};

use kit::{
    Collection, EntitySource, EntityWatch, GatewayReports, Head, Item, Plugin, ReportStream, Runtimes, SourceHealth,
    Sources, Surroundings,
};
use material::{Material, Next};
use outbound::Outbound;
use prost::Message as _;
use serde_json::{Value, json};
use snapshot::TableKind;
use store::{SqliteOptions, SqliteStore};
use tables::{Keys, TableIndex as _};
use tokio::sync::{mpsc, watch};

use super::super::super::signature::method;
use super::super::super::{BotPolicy, PLUGIN};
use super::super::{Verification, gather};
use super::*;
use crate::{CrawlerSeen, CrawlerVerdict, TABLE, key};

const NOW: u64 = 1_800_000_000_000;
const PATIENCE: Duration = Duration::from_secs(20);

/// The plugin as the registry of a control plane has it.
static THE_PLUGIN: &Plugin = &PLUGIN;

struct World {
    dns: DnsServer,
    entities: watch::Sender<Arc<dyn EntitySource + Send + Sync>>,
    reports: mpsc::UnboundedSender<GatewayReports>,
    material: Material,
    told: Arc<Told>,
    runtime: Arc<Verification>,
    store: Arc<SqliteStore>,
    _folder: Option<tempfile::TempDir>,
}

#[derive(Default)]
struct Told(Mutex<Vec<String>>);

struct Stream(mpsc::UnboundedReceiver<GatewayReports>);

/// A policy, and the settings in the global configuration.
struct Entities(BTreeMap<&'static str, Arc<Collection>>);

impl EntitySource for Entities {
    fn slot(&self, collection: &str, id: &str) -> Option<&kit::Slot> {
        self.0.get(collection)?.get(id)
    }

    fn collection(&self, collection: &str) -> Option<&Arc<Collection>> {
        self.0.get(collection)
    }
}

impl SourceHealth for Told {
    fn fails(&self, subject: &str, _why: &str) {
        self.0.lock().unwrap().push(format!("{subject} fails"));
    }

    fn works(&self, subject: &str) {
        self.0.lock().unwrap().push(format!("{subject} works"));
    }

    fn ends(&self, subject: &str) {
        self.0.lock().unwrap().push(format!("{subject} ends"));
    }
}

impl ReportStream for Stream {
    fn next(&mut self) -> Pin<Box<dyn Future<Output = Option<GatewayReports>> + Send + '_>> {
        Box::pin(self.0.recv())
    }
}

/// What `global-config` shows of itself, as far as it matters here.
#[derive(Clone)]
struct Global(Value, Head);

impl kit::AnyEntity for Global {
    fn head(&self) -> &Head {
        &self.1
    }
    fn shown(&self) -> Value {
        self.0.clone()
    }
    fn stored(&self) -> Value {
        self.shown()
    }
    fn check(&self, _refs: &dyn kit::References) -> Vec<kit::FieldProblem> {
        Vec::new()
    }
    fn is_enabled(&self) -> bool {
        true
    }
    fn unused(&self) -> Vec<kit::FieldProblem> {
        Vec::new()
    }
    fn misread(&self) -> Vec<kit::FieldProblem> {
        Vec::new()
    }
    fn longest_ban(&self) -> Option<u64> {
        None
    }
    fn as_any(&self) -> &dyn std::any::Any {
        self
    }
}

fn entities(policy: &BotPolicy, settings: &Value) -> Arc<dyn EntitySource + Send + Sync> {
    let slot = |entity: Arc<dyn kit::AnyEntity>| kit::Slot { revision: 1, entity };
    let policy = Item { head: Head { id: "p".into(), ..Head::default() }, body: policy.clone() };
    let policies = Collection::from([("p".to_owned(), slot(Arc::new(policy)))]);
    let global = Global(json!({ "security": { "bots": settings } }), Head::default());
    let global = Collection::from([("global-config".to_owned(), slot(Arc::new(global)))]);
    Arc::new(Entities(BTreeMap::from([("bot-policies", Arc::new(policies)), ("global-config", Arc::new(global))])))
}

impl World {
    fn start(settings: Value) -> World {
        let folder = tempfile::tempdir().unwrap();
        let store = Arc::new(SqliteStore::open(folder.path(), SqliteOptions::default()).unwrap());
        World { _folder: Some(folder), ..World::start_with(store, settings) }
    }

    /// A control plane that has this store.
    fn start_with(store: Arc<SqliteStore>, settings: Value) -> World {
        let dns = DnsServer::start();
        let settings = with_server(&dns, settings);
        let (entities, seen): (_, EntityWatch) = watch::channel(entities(&BotPolicy::default(), &settings));
        let (reports, received) = mpsc::unbounded_channel();
        let received = Mutex::new(Some(Stream(received)));
        let (material, told) = (Material::default(), Arc::<Told>::default());
        let runtimes = Runtimes::of(std::iter::once(THE_PLUGIN));
        let around = Surroundings {
            entities: seen,
            material: material.clone(),
            store: Arc::clone(&store) as Arc<dyn store::Store>,
            outbound: Outbound::new(Vec::new()),
            health: Arc::clone(&told) as Arc<dyn SourceHealth>,
            clock: || NOW,
            trouble: Arc::new(|_, what| panic!("{what}")),
            runtimes: runtimes.clone(),
            reports: Arc::new(move |_| Box::new(received.lock().unwrap().take().unwrap())),
            gateways: kit::Gateways::none(),
        };
        let runtime = runtimes.get(PLUGIN.name).unwrap().downcast().unwrap();
        tokio::spawn(gather(Sources::new(THE_PLUGIN, &around)));
        World { dns, entities, reports, material, told, runtime, store, _folder: None }
    }

    fn change(&self, policy: &BotPolicy, settings: Value) {
        self.entities.send(entities(policy, &with_server(&self.dns, settings))).unwrap();
    }

    /// A gateway reports these keys.
    fn report(&self, keys: &[Vec<u8>]) {
        let reports = keys.iter().map(|key| CrawlerSeen { key: key.clone() }.encode_to_vec()).collect();
        self.reports.send(GatewayReports { node: "n".into(), reports }).unwrap();
    }

    fn verdict(&self, key: &[u8]) -> Option<CrawlerVerdict> {
        let published = self.material.get(TABLE)?;
        let mut keys = Keys::load(published.chunks(TABLE).flat_map(|chunk| chunk.data).collect()).unwrap();
        let mut state = Some(published.base_state());
        while let Some(Next::Change(change, next)) = self.material.next(TABLE, TableKind::Keys, state) {
            // A state without a change: the base is what it is.
            if !change.data.is_empty() {
                keys.apply(&change.data).unwrap();
            }
            state = Some(next);
        }
        keys.find(key).and_then(CrawlerVerdict::read)
    }

    async fn until<T>(&self, what: &str, mut found: impl FnMut() -> Option<T>) -> T {
        let looking = async {
            loop {
                if let Some(found) = found() {
                    return found;
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::time::timeout(PATIENCE, looking).await.unwrap_or_else(|_| panic!("{what}"))
    }

    async fn finding(&self, key: &[u8]) -> Finding {
        self.until("a verdict", || self.verdict(key)).await.finding
    }

    fn told(&self) -> Vec<String> {
        self.told.0.lock().unwrap().clone()
    }
}

fn with_server(dns: &DnsServer, mut settings: Value) -> Value {
    settings["resolvers"] = json!([dns.address.to_string()]);
    settings
}

fn google(address: &str) -> Vec<u8> {
    key(&method(&["google.com".to_owned(), "googlebot.com".to_owned()]), address.parse().unwrap())
}

fn quick() -> Value {
    json!({ "timeout_millis": 100 })
}

#[tokio::test(flavor = "multi_thread")]
async fn crawlers_that_gateways_report_get_verdicts() {
    let world = World::start(quick());
    world.dns.crawler("192.0.2.7", "crawl-7.googlebot.com");
    world.dns.crawler("192.0.2.8", "crawl-8.search.msn.com");
    world.dns.reverse("192.0.2.9", Says::Code(Rcode::SERVFAIL));
    let keys = ["192.0.2.7", "192.0.2.8", "192.0.2.9"].map(google);
    world.report(&keys);
    world.report(&keys);
    world.report(&[b"nonsense".to_vec(), key(b"method-1", "192.0.2.7".parse().unwrap()), Vec::new()]);
    world.reports.send(GatewayReports { node: "n".into(), reports: vec![b"\xff\xff".to_vec()] }).unwrap();
    let found = [world.finding(&keys[0]).await, world.finding(&keys[1]).await, world.finding(&keys[2]).await];
    assert_eq!(found, [Finding::Verified, Finding::Impersonator, Finding::Unverifiable]);
    let lasts = keys.each_ref().map(|key| world.verdict(key).unwrap().until - NOW);
    assert_eq!(lasts, [21_600_000, 900_000, 60_000]);
    assert_eq!(world.verdict(&keys[0]).unwrap().renew - NOW, 21_600_000 / 10 * 9);
    world.report(&keys);
    world.dns.crawler("192.0.2.10", "crawl-10.googlebot.com");
    world.report(&[google("192.0.2.10")]);
    assert_eq!(world.finding(&google("192.0.2.10")).await, Finding::Verified);
    assert_eq!(world.dns.asked_of("192.0.2.7"), 1, "a verdict that holds is not found out again");
    let state = world.until("the state", || world.runtime.state().filter(|state| state.verified == 2)).await;
    assert_eq!((state.impersonators, state.unverifiable, state.error), (1, 1, None));
    assert_eq!(world.told(), [] as [&str; 0], "one failure says nothing of the resolver");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_policy_that_does_not_verify_withdraws_its_verdicts() {
    let world = World::start(quick());
    world.dns.crawler("192.0.2.7", "crawl-7.googlebot.com");
    world.report(&[google("192.0.2.7")]);
    assert_eq!(world.finding(&google("192.0.2.7")).await, Finding::Verified);
    world.change(&BotPolicy { verify_known_bots: false, ..BotPolicy::default() }, quick());
    world.until("the end of the verdict", || world.verdict(&google("192.0.2.7")).is_none().then_some(())).await;
    world.report(&[google("192.0.2.7")]);
    world.change(&BotPolicy::default(), json!({ "timeout_millis": 100, "verified_ttl_seconds": 60 }));
    world
        .until("a new verdict", || {
            world.report(&[google("192.0.2.7")]);
            world.verdict(&google("192.0.2.7")).filter(|verdict| verdict.until == NOW + 60_000)
        })
        .await;
    assert_eq!(world.dns.asked_of("192.0.2.7"), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn verdicts_on_verified_crawlers_outlive_a_restart() {
    let first = World::start(quick());
    first.dns.crawler("192.0.2.7", "crawl-7.googlebot.com");
    let keys = ["192.0.2.7", "192.0.2.8"].map(google);
    first.report(&keys);
    let found = [first.finding(&keys[0]).await, first.finding(&keys[1]).await];
    assert_eq!(found, [Finding::Verified, Finding::Impersonator]);
    let verdict = first.verdict(&keys[0]);
    let deadline = tokio::time::Instant::now() + PATIENCE;
    while kept(&first).await.is_empty() {
        assert!(tokio::time::Instant::now() < deadline, "the verdict is not kept");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let store = Arc::clone(&first.store);

    // The resolver of the second one has never heard of the crawler.
    let second = World::start_with(Arc::clone(&store), quick());
    second.until("the table", || second.material.get(TABLE)).await;
    assert_eq!((second.verdict(&keys[0]), second.verdict(&keys[1])), (verdict, None), "others are found out again");
    assert_eq!(second.dns.asked_of("192.0.2.7"), 0);
    assert_eq!(second.until("the state", || second.runtime.state()).await.verified, 1);

    // A shorter life counts for verdicts that were kept as well.
    let third = World::start_with(Arc::clone(&store), json!({ "timeout_millis": 100, "verified_ttl_seconds": 60 }));
    let shorter = third.until("the verdict", || third.verdict(&keys[0])).await;
    assert_eq!((shorter.until, shorter.renew), (NOW + 60_000, NOW + 60_000));

    // What cannot be read is no verdict.
    store::Store::document_put(&*store, "bot-guard.verdicts", b"\xff\xff".to_vec()).await.unwrap();
    let fourth = World::start_with(store, quick());
    fourth.until("the table", || fourth.material.get(TABLE)).await;
    assert_eq!(fourth.verdict(&keys[0]), None);
}

async fn kept(world: &World) -> Vec<u8> {
    store::Store::document(&*world.store, "bot-guard.verdicts").await.unwrap().unwrap_or_default()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_resolver_that_is_down_is_told_once_and_its_recovery_too() {
    let world = World::start(quick());
    // Zones of attackers fail, the resolver works.
    let of = |low: u8| format!("198.51.{low}.7");
    for low in 0..8 {
        world.dns.reverse(&of(low), Says::Code(Rcode::SERVFAIL));
        world.report(&[google(&of(low))]);
    }
    for low in 0..8 {
        assert_eq!(world.finding(&google(&of(low))).await, Finding::Unverifiable);
    }
    let probes = || world.dns.asked().iter().filter(|(name, _)| name == ".").count();
    assert_eq!(world.told(), [] as [&str; 0]);

    let down = World::start(quick());
    down.dns.says(".", Rtype::NS, Says::Silence);
    for low in 0..8 {
        down.dns.reverse(&of(low), Says::Silence);
        down.report(&[google(&of(low))]);
    }
    down.until("an event", || (!down.told().is_empty()).then_some(())).await;
    down.until("its state", || down.runtime.state().filter(|state| state.error.is_some())).await;
    down.dns.crawler("192.0.2.7", "crawl-7.googlebot.com");
    down.report(&[google("192.0.2.7")]);
    assert_eq!(down.finding(&google("192.0.2.7")).await, Finding::Verified);
    let subject = "DNS resolver of the bot guard";
    let expected = [format!("{subject} fails"), format!("{subject} works")];
    down.until("the recovery", || (down.told() == expected).then_some(())).await;
    assert!(probes() <= 1, "one probe of a suspect that works");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flood_of_a_million_addresses_costs_what_the_settings_allow() {
    let world = World::start(json!({ "lookups_per_second": 10, "max_entries": 100 }));
    let begun = tokio::time::Instant::now();
    for block in 0..1000_u32 {
        let address = |number: u32| std::net::Ipv4Addr::from(0x1000_0000 + (block * 1000 + number) * 263);
        world.report(&(0..1000).map(|number| google(&address(number).to_string())).collect::<Vec<_>>());
    }
    let state = world
        .until("the flood", || {
            let state = world.runtime.state()?;
            (state.dropped > 990_000 && state.impersonators >= 30).then_some(state)
        })
        .await;
    assert!(state.waiting <= 4096 + 64, "{state:?}");
    assert!(state.impersonators <= 100, "no more are kept: {state:?}");
    let (asked, seconds) = (world.dns.asked().len(), begun.elapsed().as_secs_f64());
    assert!(asked as f64 <= 10.0 * (seconds + 2.0), "{asked} questions in {seconds} s");
}
