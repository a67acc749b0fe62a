//! Databases from a publisher up to what the plugin finds in the tables.

use std::collections::BTreeMap;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use exchange::fake::FakeHost;
use exchange::{Build, Exchange, Tables, Taken};
use kit::{Collection, EntitySource, Head, Item, Plugin, Runtimes, Slot, SourceHealth, Sources, Surroundings};
use material::{Material, Next};
use outbound::Outbound;
use prost::Message as _;
use serde_json::{Value, json};
use snapshot::TableKind;
use store::{SqliteOptions, SqliteStore, Store};
use tokio::sync::watch;

use super::super::{DatabaseKey, DatabaseKind, Reputation, Want};
use super::publisher::Publisher;
use super::write::database;
use crate::control::runtime::Ordered;
use crate::control::table::class_key;
use crate::control::tests::Told;
use crate::control::{AsnDatabase, GeoDatabase, PLUGIN};
use crate::{CLASSES, COUNTRIES, FeedOfStep, IpReputationStep, NETWORKS};

const THE_PLUGIN: &Plugin = &PLUGIN;
const TABLE: &str =
    "192.0.2.0\t192.0.2.255\t64496\tUS\tExample Hosting\n198.51.100.0\t198.51.100.255\t64497\tDE\tPlain Telecom\n";

struct Entities(BTreeMap<&'static str, Arc<Collection>>);

impl EntitySource for Entities {
    fn slot(&self, collection: &str, id: &str) -> Option<&Slot> {
        self.0.get(collection)?.get(id)
    }

    fn collection(&self, collection: &str) -> Option<&Arc<Collection>> {
        self.0.get(collection)
    }
}

/// A control plane with nothing but databases.
struct World {
    entities: watch::Sender<Arc<dyn EntitySource + Send + Sync>>,
    material: Material,
    told: Arc<Told>,
    runtime: Arc<Reputation>,
    task: tokio::task::JoinHandle<()>,
}

/// Databases by id.
type Asn<'a> = &'a [(&'a str, Value)];

fn shown(asn: Asn<'_>, geo: Asn<'_>) -> Arc<dyn EntitySource + Send + Sync> {
    let head = |id: &str| Head { id: id.to_owned(), ..Head::default() };
    let slot = |id: &str, entity: Arc<dyn kit::AnyEntity>| (id.to_owned(), Slot { revision: 1, entity });
    let asn: Collection = asn
        .iter()
        .map(|(id, body)| {
            let body: AsnDatabase = serde_json::from_value(body.clone()).unwrap();
            slot(id, Arc::new(Item { head: head(id), body }))
        })
        .collect();
    let geo: Collection = geo
        .iter()
        .map(|(id, body)| {
            let body: GeoDatabase = serde_json::from_value(body.clone()).unwrap();
            slot(id, Arc::new(Item { head: head(id), body }))
        })
        .collect();
    Arc::new(Entities([("asn-databases", Arc::new(asn)), ("geo-databases", Arc::new(geo))].into()))
}

impl World {
    fn start(folder: &Path, asn: Asn<'_>, geo: Asn<'_>) -> World {
        let store: Arc<dyn Store> = Arc::new(SqliteStore::open(folder, SqliteOptions::default()).unwrap());
        let (entities, seen) = watch::channel(shown(asn, geo));
        let (material, told, runtimes) =
            (Material::default(), Arc::<Told>::default(), Runtimes::of([THE_PLUGIN].into_iter()));
        let around = Surroundings {
            entities: seen,
            material: material.clone(),
            store,
            outbound: Outbound::new(Vec::new()),
            health: Arc::clone(&told) as Arc<dyn SourceHealth>,
            clock: || 1_800_000_000_000,
            trouble: Arc::new(|_, _| {}),
            runtimes: runtimes.clone(),
            reports: Arc::new(|kind| panic!("nothing is received of `{kind}`")),
            gateways: kit::Gateways::none(),
        };
        let runtime = runtimes.get(PLUGIN.name).unwrap().downcast().unwrap();
        let task = tokio::spawn(PLUGIN.gather.unwrap()(Sources::new(THE_PLUGIN, &around)));
        World { entities, material, told, runtime, task }
    }

    /// Ends it; its store is free then.
    async fn end(self) {
        drop(self.entities);
        self.task.await.unwrap();
    }

    async fn refresh(&self, kind: DatabaseKind, id: &str, force: bool) -> Ordered {
        let (runtime, key) = (Arc::clone(&self.runtime), (kind, id.to_owned()));
        let want = Want::RefreshDatabase { key, force };
        tokio::task::spawn_blocking(move || runtime.order(vec![want])).await.unwrap().remove(0)
    }

    fn snapshot(&self, kind: DatabaseKind, id: &str) -> Value {
        let key: DatabaseKey = (kind, id.to_owned());
        self.runtime.database(&key).snapshot(id)
    }

    async fn until(&self, what: &str, holds: impl Fn(&World) -> bool) {
        for _ in 0..2_000 {
            if holds(self) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        panic!("not within 10 s: {what}");
    }

    /// The score of an address by the classes of the database `net`.
    fn score(&self, address: &str) -> Option<f64> {
        let classes = [("cdn", 0.0), ("vpn", 30.0), ("hosting", 15.0)].map(|(name, weight)| FeedOfStep {
            key: class_key("net", name),
            id: "net".into(),
            name: name.into(),
            tag: format!("asn:{name}"),
            weight,
            class: true,
            ..FeedOfStep::default()
        });
        let step = IpReputationStep { feeds: classes.to_vec(), status: 403, ..IpReputationStep::default() };
        let tables = Rc::new(Tables::default());
        let mut build = Build::new(std::iter::empty()).with_tables(Rc::clone(&tables));
        let plugin = crate::build(&step.encode_to_vec(), &mut build).unwrap();
        self.material.get(CLASSES)?;
        self.fill(&tables, CLASSES);
        let mut asked = Exchange::default();
        asked.caller.ip = address.into();
        let _ = plugin.access(&mut asked, &mut exchange::Slot::default(), &FakeHost::at(7));
        Some(asked.score.total())
    }

    /// The label of an address in a table.
    fn label(&self, name: &str, address: &str) -> Option<u32> {
        let tables = Rc::new(Tables::default());
        let handle = tables.ranges(name).unwrap();
        self.material.get(name)?;
        self.fill(&tables, name);
        handle.read(|ranges| ranges.find(address.parse().unwrap()))?
    }

    fn fill(&self, tables: &Rc<Tables>, name: &str) {
        let mut state = None;
        while let Some(next) = self.material.next(name, TableKind::Ranges, state) {
            state = Some(match next {
                Next::Base(published) => {
                    published.chunks(name).for_each(|chunk| {
                        assert!(matches!(tables.take(&chunk), Taken::Applied | Taken::Waits));
                    });
                    published.base_state()
                }
                Next::Change(change, state) => {
                    assert_eq!(tables.take(&change), Taken::Applied);
                    state
                }
            });
        }
    }
}

fn asn(publisher: &Publisher) -> Value {
    json!({ "url": publisher.url("table"), "allow_private": true })
}

#[tokio::test(flavor = "multi_thread")]
async fn networks_get_their_classes_at_gateways_and_edited_classes_need_no_fetch() {
    let (folder, publisher) = (tempfile::tempdir().unwrap(), Publisher::start());
    publisher.has_version("one", TABLE.as_bytes());
    let world = World::start(folder.path(), &[("net", asn(&publisher))], &[]);
    world.until("the table", |world| world.score("192.0.2.7") == Some(15.0)).await;
    assert_eq!((world.score("198.51.100.7"), world.score("203.0.113.7")), (Some(0.0), Some(0.0)));
    assert_eq!((world.label(NETWORKS, "192.0.2.7"), world.label(NETWORKS, "192.0.3.1")), (Some(64496), None));
    let snapshot = world.snapshot(DatabaseKind::Asn, "net");
    assert_eq!(
        (&snapshot["entries"], &snapshot["error"], &snapshot["etag"]),
        (&json!(2), &Value::Null, &json!("\"one\""))
    );

    let mut edited = asn(&publisher);
    edited["categories"] = json!([{ "name": "vpn", "weight": 30, "asns": [64497] }]);
    world.entities.send_replace(shown(&[("net", edited)], &[]));
    world.until("the other class", |world| world.score("198.51.100.7") == Some(30.0)).await;
    assert_eq!(world.score("192.0.2.7"), Some(0.0));
    assert_eq!(publisher.seen().len(), 1, "what is in force is classified again");
    assert_eq!(world.refresh(DatabaseKind::Asn, "net", false).await, Ordered::Done);
    assert!(publisher.seen()[1].contains("if-none-match: \"one\""), "{:?}", publisher.seen());
    assert_eq!(world.snapshot(DatabaseKind::Asn, "net")["not_modified"], true);

    let mut off = asn(&publisher);
    off["enabled"] = json!(false);
    world.entities.send_replace(shown(&[("net", off)], &[]));
    world.until("it is switched off", |world| world.label(NETWORKS, "192.0.2.7").is_none()).await;
    assert!(matches!(world.refresh(DatabaseKind::Asn, "net", false).await, Ordered::Refused(_)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_refresh_keeps_what_there_is_over_a_restart_and_says_so() {
    let (folder, publisher) = (tempfile::tempdir().unwrap(), Publisher::start());
    publisher.has(TABLE.as_bytes());
    let world = World::start(folder.path(), &[("net", asn(&publisher))], &[]);
    world.until("the table", |world| world.score("192.0.2.7") == Some(15.0)).await;
    for (status, body, says) in [
        ("500 Oops", b"".as_slice(), "the server answers 500"),
        ("200 OK", b"<html></html>", "no range of a network"),
        ("200 OK", b"", "no range of a network"),
        ("200 OK", b"\x1f\x8b\x08\x00damaged", "damaged or incomplete"),
        ("304 Not Modified", b"", "the server answers 304"),
    ] {
        publisher.answers(status, "", body);
        assert_eq!(world.refresh(DatabaseKind::Asn, "net", false).await, Ordered::Done);
        let snapshot = world.snapshot(DatabaseKind::Asn, "net");
        assert!(snapshot["error"].as_str().unwrap().contains(says), "{snapshot}");
        assert_eq!((&snapshot["entries"], world.score("192.0.2.7")), (&json!(2), Some(15.0)), "{snapshot}");
    }
    let told = world.told.0.lock().unwrap().clone();
    assert!(told.iter().any(|told| told == "ASN database `net` fails: the server answers 500"), "{told:?}");
    world.end().await;

    let asked = publisher.seen().len();
    let world = World::start(folder.path(), &[("net", asn(&publisher))], &[]);
    world.until("the kept table", |world| world.score("192.0.2.7") == Some(15.0)).await;
    assert!(world.snapshot(DatabaseKind::Asn, "net")["error"].as_str().unwrap().contains("304"), "it is still shown");
    assert_eq!(publisher.seen().len(), asked, "the next attempt is not due");
    publisher.has(TABLE.as_bytes());
    assert_eq!(world.refresh(DatabaseKind::Asn, "net", false).await, Ordered::Done);
    assert_eq!(world.snapshot(DatabaseKind::Asn, "net")["error"], Value::Null);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_that_has_shrunk_to_less_than_half_needs_force() {
    let (folder, publisher) = (tempfile::tempdir().unwrap(), Publisher::start());
    let rows = |count: u32| {
        let row = |number: u32| {
            format!(
                "10.{}.{}.0\t10.{}.{}.255\t{}\tUS\tN\n",
                number >> 8,
                number & 255,
                number >> 8,
                number & 255,
                number + 1
            )
        };
        (0..count).map(row).collect::<String>()
    };
    publisher.has(rows(2000).as_bytes());
    let world = World::start(folder.path(), &[("net", asn(&publisher))], &[]);
    world.until("the table", |world| world.label(NETWORKS, "10.7.0.1") == Some(7 * 256 + 1)).await;
    publisher.has(rows(900).as_bytes());
    assert_eq!(world.refresh(DatabaseKind::Asn, "net", false).await, Ordered::Done);
    assert!(world.snapshot(DatabaseKind::Asn, "net")["error"].as_str().unwrap().contains("`force`"));
    assert_eq!(world.label(NETWORKS, "10.7.0.1"), Some(7 * 256 + 1));
    assert_eq!(world.refresh(DatabaseKind::Asn, "net", true).await, Ordered::Done);
    assert_eq!((world.label(NETWORKS, "10.7.0.1"), world.label(NETWORKS, "10.3.0.1")), (None, Some(3 * 256 + 1)));
    assert_eq!(world.snapshot(DatabaseKind::Asn, "net")["entries"], 900);
}

#[tokio::test(flavor = "multi_thread")]
async fn limits_and_private_addresses_refuse_a_fetch() {
    let (folder, publisher) = (tempfile::tempdir().unwrap(), Publisher::start());
    publisher.has(TABLE.as_bytes());
    let url = publisher.url("table");
    let databases = [
        ("few", json!({ "url": url, "allow_private": true, "max_entries": 1 })),
        ("good", asn(&publisher)),
        ("private", json!({ "url": url })),
        ("wrong", json!({ "url": url, "allow_private": true, "format": "mmdb" })),
    ];
    let world = World::start(folder.path(), &databases, &[]);
    for (id, says) in [("few", "more than 1 ranges"), ("private", ""), ("wrong", "no MaxMind database")] {
        let failed = |world: &World| {
            world.snapshot(DatabaseKind::Asn, id)["error"].as_str().is_some_and(|why| why.contains(says))
        };
        world.until(id, failed).await;
    }
    world.until("the good one", |world| world.label(NETWORKS, "192.0.2.7") == Some(64496)).await;
    assert_eq!(publisher.seen().len(), 3, "the private address was not called");
}

#[tokio::test(flavor = "multi_thread")]
async fn places_have_countries_at_gateways_and_their_fetch_has_credentials_and_the_month() {
    let (folder, publisher) = (tempfile::tempdir().unwrap(), Publisher::start());
    publisher.has(&database(&[("192.0.2.0/24", json!({ "country": { "iso_code": "DE" } }))]));
    let geo = json!({ "url": publisher.url("{yyyy}-{MM}.mmdb"), "allow_private": true, "username": "me", "password": "secret",
                      "headers": { "X-Token": "abc" } });
    let world = World::start(folder.path(), &[], &[("places", geo.clone())]);
    let country = crate::country_label(*b"DE");
    world.until("the table", |world| world.label(COUNTRIES, "192.0.2.7") == Some(country)).await;
    assert_eq!(world.label(COUNTRIES, "192.0.3.7"), None);
    let seen = publisher.seen();
    assert!(seen[0].starts_with("get /2027-01.mmdb "), "{seen:?}");
    assert!(
        seen[0].contains("authorization: basic bwu6c2vjcmv0\r\n") && seen[0].contains("x-token: abc\r\n"),
        "{seen:?}"
    );

    // A publisher that is late with a month has that of the month before asked for.
    publisher.answers("404 Not Found", "", b"");
    assert_eq!(world.refresh(DatabaseKind::Geo, "places", false).await, Ordered::Done);
    assert!(publisher.seen()[2].starts_with("get /2026-12.mmdb "), "{:?}", publisher.seen());
    let mut small = geo;
    small["max_size_mb"] = json!(1);
    publisher.has(&vec![0; (1 << 20) + 1]);
    world.entities.send_replace(shown(&[], &[("places", small)]));
    let refused = |world: &World| {
        let error = world.snapshot(DatabaseKind::Geo, "places")["error"].clone();
        error.as_str().is_some_and(|why| !why.contains("404"))
    };
    world.until("it is too large", refused).await;
    assert_eq!(world.label(COUNTRIES, "192.0.2.7"), Some(country), "the one before stays");
}

/// The numbers of a database as they are scraped: ranges, the time of the fetch, whether it fails, and failed fetches.
fn numbers(scraped: &str, database: &str) -> [Option<f64>; 4] {
    ["ranges", "fetched_timestamp_seconds", "failing", "failures_total"].map(|name| {
        let start = format!("palisade_databases_{name}{{database=\"{database}\"}} ");
        scraped.lines().find_map(|line| line.strip_prefix(&start)?.parse().ok())
    })
}

// The recorder is this thread's, and so is the gatherer.
#[tokio::test]
async fn databases_have_numbers_for_monitoring() {
    let recorder = metrics_exporter_prometheus::PrometheusBuilder::new().build_recorder();
    let scraped = recorder.handle();
    let _recording = metrics::set_default_local_recorder(&recorder);
    let (folder, networks, places) = (tempfile::tempdir().unwrap(), Publisher::start(), Publisher::start());
    networks.has(TABLE.as_bytes());
    places.has(&database(&[("192.0.2.0/24", json!({ "country": { "iso_code": "DE" } }))]));
    let geo = json!({ "url": places.url("places.mmdb"), "allow_private": true });
    let world = World::start(folder.path(), &[("net", asn(&networks))], &[("places", geo.clone())]);
    let both =
        |world: &World| world.label(NETWORKS, "192.0.2.7").is_some() && world.label(COUNTRIES, "192.0.2.7").is_some();
    world.until("both tables", both).await;
    let numbers = |database: &str| numbers(&scraped.render(), database);
    let fetched = 1_800_000_000.0;
    assert_eq!(numbers("asn-databases/net"), [Some(2.0), Some(fetched), Some(0.0), None]);
    assert_eq!(numbers("geo-databases/places"), [Some(1.0), Some(fetched), Some(0.0), None]);

    networks.answers("500 Oops", "", b"");
    for failures in [1.0, 2.0] {
        assert_eq!(world.refresh(DatabaseKind::Asn, "net", false).await, Ordered::Done);
        let expected = [Some(2.0), Some(fetched), Some(1.0), Some(failures)];
        assert_eq!(numbers("asn-databases/net"), expected, "the ranges stay in force");
    }
    places.answers("404 Not Found", "", b"");
    assert_eq!(world.refresh(DatabaseKind::Geo, "places", false).await, Ordered::Done);
    assert_eq!(numbers("geo-databases/places"), [Some(1.0), Some(fetched), Some(1.0), Some(1.0)]);

    networks.has(TABLE.as_bytes());
    assert_eq!(world.refresh(DatabaseKind::Asn, "net", false).await, Ordered::Done);
    assert_eq!(numbers("asn-databases/net"), [Some(2.0), Some(fetched), Some(0.0), Some(2.0)], "it works again");

    // What is not used shows no ranges and no error.
    world.entities.send_replace(shown(&[], &[("places", geo)]));
    world.until("it is gone", |world| world.label(NETWORKS, "192.0.2.7").is_none()).await;
    assert_eq!(numbers("asn-databases/net"), [Some(0.0), Some(0.0), Some(0.0), Some(2.0)]);
}
