//! The loop as it runs in a control plane: reports and decisions in, the table out.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use kit::{
    BoxFuture, Collection, EntitySource, GatewayReports, Head, Item, OperationAnswer, OperationContext, Plugin,
    ReportStream, Runtimes, Slot, SourceHealth, Sources, Surroundings, Tools,
};
use material::{Material, Next};
use outbound::Outbound;
use prost::Message as _;
use snapshot::TableKind;
use store::{SqliteOptions, SqliteStore};
use tables::{Keys, TableIndex as _};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;

use super::super::gather;
use super::*;
use crate::control::PLUGIN;
use crate::{FINGERPRINTS, families_of};

const PATIENCE: Duration = Duration::from_secs(20);
const LIST: &str = "/security/_fingerprints";
const DECIDE: &str = "/security/_fingerprint_decide";

/// The plugin as the registry of a control plane has it.
static THE_PLUGIN: &Plugin = &PLUGIN;

struct World {
    reports: mpsc::UnboundedSender<GatewayReports>,
    entities: watch::Sender<Arc<dyn EntitySource + Send + Sync>>,
    material: Material,
    runtimes: Runtimes,
    gathering: JoinHandle<()>,
    /// How many reports the loop has received.
    received: Arc<AtomicUsize>,
}

struct Silence;

struct Stream(mpsc::UnboundedReceiver<GatewayReports>, Arc<AtomicUsize>);

struct Policies(Arc<Collection>);

impl SourceHealth for Silence {
    fn fails(&self, _subject: &str, _why: &str) {}
    fn works(&self, _subject: &str) {}
    fn ends(&self, _subject: &str) {}
}

impl ReportStream for Stream {
    fn next(&mut self) -> BoxFuture<'_, Option<GatewayReports>> {
        Box::pin(async {
            let received = self.0.recv().await;
            self.1.fetch_add(1, Ordering::Release);
            received
        })
    }
}

impl EntitySource for Policies {
    fn slot(&self, collection: &str, id: &str) -> Option<&Slot> {
        (collection == "bot-policies").then(|| self.0.get(id)).flatten()
    }

    fn collection(&self, collection: &str) -> Option<&Arc<Collection>> {
        (collection == "bot-policies").then_some(&self.0)
    }
}

fn policies(learn: bool) -> Arc<dyn EntitySource + Send + Sync> {
    let fingerprints = BotFingerprints { enabled: true, learn, ..BotFingerprints::default() };
    let body = BotPolicy { fingerprints, ..BotPolicy::default() };
    let entity = Arc::new(Item { head: Head { id: "p".into(), ..Head::default() }, body });
    Arc::new(Policies(Arc::new(BTreeMap::from([("p".to_owned(), Slot { revision: 1, entity })]))))
}

impl World {
    fn start(store: &Arc<SqliteStore>) -> World {
        let (entities, seen) = watch::channel(policies(true));
        let (reports, inbox) = mpsc::unbounded_channel();
        let received = Arc::<AtomicUsize>::default();
        let stream = Mutex::new(Some(Stream(inbox, Arc::clone(&received))));
        let material = Material::default();
        let runtimes = Runtimes::of(std::iter::once(THE_PLUGIN));
        let around = Surroundings {
            entities: seen,
            material: material.clone(),
            store: Arc::clone(store) as Arc<dyn store::Store>,
            outbound: Outbound::new(Vec::new()),
            health: Arc::new(Silence),
            clock: || NOW,
            trouble: Arc::new(|_, what| panic!("{what}")),
            runtimes: runtimes.clone(),
            reports: Arc::new(move |_| Box::new(stream.lock().unwrap().take().unwrap())),
            gateways: kit::Gateways::none(),
        };
        let gathering = tokio::spawn(gather(Sources::new(THE_PLUGIN, &around)));
        World { reports, entities, material, runtimes, gathering, received }
    }

    /// A gateway reports what it has seen.
    fn report(&self, node: &str, seen: &[FingerprintSeen]) {
        let reports = seen.iter().map(FingerprintSeen::encode_to_vec).chain([b"\xff".to_vec()]).collect();
        self.reports.send(GatewayReports { node: node.into(), reports }).unwrap();
    }

    /// What an endpoint answers.
    async fn call(&self, path: &'static str, body: Value) -> Value {
        let runtimes = self.runtimes.clone();
        let calling = tokio::task::spawn_blocking(move || {
            let operation = PLUGIN.operations.iter().find(|operation| operation.path == path).unwrap();
            let entities = Policies(Arc::default());
            let at_work = runtimes.get(PLUGIN.name);
            let tools = Tools::default();
            let context = OperationContext {
                entities: &entities,
                tools: &tools,
                at_work: at_work.as_ref(),
                now_millis: NOW,
                writing: None,
                traffic: None,
            };
            match operation.body.read(body).unwrap()(&context) {
                OperationAnswer::Done(answer)
                | OperationAnswer::Refused(answer)
                | OperationAnswer::Conflict(answer) => answer,
            }
        });
        calling.await.unwrap()
    }

    async fn decide(&self, family: &str, decision: &str) -> Value {
        self.call(DECIDE, json!({ "family": family, "ja4": CHROME, "decision": decision })).await
    }

    async fn until_seen(&self, entries: usize, networks: u64) -> Value {
        let looking = async {
            loop {
                let page = self.call(LIST, json!({ "min_networks": networks })).await;
                if page["total"] == json!(entries) {
                    return page["entries"].clone();
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(PATIENCE, looking).await.expect("what was reported is shown")
    }

    /// The families that gateways know of the fingerprint.
    fn published(&self) -> Option<u32> {
        let published = self.material.get(FINGERPRINTS)?;
        let mut table = Keys::load(published.chunks(FINGERPRINTS).flat_map(|chunk| chunk.data).collect()).unwrap();
        let mut state = Some(published.base_state());
        while let Some(Next::Change(change, next)) = self.material.next(FINGERPRINTS, TableKind::Keys, state) {
            // A state without a change: the base is what it is.
            if !change.data.is_empty() {
                table.apply(&change.data).unwrap();
            }
            state = Some(next);
        }
        table.find(CHROME.as_bytes()).and_then(families_of)
    }

    /// The control plane ends.
    async fn end(self) {
        let World { entities, gathering, .. } = self;
        drop(entities);
        gathering.await.unwrap();
    }
}

fn store() -> (tempfile::TempDir, Arc<SqliteStore>) {
    let folder = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(folder.path(), SqliteOptions::default()).unwrap();
    (folder, Arc::new(store))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pair_of_several_nodes_acts_once_it_is_accepted_and_survives_a_restart() {
    let (_folder, store) = store();
    let world = World::start(&store);
    for low in 0..4 {
        world.report("a", &[seen("chrome", CHROME, &[192, 0, low])]);
        world.report("b", &[seen("chrome", CHROME, &[192, 0, low + 2]), seen("curl", CHROME, &[192, 0, 2])]);
    }
    let shown = world.until_seen(1, 6).await;
    let expected = json!([{
        "family": "chrome", "ja4": CHROME, "state": "candidate", "networks": 6, "decided_at": null,
        "first_seen": NOW, "last_seen": NOW, "also": [{ "family": "curl", "networks": 1, "state": "candidate" }],
    }]);
    assert_eq!((shown, world.published()), (expected, None), "no number of networks makes it act");

    assert_eq!(world.decide("chrome", "accept").await, json!({ "done": true, "decision": "accept", "networks": 6 }));
    assert_eq!(world.decide("curl", "reject").await["done"], true);
    let chrome = Family::read("chrome").unwrap().bit();
    assert_eq!(world.published(), Some(chrome));
    world.end().await;

    let world = World::start(&store);
    let page = world.until_seen(2, 0).await;
    let states: Vec<&Value> = page.as_array().unwrap().iter().map(|pair| &pair["state"]).collect();
    assert_eq!((states, world.published()), (vec![&json!("accepted"), &json!("rejected")], Some(chrome)));
    assert_eq!(world.decide("chrome", "forget").await["done"], true);
    assert_eq!(world.published(), None);
    assert_eq!(world.until_seen(1, 0).await[0]["family"], "curl");
    // It is a candidate again when it is seen.
    world.report("a", &[seen("chrome", CHROME, &[192, 0, 2])]);
    assert_eq!(world.until_seen(2, 0).await[0]["state"], "candidate");
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_that_cannot_be_done_say_why_and_pages_are_cut() {
    let (_folder, store) = store();
    let world = World::start(&store);
    let vary = |number: u8| format!("t13d1516h2_{number:012x}_02713d6af862");
    let many: Vec<_> = (0..30).map(|number| seen("go", &vary(number), &[10, 0, number])).collect();
    world.report("a", &many);
    world.until_seen(30, 0).await;
    let page = world.call(LIST, json!({ "page": 3, "page_size": 12 })).await;
    assert_eq!((&page["total"], page["entries"].as_array().map(Vec::len)), (&json!(30), Some(6)));
    let one = world.call(LIST, json!({ "ja4": vary(7), "state": "candidate", "family": "go" })).await;
    assert_eq!((&one["total"], &one["entries"][0]["ja4"]), (&json!(1), &json!(vary(7))));
    assert_eq!(world.call(LIST, json!({ "state": "accepted" })).await["total"], 0);
    for (path, body, why) in [
        (LIST, json!({ "state": "new" }), "/state"),
        (LIST, json!({ "family": "netscape" }), "/family"),
        (LIST, json!({ "page": 0 }), "/page"),
        (LIST, json!({ "page_size": 501 }), "/page_size"),
        (DECIDE, json!({ "family": "crul", "ja4": CHROME, "decision": "accept" }), "/family"),
        (DECIDE, json!({ "family": "curl", "ja4": "x", "decision": "accept" }), "/ja4"),
        (DECIDE, json!({ "family": "curl", "ja4": CHROME, "decision": "accept" }), "was not seen"),
        (DECIDE, json!({ "family": "curl", "ja4": CHROME, "decision": "forget" }), "was not seen"),
    ] {
        let answer = world.call(path, body.clone()).await;
        let error = answer["error"].as_str().unwrap_or_default();
        assert!(answer["done"] == false && error.contains(why), "{body}: {answer}");
    }
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_policy_that_does_not_learn_takes_no_reports() {
    let (_folder, store) = store();
    let world = World::start(&store);
    world.report("a", &[seen("go", CHROME, &[10, 0, 1])]);
    world.until_seen(1, 0).await;
    world.entities.send(policies(false)).unwrap();
    world.report("a", &[seen("curl", CHROME, &[10, 0, 1])]);
    while world.received.load(Ordering::Acquire) < 2 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    // Carried out behind the report.
    assert_eq!(world.decide("go", "accept").await["done"], true);
    assert_eq!(world.until_seen(1, 0).await[0]["family"], "go");
    world.end().await;
}
