//! Published addresses from a publisher in the test, up to the table of gateways.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use kit::{Collection, EntitySource, Head, Item, Plugin, Runtimes, SourceHealth, Sources, Surroundings};
use material::{Material, Next};
use outbound::{Outbound, SystemResolver, Trust};
use serde_json::json;
use snapshot::TableKind;
use store::{SqliteOptions, SqliteStore};
use tables::{Ranges, TableIndex as _};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::sync::watch;

use super::super::verify::Verification;
use super::super::{BotPolicy, PLUGIN};
use super::list::PublishedList;
use super::*;
use crate::control::fetching::LIFETIME;
use crate::{LISTS, RANGES};

const NOW: u64 = 1_800_000_000_000;
const PATIENCE: Duration = Duration::from_secs(20);

static THE_PLUGIN: &Plugin = &PLUGIN;

/// A publisher that answers with the same bytes, and notes the heads of requests.
struct Publisher {
    address: SocketAddr,
    answer: Arc<Mutex<Vec<u8>>>,
    seen: Arc<Mutex<Vec<String>>>,
}

impl Publisher {
    async fn start(answer: &[u8]) -> Publisher {
        Publisher::start_on("127.0.0.1", answer).await
    }

    async fn start_on(address: &str, answer: &[u8]) -> Publisher {
        let listener = TcpListener::bind((address, 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let (answer, seen) = (Arc::new(Mutex::new(answer.to_vec())), Arc::<Mutex<Vec<String>>>::default());
        let (current, noted) = (Arc::clone(&answer), Arc::clone(&seen));
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let mut head = Vec::new();
                while !head.ends_with(b"\r\n\r\n") {
                    let Ok(byte) = stream.read_u8().await else { break };
                    head.push(byte);
                }
                noted.lock().unwrap().push(String::from_utf8(head).unwrap().to_ascii_lowercase());
                let bytes = current.lock().unwrap().clone();
                let _ = stream.write_all(&bytes).await;
                let _ = stream.shutdown().await;
            }
        });
        Publisher { address, answer, seen }
    }

    fn url(&self) -> String {
        format!("http://{}/bot.json", self.address)
    }

    fn says(&self, answer: &[u8]) {
        *self.answer.lock().unwrap() = answer.to_vec();
    }

    fn seen(&self) -> Vec<String> {
        self.seen.lock().unwrap().clone()
    }
}

fn answer(status: &str, headers: &str, body: &[u8]) -> Vec<u8> {
    let head = format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\n{headers}connection: close\r\n\r\n", body.len());
    [head.as_bytes(), body].concat()
}

fn prefixes(all: &[&str]) -> Vec<u8> {
    let prefix = |text: &&str| match text.contains(':') {
        true => json!({ "ipv6Prefix": text }),
        false => json!({ "ipv4Prefix": text }),
    };
    let list: Vec<_> = all.iter().map(prefix).collect();
    let list = json!({ "creationTime": "2026-01-01T00:00:00.000000", "prefixes": list });
    answer("200 OK", "etag: \"one\"\r\n", list.to_string().as_bytes())
}

struct Entities(Arc<Collection>);

impl EntitySource for Entities {
    fn slot(&self, collection: &str, id: &str) -> Option<&kit::Slot> {
        self.collection(collection)?.get(id)
    }

    fn collection(&self, collection: &str) -> Option<&Arc<Collection>> {
        (collection == "bot-policies").then_some(&self.0)
    }
}

#[derive(Default)]
struct Told(Mutex<BTreeMap<String, String>>);

impl SourceHealth for Told {
    fn fails(&self, subject: &str, why: &str) {
        self.0.lock().unwrap().insert(subject.to_owned(), why.to_owned());
    }

    fn works(&self, subject: &str) {
        self.0.lock().unwrap().remove(subject);
    }

    fn ends(&self, subject: &str) {
        self.0.lock().unwrap().remove(subject);
    }
}

fn policy(urls: &[String]) -> BotPolicy {
    let signature = json!({ "name": "a", "category": "ai", "ua_contains": ["a"], "ip_ranges": urls });
    serde_json::from_value(json!({ "signatures": [signature], "rules": [], "verify_by_ip_ranges": true })).unwrap()
}

fn entities(policy: &BotPolicy) -> Arc<dyn EntitySource + Send + Sync> {
    let item = Item { head: Head { id: "p".into(), ..Head::default() }, body: policy.clone() };
    let slot = kit::Slot { revision: 1, entity: Arc::new(item) };
    Arc::new(Entities(Arc::new(Collection::from([("p".to_owned(), slot)]))))
}

struct World {
    entities: watch::Sender<Arc<dyn EntitySource + Send + Sync>>,
    material: Material,
    told: Arc<Told>,
    runtime: Arc<Verification>,
}

impl World {
    fn start(folder: &Path, policy: &BotPolicy, clock: fn() -> u64) -> World {
        let outbound = Outbound::with(vec!["127.0.0.1/32".parse().unwrap()], Arc::new(SystemResolver), Trust::system());
        let (entities, seen) = watch::channel(entities(policy));
        let (material, told) = (Material::default(), Arc::<Told>::default());
        let runtimes = Runtimes::of(std::iter::once(THE_PLUGIN));
        let around = Surroundings {
            entities: seen,
            material: material.clone(),
            store: Arc::new(SqliteStore::open(folder, SqliteOptions::default()).unwrap()),
            outbound,
            health: Arc::clone(&told) as Arc<dyn SourceHealth>,
            clock,
            trouble: Arc::new(|_, what| panic!("{what}")),
            runtimes: runtimes.clone(),
            gateways: kit::Gateways::none(),
            reports: Arc::new(|kind| panic!("nothing is received of `{kind}`")),
        };
        let runtime = runtimes.get(PLUGIN.name).unwrap().downcast().unwrap();
        tokio::spawn(gather(Sources::new(THE_PLUGIN, &around)));
        World { entities, material, told, runtime }
    }

    /// The labels of an address in the table of gateways; `None` without a table.
    fn labels(&self, address: &str) -> Option<String> {
        let published = self.material.get(RANGES)?;
        let mut table = Ranges::load(published.chunks(RANGES).flat_map(|chunk| chunk.data).collect()).unwrap();
        let mut state = Some(published.base_state());
        while let Some(Next::Change(change, next)) = self.material.next(RANGES, TableKind::Ranges, state) {
            if !change.data.is_empty() {
                table.apply(&change.data).unwrap();
            }
            state = Some(next);
        }
        let name = table.find(address.parse().unwrap()).and_then(|label| table.name(label)).unwrap_or_default();
        Some(String::from_utf8(name.to_vec()).unwrap())
    }

    async fn until(&self, what: &str, holds: impl Fn(&World) -> bool) {
        let waiting = async {
            while !holds(self) {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        let waited = tokio::time::timeout(PATIENCE, waiting).await;
        waited.unwrap_or_else(|_| panic!("{what}: {:?} {:?}", self.runtime.lists(), self.told.0.lock().unwrap()));
    }

    /// Waits until a list has failed with this text.
    async fn fails(&self, text: &str) {
        self.until(text, |world| {
            world.runtime.lists().iter().any(|list| list.error.as_ref().is_some_and(|error| error.contains(text)))
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_of_a_policy_are_one_table_and_outlive_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let one = Publisher::start(&prefixes(&["52.0.0.0/24", "2600:1::/64", "10.0.0.0/8"])).await;
    let two = Publisher::start(&prefixes(&["52.0.0.128/25", "52.0.1.7/32"])).await;
    let policy = policy(&[one.url(), two.url()]);
    let (first, second) = (label(&one.url()), label(&two.url()));
    let both = |world: &World| world.labels("52.0.1.7").is_some_and(|labels| labels == second);
    {
        let world = World::start(folder.path(), &policy, || NOW);
        world.until("both lists", |world| both(world) && world.labels("52.0.0.1").as_ref() == Some(&first)).await;
        let split = |labels: Option<String>| {
            labels.unwrap().split(',').map(str::to_owned).collect::<std::collections::BTreeSet<_>>()
        };
        let of_both = std::collections::BTreeSet::from([first.clone(), second.clone()]);
        assert_eq!(split(world.labels("52.0.0.200")), of_both);
        assert_eq!(split(world.labels(&LISTS.to_string())), of_both, "the row that names the lists in force");
        assert_eq!(world.labels("2600:1::7"), Some(first.clone()));
        assert_eq!(world.labels("10.0.0.1"), Some(String::new()), "no caller of the Internet has it");
        let shown = world.runtime.lists();
        assert_eq!(shown.iter().map(|list| (list.in_force, list.ranges, &list.error)).max(), Some((true, 2, &None)));
        world
            .until("the lists in the store", |world| {
                world.runtime.lists().iter().all(|list| list.fetched_at == Some(NOW))
            })
            .await;
    }
    // The publishers are gone: what was kept is in force, and not fetched before it is due.
    let asked = (one.seen().len(), two.seen().len());
    one.says(b"");
    two.says(b"");
    let world = World::start(folder.path(), &policy, || NOW + 3_600_000);
    world.until("the kept lists", both).await;
    assert_eq!((one.seen().len(), two.seen().len()), asked);

    // Only enabled policies that verify by ranges have lists.
    world.entities.send(entities(&BotPolicy { verify_by_ip_ranges: false, ..policy.clone() })).unwrap();
    world.until("no list", |world| world.labels("52.0.1.7").is_some_and(|labels| labels.is_empty())).await;
    assert_eq!((world.runtime.lists(), world.labels("0.0.0.0")), (Vec::new(), Some(String::new())));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_that_is_due_is_asked_for_with_its_version() {
    let folder = tempfile::tempdir().unwrap();
    let publisher = Publisher::start(&prefixes(&["52.0.0.0/24"])).await;
    let policy = policy(&[publisher.url()]);
    let own = label(&publisher.url());
    {
        let world = World::start(folder.path(), &policy, || NOW);
        world.until("the list", |world| world.labels("52.0.0.1").as_ref() == Some(&own)).await;
        world
            .until("its time", |world| world.runtime.lists().first().and_then(|list| list.fetched_at) == Some(NOW))
            .await;
    }
    publisher.says(b"HTTP/1.1 304 Not Modified\r\nconnection: close\r\n\r\n");
    let world = World::start(folder.path(), &policy, || NOW + 2 * 86_400_000);
    world
        .until("the confirmation", |world| {
            world.runtime.lists().first().and_then(|list| list.fetched_at) == Some(NOW + 2 * 86_400_000)
        })
        .await;
    assert!(publisher.seen()[1].contains("if-none-match: \"one\""), "{:?}", publisher.seen());
    assert_eq!(world.labels("52.0.0.1"), Some(own));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_that_nobody_confirms_counts_for_nothing_after_a_week() {
    let folder = tempfile::tempdir().unwrap();
    let publisher = Publisher::start(&prefixes(&["52.0.0.0/24"])).await;
    let policy = policy(&[publisher.url()]);
    {
        let world = World::start(folder.path(), &policy, || NOW);
        world.until("its time", |world| world.runtime.lists().iter().any(|list| list.fetched_at == Some(NOW))).await;
    }
    publisher.says(&answer("503 Unavailable", "", b""));
    {
        let world = World::start(folder.path(), &policy, || NOW + LIFETIME - 1);
        world.fails("503").await;
        assert_eq!(world.labels("52.0.0.1"), Some(label(&publisher.url())), "a failure changes nothing");
        assert_eq!(world.told.0.lock().unwrap().len(), 1);
    }
    let world = World::start(folder.path(), &policy, || NOW + LIFETIME);
    world.fails("503").await;
    // A table without it: gateways would keep the one that they have.
    assert_eq!(world.labels("52.0.0.1"), Some(String::new()));
    assert!(!world.runtime.lists()[0].in_force);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_publisher_that_lies_changes_nothing() {
    let long: Vec<String> =
        (0..10_001_u32).map(|number| std::net::Ipv4Addr::from(0x3400_0000 + 2 * number).to_string()).collect();
    let long: Vec<&str> = long.iter().map(String::as_str).collect();
    let elsewhere = Publisher::start_on("127.0.0.2", &prefixes(&["52.9.0.0/24"])).await;
    let redirect = format!("location: {}\r\n", elsewhere.url());
    let cases: Vec<(Vec<u8>, &str)> = vec![
        (prefixes(&["0.0.0.0/0"]), ""),
        (prefixes(&["52.0.0.0/8", "54.0.0.0/8"]), "and the one before 256: it is not used"),
        (prefixes(&["2600::/16"]), ""),
        (prefixes(&["8.8.8.0/24"]), "8.8.8.8"),
        (prefixes(&["10.0.0.0/8", "127.0.0.0/8", "192.168.0.0/16"]), "no entry"),
        (prefixes(&[]), "nothing at"),
        (prefixes(&long), "more than 10000 entries"),
        (answer("200 OK", "", b"<!doctype html><h1>52.0.0.0/24</h1>"), "a page"),
        (answer("200 OK", "", b"{\"prefixes\": [{\"ipv4Prefix\": \"52.0.0.0/24\"}"), "no complete JSON"),
        (answer("200 OK", "", &vec![b' '; (4 << 20) + 1]), ""),
        (answer("404 Not Found", "", b""), "404"),
        (answer("304 Not Modified", "", b""), "304"),
        (answer("302 Found", &redirect, b""), ""),
        (b"nonsense".to_vec(), ""),
    ];
    for (lie, why) in cases {
        let folder = tempfile::tempdir().unwrap();
        let publisher = Publisher::start(&prefixes(&["52.0.0.0/24"])).await;
        let policy = policy(&[publisher.url()]);
        {
            let world = World::start(folder.path(), &policy, || NOW);
            world
                .until("its time", |world| world.runtime.lists().iter().any(|list| list.fetched_at == Some(NOW)))
                .await;
        }
        publisher.says(&lie);
        let world = World::start(folder.path(), &policy, || NOW + 86_400_000);
        // With its version, a publisher may say that nothing changed; without one it may not.
        if why == "304" {
            world
                .until("the confirmation", |world| {
                    world.runtime.lists().iter().any(|list| list.fetched_at == Some(NOW + 86_400_000))
                })
                .await;
        } else {
            world.fails(why).await;
        }
        assert_eq!(world.labels("52.0.0.1"), Some(label(&publisher.url())), "{why}");
        for other in ["52.9.0.1", "1.2.3.4", "54.0.0.1", "2600::1", "8.8.8.8"] {
            assert_eq!(world.labels(other), Some(String::new()), "{why}: {other}");
        }
    }
    assert_eq!(elsewhere.seen(), [] as [&str; 0], "a redirect into the operator's network is not followed");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_first_list_vouches_for_no_provider() {
    for (list, refused) in [
        (vec!["52.0.0.0/12"], false),
        (vec!["52.0.0.0/12", "54.0.0.1/32"], true),
        (vec!["2600:1::/32"], false),
        (vec!["2600:1::/32", "2600:2::/64"], true),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let publisher = Publisher::start(&prefixes(&list)).await;
        let world = World::start(folder.path(), &policy(&[publisher.url()]), || NOW);
        match refused {
            true => world.fails("more than any crawler has").await,
            false => world.until("the list", |world| world.labels("0.0.0.0").is_some_and(|all| !all.is_empty())).await,
        }
        let in_force = world.labels("0.0.0.0").is_some_and(|all| !all.is_empty());
        assert_eq!(in_force, !refused, "{list:?}");
    }
}

#[test]
fn lists_of_all_policies_are_bounded() {
    let urls: Vec<String> = (0..100).map(|number| format!("https://a.example/{number}")).collect();
    let signatures: Vec<_> = urls
        .chunks(8)
        .enumerate()
        .map(|(number, urls)| json!({ "name": format!("b{number}"), "category": "ai", "ua_contains": ["a"], "ip_ranges": urls }))
        .collect();
    let policy: BotPolicy =
        serde_json::from_value(json!({ "signatures": signatures, "rules": [], "verify_by_ip_ranges": true })).unwrap();
    let of = |policy: &BotPolicy| wanted(&*entities(policy)).into_iter().map(|list| list.url).collect::<Vec<_>>();
    assert_eq!(of(&policy), urls[..MAX_LISTS]);
    assert_eq!(of(&BotPolicy { verify_known_bots: false, ..policy.clone() }), [] as [&str; 0]);
    assert_eq!(of(&BotPolicy { enabled: false, ..policy.clone() }), [] as [&str; 0]);
    assert_eq!(of(&BotPolicy::default()), [] as [&str; 0], "off by default");
    assert_eq!(of(&BotPolicy { verify_by_ip_ranges: true, ..BotPolicy::default() }).len(), 11);
    // All labels have room in one row.
    let labels: Vec<String> = urls.iter().take(MAX_LISTS).map(|url| label(url)).collect();
    assert!(labels.join(",").len() <= tables::MAX_LABEL, "{}", labels.join(",").len());
}

#[test]
fn a_kept_list_is_taken_as_it_was_written_alone() {
    let bytes = feeds::parse(&feeds::Format::CidrLines, b"52.0.0.0/24", 10).unwrap().addresses.to_bytes();
    let list = |source: &str, fetched_at| lists::Snapshot {
        list: store::feeds::FeedList { hash: snapshot::content_hash(&bytes), bytes: bytes.clone().into() },
        entries: 1,
        ranges: 1,
        rejected: 0,
        fetched_at,
        validators: lists::Validators { etag: Some("\"a\"".into()), last_modified: None },
        source: source.to_owned(),
    };
    let document = keep::document(&list("here", NOW));
    assert_eq!(keep::restored(&document), Some(list("here", NOW)));
    for place in 0..document.len() {
        let mut damaged = document.clone();
        damaged[place] ^= 0x40;
        // Damage may hit what is beside the addresses; those are never others.
        assert!(keep::restored(&damaged).is_none_or(|found| found.list == list("here", NOW).list), "{place}");
    }
    let url = "https://a.example/bot.json";
    let source = PublishedList::new(url, "a", None, NOW).unwrap().start(NOW).fetch.source;
    let taken = |kept| PublishedList::new(url, "a", Some(kept), NOW).unwrap().in_force(NOW).is_some();
    assert!(taken(list(&source, NOW)));
    assert!(!taken(list("elsewhere", NOW)), "of another URL");
    assert!(!taken(list(&source, NOW + 1)), "from the future");
}
