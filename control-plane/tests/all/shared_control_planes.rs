//! Several control planes on one Redis: what happens at one is one matter for all.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use palisade_tests::proxy::Network;
use prost::Message as _;
use serde_json::{Value, json};
use snapshot::{CountBatch, CountGroup, CountKind, CountsUp, KeyCount, ReportBatch, Up};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use waf::samples::messages::{MATCHES, MatchReport, Matched};

use crate::alerts_support::{Channels, LONG, World};
use crate::cli_support::{Server, request};
use crate::shared_support::{Pair, incidents, leads, metric, until};

/// A score that the ledger bans nothing for: its bans are events as well.
const LOW: f64 = 1.0;

#[tokio::test(flavor = "multi_thread")]
async fn events_of_one_caller_at_two_control_planes_are_one_incident() {
    let pair = Pair::start().await;
    for at in [0, 1, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0] {
        pair.both()[at].event("192.0.2.9", LOW).await;
    }
    pair.other.event("192.0.2.10", LOW).await;
    let row = |ip: &str, count: u32| (format!("ip:{ip}"), json!(format!("inc-{ip}")), json!(count), json!("open"));
    let agree = async |what: &str, wanted: &[(String, Value, Value, Value)]| {
        let agreed = until(what, async || pair.both().iter().all(|world| incidents(world) == wanted));
        let agreed = tokio::time::timeout(LONG / 2, agreed).await;
        assert!(agreed.is_ok(), "{what}: {:?}", pair.both().map(incidents));
    };
    agree("one incident", &[row("192.0.2.10", 1), row("192.0.2.9", 12)]).await;
    let resolved = json!({ "key": "ip:192.0.2.9", "state": "resolved", "note": "ours" });
    pair.one.console("POST", "_incident_state", &resolved);
    agree("it is resolved, and so not listed", &[row("192.0.2.10", 1)]).await;
    // It opens with an event at the other one, after the grace.
    let (status, answer) = request(
        &pair.one.server.rest,
        &pair.one.server.authorization,
        "PATCH",
        "/apis/palisade.svc/v1/global-config/global-config",
        &json!({ "security": { "incidents": { "reopen_grace_seconds": 0 } } }).to_string(),
    )
    .unwrap();
    assert_eq!(status, 200, "{answer}");
    until("the other one has the grace", async || {
        pair.other.event("192.0.2.9", LOW).await;
        tokio::time::sleep(Duration::from_millis(200)).await;
        incidents(&pair.one).iter().any(|(key, ..)| key == "ip:192.0.2.9")
    })
    .await;
    // A control plane that is killed loses nothing that it has kept, and one that starts has all of it.
    until("both agree", async || incidents(&pair.one) == incidents(&pair.other)).await;
    let Pair { one, other, data, redis, .. } = pair;
    let before = incidents(&other);
    drop(one);
    let url = redis.url();
    let again = World::with(Server::start_with(&data[0], &["--store", url.as_str()])).await;
    assert_eq!((incidents(&again), incidents(&other)), (before.clone(), before));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_alert_is_sent_once_and_a_burst_counts_over_all() {
    let pair = Pair::start().await;
    let (mut incident, mut burst, mut ban) =
        (Channels::start(&[]).await, Channels::start(&[]).await, Channels::start(&[]).await);
    let channel = |url: &str| json!({ "kind": "webhook", "url": url });
    pair.one.rule("incident", json!({ "channel": channel(&incident.url), "min_score": 0, "min_count": 6 }));
    let fields = json!({ "trigger": "burst", "min_score": 0, "burst_threshold": 10, "burst_window_seconds": 600, "channel": channel(&burst.url) });
    pair.one.rule("burst", fields);
    pair.one.rule("ban", json!({ "trigger": "ban", "channel": channel(&ban.url) }));
    for world in pair.both() {
        until("the rules are known", async || world.console("GET", "_status", &Value::Null)["alerts"]["rules"] == 3)
            .await;
    }
    // Five events at each: neither sees enough of them.
    for world in pair.both() {
        for _ in 0..5 {
            world.event("192.0.2.9", LOW).await;
        }
    }
    let (_, told) = burst.next().await;
    assert_eq!(told["burst"]["count"], 10, "{told}");
    until("one incident", async || incidents(&pair.one).first().is_some_and(|row| row.2 == json!(10))).await;
    until("at both", async || incidents(&pair.one) == incidents(&pair.other)).await;
    // Both have seen enough of it by now, and more comes.
    for _ in 0..3 {
        for world in pair.both() {
            world.event("192.0.2.9", LOW).await;
        }
        tokio::time::sleep(Duration::from_millis(300)).await;
    }
    let (_, told) = incident.next().await;
    assert_eq!(told["incident"]["id"], "inc-192.0.2.9", "{told}");
    pair.other.console("POST", "_ban", &json!({ "ref": "ip:192.0.2.77" }));
    let (_, told) = ban.next().await;
    assert_eq!(told["ban"]["way"], "hand", "{told}");
    // What would come twice would have come by now: each control plane has shared its events since.
    tokio::time::sleep(Duration::from_millis(2500)).await;
    assert!(incident.requests.is_empty() && burst.requests.is_empty() && ban.requests.is_empty());
}

/// What operators have done is told by one control plane, and by the next one when that is gone.
#[tokio::test(flavor = "multi_thread")]
async fn the_outbox_is_sent_once_by_the_one_that_leads() {
    let pair = Pair::start().await;
    let (one, other) = (pair.one, pair.other);
    let bans = |world: &World| {
        let lines = std::fs::read_to_string(&world.server.events).unwrap_or_default();
        let events = lines.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let audits = events.filter(|event| event["@type"] == "SvcWafSecurityAudit" && event["action"] == "ban");
        audits.map(|event| event["ref"].as_str().unwrap_or_default().to_owned()).collect::<Vec<_>>()
    };
    other.console("POST", "_ban", &json!({ "ref": "ip:192.0.2.1" }));
    one.console("POST", "_ban", &json!({ "ref": "ip:192.0.2.2" }));
    until("the first one tells both", async || bans(&one).len() == 2).await;
    assert_eq!(bans(&other), Vec::<String>::new());
    let mut one = one;
    one.server.child.kill().unwrap();
    one.server.child.wait().unwrap();
    other.console("POST", "_ban", &json!({ "ref": "ip:192.0.2.3" }));
    until("the other one takes over", async || bans(&other).contains(&"ip:192.0.2.3".to_owned())).await;
    assert!(leads(&other));
}

/// A publisher of a list of one address; the number of requests so far.
async fn publisher() -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/list", listener.local_addr().unwrap());
    let requests = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&requests);
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut request = Vec::new();
            while !request.ends_with(b"\r\n\r\n") && stream.read_buf(&mut request).await.unwrap() > 0 {}
            let number = counted.fetch_add(1, Ordering::SeqCst) + 1;
            let body: String = (0..number).map(|last| format!("203.0.113.{last}\n")).collect();
            let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", body.len());
            let _ = stream.write_all(format!("{head}{body}").as_bytes()).await;
        }
    });
    (url, requests)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_feed_is_fetched_by_the_one_that_leads_and_is_in_force_at_all() {
    let pair = Pair::start().await;
    let (url, requests) = publisher().await;
    let feed = json!({ "id": "f", "url": url, "allow_private": true, "refresh_interval_seconds": 86_400 });
    let Server { rest, authorization, .. } = &pair.other.server;
    let (status, answer) =
        request(rest, authorization, "POST", "/apis/palisade.svc/v1/threat-feeds", &feed.to_string()).unwrap();
    assert_eq!(status, 201, "{answer}");
    let entries = |world: &World| {
        let answer = world.console("GET", "../reputation/_status", &Value::Null);
        answer["feeds"]
            .as_array()
            .unwrap()
            .iter()
            .find(|feed| feed["id"] == "f")
            .map(|feed| feed["snapshot"]["entries"].clone())
    };
    let listed = |world: &World| world.console("GET", "_status", &Value::Null)["tables"].to_string();
    until("both have the list", async || pair.both().iter().all(|world| entries(world) == Some(json!(1)))).await;
    until("both have the same table", async || {
        listed(&pair.one).contains("state") && listed(&pair.one) == listed(&pair.other)
    })
    .await;
    assert_eq!(requests.load(Ordering::SeqCst), 1);
    // An operator at the other one.
    let refreshed = pair.other.console("POST", "../reputation/_refresh", &json!({ "feed": "f" }));
    assert_eq!(refreshed["done"], true, "{refreshed}");
    until("both have the next list", async || pair.both().iter().all(|world| entries(world) == Some(json!(2)))).await;
    assert_eq!(requests.load(Ordering::SeqCst), 2);
    // The one that leads is killed: the other one fetches when the feed is due.
    let (one, other) = (pair.one, pair.other);
    drop(one);
    let Server { rest, authorization, .. } = &other.server;
    until("the other one leads", async || leads(&other)).await;
    let soon = json!({ "refresh_interval_seconds": 1 }).to_string();
    let (status, answer) =
        request(rest, authorization, "PATCH", "/apis/palisade.svc/v1/threat-feeds/f", &soon).unwrap();
    assert_eq!(status, 200, "{answer}");
    until("it fetches", async || requests.load(Ordering::SeqCst) > 2).await;
}

/// Counts of a key, as a node of this name sends them.
fn counted(node: &str, newest: u64, counts: &[u32]) -> Up {
    let group = CountGroup {
        name: "login".into(),
        kind: CountKind::Window.into(),
        slice_millis: 10_000,
        slices: 6,
        cap: 1000,
        everywhere_from: 0,
        max_keys: 100,
    };
    let counts = vec![KeyCount { key: 7, newest, counts: counts.to_vec() }];
    let batches = vec![CountBatch { group: Some(group), counts, members: Vec::new() }];
    let counts = Some(CountsUp { incarnation: 1, batches, dropped: 0, number: 1 });
    Up { node: node.into(), counts, ..Up::default() }
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_of_two_control_planes_count_together() {
    let mut pair = Pair::start().await;
    let slice = base::clock::now_millis() / 10_000;
    pair.one.up.send(counted("edge-1", slice, &[40])).await.unwrap();
    // A message may be lost, as while a control plane starts; the numbers of a slice only grow, and come again with the next count.
    let again = pair.one.up.clone();
    tokio::spawn(async move {
        for more in 1..1000 {
            tokio::time::sleep(Duration::from_millis(100)).await;
            let _ended = again.send(counted("edge-1", slice, &[40 + more])).await;
        }
    });
    pair.other.up.send(counted("edge-2", slice, &[2])).await.unwrap();
    let learned = async {
        loop {
            let down = pair.other.down.message().await.unwrap().expect("the stream has ended");
            let counts = down.counts.into_iter().flat_map(|counts| counts.batches).flat_map(|batch| batch.counts);
            if let Some(count) = counts.into_iter().find(|count| count.key == 7) {
                return count;
            }
        }
    };
    let count = tokio::time::timeout(LONG, learned).await.expect("no counts of the other node");
    assert!(count.counts.iter().sum::<u32>() >= 40, "{count:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_that_the_server_does_not_take_are_counted_as_lost() {
    let pair = Pair::start_with("?timeout_millis=500").await;
    let lost = || metric(&pair.one, "palisade_store_messages_lost_total");
    let slice = base::clock::now_millis() / 10_000;
    pair.networks[0].set(Network::BlackHole);
    let mut sent = 0;
    until("messages are lost", async || {
        sent += 1;
        pair.one.up.send(counted("edge-1", slice, &[sent])).await.unwrap();
        lost() > 0.0
    })
    .await;
    pair.networks[0].set(Network::Whole);
    until("no further one is", async || {
        let before = lost();
        sent += 1;
        pair.one.up.send(counted("edge-1", slice, &[sent])).await.unwrap();
        tokio::time::sleep(Duration::from_secs(1)).await;
        lost() == before
    })
    .await;
}

/// A report of one match, for the last time `sequence` of a worker.
fn matched(worker: u64, sequence: u64) -> Up {
    let one = Matched {
        config: "shop".into(),
        rule_id: 942_100,
        phase: 2,
        target: "ARGS:q".into(),
        path: "/search".into(),
        count: 3,
        would_block: 3,
        paranoia: 1,
        ..Matched::default()
    };
    let report = MatchReport { worker, sequence, matches: vec![one], ..MatchReport::default() };
    let reports = vec![ReportBatch { kind: MATCHES.into(), reports: vec![report.encode_to_vec()], dropped: 0 }];
    Up { node: format!("edge-{worker}"), reports, ..Up::default() }
}

#[tokio::test(flavor = "multi_thread")]
async fn reports_are_counted_once_and_windows_of_learning_are_those_of_all() {
    let pair = Pair::start().await;
    let Server { rest, authorization, .. } = &pair.one.server;
    let config = json!({ "id": "shop", "rules": ["SecRuleEngine On"] }).to_string();
    let (status, answer) = request(rest, authorization, "POST", "/apis/palisade.svc/v1/waf-configs", &config).unwrap();
    assert_eq!(status, 201, "{answer}");
    // An operator at the one that does not lead begins a window.
    until("the config is known there", async || {
        let (status, _) =
            request(&pair.other.server.rest, authorization, "GET", "/apis/palisade.svc/v1/waf-configs/shop", "")
                .unwrap();
        status == 200
    })
    .await;
    let started = pair.other.console("POST", "../learning/_start", &json!({ "config_ref": "shop" }));
    assert_eq!(started["done"], true, "{started}");
    let running = |world: &World| {
        let (_, report) = world.answer("POST", "../learning/_report", &json!({ "config_ref": "shop" }));
        report["running"] == true
    };
    until("the window runs at both", async || pair.both().iter().all(|world| running(world))).await;
    for sequence in 1..=4 {
        pair.one.up.send(matched(1, sequence)).await.unwrap();
        pair.other.up.send(matched(2, sequence)).await.unwrap();
    }
    let count = |world: &World| {
        let answer = world.console("GET", "../tuning/_matches", &Value::Null);
        answer["matches"].as_array().unwrap().first().map(|one| one["count"].clone())
    };
    until("both have all matches", async || pair.both().iter().all(|world| count(world) == Some(json!(24)))).await;
    let stopped = pair.other.console("POST", "../learning/_stop", &json!({ "config_ref": "shop" }));
    assert_eq!(stopped["done"], true, "{stopped}");
    until("the window is stopped at both", async || {
        let stopped = |world: &&World| {
            world.answer("POST", "../learning/_report", &json!({ "config_ref": "shop" })).1["running"] == false
        };
        pair.both().iter().all(stopped)
    })
    .await;
}
