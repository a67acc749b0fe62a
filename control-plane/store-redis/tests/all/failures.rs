//! A server that is gone, hangs, is full or refuses.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use base::clock::Stopwatch;
use rustix::process::Signal;
use store::counts::{BudgetTake, Counted, TakeOutcome};
use store::fabric::Note;
use store::replays::{MAX_CHUNK, RecordingBegun, RecordingRemoved, RecordingRoom, RecordingRow};
use store::{CountStore as _, FabricStore as _, HistoryStore as _, ReplayStore as _, Store, StoreError};

use crate::conformance::{NOW, ban};
use crate::server::RedisServer;

const ROUNDS: u64 = 5;
/// Only keeps a failure from hanging the test.
const LONG: Duration = Duration::from_secs(60);

#[tokio::test(flavor = "multi_thread")]
async fn what_was_acknowledged_survives_kill_9_of_the_server() {
    let Some(mut server) = RedisServer::start().await else { return };
    let store: Arc<dyn Store> =
        Arc::new(server.open_at(&format!("{}?timeout_millis=2000", server.url())).await.unwrap());
    let acknowledged: Arc<Mutex<BTreeSet<String>>> = Arc::default();
    let (spent, taken, unknown) =
        (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let budget = |round: u64| BudgetTake {
        of: Counted { scope: format!("b{round}"), key: 1, slice: 9, first: 1, until_millis: 9, node: "n".into() },
        amount: 1,
        limit: 10_000_000,
    };
    for round in 0..ROUNDS {
        taken.store(0, Ordering::SeqCst);
        unknown.store(0, Ordering::SeqCst);
        let writers: Vec<_> = (0..8)
            .map(|writer| {
                let (store, acknowledged) = (Arc::clone(&store), Arc::clone(&acknowledged));
                let (spent, taken, unknown) = (Arc::clone(&spent), Arc::clone(&taken), Arc::clone(&unknown));
                let budget = budget(round);
                tokio::spawn(async move {
                    for number in 0.. {
                        let name = format!("{round}-{writer}-{number}");
                        match store.puzzle_spend(&name, 1).await {
                            Ok(first) => {
                                assert!(first);
                                acknowledged.lock().unwrap().insert(name);
                                spent.fetch_add(1, Ordering::SeqCst);
                            }
                            Err(_) => return,
                        }
                        match store.budget_take(budget.clone()).await {
                            Ok(outcome) => {
                                assert_eq!(outcome.outcome, TakeOutcome::Taken);
                                taken.fetch_add(1, Ordering::SeqCst);
                            }
                            Err(_) => {
                                unknown.fetch_add(1, Ordering::SeqCst);
                                return;
                            }
                        }
                    }
                })
            })
            .collect();
        // Into the midst of the writes, at another number of them in each round.
        let goal = spent.load(Ordering::SeqCst) + 40 + round * 37;
        while spent.load(Ordering::SeqCst) < goal {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        server.kill();
        for writer in writers {
            writer.await.unwrap();
        }
        assert!(server.begin().await);
        while store.ping().await.is_err() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let fresh = server.open().await;
        let names = acknowledged.lock().unwrap().clone();
        for name in &names {
            assert_eq!(fresh.puzzle_spend(name, 1).await, Ok(false), "{name} was spent for the second time");
        }
        // What was taken is in the sum; takes without an answer may be in it.
        let sums = fresh.budget_take(budget(round)).await.unwrap().sums;
        let (sum, known) = (u64::from(sums[0].1) - 1, taken.load(Ordering::SeqCst));
        assert!((known..=known + unknown.load(Ordering::SeqCst)).contains(&sum), "{sum} of {known}");
        fresh.close().await.unwrap();
    }
    println!("{} puzzles, each spent once over {ROUNDS} kills", acknowledged.lock().unwrap().len());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_hangs_is_an_error_and_no_wait_without_end() {
    let Some(server) = RedisServer::start().await else { return };
    let store = Arc::new(server.open_at(&format!("{}?timeout_millis=200", server.url())).await.unwrap());
    store.document_put("before", vec![1]).await.unwrap();
    server.signal(Signal::STOP);
    // Without the limit this would never end.
    let all = async {
        let writes: Vec<_> = (0..50)
            .map(|number| {
                let store = Arc::clone(&store);
                tokio::spawn(async move { store.document_put(&format!("hung{number}"), vec![1]).await })
            })
            .collect();
        for write in writes {
            let error = write.await.unwrap().unwrap_err().to_string();
            assert!(error.contains("127.0.0.1") && error.contains("no answer"), "{error}");
        }
        assert!(matches!(store.document("before").await, Err(StoreError::Server { .. })));
        let faults = store.faults();
        assert!(faults.reads.is_some() && faults.writes.is_some(), "{faults:?}");
    };
    tokio::time::timeout(Duration::from_secs(60), all).await.unwrap();
    server.signal(Signal::CONT);
    while store.document_put("after", vec![1]).await.is_err() {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(store.document("before").await, Ok(Some(vec![1])));
    assert_eq!(store.faults(), store::StoreFaults::default());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_gone_or_refuses_says_why() {
    let Some(mut server) = RedisServer::start_with(&["--requirepass", "right"]).await else { return };
    let at = |login: &str| format!("redis://{login}127.0.0.1:{}", server.port);
    for login in ["", ":wrong@", "unknown:right@"] {
        let error = server.open_at(&at(login)).await.err().unwrap().to_string();
        assert!(error.contains("password") && !error.contains("wrong@"), "{login}: {error}");
    }
    let url = at(":right@");
    let store = server.open_at(&url).await.unwrap();
    store.document_put("d", vec![1]).await.unwrap();
    server.kill();
    assert!(matches!(store.document("d").await, Err(StoreError::Server { .. } | StoreError::Unanswered { .. })));
    assert!(store.document_put("d", vec![2]).await.is_err());
    let error = server.open_at(&url).await.err().unwrap().to_string();
    assert!(error.contains(&server.port.to_string()), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_of_an_access_list_needs_the_keys_of_the_prefix_alone() {
    let Some(server) = RedisServer::start().await else { return };
    let commands = "+evalsha +eval +script|load +hmget +hget +hset +hdel +hincrby +hscan +hlen +get +set +del +exists +xadd \
                    +xrange +xrevrange +xread +xtrim +ping +select +client";
    let made = server.ask(&format!("ACL SETUSER palisade on >secret ~{{palisade}}:* resetchannels -@all {commands}"));
    assert!(!made.contains("-ERR"), "{made}");
    let made = server.ask("ACL SETUSER weak on >secret ~{other}:* -@all +hmget +client");
    assert!(!made.contains("-ERR"), "{made}");
    let url = |user: &str| format!("redis://{user}:secret@127.0.0.1:{}", server.port);
    let store = server.open_at(&url("palisade")).await.unwrap();
    crate::events::work_as(&url("palisade"), server.folder.path()).await;
    assert_eq!(store.entity_put("c", "a", "1".into(), 0).await, Ok(1));
    let (row, room) =
        (RecordingRow { id: "r".into(), ..RecordingRow::default() }, RecordingRoom { recordings: 1, bytes: 1 });
    assert_eq!(store.recording_begin(row, room).await, Ok(RecordingBegun::Begun));
    assert_eq!(store.content_put("r", 0, vec![1]).await, Ok(true));
    assert_eq!(store.content("r", 0).await, Ok(Some(vec![1])));
    assert_eq!(store.recording_abandon("r").await, Ok(true));
    assert_eq!(server.open_at(&url("palisade")).await.unwrap().entities().await.unwrap().rows.len(), 1);
    let error = server.open_at(&url("weak")).await.err().unwrap().to_string();
    assert!(error.contains("access control list"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_server_takes_nothing_and_says_so() {
    let Some(server) = RedisServer::start().await else { return };
    let store = server.open().await;
    store.document_put("large", vec![1; 32 << 20]).await.unwrap();
    assert!(!server.ask("CONFIG SET maxmemory 16000000").contains("-ERR"));
    let error = store.document_put("larger", vec![1; 32 << 20]).await.unwrap_err();
    assert!(matches!(error, StoreError::ServerFull { .. }), "{error:?}");
    assert!(error.to_string().contains("maxmemory"));
    assert_eq!(store.document_names("").await.unwrap(), ["large"]);
    // What makes room is taken.
    assert_eq!(store.document_remove("large").await, Ok(true));
    // The server counts buffers of its connections, too, until it has given them back.
    let small = async {
        while let Err(error) = store.document_put("small", vec![1]).await {
            assert!(matches!(error, StoreError::ServerFull { .. }), "{error:?}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), small).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_server_has_its_lease_waited_for() {
    let Some(server) = RedisServer::start().await else { return };
    let store = server.open().await;
    store.bans_issue(vec![ban("ip:192.0.2.1", NOW, NOW + 9, true)], NOW, Note::none()).await.unwrap();
    store.document_put("large", vec![1; 32 << 20]).await.unwrap();
    // The lease of the change before is not counted on any more.
    tokio::time::sleep(Duration::from_millis(300)).await;
    server.ask("SET {palisade}:lease another PX 1000");
    assert!(!server.ask("CONFIG SET maxmemory 16000000").contains("-ERR"));
    assert!(server.ask("SET {palisade}:other 1").contains("OOM"));
    let since = Stopwatch::start();
    assert_eq!(store.ban_lift("ip:192.0.2.1", NOW, Note::none()).await, Ok(true));
    assert!(since.seconds() > 0.3, "it has waited");
    assert_eq!(store.faults(), store::StoreFaults::default());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_server_takes_no_recording_and_removes_those_that_there_are() {
    let Some(server) = RedisServer::start().await else { return };
    let store = server.open().await;
    let (row, room) =
        (RecordingRow { id: "r".into(), ..RecordingRow::default() }, RecordingRoom { recordings: 9, bytes: 9 });
    assert_eq!(store.recording_begin(row.clone(), room).await, Ok(RecordingBegun::Begun));
    for number in 0..64 {
        assert_eq!(store.content_put("r", number, vec![7; MAX_CHUNK]).await, Ok(true));
    }
    assert_eq!(store.recording_publish("r").await, Ok(true));
    assert_eq!(store.recording_begin(RecordingRow { id: "s".into(), ..row }, room).await, Ok(RecordingBegun::Begun));
    assert!(!server.ask("CONFIG SET maxmemory 16000000").contains("-ERR"));
    let error = store.content_put("s", 0, vec![7; MAX_CHUNK]).await.unwrap_err();
    assert!(matches!(error, StoreError::ServerFull { .. }), "{error:?}");
    // What makes room is taken.
    assert_eq!(store.recording_abandon("s").await, Ok(true));
    assert_eq!(store.recording_remove("r").await, Ok(RecordingRemoved::Removed));
    assert_eq!(store.content("r", 0).await, Ok(None));
}

#[tokio::test(flavor = "multi_thread")]
async fn on_a_full_server_earlier_versions_give_way_to_a_change() {
    let Some(server) = RedisServer::start().await else { return };
    let store = server.open().await;
    let body = |number: u64| format!("{number}{}", "x".repeat(4 << 20));
    for number in 0..7 {
        store.entity_put("c", "a", body(number), number).await.unwrap();
    }
    assert_eq!(store.versions("c", "a", 0, 100).await.unwrap().total, 7);
    assert!(!server.ask("CONFIG SET maxmemory 16000000").contains("-ERR"));
    // The server counts buffers of its connections, too, until it has given them back.
    let changed = async {
        while let Err(error) = store.entity_put("c", "a", "small".into(), 7).await {
            assert!(matches!(error, StoreError::ServerFull { .. }), "{error:?}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(LONG, changed).await.unwrap();
    let left = store.versions("c", "a", 0, 100).await.unwrap();
    assert!(left.total < 6, "{}", left.total);
    assert_eq!(left.versions[0].number, 8);
    assert_eq!(store.version("c", "a", 8).await.unwrap().unwrap().body.as_deref(), Some("small"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_server_has_a_leader_which_makes_room() {
    let Some(server) = RedisServer::start().await else { return };
    let (one, other) = (server.open().await, server.open().await);
    one.document_put("large", vec![1; 32 << 20]).await.unwrap();
    let mut leads = [one.leads(), other.leads()];
    tokio::time::timeout(LONG, async {
        while leads.iter().all(|leads| !*leads.borrow()) {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await
    .unwrap();
    assert!(!server.ask("CONFIG SET maxmemory 16000000").contains("-ERR"));
    // Longer than a turn to lead lasts without being renewed.
    tokio::time::sleep(Duration::from_millis(4500)).await;
    let leading: Vec<bool> = leads.iter_mut().map(|leads| *leads.borrow_and_update()).collect();
    assert_eq!(leading.iter().filter(|leads| **leads).count(), 1, "{leading:?}");
    assert!(leads.iter().all(|leads| !leads.has_changed().unwrap()));
    // Another one takes over there.
    let (gone, next) = if leading[0] { (&one, &mut leads[1]) } else { (&other, &mut leads[0]) };
    gone.close().await.unwrap();
    tokio::time::timeout(LONG, next.wait_for(|leads| *leads)).await.unwrap().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_takes_no_writes_for_a_while_is_read_and_proves_itself_afterwards() {
    let Some(server) = RedisServer::start().await else { return };
    let (one, other) = (
        server.open_at(&format!("{}?timeout_millis=300", server.url())).await.unwrap(),
        server.open_at(&format!("{}?timeout_millis=300", server.url())).await.unwrap(),
    );
    one.document_put("before", vec![1]).await.unwrap();
    assert_eq!(other.document("before").await, Ok(Some(vec![1])));
    // Short of the timeout, all is well.
    server.ask("CLIENT PAUSE 100 WRITE");
    assert_eq!(one.document_put("slow", vec![1]).await, Ok(()));
    assert_eq!(other.document("slow").await, Ok(Some(vec![1])));
    server.ask("CLIENT PAUSE 60000 WRITE");
    let refused = tokio::time::timeout(Duration::from_secs(30), one.document_put("lost", vec![1])).await.unwrap();
    assert!(matches!(&refused, Err(error) if error.to_string().contains("no answer")), "{refused:?}");
    assert_eq!(other.document("before").await, Ok(Some(vec![1])), "it is read");
    assert!(one.ping().await.is_ok() && one.faults().writes.is_some());
    server.ask("CLIENT UNPAUSE");
    // Without a change: a look proves that changes are taken again.
    let proven = async {
        while one.faults() != store::StoreFaults::default() {
            let _ = one.ping().await;
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(LONG, proven).await.unwrap();
    assert_eq!(other.document("lost").await, Ok(None), "what was refused is nowhere");
    assert_eq!(one.document("lost").await, Ok(None));
    assert_eq!(other.document_put("after", vec![1]).await, Ok(()));
}
