//! Several control planes on one server.

use std::sync::Arc;
use std::time::Duration;

use store::fabric::{Ban, IncidentRow, MergeIncident, Note, Workflow};
use store::messages::Listener;
use store::{Elsewhere, FabricStore as _, Keys, Others, Store, StoreError};

use crate::server::RedisServer;

/// Long enough for any machine; what is waited for is the notice.
const LONG: Duration = Duration::from_secs(60);

#[tokio::test(flavor = "multi_thread")]
async fn a_change_is_announced_to_the_others_also_after_a_restart_of_the_server() {
    let Some(mut server) = RedisServer::start().await else { return };
    let (one, other) = (server.open().await, server.open().await);
    let mut changes = other.changes();
    assert_eq!(one.entity_put("c", "a", "1".into(), 0).await, Ok(1));
    tokio::time::timeout(LONG, changes.wait_for(|revision| *revision == 1)).await.unwrap().unwrap();
    server.kill();
    assert!(server.begin().await);
    let put = async || loop {
        match one.entity_put("c", "b", "1".into(), 0).await {
            Ok(revision) => return revision,
            // Made by one whose answer was lost with the connection.
            Err(StoreError::Conflict { current }) => return current,
            Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
        }
    };
    assert_eq!(tokio::time::timeout(LONG, put()).await, Ok(2));
    tokio::time::timeout(LONG, changes.wait_for(|revision| *revision == 2)).await.unwrap().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_prefix_separates_stores_of_one_server() {
    let Some(server) = RedisServer::start().await else { return };
    let (one, other) = (server.open().await, server.open_at(&format!("{}?prefix=other", server.url())).await.unwrap());
    assert_eq!(one.entity_put("c", "a", "1".into(), 0).await, Ok(1));
    assert_eq!(other.entities().await.unwrap().rows.len(), 0);
    assert_eq!(other.entity_put("c", "a", "2".into(), 0).await, Ok(1));
    assert_eq!(one.entities().await.unwrap().rows[0].body, "1");
    let keys = server.ask("KEYS *");
    let named =
        keys.lines().filter(|line| line.contains(':') && !line.starts_with(['$', '*', '+'])).collect::<Vec<_>>();
    assert!(
        !named.is_empty() && named.iter().all(|key| key.starts_with("{palisade}:") || key.starts_with("{other}:")),
        "{keys}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replica_that_was_away_for_long_reads_everything_anew() {
    let Some(server) = RedisServer::start().await else { return };
    let (one, other) = (server.open().await, server.open().await);
    one.document_put("old", vec![1]).await.unwrap();
    assert_eq!(other.document_names("").await.unwrap(), ["old"]);
    // What it would need of the log is gone.
    one.document_remove("old").await.unwrap();
    one.document_put("new", vec![1]).await.unwrap();
    server.ask("DEL {palisade}:log");
    assert_eq!(other.document_names("").await.unwrap(), ["new"]);
    assert_eq!(other.document_put("more", vec![1]).await, Ok(()));
    assert_eq!(one.document_names("").await.unwrap(), ["more", "new"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lease_that_is_not_given_back_ends() {
    let Some(server) = RedisServer::start().await else { return };
    let store = server.open().await;
    server.ask("SET {palisade}:lease another PX 300");
    assert_eq!(store.document_put("d", vec![1]).await, Ok(()));
    // One that never ends is an error, and nothing was written.
    server.ask("SET {palisade}:lease another");
    assert!(matches!(store.document_put("e", vec![1]).await, Err(StoreError::ServerBusy { .. })));
    assert!(store.faults().writes.is_some());
    assert_eq!(store.document_names("").await.unwrap(), ["d"]);
    server.ask("DEL {palisade}:lease");
    assert_eq!(store.document_put("e", vec![1]).await, Ok(()));
    assert_eq!(store.faults().writes, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn another_schema_is_left_alone() {
    let Some(server) = RedisServer::start().await else { return };
    let store = server.open().await;
    store.document_put("d", vec![1]).await.unwrap();
    server.ask("HSET {palisade}:head schema 999");
    // What the change before has kept of it ends.
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert!(matches!(store.document("d").await, Err(StoreError::TooNew { found: 999, .. })));
    assert!(matches!(store.document_put("d", vec![2]).await, Err(StoreError::TooNew { found: 999, .. })));
    assert!(server.ask("EXISTS {palisade}:lease").starts_with(":0"), "it keeps no other one from the lease");
    assert!(matches!(server.open_at(&server.url()).await.err(), Some(StoreError::TooNew { found: 999, .. })));
    server.ask("HSET {palisade}:head schema 1");
    let error = server.open_at(&server.url()).await.err().unwrap().to_string();
    assert!(error.contains("migrate-store"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hundred_thousand_bans_are_shared_and_lifted_at_once() {
    let Some(server) = RedisServer::start().await else { return };
    let one: Arc<dyn Store> = Arc::new(server.open().await);
    let ban = |number: u32| Ban {
        key: format!("user:{number}"),
        issued_at: 1,
        until: 1_000_000,
        issued_by: "alice".into(),
        by_hand: true,
        ..Ban::default()
    };
    for first in (0..100_000).step_by(10_000) {
        one.bans_issue((first..first + 10_000).map(ban).collect(), 1, Note::none()).await.unwrap();
    }
    let other = server.open().await;
    assert_eq!(other.bans_count(2).await, Ok(100_000));
    assert_eq!(other.bans_lift_all(3, Note::none()).await.unwrap().len(), 100_000);
    assert_eq!(one.bans_count(3).await, Ok(0));
    assert_eq!(one.lifted(true).await.unwrap().len(), 100_000);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_others_change_is_announced_by_its_keys() {
    let Some(server) = RedisServer::start().await else { return };
    let one = server.open().await;
    one.document_put("first", vec![1]).await.unwrap();
    let other = server.open().await;
    let mut others = other.elsewhere();
    let keys = async |others: &mut Others| match tokio::time::timeout(LONG, others.next()).await.unwrap().unwrap() {
        Elsewhere::Keys(keys) => keys,
        Elsewhere::Anything => panic!("everything is read anew"),
    };
    one.document_put("feeds/a", vec![1]).await.unwrap();
    assert_eq!(keys(&mut others).await, Keys { documents: ["feeds/a".to_owned()].into(), ..Keys::default() });
    one.document_remove("feeds/a").await.unwrap();
    assert_eq!(keys(&mut others).await, Keys { documents: ["feeds/a".to_owned()].into(), ..Keys::default() });
    let row = IncidentRow { key: "ip:a".into(), json: "{\"last_seen\":1}".into() };
    let keep: MergeIncident = Arc::new(|_, added| added.to_owned());
    one.incidents_merge(vec![row], Arc::clone(&keep), vec![]).await.unwrap();
    let incident = Keys { incidents: ["ip:a".to_owned()].into(), ..Keys::default() };
    assert_eq!(keys(&mut others).await, incident);
    one.incidents_merge(vec![], keep, vec![("ip:a".into(), 1)]).await.unwrap();
    assert_eq!(keys(&mut others).await, incident);
    let workflow = Workflow { key: "ip:a".into(), state: "resolved".into(), ..Workflow::default() };
    one.workflow_put(workflow, Note::none()).await.unwrap();
    assert_eq!(keys(&mut others).await, Keys { workflows: true, ..Keys::default() });
    // Of what nothing is told the gateways or read again there is no word, nor of what this one changes.
    one.puzzle_spend("p", 1).await.unwrap();
    other.document_put("b", vec![1]).await.unwrap();
    one.document_put("c", vec![1]).await.unwrap();
    assert_eq!(keys(&mut others).await, Keys { documents: ["c".to_owned()].into(), ..Keys::default() });
}

#[tokio::test(flavor = "multi_thread")]
async fn one_leads_and_another_takes_over_when_it_is_gone() {
    let Some(server) = RedisServer::start().await else { return };
    let one = server.open().await;
    let mut leads = one.leads();
    tokio::time::timeout(LONG, leads.wait_for(|leads| *leads)).await.unwrap().unwrap();
    let others = [server.open().await, server.open().await];
    tokio::time::sleep(Duration::from_millis(1500)).await;
    assert!(others.iter().all(|store| !*store.leads().borrow()));
    assert!(*one.leads().borrow(), "it has renewed its turn");
    // One that stops gives its turn up.
    one.close().await.unwrap();
    let leader = async || loop {
        let leading: Vec<usize> = (0..others.len()).filter(|number| *others[*number].leads().borrow()).collect();
        assert!(leading.len() < 2, "two lead");
        if let Some(leader) = leading.first() {
            return *leader;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    };
    let next = tokio::time::timeout(LONG, leader()).await.unwrap();
    // The turn of one that was killed ends by itself.
    let mut leads = others[next].leads();
    server.ask("SET {palisade}:leader killed PX 3000");
    tokio::time::timeout(LONG, leads.wait_for(|leads| !*leads)).await.unwrap().unwrap();
    tokio::time::timeout(LONG, leader()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn settings_that_lose_acknowledged_changes_are_said() {
    let settings = ["--appendfsync", "everysec", "--maxmemory-policy", "allkeys-lru"];
    let Some(server) = RedisServer::start_with(&settings).await else { return };
    let cautions = server.open().await.cautions();
    assert_eq!(cautions.len(), 2, "{cautions:?}");
    assert!(cautions[0].contains("appendfsync of the server is everysec, not always"), "{cautions:?}");
    assert!(cautions[1].contains("maxmemory-policy of the server is allkeys-lru, not noeviction"), "{cautions:?}");
    let Some(server) = RedisServer::start_with(&["--maxmemory-policy", "noeviction"]).await else { return };
    assert_eq!(server.open().await.cautions(), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_server_no_one_leads() {
    let Some(mut server) = RedisServer::start().await else { return };
    let store = server.open().await;
    let mut leads = store.leads();
    tokio::time::timeout(LONG, leads.wait_for(|leads| *leads)).await.unwrap().unwrap();
    // A server that hangs keeps the turn of the one that leads, which cannot know it.
    server.signal(rustix::process::Signal::STOP);
    tokio::time::timeout(LONG, leads.wait_for(|leads| !*leads)).await.unwrap().unwrap();
    server.signal(rustix::process::Signal::CONT);
    tokio::time::timeout(LONG, leads.wait_for(|leads| *leads)).await.unwrap().unwrap();
    server.kill();
    tokio::time::timeout(LONG, leads.wait_for(|leads| !*leads)).await.unwrap().unwrap();
    assert!(server.begin().await);
    tokio::time::timeout(LONG, leads.wait_for(|leads| *leads)).await.unwrap().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_reach_all_others_also_after_a_restart_of_the_server() {
    let Some(mut server) = RedisServer::start().await else { return };
    let (one, other, third) = (server.open().await, server.open().await, server.open().await);
    let (mut ours, mut told, mut third_told) = (one.told(), other.told(), third.told());
    // Those who listen are there once the first message comes.
    let first = async |told: &mut Listener| loop {
        one.tell(b"first".to_vec());
        if let Ok(message) = tokio::time::timeout(Duration::from_millis(100), told.next()).await {
            break message.unwrap();
        }
    };
    tokio::time::timeout(LONG, first(&mut told)).await.unwrap();
    tokio::time::timeout(LONG, first(&mut third_told)).await.unwrap();
    for number in 0..700_u32 {
        one.tell(number.to_le_bytes().repeat(300));
    }
    let mut expected = 0_u32;
    while expected < 700 {
        let message = tokio::time::timeout(LONG, told.next()).await.unwrap().unwrap();
        if &*message != b"first" {
            assert_eq!(&*message, expected.to_le_bytes().repeat(300));
            expected += 1;
        }
    }
    server.kill();
    assert!(server.begin().await);
    let mut again = async || loop {
        other.tell(b"again".to_vec());
        if let Ok(message) = tokio::time::timeout(Duration::from_millis(100), ours.next()).await {
            break message.unwrap();
        }
    };
    assert_eq!(&*tokio::time::timeout(LONG, again()).await.unwrap(), b"again", "none of its own comes back");
    let length = server.ask("XLEN {palisade}:bus");
    let length: u64 = length.trim_start_matches(':').lines().next().unwrap().parse().unwrap();
    assert!((1..1000).contains(&length), "{length}");
}

/// A change that follows another one counts on its lease, which is short: it must last for a change that takes long.
#[tokio::test(flavor = "multi_thread")]
async fn a_change_that_takes_long_is_not_refused_for_another_control_plane() {
    let Some(server) = RedisServer::start().await else { return };
    let (one, other) = (server.open().await, server.open().await);
    one.document_put("first", vec![1]).await.unwrap();
    let (begun, begins) = tokio::sync::oneshot::channel();
    let ban = Ban { key: "ip:192.0.2.1".into(), until: 9_000, ..Ban::default() };
    let note = Note::new(move |_: &Vec<store::fabric::Issued>| {
        // Within the change.
        let _ = begun.send(());
        #[allow(clippy::disallowed_methods, reason = "the change is to take long, on the thread of the store")]
        std::thread::sleep(Duration::from_millis(400));
        Vec::new()
    });
    let change = async { one.bans_issue(vec![ban], 1, note).await.map(|issued| issued.len()) };
    let meanwhile = async {
        begins.await.unwrap();
        other.document_put("second", vec![2]).await
    };
    let (changed, put) = tokio::join!(change, meanwhile);
    assert_eq!(changed, Ok(1));
    put.unwrap();
    assert_eq!(other.bans(1).await.unwrap().len(), 1);
    assert_eq!(one.document_names("").await.unwrap(), ["first", "second"]);
}
