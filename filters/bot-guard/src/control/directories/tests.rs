//! Key directories from a server in the test, up to the table of gateways.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ed25519_dalek::SigningKey;
use kit::{
    Collection, Entity as _, EntitySource, Head, Item, Plugin, References, Runtimes, SourceHealth, Sources,
    Surroundings,
};
use material::{Material, Next};
use outbound::{Outbound, SystemResolver, Trust};
use serde_json::{Value, json};
use snapshot::TableKind;
use store::{SqliteOptions, SqliteStore};
use tables::{Keys, TableIndex as _};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::sync::watch;

use super::super::verify::Verification;
use super::super::{BotPolicy, PLUGIN};
use super::directory::INTERVAL;
use super::jwks::thumbprint;
use super::*;
use crate::control::fetching::LIFETIME;
use crate::{KEYS, SignerKey, key_row};

const NOW: u64 = 1_800_000_000_000;
const PATIENCE: Duration = Duration::from_secs(20);
const JSON: &str = "content-type: application/http-message-signatures-directory+json\r\n";

static THE_PLUGIN: &Plugin = &PLUGIN;

/// A server that answers by path, and notes the heads of requests.
struct Server {
    address: SocketAddr,
    answers: Arc<Mutex<BTreeMap<String, Vec<u8>>>>,
    seen: Arc<Mutex<Vec<String>>>,
}

impl Server {
    async fn start_on(address: &str) -> Server {
        let listener = TcpListener::bind((address, 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let (answers, seen) =
            (Arc::<Mutex<BTreeMap<String, Vec<u8>>>>::default(), Arc::<Mutex<Vec<String>>>::default());
        let (current, noted) = (Arc::clone(&answers), Arc::clone(&seen));
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let mut head = Vec::new();
                while !head.ends_with(b"\r\n\r\n") {
                    let Ok(byte) = stream.read_u8().await else { break };
                    head.push(byte);
                }
                let head = String::from_utf8(head).unwrap();
                let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
                noted.lock().unwrap().push(head.to_ascii_lowercase());
                let bytes = current.lock().unwrap().get(&path).cloned();
                let _ = stream.write_all(&bytes.unwrap_or_else(|| answer("404 Not Found", "", b""))).await;
                let _ = stream.shutdown().await;
            }
        });
        Server { address, answers, seen }
    }

    /// One whose directory has these keys.
    async fn with(keys: &[u8]) -> Server {
        let server = Server::start_on("127.0.0.1").await;
        server.says(WELL_KNOWN, &set(keys));
        server
    }

    fn origin(&self) -> String {
        format!("http://{}", self.address)
    }

    fn says(&self, path: &str, answer: &[u8]) {
        self.answers.lock().unwrap().insert(path.to_owned(), answer.to_vec());
    }

    fn seen(&self) -> Vec<String> {
        self.seen.lock().unwrap().clone()
    }
}

fn answer(status: &str, headers: &str, body: &[u8]) -> Vec<u8> {
    let head = format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\n{headers}connection: close\r\n\r\n", body.len());
    [head.as_bytes(), body].concat()
}

fn public(number: u8) -> [u8; 32] {
    SigningKey::from_bytes(&[number; 32]).verifying_key().to_bytes()
}

fn jwk(number: u8) -> Value {
    json!({ "kty": "OKP", "crv": "Ed25519", "use": "sig", "x": URL_SAFE_NO_PAD.encode(public(number)) })
}

/// A directory with these keys, and one of RSA.
fn jwks(keys: &[u8]) -> Value {
    let rsa = json!({ "kty": "RSA", "n": "AQAB", "e": "AQAB" });
    json!({ "keys": keys.iter().map(|number| jwk(*number)).chain([rsa]).collect::<Vec<_>>() })
}

fn set(keys: &[u8]) -> Vec<u8> {
    answer("200 OK", &format!("{JSON}etag: \"one\"\r\n"), jwks(keys).to_string().as_bytes())
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

/// A policy whose bots have these directories, each of a type.
fn policy(directories: &[(&str, String)]) -> BotPolicy {
    let signature = |(number, (kind, url)): (usize, &(&str, String))| {
        let name = format!("b{number}");
        json!({ "name": name, "category": "ai", "ua_contains": [name], "key_directory": url, "key_directory_type": kind })
    };
    let signatures: Vec<Value> = directories.iter().enumerate().map(signature).collect();
    serde_json::from_value(json!({ "signatures": signatures, "rules": [], "verify_by_signatures": true })).unwrap()
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

    /// Which of the keys 1 to 9 gateways have of a directory; `None` for one that is not in force.
    fn keys(&self, kind: DirectoryKind, url: &str) -> Option<Vec<u8>> {
        let published = self.material.get(KEYS)?;
        let mut table = Keys::load(published.chunks(KEYS).flat_map(|chunk| chunk.data).collect()).unwrap();
        let mut state = Some(published.base_state());
        while let Some(Next::Change(change, next)) = self.material.next(KEYS, TableKind::Keys, state) {
            if !change.data.is_empty() {
                table.apply(&change.data).unwrap();
            }
            state = Some(next);
        }
        let label = crate::directory_label(&crate::identifier(kind, url.as_bytes()).unwrap());
        table.find(&label)?;
        let has = |number: &u8| {
            let row = table.find(&key_row(&label, &thumbprint(&public(*number))));
            row.is_some_and(|row| SignerKey::read(row).unwrap().public == public(*number))
        };
        Some((1..=9).filter(has).collect())
    }

    fn of(&self, server: &Server) -> Option<Vec<u8>> {
        self.keys(DirectoryKind::Directory, &server.origin())
    }

    async fn until(&self, what: &str, holds: impl Fn(&World) -> bool) {
        let waiting = async {
            while !holds(self) {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        let waited = tokio::time::timeout(PATIENCE, waiting).await;
        waited.unwrap_or_else(|_| panic!("{what}: {:?} {:?}", self.runtime.directories(), self.told.0.lock().unwrap()));
    }

    /// Waits until all directories were confirmed at a time.
    async fn confirmed(&self, at: u64) {
        let is = |world: &World| {
            let shown = world.runtime.directories();
            !shown.is_empty()
                && shown.iter().all(|directory| directory.fetched_at == Some(at) && directory.error.is_none())
        };
        self.until("the confirmation", is).await;
    }

    /// Waits until a directory has failed with this text.
    async fn fails(&self, text: &str) {
        let is = |world: &World| {
            let shown = world.runtime.directories();
            shown.iter().any(|directory| directory.error.as_ref().is_some_and(|error| error.contains(text)))
        };
        self.until(text, is).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_of_directories_are_one_table_and_outlive_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let (one, two) = (Server::with(&[1, 2]).await, Server::with(&[2, 3]).await);
    let policy = policy(&[("directory", one.origin()), ("directory", format!("{}{WELL_KNOWN}", two.origin()))]);
    let both = |world: &World| world.of(&one) == Some(vec![1, 2]) && world.of(&two) == Some(vec![2, 3]);
    {
        let world = World::start(folder.path(), &policy, || NOW);
        world.until("both directories", both).await;
        world.confirmed(NOW).await;
        let shown = world.runtime.directories();
        assert!(shown.iter().all(|directory| directory.in_force && (directory.keys, directory.ignored) == (2, 1)));
        assert!(
            one.seen()[0].contains("accept: application/http-message-signatures-directory+json"),
            "{:?}",
            one.seen()
        );
    }
    // The servers are gone: what was kept is in force, and not fetched before it is due.
    let asked = (one.seen().len(), two.seen().len());
    one.says(WELL_KNOWN, b"");
    two.says(WELL_KNOWN, b"");
    let world = World::start(folder.path(), &policy, || NOW + INTERVAL / 2);
    world.until("the kept keys", both).await;
    assert_eq!((one.seen().len(), two.seen().len()), asked);
    // Only enabled policies that verify by signatures have directories.
    world.entities.send(entities(&BotPolicy { verify_by_signatures: false, ..policy.clone() })).unwrap();
    world.until("no directory", |world| world.of(&one).is_none() && world.of(&two).is_none()).await;
    world.until("nothing to show", |world| world.runtime.directories().is_empty()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_rotate_and_can_be_withdrawn() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::with(&[1]).await;
    let policy = policy(&[("directory", server.origin())]);
    {
        let world = World::start(folder.path(), &policy, || NOW);
        world.confirmed(NOW).await;
        assert_eq!(world.of(&server), Some(vec![1]));
    }
    server.says(WELL_KNOWN, &set(&[1, 2]));
    {
        let world = World::start(folder.path(), &policy, || NOW + 2 * INTERVAL);
        world.confirmed(NOW + 2 * INTERVAL).await;
        world.until("both keys", |world| world.of(&server) == Some(vec![1, 2])).await;
    }
    assert!(server.seen().last().unwrap().contains("if-none-match: \"one\""), "{:?}", server.seen());
    server.says(WELL_KNOWN, b"HTTP/1.1 304 Not Modified\r\nconnection: close\r\n\r\n");
    {
        let world = World::start(folder.path(), &policy, || NOW + 4 * INTERVAL);
        world.confirmed(NOW + 4 * INTERVAL).await;
        assert_eq!(world.of(&server), Some(vec![1, 2]), "unchanged");
    }
    // A directory that is there and has no key any more is no failure.
    server.says(WELL_KNOWN, &set(&[]));
    let world = World::start(folder.path(), &policy, || NOW + 6 * INTERVAL);
    world.confirmed(NOW + 6 * INTERVAL).await;
    world.until("no key", |world| world.of(&server) == Some(Vec::new())).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_directory_that_nobody_confirms_counts_for_nothing_after_a_week() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::with(&[1]).await;
    let policy = policy(&[("directory", server.origin())]);
    {
        let world = World::start(folder.path(), &policy, || NOW);
        world.confirmed(NOW).await;
    }
    server.says(WELL_KNOWN, &answer("503 Unavailable", "", b""));
    {
        let world = World::start(folder.path(), &policy, || NOW + LIFETIME - 1);
        world.fails("503").await;
        assert_eq!(world.of(&server), Some(vec![1]), "a failure changes nothing");
        assert_eq!(world.told.0.lock().unwrap().len(), 1);
    }
    let world = World::start(folder.path(), &policy, || NOW + LIFETIME);
    world.fails("503").await;
    assert_eq!(world.of(&server), None);
    assert!(!world.runtime.directories()[0].in_force);
    // A table without it: gateways would keep the one that they have.
    let published = world.material.get(KEYS).unwrap();
    let table = Keys::load(published.chunks(KEYS).flat_map(|chunk| chunk.data).collect()).unwrap();
    assert_eq!(table.rows(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_directory_that_lies_changes_nothing() {
    let elsewhere = Server::start_on("127.0.0.2").await;
    elsewhere.says(WELL_KNOWN, &set(&[9]));
    let other = Server::with(&[9]).await;
    let many: Vec<u8> = (1..=65).collect();
    let ok = |body: &[u8]| answer("200 OK", JSON, body);
    let redirect =
        |to: &Server, status: &str| answer(status, &format!("location: {}{WELL_KNOWN}\r\n", to.origin()), b"");
    let cases: Vec<(Vec<u8>, &str)> = vec![
        (ok(&[b"{\"keys\":[".as_slice(), &vec![b' '; 256 << 10], b"]}"].concat()), "longer"),
        (set(&many), "more than 64 keys"),
        (
            answer("200 OK", "content-type: text/html\r\n", jwks(&[9]).to_string().as_bytes()),
            "content type `text/html`",
        ),
        (answer("200 OK", "", jwks(&[9]).to_string().as_bytes()), "content type ``"),
        (ok(b"<!doctype html>"), "no key set"),
        (ok(b"{\"keys\":[{\"kty\":\"OKP\""), "no key set"),
        (ok(b"{\"keys\":{}}"), "no key set"),
        (ok(b"[]"), "no key set"),
        (answer("404 Not Found", JSON, jwks(&[9]).to_string().as_bytes()), "404"),
        (answer("206 Partial Content", JSON, jwks(&[9]).to_string().as_bytes()), "206"),
        (redirect(&elsewhere, "302 Found"), "302"),
        (redirect(&other, "307 Temporary Redirect"), "307"),
        (b"nonsense".to_vec(), ""),
    ];
    for (lie, why) in cases {
        let folder = tempfile::tempdir().unwrap();
        let server = Server::with(&[1]).await;
        let policy = policy(&[("directory", server.origin())]);
        {
            let world = World::start(folder.path(), &policy, || NOW);
            world.confirmed(NOW).await;
        }
        server.says(WELL_KNOWN, &lie);
        let world = World::start(folder.path(), &policy, || NOW + 2 * INTERVAL);
        world.fails(why).await;
        assert_eq!(world.of(&server), Some(vec![1]), "{why}");
    }
    assert_eq!((elsewhere.seen(), other.seen()), (Vec::new(), Vec::new()), "no redirect is followed");
    // One in the operator's network that is not allowed is never called.
    let folder = tempfile::tempdir().unwrap();
    let world = World::start(folder.path(), &policy(&[("directory", elsewhere.origin())]), || NOW);
    world.fails("loopback").await;
    assert_eq!(elsewhere.seen(), [] as [&str; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn cards_and_urls_of_key_sets_lead_to_keys_as_well() {
    let folder = tempfile::tempdir().unwrap();
    let (server, elsewhere) = (Server::start_on("127.0.0.1").await, Server::start_on("127.0.0.2").await);
    let url = |path: &str| format!("{}{path}", server.origin());
    let card = |path: &str, keys: Value| {
        let mut card = json!({ "client_id": url(path), "client_name": "Example Bot" });
        card.as_object_mut().unwrap().extend(keys.as_object().unwrap().clone());
        server.says(
            path,
            &answer("200 OK", "content-type: application/json; charset=utf-8\r\n", card.to_string().as_bytes()),
        );
    };
    server.says(
        "/keys.json?v=1",
        &answer("200 OK", "content-type: application/jwk-set+json\r\n", jwks(&[1]).to_string().as_bytes()),
    );
    server.says("/more.json", &set(&[2]));
    card("/here", json!({ "jwks": jwks(&[3]) }));
    card("/there", json!({ "jwks_uri": url("/more.json") }));
    card("/private", json!({ "jwks_uri": format!("{}{WELL_KNOWN}", elsewhere.origin()) }));
    card("/other", json!({ "client_id": url("/here"), "jwks": jwks(&[4]) }));
    let kinds = [
        ("jwks_uri", "/keys.json?v=1"),
        ("cimd", "/here"),
        ("cimd", "/there"),
        ("cimd", "/private"),
        ("cimd", "/other"),
    ];
    let world = World::start(folder.path(), &policy(&kinds.map(|(kind, path)| (kind, url(path)))), || NOW);
    let of = |world: &World, kind, path: &str| world.keys(kind, &url(path));
    let expected = [
        (DirectoryKind::JwksUri, "/keys.json", 1),
        (DirectoryKind::Cimd, "/here", 3),
        (DirectoryKind::Cimd, "/there", 2),
    ];
    for (kind, path, key) in expected {
        world.until(path, |world| of(world, kind, path) == Some(vec![key])).await;
    }
    world.fails("loopback").await;
    world.fails("`client_id`").await;
    for path in ["/private", "/other"] {
        assert_eq!(of(&world, DirectoryKind::Cimd, path), None, "{path}");
    }
    assert_eq!(elsewhere.seen(), [] as [&str; 0]);
    assert_eq!(world.keys(DirectoryKind::Cimd, &url("/keys.json")), None, "the type is part of what it is");
}

#[test]
fn directories_of_all_policies_are_bounded_and_each_is_there_once() {
    let of = |policy: &BotPolicy| wanted(&*entities(policy)).into_iter().map(|wanted| wanted.url).collect::<Vec<_>>();
    let many: Vec<_> = (0..100).map(|number| ("directory", format!("https://{number}.example"))).collect();
    let all = policy(&many);
    let expected: Vec<String> = (0..64).map(|number| format!("https://{number}.example{WELL_KNOWN}")).collect();
    assert_eq!(of(&all), expected);
    assert_eq!(of(&BotPolicy { verify_known_bots: false, ..all.clone() }), [] as [&str; 0]);
    assert_eq!(of(&BotPolicy { enabled: false, ..all }), [] as [&str; 0]);
    assert_eq!(of(&BotPolicy::default()), [] as [&str; 0], "off by default");
    let known = BotPolicy { verify_by_signatures: true, ..BotPolicy::default() };
    assert_eq!(of(&known), ["https://chatgpt.com/.well-known/http-message-signatures-directory"]);
    let spellings = [
        "https://a.example",
        "https://A.example:443/",
        "https://a.example/.well-known/http-message-signatures-directory",
    ];
    assert_eq!(of(&policy(&spellings.map(|url| ("directory", url.to_owned())))).len(), 1);
}

struct NoReferences;

impl References for NoReferences {
    fn exists(&self, _collection: &str, _id: &str) -> Option<bool> {
        None
    }
}

#[test]
fn a_directory_has_a_url_of_its_type_with_tls() {
    let problems = |kind: &str, url: &str| {
        let policy = policy(&[(kind, url.to_owned())]);
        policy.check(&Head::default(), &NoReferences).into_iter().map(|problem| problem.to_string()).collect::<Vec<_>>()
    };
    for (kind, url) in [
        ("directory", ""),
        ("directory", "https://a.example"),
        ("directory", "https://a.example:8443/"),
        ("directory", "https://a.example/.well-known/http-message-signatures-directory"),
        ("directory", "http://127.0.0.1:8080"),
        ("directory", "http://[::1]:8080"),
        ("jwks_uri", "https://a.example/keys.json?x"),
        ("cimd", "https://a.example/card"),
    ] {
        assert_eq!(problems(kind, url), [] as [&str; 0], "{kind} {url}");
    }
    for (kind, url, expected) in [
        ("directory", "a.example", "/signatures/0/key_directory: "),
        ("directory", "https://a.example/keys.json", "`https://a.example/keys.json` cannot be a key directory"),
        ("directory", "http://a.example", "`http://a.example` is without TLS"),
        ("cimd", "http://192.0.2.1/card", "is without TLS"),
        ("jwks_uri", "https://u:p@a.example/", "credentials"),
    ] {
        let found = problems(kind, url);
        assert!(found.len() == 1 && found[0].contains(expected), "{kind} {url}: {found:?}");
    }
}

#[test]
fn kept_keys_are_taken_as_they_were_written_alone() {
    let set = super::directory::FetchedSet {
        set: super::jwks::KeySet { keys: vec![SignerKey { public: public(1), from: 1, until: 2 }], ignored: 3 },
        fetched_at: NOW,
        validators: lists::Validators { etag: Some("\"a\"".into()), last_modified: None },
        source: "here".to_owned(),
    };
    let document = keep::document(&set);
    assert_eq!(keep::restored(&document), Some(set.clone()));
    for place in 0..document.len() {
        let mut damaged = document.clone();
        damaged[place] ^= 0x40;
        assert_eq!(keep::restored(&damaged), None, "{place}");
    }
    let wanted = WantedDirectory {
        identifier: "directory https://a.example".to_owned(),
        kind: DirectoryKind::Directory,
        url: format!("https://a.example{WELL_KNOWN}"),
        bot: "a".to_owned(),
    };
    let taken = |source: &str, fetched_at| {
        let kept = super::directory::FetchedSet { source: source.to_owned(), fetched_at, ..set.clone() };
        super::directory::KeyDirectory::new(wanted.clone(), Some(kept), NOW).in_force(NOW).is_some()
    };
    let source = format!("{} {}", wanted.identifier, wanted.url);
    assert!(taken(&source, NOW));
    assert!(!taken("elsewhere", NOW), "of another URL");
    assert!(!taken(&source, NOW + 1), "from the future");
}
