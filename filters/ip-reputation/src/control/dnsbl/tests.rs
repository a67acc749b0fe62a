//! The resolver of blocklists as it runs in a control plane: questions and reports in, verdicts out.

mod lying;
mod real;
mod settings;

use std::cell::Cell;
use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use dns::fake::{DnsServer, Says};
use domain::base::Rtype;
use domain::base::iana::Rcode;
use kit::{
    AnswerQuestion, Collection, EntitySource, GatewayReports, Gateways, Head, Plugin, ReportStream, Runtimes,
    SourceHealth, Sources, Surroundings,
};
use material::{Material, Next};
use outbound::Outbound;
use prost::Message as _;
use serde_json::{Value, json};
use snapshot::TableKind;
use store::{SqliteOptions, SqliteStore};
use tables::{Keys, TableIndex as _};
use tokio::sync::{mpsc, watch};

use super::super::PLUGIN;
use super::super::runtime::Reputation;
use super::super::tests::Told;
use super::runtime::ShownBlocklists;
use super::*;
use crate::{AddressAnswer, AddressQuestion, AddressVerdict, VERDICTS, address_bytes, verdict_key};

const THE_PLUGIN: &Plugin = &PLUGIN;
const NOW: u64 = 1_800_000_000_000;

thread_local! {
    /// How far the clock of a test was set forward, in milliseconds. Tests have one thread.
    static AHEAD: Cell<u64> = const { Cell::new(0) };
}

struct Stream(mpsc::UnboundedReceiver<GatewayReports>);

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

struct Entities(BTreeMap<&'static str, Arc<Collection>>);

impl EntitySource for Entities {
    fn slot(&self, collection: &str, id: &str) -> Option<&kit::Slot> {
        self.0.get(collection)?.get(id)
    }

    fn collection(&self, collection: &str) -> Option<&Arc<Collection>> {
        self.0.get(collection)
    }
}

fn entities(settings: &Value) -> Arc<dyn EntitySource + Send + Sync> {
    let global = Global(json!({ "security": { "dnsbl": settings } }), Head::default());
    let slot = kit::Slot { revision: 1, entity: Arc::new(global) };
    let global = Collection::from([("global-config".to_owned(), slot)]);
    Arc::new(Entities(BTreeMap::from([("global-config", Arc::new(global))])))
}

/// A control plane with nothing but blocklists.
struct World {
    dns: DnsServer,
    entities: watch::Sender<Arc<dyn EntitySource + Send + Sync>>,
    reports: mpsc::UnboundedSender<GatewayReports>,
    answerer: Arc<Mutex<Option<AnswerQuestion>>>,
    material: Material,
    told: Arc<Told>,
    runtime: Arc<Reputation>,
    _folder: tempfile::TempDir,
}

impl World {
    fn start(settings: Value) -> World {
        World::with(DnsServer::start(), settings)
    }

    /// With a server that knows the zones of these settings, which are its own where they have no resolver.
    fn with(dns: DnsServer, settings: Value) -> World {
        for zone in settings["zones"].as_array().unwrap() {
            let name = zone["zone"].as_str().unwrap().trim_end_matches('.').to_lowercase();
            lists(&dns, &name, "127.0.0.2", &["127.0.0.2"]);
        }
        let folder = tempfile::tempdir().unwrap();
        let store = SqliteStore::open(folder.path(), SqliteOptions::default()).unwrap();
        let (entities, seen) = watch::channel(entities(&with_server(&dns, settings)));
        let (reports, received) = mpsc::unbounded_channel();
        let received = Mutex::new(Some(Stream(received)));
        let answerer: Arc<Mutex<Option<AnswerQuestion>>> = Arc::default();
        let registered = Arc::clone(&answerer);
        let (material, told) = (Material::default(), Arc::<Told>::default());
        let runtimes = Runtimes::of(std::iter::once(THE_PLUGIN));
        let around = Surroundings {
            entities: seen,
            material: material.clone(),
            store: Arc::new(store),
            outbound: Outbound::new(Vec::new()),
            health: Arc::clone(&told) as Arc<dyn SourceHealth>,
            clock: || NOW + AHEAD.get(),
            trouble: Arc::new(|_, what| panic!("{what}")),
            runtimes: runtimes.clone(),
            reports: Arc::new(move |_| Box::new(received.lock().unwrap().take().unwrap())),
            gateways: Gateways {
                answer: Arc::new(move |topic, answer| {
                    assert_eq!(topic, "ip-reputation.address");
                    *registered.lock().unwrap() = Some(answer);
                }),
                ..Gateways::none()
            },
        };
        let runtime = runtimes.get(PLUGIN.name).unwrap().downcast().unwrap();
        tokio::spawn(gather(Sources::new(THE_PLUGIN, &around)));
        World { dns, entities, reports, answerer, material, told, runtime, _folder: folder }
    }

    fn set(&self, settings: Value) {
        self.entities.send_replace(entities(&with_server(&self.dns, settings)));
    }

    /// A gateway reports these addresses.
    fn report(&self, addresses: &[&str]) {
        let report = |address: &&str| {
            AddressQuestion { address: address_bytes(address.parse().unwrap()), millis: 0 }.encode_to_vec()
        };
        let reports = addresses.iter().map(report).collect();
        self.reports.send(GatewayReports { node: "n".into(), reports }).unwrap();
    }

    /// A gateway asks, and waits for so long: the keys of the answer.
    async fn ask(&self, address: &str, millis: u32) -> Option<Vec<u8>> {
        let answer = self.answerer.lock().unwrap().clone().expect("an answerer");
        let question = AddressQuestion { address: address_bytes(address.parse().unwrap()), millis };
        let answer = answer(question.encode_to_vec()).await?;
        Some(AddressAnswer::decode(answer.as_slice()).unwrap().keys)
    }

    /// The verdict that gateways have.
    fn verdict(&self, address: &str) -> Option<AddressVerdict> {
        let published = self.material.get(VERDICTS)?;
        let mut keys = Keys::load(published.chunks(VERDICTS).flat_map(|chunk| chunk.data).collect()).unwrap();
        let mut state = Some(published.base_state());
        while let Some(Next::Change(change, next)) = self.material.next(VERDICTS, TableKind::Keys, state) {
            // A state without a change: the base is what it is.
            if !change.data.is_empty() {
                keys.apply(&change.data).unwrap();
            }
            state = Some(next);
        }
        keys.find(&verdict_key(address.parse().unwrap())).and_then(AddressVerdict::read)
    }

    async fn until<T>(&self, what: &str, mut found: impl FnMut() -> Option<T>) -> T {
        for _ in 0..2_000 {
            if let Some(found) = found() {
                return found;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        panic!("not within 10 s: {what}: {:?}", self.runtime.blocklists.shown());
    }

    async fn found(&self, address: &str) -> AddressVerdict {
        self.until(&format!("a verdict on {address}"), || self.verdict(address)).await
    }

    /// All zones were checked.
    async fn checked(&self) {
        let is_checked = |shown: &ShownBlocklists| {
            !shown.zones.is_empty() && shown.zones.values().all(|zone| zone.checked_at.is_some())
        };
        self.until("the checks", || is_checked(&self.runtime.blocklists.shown()).then_some(())).await;
    }

    fn error(&self, zone: &str) -> Option<String> {
        self.runtime.blocklists.shown().zones.get(zone)?.error.clone()
    }

    fn told(&self) -> Vec<String> {
        self.told.0.lock().unwrap().clone()
    }

    /// How often a zone was asked about an address.
    fn asked(&self, zone: &str, address: &str) -> usize {
        let name = name_of(zone, address);
        self.dns.asked().iter().filter(|(asked, _)| *asked == name).count()
    }
}

fn with_server(dns: &DnsServer, mut settings: Value) -> Value {
    if settings.get("resolvers").is_none() {
        settings["resolvers"] = json!([dns.address.to_string()]);
    }
    settings
}

/// The name of an address of IPv4 in a zone.
fn name_of(zone: &str, address: &str) -> String {
    let mut labels: Vec<&str> = address.split('.').collect();
    labels.reverse();
    format!("{}.{zone}", labels.join("."))
}

fn lists(dns: &DnsServer, zone: &str, address: &str, codes: &[&str]) {
    let codes = codes.iter().map(|code| code.parse().unwrap()).collect();
    dns.says(&name_of(zone, address), Rtype::A, Says::Addresses(codes));
}

fn key_of(zone: &str) -> String {
    zone_key(&DnsblZone { zone: zone.to_owned(), ..DnsblZone::default() })
}

fn two() -> Value {
    json!({ "zones": [{ "zone": "one.test" }, { "zone": "Two.Test." }], "timeout_millis": 200 })
}

#[tokio::test]
async fn what_all_zones_say_is_one_verdict_that_is_kept() {
    let world = World::start(two());
    for (zone, address) in [("one.test", "192.0.2.7"), ("two.test", "192.0.2.7"), ("two.test", "192.0.2.8")] {
        lists(&world.dns, zone, address, &["127.0.0.2"]);
    }
    let nibbles = "7.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.1.0.0.0.0.0.0.0.8.b.d.0.1.0.0.2.one.test";
    world.dns.says(nibbles, Rtype::A, Says::Addresses(vec!["127.0.0.3".parse().unwrap()]));
    world.checked().await;
    world.report(&["192.0.2.7", "192.0.2.8", "192.0.2.9", "2001:db8:0:1::7"]);
    world.report(&["10.0.0.1", "127.0.0.2", "fe80::1"]);
    world.reports.send(GatewayReports { node: "n".into(), reports: vec![b"\xff".to_vec(), Vec::new()] }).unwrap();
    let (one, two) = (key_of("one.test"), key_of("two.test"));
    let mut both = [one.clone(), two.clone()];
    both.sort();
    let listed = AddressVerdict { until: NOW + 900_000, renew: NOW + 810_000, keys: both.join(",").into_bytes() };
    assert_eq!(world.found("192.0.2.7").await, listed);
    assert_eq!(world.found("192.0.2.8").await.keys, two.as_bytes());
    let unlisted = AddressVerdict { until: NOW + 300_000, renew: NOW + 300_000, keys: Vec::new() };
    assert_eq!(world.found("192.0.2.9").await, unlisted);
    assert_eq!(world.found("2001:db8:0:1::ffff").await.keys, one.as_bytes(), "its /64");
    // A verdict that holds is not found out again; a listed one is renewed before it ends.
    world.report(&["192.0.2.7", "192.0.2.9"]);
    assert_eq!(world.ask("192.0.2.7", 1_000).await, Some(listed.keys.clone()));
    assert_eq!((world.asked("one.test", "192.0.2.7"), world.asked("one.test", "192.0.2.9")), (1, 1));
    assert_eq!(world.asked("one.test", "10.0.0.1"), 0, "lists are not told of private addresses");
    AHEAD.set(811_000);
    world.report(&["192.0.2.7"]);
    world.until("the renewal", || world.verdict("192.0.2.7").filter(|verdict| verdict.until == NOW + 1_711_000)).await;
    let shown = world.runtime.blocklists.shown();
    assert_eq!((shown.zones["two.test"].listed, shown.zones["two.test"].failed), (3, 0));
    assert_eq!(shown.resolvers, [world.dns.address.to_string()]);
    assert!(!world.told().iter().any(|told| told.contains("fails")), "{:?}", world.told());
}

#[tokio::test]
async fn a_question_is_answered_in_its_time_or_not_at_all() {
    let world =
        World::start(json!({ "zones": [{ "zone": "one.test" }], "timeout_millis": 500, "failed_ttl_seconds": 7 }));
    world.checked().await;
    lists(&world.dns, "one.test", "192.0.2.7", &["127.0.0.2"]);
    let key = key_of("one.test").into_bytes();
    assert_eq!(world.ask("192.0.2.7", 2_000).await, Some(key));
    assert_eq!(world.ask("192.0.2.8", 2_000).await, Some(Vec::new()));
    world.dns.says(&name_of("one.test", "192.0.2.9"), Rtype::A, Says::Silence);
    let (all, before) =
        (tokio::join!(world.ask("192.0.2.9", 60), world.ask("192.0.2.9", 90)), world.verdict("192.0.2.9"));
    assert_eq!((all, before), ((None, None), None), "nothing is known by then");
    // The lookup goes on, and its end counts from then on.
    let verdict = world.found("192.0.2.9").await;
    let unknown = format!("?{}", key_of("one.test")).into_bytes();
    assert_eq!((verdict.keys, verdict.until), (unknown, NOW + 7_000));
    assert_eq!(world.asked("one.test", "192.0.2.9"), 2, "one lookup, of two attempts");
    for nonsense in
        [b"\xff".to_vec(), Vec::new(), AddressQuestion { address: vec![10, 0, 0, 1], millis: 9 }.encode_to_vec()]
    {
        let answer = world.answerer.lock().unwrap().clone().unwrap();
        assert_eq!(answer(nonsense).await, None);
    }
}

#[tokio::test]
async fn a_flood_is_bounded_and_what_a_request_waits_for_goes_first() {
    let world = World::start(json!({
        "zones": [{ "zone": "one.test" }], "timeout_millis": 200, "lookups_per_second": 20, "max_entries": 10,
    }));
    world.checked().await;
    lists(&world.dns, "one.test", "192.0.2.7", &["127.0.0.2"]);
    world.report(&["192.0.2.7"]);
    world.found("192.0.2.7").await;
    let addresses: Vec<String> =
        (0..10_000_u32).map(|number| std::net::Ipv4Addr::from(0x0500_0000 + number * 256).to_string()).collect();
    world.report(&addresses.iter().map(String::as_str).collect::<Vec<_>>());
    let shown =
        world.until("the flood", || Some(world.runtime.blocklists.shown()).filter(|shown| shown.dropped > 0)).await;
    assert!(shown.waiting <= 4_200, "{shown:?}");
    lists(&world.dns, "one.test", "192.0.2.8", &["127.0.0.2"]);
    assert_eq!(world.ask("192.0.2.8", 2_000).await, Some(key_of("one.test").into_bytes()), "before what waits");
    world
        .until("some of it", || Some(()).filter(|()| world.runtime.blocklists.shown().zones["one.test"].unlisted > 20))
        .await;
    let shown = world.runtime.blocklists.shown();
    assert_eq!((shown.entries, shown.listed), (10, 2), "listed ones stay");
    assert!(world.verdict("192.0.2.7").is_some() && world.verdict("192.0.2.8").is_some());
}

#[tokio::test]
async fn settings_act_at_once() {
    let world = World::start(two());
    world.checked().await;
    lists(&world.dns, "one.test", "192.0.2.7", &["127.0.0.2"]);
    lists(&world.dns, "three.test", "127.0.0.2", &["127.0.0.2"]);
    lists(&world.dns, "three.test", "192.0.2.7", &["127.0.0.2"]);
    world.report(&["192.0.2.7"]);
    world.found("192.0.2.7").await;
    // A weight is the step's: verdicts stay.
    let mut heavier = two();
    heavier["zones"][0]["weight"] = json!(99);
    world.set(heavier.clone());
    world.report(&["192.0.2.7"]);
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(world.asked("one.test", "192.0.2.7"), 1);
    // A zone more: verdicts of before do not have it.
    heavier["zones"].as_array_mut().unwrap().push(json!({ "zone": "three.test" }));
    world.set(heavier);
    world.until("the end of the verdict", || world.verdict("192.0.2.7").is_none().then_some(())).await;
    world.report(&["192.0.2.7"]);
    let keys = String::from_utf8(world.found("192.0.2.7").await.keys).unwrap();
    assert!(keys.contains(&key_of("three.test")) && keys.contains(&key_of("one.test")), "{keys}");
    // None: nothing is asked any more.
    world.set(json!({ "zones": [{ "zone": "one.test", "enabled": false }] }));
    world.until("the end", || world.runtime.blocklists.shown().zones.is_empty().then_some(())).await;
    world.until("the end of the verdict", || world.verdict("192.0.2.7").is_none().then_some(())).await;
    world.report(&["192.0.2.9"]);
    assert_eq!(world.ask("192.0.2.9", 500).await, None);
    assert_eq!(world.asked("one.test", "192.0.2.9"), 0);
    assert_eq!(world.told().iter().filter(|told| told.ends_with("ends")).count(), 3);
}
