//! Questions of gateways, and the console's test of a scanner.

use std::collections::BTreeMap;
use std::sync::Mutex;

use kit::{
    AskedBody, BoxFuture, Collection, EntitySource, Head, Item, OperationAnswer, OperationContext, Runtime,
    SourceHealth, Tools,
};

use super::*;
use crate::control::scanning::answer::answer;
use crate::{JsonField, ScanFiles, ScanVerdict};

/// Entities of one collection.
struct Entities(Arc<Collection>);

impl EntitySource for Entities {
    fn slot(&self, collection: &str, id: &str) -> Option<&kit::Slot> {
        self.collection(collection)?.get(id)
    }

    fn collection(&self, collection: &str) -> Option<&Arc<Collection>> {
        (collection == "malware-scanners").then_some(&self.0)
    }
}

fn entities(scanners: &[(&str, Value)]) -> Entities {
    let slot = |(id, document): &(&str, Value)| {
        let head = Head { id: (*id).to_owned(), ..Head::default() };
        let entity = Arc::new(Item { head, body: definition(document.clone()) });
        ((*id).to_owned(), kit::Slot { revision: 1, entity })
    };
    Entities(Arc::new(scanners.iter().map(slot).collect::<BTreeMap<_, _>>()))
}

/// A body that is there, or lost on its way.
struct Given {
    bytes: Option<Vec<u8>>,
    complete: bool,
}

impl AskedBody for Given {
    fn length(&self) -> u64 {
        self.bytes.as_ref().map_or(10, |bytes| bytes.len() as u64)
    }

    fn is_complete(&self) -> bool {
        self.complete
    }

    fn collect(self: Box<Self>, _limit: usize) -> BoxFuture<'static, Option<Vec<u8>>> {
        Box::pin(async move { self.bytes })
    }
}

#[derive(Default)]
struct Told(Mutex<Vec<String>>);

impl SourceHealth for Told {
    fn fails(&self, subject: &str, why: &str) {
        self.0.lock().unwrap().push(format!("{subject}: {why}"));
    }

    fn works(&self, _subject: &str) {}

    fn ends(&self, _subject: &str) {}
}

fn question(kind: &str) -> ScanFiles {
    ScanFiles {
        scanner: "clam".into(),
        content_type: kind.as_bytes().to_vec(),
        json_fields: vec![JsonField { path: "files[]".into(), name: String::new() }],
        body_limit: 1 << 20,
        max_files: 10,
        millis: 1500,
        ..ScanFiles::default()
    }
}

fn form(content: &[u8]) -> Vec<u8> {
    let head = b"--b\r\ncontent-disposition: form-data; name=\"f\"; filename=\"a.txt\"\r\ncontent-type: x/y\r\n\r\n";
    [head.as_slice(), content, b"\r\n--b--\r\n"].concat()
}

#[tokio::test]
async fn the_files_of_a_body_are_scanned() {
    let server = clamd(Clamd::Works { limit: 1 << 20 }).await;
    let scanners = Scanners::default();
    let set = |port: u16| {
        let outbound = Outbound::new(Vec::new());
        let documents = [("clam", json!({ "port": port })), ("off", json!({ "enabled": false, "port": port }))];
        scanners.follow(&entities(&documents), &outbound)
    };
    assert!(set(server.port).is_empty());
    let told = Told::default();
    let ask = async |question: &ScanFiles, bytes: Option<Vec<u8>>| {
        let body = Given { bytes, complete: true };
        let answer = answer(&scanners, question, Box::new(body), &told, 0).await;
        (answer.verdict(), answer.detail)
    };
    let found = (ScanVerdict::Infected, "Eicar-Test-Signature".to_owned());
    let clean = (ScanVerdict::Clean, String::new());
    let kind = "multipart/form-data; boundary=b";
    assert_eq!(ask(&question(kind), Some(form(&eicar()))).await, found);
    assert_eq!(ask(&question(kind), Some(form(b"plain"))).await, clean);
    assert_eq!(ask(&question("application/octet-stream"), Some(eicar())).await, found);
    let document =
        json!({ "files": ["aGVsbG8=", base64::Engine::encode(&base64::engine::general_purpose::STANDARD, eicar())] });
    assert_eq!(ask(&question("application/json"), Some(document.to_string().into_bytes())).await, found);
    let coded = ScanFiles { content_encoding: b"gzip".to_vec(), ..question("application/octet-stream") };
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    std::io::Write::write_all(&mut gzip, &eicar()).unwrap();
    assert_eq!(ask(&coded, Some(gzip.finish().unwrap())).await, found);
    // Each content is scanned once.
    let before = server.scans();
    let twice = [form(b"same").strip_suffix(b"--b--\r\n").unwrap(), &form(b"same")].concat();
    assert_eq!((ask(&question(kind), Some(twice)).await, server.scans() - before), (clean.clone(), 1));

    let failed = async |question: &ScanFiles, bytes| {
        let (verdict, why) = ask(question, bytes).await;
        assert_eq!(verdict, ScanVerdict::Failed, "{why}");
        why
    };
    assert!(failed(&question(kind), None).await.contains("not sent all of the body"));
    assert!(failed(&coded, Some(b"no gzip".to_vec())).await.contains("compressed body"));
    for id in ["off", "gone"] {
        let other = ScanFiles { scanner: id.into(), ..question(kind) };
        assert!(failed(&other, Some(form(b"x"))).await.contains("no scanner"), "{id}");
    }
    assert!(told.0.lock().unwrap().is_empty(), "the scanner works");
    assert!(set(servers::closed_port().await).is_empty(), "a scanner that has changed is not gone");
    failed(&question(kind), Some(form(b"x"))).await;
    assert!(told.0.lock().unwrap()[0].starts_with("malware scanner clam: "));
    let slow = clamd(Clamd::Slow).await;
    set(slow.port);
    let short = ScanFiles { millis: 400, ..question(kind) };
    assert!(failed(&short, Some(form(b"x"))).await.contains("within"));
    assert_eq!(scanners.follow(&entities(&[]), &Outbound::new(Vec::new())), ["clam"]);
}

#[tokio::test]
async fn an_upload_that_waits_for_the_share_of_its_network_is_an_overrun_and_no_failure() {
    let server = clamd(Clamd::Works { limit: 1 << 20 }).await;
    let (scanners, told) = (Scanners::default(), Told::default());
    assert!(
        scanners.follow(&entities(&[("clam", json!({ "port": server.port }))]), &Outbound::new(Vec::new())).is_empty()
    );
    let held = scanners.memory.take("192.0.2.1", 32 << 20).await;
    let ask = async |ip: &str, millis: u32| {
        let question = ScanFiles { ip: ip.into(), millis, ..question("application/octet-stream") };
        let body = Given { bytes: Some(b"plain".to_vec()), complete: true };
        answer(&scanners, &question, Box::new(body), &told, 0).await.verdict()
    };
    assert_eq!(ask("192.0.2.77", 300).await, ScanVerdict::Overrun);
    assert_eq!(ask("198.51.100.1", 10_000).await, ScanVerdict::Clean, "another network");
    assert!(told.0.lock().unwrap().is_empty(), "the scanner works");
    drop(held);
    assert_eq!(ask("192.0.2.77", 10_000).await, ScanVerdict::Clean);
}

fn test_scanner(scanners: &Arc<Scanners>, entities: &Entities, body: Value) -> Value {
    let runtime: Runtime = Arc::clone(scanners) as Runtime;
    let tools = Tools::default();
    let context = OperationContext {
        entities,
        tools: &tools,
        at_work: Some(&runtime),
        now_millis: 0,
        writing: None,
        traffic: None,
    };
    match (OPERATIONS[0].body.read(body).unwrap())(&context) {
        OperationAnswer::Done(answer) => answer,
        OperationAnswer::Refused(answer) | OperationAnswer::Conflict(answer) => panic!("{answer}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_test_sends_both_files() {
    let (server, other) = (clamd(Clamd::Works { limit: 1 << 20 }).await, icap(Icap::OneEach).await);
    let lying = clamd(Clamd::Says("stream: OK")).await;
    let stored = [
        ("clam", json!({ "port": server.port })),
        ("icap", json!({ "kind": "icap", "port": other.port })),
        ("lying", json!({ "port": lying.port })),
        ("down", json!({ "port": servers::closed_port().await, "enabled": false })),
    ];
    let entities = entities(&stored);
    let scanners = Arc::new(Scanners::default());
    let unsaved = json!({ "scanner": { "kind": "clamd", "port": server.port } });
    tokio::task::spawn_blocking(move || {
        let ask = |body: Value| test_scanner(&scanners, &entities, body);
        assert_eq!(ask(json!({ "id": "clam" }))["error"], "this control plane calls no scanners");
        scanners.reach_by(Outbound::new(Vec::new()));
        let good = json!({
            "done": true, "eicar": { "verdict": "infected", "threat": "Eicar-Test-Signature" }, "clean": { "verdict": "clean" },
        });
        assert_eq!((ask(json!({ "id": "clam" })), ask(unsaved)), (good.clone(), good));
        assert_eq!(ask(json!({ "id": "icap" }))["eicar"]["threat"], "Eicar-Signature");
        let wrong = ask(json!({ "id": "lying" }));
        assert_eq!((&wrong["done"], &wrong["eicar"]["verdict"]), (&json!(false), &json!("clean")));
        let down = ask(json!({ "id": "down" }));
        assert_eq!((&down["done"], &down["clean"]["verdict"]), (&json!(false), &json!("failed")));
        assert!(down["eicar"]["reason"].is_string());
        for (body, error) in [
            (json!({}), "no scanner provided"),
            (json!({ "id": "gone" }), "there is no malware scanner `gone`"),
            (json!({ "id": "clam", "scanner": {} }), "exclude each other"),
            (json!({ "scanner": { "port": 0 } }), "invalid scanner: /port"),
            (json!({ "scanner": { "host": "/etc/passwd" } }), "invalid scanner: /host"),
        ] {
            let answer = ask(body);
            assert!(answer["done"] == false && answer["error"].as_str().unwrap().contains(error), "{answer}");
        }
    })
    .await
    .unwrap();
}

#[tokio::test]
async fn the_gatherer_follows_entities_and_tells_of_scanners_that_fail() {
    let (works, fails) = (clamd(Clamd::Works { limit: 1 << 20 }).await, clamd(Clamd::Closes).await);
    let of = |port: u16| Arc::new(entities(&[("clam", json!({ "port": port, "timeout_millis": 500 }))]));
    let (sender, seen) = tokio::sync::watch::channel(of(works.port) as Arc<dyn EntitySource + Send + Sync>);
    let folder = tempfile::tempdir().unwrap();
    let answerer: Arc<Mutex<Option<kit::AnswerWithBody>>> = Arc::default();
    let (registered, told) = (Arc::clone(&answerer), Arc::new(Told::default()));
    const PLUGIN: &kit::Plugin = &crate::control::PLUGIN;
    let around = kit::Surroundings {
        entities: seen,
        material: material::Material::default(),
        store: Arc::new(store::SqliteStore::open(folder.path(), store::SqliteOptions::default()).unwrap()),
        outbound: Outbound::new(Vec::new()),
        health: Arc::clone(&told) as Arc<dyn SourceHealth>,
        clock: || 0,
        trouble: Arc::new(|_, what| panic!("{what}")),
        runtimes: kit::Runtimes::of(std::iter::once(PLUGIN)),
        reports: Arc::new(|kind| panic!("nothing is received of `{kind}`")),
        gateways: kit::Gateways {
            answer_with_body: Arc::new(move |topic, answer| {
                assert_eq!(topic, "upload-guard.scan");
                *registered.lock().unwrap() = Some(answer);
            }),
            ..kit::Gateways::none()
        },
    };
    let gathering = tokio::spawn(gather(kit::Sources::new(PLUGIN, &around)));
    let until = async |what: &str, test: &dyn Fn() -> bool| {
        for _ in 0..500 {
            if test() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("{what}");
    };
    until("an answerer", &|| answerer.lock().unwrap().is_some()).await;
    let ask = async || {
        let answer = answerer.lock().unwrap().clone().unwrap();
        let body = Given { bytes: Some(form(&eicar())), complete: true };
        let question = prost::Message::encode_to_vec(&question("multipart/form-data; boundary=b"));
        let answer = answer(question, Box::new(body)).await.unwrap();
        <crate::ScanAnswer as prost::Message>::decode(answer.as_slice()).unwrap().verdict()
    };
    assert_eq!(ask().await, ScanVerdict::Infected);
    assert!(told.0.lock().unwrap().is_empty());
    sender.send_replace(of(fails.port));
    until("a failure", &|| told.0.lock().unwrap().iter().any(|line| line.starts_with("malware scanner clam: "))).await;
    assert_eq!(ask().await, ScanVerdict::Failed);
    drop(sender);
    gathering.await.unwrap();
}
