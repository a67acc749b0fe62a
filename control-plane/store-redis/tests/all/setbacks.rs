//! A server that has lost changes: it was started on older data, another one took over that had missed them, or it holds nothing any more.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use accounts::{AdminKey, Scope};
use events::{Audit, AuditAction, EventHub, Exporter, Outbox};
use palisade_store_redis::{RedisOptions, connect};
use palisade_tests::proxy::Proxy;
use store::fabric::{Allowance, LAST_MOMENT, Note};
use store::{
    AccessChange, Elsewhere, FabricStore as _, Held, Others, Setback, Setbacks, SqliteOptions, SqliteStore, Store,
    StoreError, migrate,
};

use crate::conformance::{NOW, ban};
use crate::server::RedisServer;

/// Only keeps a failure from hanging the test.
const LONG: Duration = Duration::from_secs(60);
const ENDS: u64 = NOW + 3_600_000;

async fn put(store: &SqliteStore, id: &str) {
    store.entity_put("c", id, id.to_owned(), 0).await.unwrap();
}

async fn issue(store: &SqliteStore, key: &str) {
    store.bans_issue(vec![ban(key, NOW, ENDS, true)], NOW, Note::none()).await.unwrap();
}

async fn allow(store: &SqliteStore, key: &str) {
    let entry = Allowance { key: key.to_owned(), added_at: NOW, ..Allowance::default() };
    store.allow(entry, key, false, Note::none()).await.unwrap();
}

/// What a control plane reads, once the server answers.
async fn state(store: &SqliteStore) -> (u64, Vec<String>, Vec<String>, Vec<String>) {
    let read = async || -> Result<_, StoreError> {
        let entities = store.entities().await?;
        let bans = store.bans(NOW).await?.into_iter().map(|ban| ban.key).collect();
        let allowed = store.allowlist(NOW).await?.into_iter().map(|entry| entry.key).collect();
        Ok((entities.revision, entities.rows.into_iter().map(|row| row.id).collect(), bans, allowed))
    };
    let answered = async {
        loop {
            match read().await {
                Ok(state) => return state,
                Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
            }
        }
    };
    tokio::time::timeout(LONG, answered).await.unwrap()
}

async fn next(setbacks: &mut Setbacks) -> Setback {
    (*tokio::time::timeout(LONG, setbacks.next()).await.unwrap().unwrap()).clone()
}

async fn until_anything(others: &mut Others) {
    let anything = async { while others.next().await.unwrap() != Elsewhere::Anything {} };
    tokio::time::timeout(LONG, anything).await.unwrap();
}

fn ends(keys: &[&str], until: u64) -> BTreeMap<String, u64> {
    keys.iter().map(|key| ((*key).to_owned(), until)).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_on_older_data_is_followed_and_what_it_has_lost_is_named() {
    let Some(mut server) = RedisServer::start().await else { return };
    let (one, other) = (server.open().await, server.open().await);
    put(&one, "a").await;
    issue(&one, "ip:192.0.2.1").await;
    allow(&one, "ip:192.0.2.8").await;
    let older = state(&other).await;
    let saved = server.saved();
    put(&other, "b").await;
    issue(&other, "ip:192.0.2.2").await;
    allow(&one, "ip:192.0.2.9").await;
    assert_eq!(one.ban_lift("ip:192.0.2.1", NOW, Note::none()).await, Ok(true));
    let newer = state(&one).await;
    assert_eq!(newer, state(&other).await);
    let (mut first, mut second) = (one.setbacks(), other.setbacks());
    let (mut others, mut revisions) = (one.elsewhere(), one.changes());
    revisions.mark_unchanged();
    server.restore(&saved).await;
    // Without a read: the notices find out.
    for setbacks in [&mut first, &mut second] {
        let Setback { had, has, lost } = next(setbacks).await;
        assert_eq!((had, has), (7, 3));
        let expected = Held { bans: ends(&["ip:192.0.2.2"], ENDS), allowed: ends(&["ip:192.0.2.9"], LAST_MOMENT) };
        assert_eq!(lost, expected);
    }
    until_anything(&mut others).await;
    tokio::time::timeout(LONG, revisions.wait_for(|revision| *revision == 1)).await.unwrap().unwrap();
    for store in [&one, &other, &server.open().await] {
        assert_eq!(state(store).await, older);
    }
    // A gateway that was away learns it, and nothing that stands is named.
    let lost = Held { bans: ends(&["ip:192.0.2.1", "ip:192.0.2.2"], ENDS), allowed: ends(&["ip:192.0.2.9"], 9) };
    let noted = Held { bans: ends(&["ip:192.0.2.2"], ENDS), allowed: ends(&["ip:192.0.2.9"], 9) };
    for store in [&one, &other] {
        assert_eq!(store.note_lost(lost.clone(), NOW).await, Ok(noted.clone()));
    }
    assert_eq!(other.lifted(true).await.unwrap(), ["ip:192.0.2.2"]);
    assert_eq!(other.lifted(false).await.unwrap(), ["ip:192.0.2.9"]);
    // All go on together.
    put(&one, "c").await;
    assert_eq!(state(&one).await, state(&other).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn events_of_the_outbox_are_sent_whose_numbers_were_those_of_events_that_the_server_has_lost() {
    let Some(mut server) = RedisServer::start().await else { return };
    let store: Arc<dyn Store> = Arc::new(server.open().await);
    let file = server.folder.path().join("sent");
    let hub = EventHub::new(vec![Exporter::File(file.clone())], || NOW);
    let outbox = Outbox::new(Arc::clone(&store), hub.clone());
    let change = async |name: &str| {
        let key = AdminKey::issue(name, &[Scope::Read], 1, None).unwrap().key;
        let event = Audit::new(AuditAction::KeyCreate).of(format!("admin-keys/{name}")).note(NOW);
        assert_eq!(store.access_change(AccessChange::KeyPut(key), event).await, Ok(true));
    };
    let sent = async |name: &str| {
        let told = async {
            while !std::fs::read_to_string(&file).unwrap_or_default().contains(&format!("admin-keys/{name}\"")) {
                let _ = outbox.look().await;
                hub.flush().await;
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            outbox.look().await.unwrap();
        };
        assert!(tokio::time::timeout(LONG, told).await.is_ok(), "{name} was not sent");
    };
    change("a").await;
    sent("a").await;
    let saved = server.saved();
    for name in ["b", "c", "d"] {
        change(name).await;
        sent(name).await;
    }
    let mut setbacks = store.setbacks();
    server.restore(&saved).await;
    next(&mut setbacks).await;
    for name in ["e", "f", "g", "h"] {
        change(name).await;
    }
    for name in ["e", "f", "g", "h"] {
        sent(name).await;
    }
    assert_eq!(store.kept_events(0).await.unwrap(), Vec::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failover_to_a_server_that_has_missed_changes_is_followed() {
    // The new server has taken fewer changes since than the old one, as many, and more.
    for (lost, made) in [(3, 1), (2, 2), (1, 3)] {
        // It waits for further replicas otherwise.
        let Some(primary) = RedisServer::start_with(&["--repl-diskless-sync-delay", "0"]).await else { return };
        let Some(replica) = RedisServer::start().await else { return };
        let proxy = Proxy::start(primary.address());
        let url = format!("redis://{}?timeout_millis=60000", proxy.address());
        let (one, other) = (primary.open_at(&url).await.unwrap(), primary.open_at(&url).await.unwrap());
        put(&one, "a").await;
        replica.ask(&format!("REPLICAOF 127.0.0.1 {}", primary.port));
        let follows = async {
            while replica.ask("HGET {palisade}:head token") != primary.ask("HGET {palisade}:head token") {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        tokio::time::timeout(LONG, follows).await.unwrap();
        replica.ask("REPLICAOF NO ONE");
        for number in 1..lost {
            put(&one, &format!("lost-{number}")).await;
        }
        issue(&other, "ip:192.0.2.1").await;
        let (mut first, mut second, mut others) = (one.setbacks(), other.setbacks(), other.elsewhere());
        assert_eq!(state(&one).await, state(&other).await);
        let promoted = replica.open().await;
        for number in 1..made {
            put(&promoted, &format!("made-{number}")).await;
        }
        issue(&promoted, "ip:192.0.2.2").await;
        proxy.lead_to(replica.address());
        for setbacks in [&mut first, &mut second] {
            let setback = next(setbacks).await;
            assert_eq!((setback.had, setback.has), (1 + lost, 1 + made));
            assert_eq!(setback.lost.bans, ends(&["ip:192.0.2.1"], ENDS));
        }
        until_anything(&mut others).await;
        let expected = state(&promoted).await;
        assert_eq!((state(&one).await, state(&other).await), (expected.clone(), expected));
        put(&one, "after").await;
        assert_eq!(state(&other).await, state(&promoted).await);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_emptied_server_is_refused_and_filled_again_from_a_replica() {
    let Some(server) = RedisServer::start().await else { return };
    let (one, other) = (server.open().await, server.open().await);
    put(&one, "a").await;
    issue(&one, "ip:192.0.2.1").await;
    let before = state(&other).await;
    server.ask("FLUSHALL");
    for store in [&one, &other] {
        let read = store.entities().await.unwrap_err();
        assert!(read.to_string().contains("lost everything"), "{read}");
        assert_eq!(store.entity_put("c", "b", "1".into(), 0).await, Err(read.clone()));
        assert_eq!(store.faults().writes, Some(read));
        // Gateways are told what was known last.
        assert_eq!(store.bans_standing(NOW).await.unwrap().len(), 1);
    }
    assert!(server.ask("EXISTS {palisade}:head {palisade}:lease").starts_with(":0"), "nothing was written");
    // The replica of a control plane that runs is a backup.
    let folder = tempfile::tempdir().unwrap();
    let (file, data) = (folder.path().join("saved.db"), folder.path().join("data"));
    store::backup(one.path().parent().unwrap(), &file).unwrap();
    for store in [&one, &other] {
        store.close().await.unwrap();
    }
    store::restore(&data, &file, NOW).unwrap();
    let source = SqliteStore::open(&data, SqliteOptions::default()).unwrap();
    let target = connect(RedisOptions::parse(&server.url()).unwrap()).await.unwrap();
    migrate::to_server(&source, target, "there", |_, _| ()).await.unwrap();
    let (one, other) = (server.open().await, server.open().await);
    let after = state(&one).await;
    assert_eq!((&after.1, &after.2, after.0 > before.0), (&before.1, &before.2, true));
    // One that is started anew on an empty server begins an empty store, which the others follow.
    let mut setbacks = other.setbacks();
    server.ask("FLUSHALL");
    let anew = server.open().await;
    put(&anew, "z").await;
    assert_eq!(next(&mut setbacks).await.lost.bans.len(), 1);
    assert_eq!(state(&other).await, state(&anew).await);
    drop(one);
}
