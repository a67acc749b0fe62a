//! Feeds from a publisher in the test, up to what the plugin finds in the table.

mod mended;
mod server;

use std::collections::BTreeMap;
use std::path::Path;
use std::rc::Rc;
use std::sync::Mutex;

use exchange::fake::FakeHost;
use exchange::{Build, Exchange, Slot, Tables, Taken, Verdict};
use kit::{Collection, EntitySource, EntityWatch, Head, Plugin, Runtimes, SourceHealth, Surroundings};
use material::{Material, Next};
use outbound::{Outbound, SystemResolver, Trust};
use prost::Message as _;
use serde_json::{Value, json};
use snapshot::TableKind;
use store::{SqliteOptions, SqliteStore, Store};
use tables::{Ranges, TableIndex as _};
use tokio::sync::watch;

use super::super::runtime::Ordered;
use super::super::tests::Told;
use super::super::{PLUGIN, SourceAction};
use super::*;
use crate::{FeedOfStep, IpReputationStep};
use server::Publisher;

/// All entities, which are of one collection, and the ids of those that this release cannot read.
struct Entities(Arc<Collection>, Vec<String>);

impl EntitySource for Entities {
    fn slot(&self, _collection: &str, id: &str) -> Option<&kit::Slot> {
        self.0.get(id)
    }

    fn collection(&self, collection: &str) -> Option<&Arc<Collection>> {
        (collection == "threat-feeds").then_some(&self.0)
    }

    fn is_unreadable(&self, collection: &str, id: &str) -> bool {
        collection == "threat-feeds" && self.1.iter().any(|unreadable| unreadable == id)
    }
}

/// A control plane with nothing but feeds.
struct World {
    feeds: Mutex<BTreeMap<String, ThreatFeed>>,
    entities: watch::Sender<Arc<dyn EntitySource + Send + Sync>>,
    store: Arc<dyn Store>,
    material: Material,
    told: Arc<Told>,
    runtime: Arc<Reputation>,
}

const THE_PLUGIN: &Plugin = &PLUGIN;

impl World {
    fn start(folder: &Path, feeds: &[(&str, ThreatFeed)]) -> World {
        let outbound = Outbound::with(vec!["127.0.0.1/32".parse().unwrap()], Arc::new(SystemResolver), Trust::system());
        let store: Arc<dyn Store> = Arc::new(SqliteStore::open(folder, SqliteOptions::default()).unwrap());
        let feeds: BTreeMap<String, ThreatFeed> =
            feeds.iter().map(|(id, feed)| ((*id).to_owned(), feed.clone())).collect();
        let (entities, seen): (_, EntityWatch) = watch::channel(shown(&feeds));
        let (material, told, runtimes) =
            (Material::default(), Arc::<Told>::default(), Runtimes::of([THE_PLUGIN].into_iter()));
        let around = Surroundings {
            entities: seen,
            material: material.clone(),
            store: Arc::clone(&store),
            outbound,
            health: Arc::clone(&told) as Arc<dyn SourceHealth>,
            clock: || 1_800_000_000_000,
            trouble: Arc::new(|_, _| {}),
            runtimes: runtimes.clone(),
            reports: Arc::new(|kind| panic!("nothing is received of `{kind}`")),
            gateways: kit::Gateways::none(),
        };
        let runtime = runtimes.get(PLUGIN.name).unwrap().downcast().unwrap();
        tokio::spawn(gather(Sources::new(THE_PLUGIN, &around)));
        World { feeds: Mutex::new(feeds), entities, store, material, told, runtime }
    }

    /// Changes or adds a feed; `None` removes it.
    fn set(&self, id: &str, feed: Option<ThreatFeed>) {
        let mut feeds = self.feeds.lock().unwrap();
        match feed {
            Some(feed) => feeds.insert(id.to_owned(), feed),
            None => feeds.remove(id),
        };
        self.entities.send_replace(shown(&feeds));
    }

    async fn order(&self, want: Want) -> Ordered {
        let runtime = Arc::clone(&self.runtime);
        tokio::task::spawn_blocking(move || runtime.order(vec![want])).await.unwrap().remove(0)
    }

    async fn refresh(&self, id: &str) -> Value {
        assert_eq!(self.order(Want::Refresh { feed: id.to_owned(), force: false }).await, Ordered::Done);
        self.snapshot(id)
    }

    async fn force(&self, id: &str) -> Value {
        assert_eq!(self.order(Want::Refresh { feed: id.to_owned(), force: true }).await, Ordered::Done);
        self.snapshot(id)
    }

    fn snapshot(&self, id: &str) -> Value {
        self.runtime.feed(id).snapshot(id)
    }

    /// The entries of the previous list.
    fn previous(&self, id: &str) -> Value {
        self.runtime.feed(id).previous()["entries"].clone()
    }

    /// Waits for something that happens by itself.
    async fn until(&self, what: &str, holds: impl Fn(&World) -> bool) {
        for _ in 0..2_000 {
            if holds(self) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        panic!("not within 10 s: {what}");
    }

    /// The rows of the table, of IPv4 and of IPv6.
    fn rows(&self) -> (usize, usize) {
        let published = self.material.get(TABLE).unwrap();
        let base: Vec<u8> = published.chunks(TABLE).flat_map(|chunk| chunk.data).collect();
        let mut table = Ranges::load(base).unwrap();
        let mut state = Some(published.base_state());
        while let Some(Next::Change(change, next)) = self.material.next(TABLE, TableKind::Ranges, state) {
            table.apply(&change.data).unwrap();
            state = Some(next);
        }
        Ranges::load(table.save()).unwrap().rows()
    }

    /// The feeds that a gateway finds an address on; `None` where it has no table.
    fn finds(&self, address: &str) -> Option<Vec<String>> {
        self.material.get(TABLE)?;
        let tables = Rc::new(Tables::default());
        let known = self.feeds.lock().unwrap();
        let feeds = known.keys().map(|id| FeedOfStep {
            key: table::key(id),
            id: id.clone(),
            name: id.clone(),
            tag: id.clone(),
            weight: 1.0,
            blocks: false,
            bouncer: false,
            ..FeedOfStep::default()
        });
        let step = IpReputationStep { feeds: feeds.collect(), status: 403, ..IpReputationStep::default() };
        let mut build = Build::new(std::iter::empty()).with_tables(Rc::clone(&tables));
        let plugin = (crate::PLUGIN.build)(&step.encode_to_vec(), &mut build).unwrap();
        let mut state = None;
        while let Some(next) = self.material.next(TABLE, TableKind::Ranges, state) {
            state = Some(match next {
                Next::Base(published) => {
                    published.chunks(TABLE).for_each(|chunk| {
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
        let mut exchange = Exchange::default();
        exchange.caller.ip = address.into();
        assert_eq!(plugin.access(&mut exchange, &mut Slot::default(), &FakeHost::at(0)), Verdict::Pass);
        let tags = exchange.score.tags().into_iter().filter(|tag| !tag.starts_with("reputation:"));
        Some(tags.map(str::to_owned).collect())
    }

    fn told(&self) -> Vec<String> {
        std::mem::take(&mut *self.told.0.lock().unwrap())
    }
}

fn shown(feeds: &BTreeMap<String, ThreatFeed>) -> Arc<dyn EntitySource + Send + Sync> {
    let slot = |(id, feed): (&String, &ThreatFeed)| {
        let entity = Arc::new(Item { head: Head { id: id.clone(), ..Head::default() }, body: feed.clone() });
        (id.clone(), kit::Slot { revision: 1, entity })
    };
    Arc::new(Entities(Arc::new(feeds.iter().map(slot).collect()), Vec::new()))
}

fn feed(publisher: &Publisher) -> ThreatFeed {
    ThreatFeed { url: publisher.url(), action: SourceAction::Block, allow_private: true, ..ThreatFeed::default() }
}

/// A world with the feed `a`, which has a list.
async fn world(folder: &Path, list: &str) -> (World, Publisher) {
    let publisher = Publisher::start().await;
    publisher.lists(list);
    let world = World::start(folder, &[("a", feed(&publisher))]);
    world.until("the first list", |world| world.finds("::").is_some()).await;
    (world, publisher)
}

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}

#[tokio::test]
async fn lists_of_several_feeds_are_one_table_and_a_feed_that_is_gone_leaves_it() {
    let folder = folder();
    let (world, publisher) = world(folder.path(), "192.0.2.0/24\n10.0.0.1\nnot an address").await;
    let other = Publisher::start().await;
    other.lists("192.0.2.128-198.51.100.7\n2001:db8::/32");
    world.set("b", Some(feed(&other)));
    world.until("the second list", |world| world.finds("2001:db8::1") == Some(vec!["b".into()])).await;
    assert_eq!(world.finds("192.0.2.1"), Some(vec!["a".into()]));
    assert_eq!(world.finds("192.0.2.200").unwrap().len(), 2);
    assert_eq!((world.finds("203.0.113.1"), world.finds("10.0.0.1")), (Some(vec![]), Some(vec![])));
    let snapshot = world.snapshot("a");
    assert_eq!((&snapshot["entries"], &snapshot["ranges"], &snapshot["rejected"]), (&json!(1), &json!(1), &json!(2)));
    assert!(publisher.seen()[0].contains("accept-encoding: gzip"), "{:?}", publisher.seen());

    world.set("b", Some(ThreatFeed { enabled: false, ..feed(&other) }));
    world.until("the end of a disabled feed", |world| world.finds("2001:db8::1") == Some(vec![])).await;
    assert_eq!(
        world.order(Want::Refresh { feed: "b".into(), force: false }).await,
        Ordered::Refused("the feed `b` is not used".into())
    );
    let fetched = other.seen().len();
    world.set("b", Some(feed(&other)));
    world.until("its list again", |world| world.finds("2001:db8::1") == Some(vec!["b".into()])).await;
    assert_eq!(other.seen().len(), fetched, "the list is known and not due: {:?}", world.snapshot("b"));
    world.set("b", None);
    world.until("the end of a deleted feed", |world| world.rows() == (1, 0)).await;
    let kept = world.store.feeds().await.unwrap();
    assert_eq!(kept.iter().map(|feed| feed.id.as_str()).collect::<Vec<_>>(), ["a"]);
    world.set("a", None);
    world.until("an empty table", |world| world.rows() == (0, 0)).await;
}

#[tokio::test]
async fn an_unchanged_list_is_not_sent_again_and_makes_no_rollback_point() {
    let folder = folder();
    let publisher = Publisher::start().await;
    publisher.has_version("one", "192.0.2.1");
    let world = World::start(folder.path(), &[("a", feed(&publisher))]);
    world.until("the list", |world| world.finds("192.0.2.1") == Some(vec!["a".into()])).await;
    let changes = *world.material.changes().borrow();
    let snapshot = world.refresh("a").await;
    assert_eq!((&snapshot["not_modified"], &snapshot["etag"]), (&json!(true), &json!("\"one\"")));
    assert!(publisher.seen().last().unwrap().contains("if-none-match: \"one\""));
    publisher.has_version("two", "192.0.2.1 # with a comment");
    let snapshot = world.refresh("a").await;
    assert_eq!((&snapshot["not_modified"], &snapshot["etag"]), (&json!(false), &json!("\"two\"")));
    assert_eq!(
        (world.previous("a"), *world.material.changes().borrow()),
        (Value::Null, changes),
        "nothing is published"
    );
    publisher.has_version("three", "192.0.2.1\n192.0.2.3");
    world.refresh("a").await;
    assert_eq!((world.previous("a"), *world.material.changes().borrow()), (json!(1), changes + 1));
    assert_eq!(world.finds("192.0.2.3"), Some(vec!["a".into()]));
}

#[tokio::test]
async fn a_fetch_that_fails_keeps_the_list_and_is_told() {
    let folder = folder();
    let (world, publisher) = world(folder.path(), "192.0.2.1").await;
    world.told();
    let cut = b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n192.0.2.2\n".to_vec();
    let cases: Vec<Case<'_>> = vec![
        ("the server answers 500", Box::new(|| publisher.gives("500 Oops", "", b"192.0.2.2"))),
        ("the server answers 304", Box::new(|| publisher.gives("304 Not Modified", "", b""))),
        ("the server answers 404", Box::new(|| publisher.gives("404 Not Found", "", b"192.0.2.2"))),
        ("breaks off", Box::new(|| publisher.sends(&cut))),
        ("longer than", Box::new(|| publisher.never_ends())),
        ("incomplete", Box::new(|| publisher.gives("200 OK", "content-encoding: gzip\r\n", &[0x1f, 0x8b, 8, 0, 0]))),
        ("with a page", Box::new(|| publisher.lists("\n<!doctype html>\n192.0.2.2\n"))),
        ("the list is empty", Box::new(|| publisher.lists(""))),
        ("(2 rejected)", Box::new(|| publisher.lists("the words of someone\nelse"))),
        ("a public resolver", Box::new(|| publisher.lists("192.0.2.2\n8.8.8.0/24"))),
        ("addresses of IPv4", Box::new(|| publisher.lists("32.0.0.0/3"))),
        ("(1 rejected)", Box::new(|| publisher.lists("10.0.0.0/8"))),
        ("the server answers 302", Box::new(|| publisher.gives("302 Found", "location: http://127.0.0.1:1/\r\n", b""))),
    ];
    for (says, answers) in &cases {
        answers();
        world.set("a", Some(ThreatFeed { follow_redirects: false, ..feed(&publisher) }));
        let snapshot = world.refresh("a").await;
        let error = snapshot["error"].as_str().unwrap_or_default();
        assert!(error.contains(says) && !error.contains("someone"), "{says}: {snapshot}");
        assert_eq!(world.finds("192.0.2.1"), Some(vec!["a".into()]), "{says}");
        assert_eq!((world.finds("192.0.2.2"), &snapshot["entries"]), (Some(vec![]), &json!(1)), "{says}");
        let told = world.told();
        assert!(told.iter().any(|told| told.starts_with("threat feed `a` fails: ") && told.contains(says)), "{told:?}");
    }
    publisher.lists("192.0.2.2");
    assert_eq!(world.refresh("a").await["error"], Value::Null);
    assert!(world.told().contains(&"threat feed `a` works".to_owned()));
    assert_eq!(world.finds("192.0.2.2"), Some(vec!["a".into()]));
}

#[tokio::test]
async fn compressed_lists_and_other_formats_are_read() {
    use std::io::Write as _;
    let folder = folder();
    let (world, publisher) = world(folder.path(), "192.0.2.1").await;
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(br#"{"data": [{"ip": "192.0.2.2"}, {"ip": "192.0.2.4"}]}"#).unwrap();
    publisher.gives("200 OK", "content-encoding: gzip\r\n", &packed.finish().unwrap());
    let path = super::super::FeedOptions { path: Some("data[].ip".into()), ..Default::default() };
    let json = ThreatFeed { format: super::super::FeedFormat::JsonPath, options: path, ..feed(&publisher) };
    world.set("a", Some(json.clone()));
    // The way it is fetched has changed, so it is due at once.
    world.until("the JSON", |world| world.finds("192.0.2.4") == Some(vec!["a".into()])).await;
    world.set("a", Some(ThreatFeed { max_entries: 1, ..json }));
    world
        .until("too many", |world| world.snapshot("a")["error"].as_str().is_some_and(|why| why.contains("max_entries")))
        .await;
    assert_eq!(world.finds("192.0.2.4"), Some(vec!["a".into()]));
}

#[tokio::test]
async fn a_private_address_is_not_reached_unless_the_feed_says_so() {
    let folder = folder();
    let (inner, publisher) = (Publisher::start_on("127.0.0.2").await, Publisher::start().await);
    inner.lists("192.0.2.1");
    publisher.gives("302 Found", &format!("location: {}\r\n", inner.url()), b"");
    // The operator allows 127.0.0.1, and nothing else on this machine.
    let outside = ThreatFeed { allow_private: false, ..feed(&publisher) };
    let world = World::start(folder.path(), &[("a", outside.clone())]);
    world.until("the refusal", |world| world.snapshot("a")["error"].as_str().is_some()).await;
    assert!(world.snapshot("a")["error"].as_str().unwrap().contains("127.0.0.2 is a loopback address"));
    assert!(inner.seen().is_empty() && world.finds("192.0.2.1").is_none());
    world.set("a", Some(ThreatFeed { allow_private: true, ..outside }));
    world.until("the list", |world| world.finds("192.0.2.1") == Some(vec!["a".into()])).await;
}

/// What the error says, and what makes the publisher answer so.
type Case<'a> = (&'static str, Box<dyn Fn() + 'a>);

/// As many addresses as this, one range each.
fn many(count: usize) -> String {
    (0..count).map(|number| format!("192.1.{}.{}\n", number / 100, number % 100 * 2)).collect()
}

#[tokio::test]
async fn a_list_that_has_little_to_do_with_the_one_before_is_taken_by_force_alone() {
    let folder = folder();
    let (world, publisher) = world(folder.path(), &many(1000)).await;
    publisher.lists(&many(100));
    for _ in 0..3 {
        let snapshot = world.refresh("a").await;
        assert!(snapshot["error"].as_str().unwrap().contains("shrunk from 1000 to 100"), "{snapshot}");
        assert_eq!(snapshot["ranges"], 1000);
    }
    let snapshot = world.force("a").await;
    assert_eq!((&snapshot["ranges"], &snapshot["error"]), (&json!(100), &Value::Null));
    // Elsewhere is another list, with which it is not compared.
    publisher.lists(&many(3000));
    assert!(world.refresh("a").await["error"].as_str().unwrap().contains("grown"));
    world.set("a", Some(ThreatFeed { url: format!("{}?all", publisher.url()), ..feed(&publisher) }));
    world.until("the other list", |world| world.snapshot("a")["ranges"] == 3000).await;
}

#[tokio::test]
async fn a_rollback_lasts_until_the_list_changes() {
    let folder = folder();
    let (world, publisher) = world(folder.path(), "192.0.2.1").await;
    let roll_back = async || world.order(Want::RollBack { feed: "a".into() }).await;
    assert_eq!(roll_back().await, Ordered::Refused("the feed `a` has no previous snapshot".into()));
    publisher.has_version("bad", "192.0.2.2");
    world.refresh("a").await;
    assert_eq!(roll_back().await, Ordered::Done);
    assert_eq!((world.finds("192.0.2.1"), world.finds("192.0.2.2")), (Some(vec!["a".into()]), Some(vec![])));
    assert_eq!(world.previous("a"), Value::Null);
    world.refresh("a").await;
    assert!(publisher.seen().last().unwrap().contains("if-none-match: \"bad\""), "asked for what comes after it");
    publisher.has_version("bad-again", "192.0.2.2");
    world.refresh("a").await;
    assert_eq!(world.finds("192.0.2.2"), Some(vec![]), "the same addresses under another version");
    assert_eq!(roll_back().await, Ordered::Refused("the feed `a` has no previous snapshot".into()));
    publisher.has_version("good", "192.0.2.3");
    world.refresh("a").await;
    assert_eq!((world.finds("192.0.2.3"), world.previous("a")), (Some(vec!["a".into()]), json!(1)));
    assert_eq!(roll_back().await, Ordered::Done);
    world.force("a").await;
    assert_eq!(world.finds("192.0.2.3"), Some(vec!["a".into()]), "by force");
    let gone = Want::RollBack { feed: "gone".into() };
    assert!(matches!(world.order(gone).await, Ordered::Refused(_)));
}

#[tokio::test]
async fn lists_survive_a_restart_without_their_publisher() {
    let folder = folder();
    let (first, publisher) = world(folder.path(), "192.0.2.1").await;
    publisher.has_version("two", "192.0.2.2");
    first.refresh("a").await;
    first.set("gone", Some(ThreatFeed { enabled: false, ..feed(&publisher) }));
    first.store.close().await.unwrap();
    drop(first);
    let fetched = publisher.seen().len();
    publisher.gives("500 Oops", "", b"");
    let world = World::start(folder.path(), &[("a", feed(&publisher))]);
    world.until("the list from the store", |world| world.finds("192.0.2.2") == Some(vec!["a".into()])).await;
    assert_eq!((world.previous("a"), publisher.seen().len()), (json!(1), fetched), "it is not due");
    let snapshot = world.refresh("a").await;
    assert_eq!((&snapshot["error"], &snapshot["etag"]), (&json!("the server answers 500"), &json!("\"two\"")));
    assert!(publisher.seen().last().unwrap().contains("if-none-match: \"two\""));
    assert_eq!(world.order(Want::RollBack { feed: "a".into() }).await, Ordered::Done);
    assert_eq!(world.finds("192.0.2.1"), Some(vec!["a".into()]));
}

#[tokio::test]
async fn calls_for_one_feed_at_the_same_time_are_few_fetches() {
    let folder = folder();
    let (world, publisher) = world(folder.path(), "192.0.2.1").await;
    let before = publisher.seen().len();
    let wants = vec![Want::Refresh { feed: "a".into(), force: false }; 20];
    let runtime = Arc::clone(&world.runtime);
    let outcomes = tokio::task::spawn_blocking(move || runtime.order(wants)).await.unwrap();
    assert!(outcomes.iter().all(|outcome| *outcome == Ordered::Done), "{outcomes:?}");
    let fetches = publisher.seen().len() - before;
    assert!((1..20).contains(&fetches), "{fetches} fetches");
}
