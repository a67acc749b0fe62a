//! The event stores: what both owe, on a file and at a server, and what is particular to the shared one.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use palisade_store_redis::{RedisOptions, SharedEvents};
use serde_json::{Value, json};
use store::events::EventField::{self, *};
use store::events::{
    Block, EventFile, EventLimits, EventPage, EventQuery, MAX_EXAMINED, MAX_LATE_MILLIS, NewEvent, place_millis,
};
use store::{EventStore, StoreError};

use crate::conformance::NOW;
use crate::server::RedisServer;

const LIMITS: EventLimits = EventLimits { age_millis: 7 * 86_400_000, bytes: 512 << 20, events: 1_000_000 };

fn event(number: u64, at: u64) -> Value {
    json!({
        "@type": "SvcSecurityEvent", "@id": format!("event_{number:016x}"), "@timestamp": at,
        "event": { "kind": "alert", "category": "threat", "action": if number.is_multiple_of(2) { "deny" } else { "log" },
            "outcome": if number.is_multiple_of(2) { "blocked" } else { "observed" }, "severity": 3,
            "module": "threat-response", "dataset": "svc.threat" },
        "source": { "ip": format!("198.51.{}.{}", number / 250 % 250, number % 250), "apikey": null, "user": null },
        "threat": { "score": 72, "tags": ["waf:match"], "signals": [{ "source": "waf.seclang", "kind": "waf", "weight": 72,
            "effective_weight": 72, "tag": "waf:match", "confidence": 1, "detail": "rule 942100", "at": at }] },
        "incident": { "id": format!("incident_{:016x}", number % 100), "count": number },
        "route": { "id": format!("route-{}", number % 7), "name": null, "node": "edge-1" },
        "http": { "request_id": format!("0b0e9a3e-6c0b-4a43-{number:016x}"), "method": "GET", "host": "shop.example",
            "path": format!("/items/{number}"), "status": 403 },
        "message": "score 72 reaches tier 1 of policy `Standard`",
        "decision": { "action": "deny", "score": 72, "tier": 1, "dry_run": number % 4 == 1, "enforced": number.is_multiple_of(2),
            "reason": "score 72 reaches tier 1 of policy `Standard`", "held_ms": 0 },
    })
}

fn new(event: &Value) -> NewEvent {
    NewEvent::read(&event.to_string().into_bytes().into(), NOW).unwrap()
}

fn some(numbers: std::ops::Range<u64>) -> Vec<NewEvent> {
    numbers.map(|number| new(&event(number, NOW - 1_000_000 + number))).collect()
}

fn query(filters: &[(EventField, &str)]) -> EventQuery {
    let filters = filters.iter().map(|(field, value)| (*field, (*value).to_owned())).collect();
    EventQuery { filters, limit: 100, ..EventQuery::default() }
}

fn ids(page: &EventPage) -> Vec<u64> {
    let id = |line: &[u8]| serde_json::from_slice::<Value>(line).unwrap()["@id"].as_str().unwrap()[6..].to_owned();
    page.events.iter().map(|event| u64::from_str_radix(&id(&event.line), 16).unwrap()).collect()
}

/// Everything that a query finds, and how many pages it took.
async fn all(store: &dyn EventStore, mut query: EventQuery) -> (Vec<u64>, usize) {
    let (mut found, mut pages) = (Vec::new(), 0);
    loop {
        let page = store.search(query.clone()).await.unwrap();
        found.extend(ids(&page));
        pages += 1;
        match page.next {
            Some(next) => query.before = Some(next),
            None => return (found, pages),
        }
        assert!(pages < 1000, "a search ends");
    }
}

// === what both owe ===

async fn events_are_found_by_what_they_name_newest_first(store: Arc<dyn EventStore>) {
    store.append(some(0..500)).await.unwrap();
    let found = store.search(query(&[])).await.unwrap();
    assert_eq!(ids(&found), (400..500).rev().collect::<Vec<_>>());
    assert!(found.complete && found.next.is_some());
    assert_eq!(all(&*store, query(&[])).await, ((0..500).rev().collect(), 5));
    let even: Vec<u64> = (0..500).rev().filter(|number| number % 2 == 0).collect();
    for (filters, expected) in [
        (vec![(Outcome, "blocked")], even.clone()),
        (vec![(Outcome, "observed"), (DryRun, "true")], (0..500).rev().filter(|number| number % 4 == 1).collect()),
        (vec![(Route, "route-3")], (0..500).rev().filter(|number| number % 7 == 3).collect()),
        (
            vec![(Route, "route-3"), (Action, "deny"), (Plugin, "threat-response")],
            (0..500).rev().filter(|number| number % 14 == 10).collect(),
        ),
        (vec![(Identity, "ip:198.51.0.7")], vec![7]),
        (vec![(Reference, "0b0e9a3e-6c0b-4a43-00000000000000ff")], vec![255]),
        (vec![(Incident, "incident_0000000000000063")], vec![499, 399, 299, 199, 99]),
        (vec![(Type, "security"), (Node, "edge-1"), (Category, "threat")], (0..500).rev().collect()),
        (vec![(Type, "audit")], vec![]),
        (vec![(Id, "event_0000000000000001")], vec![1]),
        // Nothing is a pattern, and nothing is what it is not.
        (vec![(Route, "route-%")], vec![]),
        (vec![(Route, "route_3")], vec![]),
        (vec![(Route, "*")], vec![]),
        (vec![(Route, "ROUTE-3")], vec![]),
        (vec![(Route, "' OR 1=1 --")], vec![]),
        (vec![(Node, "route-3")], vec![]),
        (vec![(Route, &"x".repeat(1 << 20))], vec![]),
    ] {
        assert_eq!(all(&*store, query(&filters)).await.0, expected, "{filters:?}");
    }
    let within = EventQuery {
        from_millis: NOW - 1_000_000 + 100,
        until_millis: Some(NOW - 1_000_000 + 110),
        ..query(&[(Outcome, "blocked")])
    };
    assert_eq!(all(&*store, within).await.0, [108, 106, 104, 102, 100]);
    for (from, until) in [(u64::MAX, None), (0, Some(0)), (5, Some(5)), (NOW, Some(1))] {
        let none = EventQuery { from_millis: from, until_millis: until, ..query(&[]) };
        assert_eq!(all(&*store, none).await.0, Vec::<u64>::new());
    }
    assert_eq!(all(&*store, EventQuery { before: Some(u64::MAX), ..query(&[]) }).await.0.len(), 500);
}

async fn the_same_batch_twice_is_there_once(store: Arc<dyn EventStore>) {
    for _ in 0..3 {
        store.append(some(0..200)).await.unwrap();
    }
    store.append(some(150..250)).await.unwrap();
    assert_eq!(all(&*store, query(&[])).await.0, (0..250).rev().collect::<Vec<_>>());
    assert_eq!(store.status().await.unwrap().events, 250);
    // The same id of another node is another event.
    let mut other = event(7, NOW - 1_000_000 + 7);
    other["route"]["node"] = json!("edge-2");
    store.append(vec![new(&other)]).await.unwrap();
    assert_eq!(all(&*store, query(&[(Id, "event_0000000000000007")])).await.0, [7, 7]);
}

async fn events_of_one_millisecond_have_an_order(store: Arc<dyn EventStore>) {
    store.append((0..3000).map(|number| new(&event(number, NOW))).collect()).await.unwrap();
    let (found, _) = all(&*store, EventQuery { limit: 7, ..query(&[(Type, "security")]) }).await;
    assert_eq!(found.len(), 3000);
    assert_eq!(found.iter().collect::<BTreeSet<_>>().len(), 3000);
}

async fn a_search_has_a_bound_and_goes_on(store: Arc<dyn EventStore>) {
    let most = u64::from(MAX_EXAMINED);
    for batch in 0..(most + 2000) / 1000 {
        store.append(some(batch * 1000..(batch + 1) * 1000)).await.unwrap();
    }
    let common = store.search(query(&[(Node, "edge-1"), (Category, "threat")])).await.unwrap();
    assert_eq!((common.events.len(), common.examined), (100, 100));
    assert_eq!(store.search(query(&[(Node, "edge-1"), (Plugin, "none")])).await.unwrap().examined, 0);
    assert_eq!(store.search(query(&[(Type, "security"), (Plugin, "none")])).await.unwrap().examined, 0);
    let bounded = query(&[(Node, "edge-1"), (DryRun, "true"), (Outcome, "blocked")]);
    let page = store.search(bounded.clone()).await.unwrap();
    assert_eq!((page.events.len(), page.complete, page.examined), (0, false, MAX_EXAMINED));
    assert!(place_millis(page.next.unwrap()) > NOW - 1_000_000);
    assert_eq!(all(&*store, bounded).await, (Vec::new(), 2));
}

async fn the_oldest_give_way_by_number_and_age(store: Arc<dyn EventStore>) {
    for batch in 0..10 {
        store.append(some(batch * 1000..(batch + 1) * 1000)).await.unwrap();
    }
    store.sweep(now_millis()).await.unwrap();
    let (found, _) = all(&*store, query(&[])).await;
    assert!(found.len() <= 5000 && found.len() > 4000, "{}", found.len());
    assert_eq!(found, ((10_000 - found.len() as u64)..10_000).rev().collect::<Vec<_>>());
    assert_eq!(store.status().await.unwrap().events, found.len() as u64);
    // Nothing is found by what is gone.
    assert!(all(&*store, query(&[(Reference, "0b0e9a3e-6c0b-4a43-0000000000000001")])).await.0.is_empty());
    store.give_way().await.unwrap();
    let halved = all(&*store, query(&[])).await.0.len();
    assert!(halved <= found.len() / 2 + 64 && halved > 1000, "{halved}");
    // Age counts from the arrival, by the clock of the machine.
    store.sweep(now_millis() + LIMITS.age_millis + 60_000).await.unwrap();
    assert!(all(&*store, query(&[])).await.0.is_empty());
    assert_eq!(store.status().await.unwrap().events, 0);
    store.append(some(0..10)).await.unwrap();
    assert_eq!(all(&*store, query(&[])).await.0.len(), 10);
}

async fn what_an_event_says_is_kept_as_it_is(store: Arc<dyn EventStore>) {
    let hostile = [
        json!({ "@id": "event_0000000000000001", "message": "\u{0}\u{1}\r\n\u{7f}\u{2028}<script>alert(1)</script>\u{202e}" }),
        json!({ "@id": "event_0000000000000002", "message": "x".repeat(250_000), "http": { "request_id": "y".repeat(2000) } }),
        json!({ "@id": "event_0000000000000003", "source": { "ip": "not an address", "user": "%_*'\"\\" }, "route": [] }),
        json!({ "@id": "event_0000000000000004", "matches": (0..5000).map(|id| json!({ "rule_id": id })).collect::<Vec<_>>() }),
        json!({ "@id": "event_0000000000000005", "@timestamp": u64::MAX, "deep": (0..100).fold(json!(1), |deep, _| json!([deep])) }),
    ];
    store.append(hostile.iter().map(new).collect()).await.unwrap();
    for (number, event) in hostile.iter().enumerate() {
        let page = store.search(query(&[(Id, &format!("event_{:016x}", number + 1))])).await.unwrap();
        assert_eq!(&serde_json::from_slice::<Value>(&page.events[0].line).unwrap(), event);
    }
    assert_eq!(all(&*store, query(&[(Identity, "user:%_*'\"\\")])).await.0, [3]);
    assert!(all(&*store, query(&[(Reference, &"y".repeat(2000))])).await.0.is_empty(), "too long to be looked for");
}

async fn a_hundred_thousand_identities_have_each_their_own(store: Arc<dyn EventStore>) {
    for batch in 0..100_u64 {
        let events = (0..1000).map(|number| {
            let mut one = event(batch * 1000 + number, NOW - 1_000_000 + batch);
            one["source"] = json!({ "user": format!("user-{}", batch * 1000 + number) });
            new(&one)
        });
        store.append(events.collect()).await.unwrap();
    }
    for number in [0, 777, 54_321, 99_999] {
        assert_eq!(all(&*store, query(&[(Identity, &format!("user:user-{number}"))])).await.0, [number]);
    }
}

#[allow(clippy::disallowed_methods, reason = "the store takes the time of arrival from the machine")]
fn now_millis() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    u64::try_from(since.as_millis()).unwrap()
}

#[allow(clippy::disallowed_methods, reason = "a measurement, or a bound that only a hanging test reaches")]
fn now() -> Instant {
    Instant::now()
}

async fn at_server(server: &RedisServer, limits: EventLimits) -> Arc<SharedEvents> {
    let url = format!("{}?timeout_millis=60000", server.url());
    open_at(&url, server.folder.path(), limits).await
}

async fn open_at(url: &str, folder: &Path, limits: EventLimits) -> Arc<SharedEvents> {
    Arc::new(SharedEvents::open(RedisOptions::parse(url).unwrap(), folder, limits).await.unwrap())
}

macro_rules! both {
    ($($name:ident $limits:expr),* $(,)?) => {
        mod file {
            $(
                #[tokio::test(flavor = "multi_thread")]
                async fn $name() {
                    let folder = tempfile::tempdir().unwrap();
                    super::$name(super::Arc::new(super::EventFile::new(folder.path(), $limits))).await;
                }
            )*
        }
        mod server {
            $(
                #[tokio::test(flavor = "multi_thread")]
                async fn $name() {
                    let Some(server) = super::RedisServer::start().await else { return };
                    super::$name(super::at_server(&server, $limits).await).await;
                }
            )*
        }
    };
}

both! {
    events_are_found_by_what_they_name_newest_first super::LIMITS,
    the_same_batch_twice_is_there_once super::LIMITS,
    events_of_one_millisecond_have_an_order super::LIMITS,
    a_search_has_a_bound_and_goes_on super::LIMITS,
    the_oldest_give_way_by_number_and_age super::EventLimits { events: 5000, ..super::LIMITS },
    what_an_event_says_is_kept_as_it_is super::LIMITS,
    a_hundred_thousand_identities_have_each_their_own super::LIMITS,
}

// === the file ===

#[tokio::test]
async fn a_file_has_its_events_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let store = EventFile::new(folder.path(), LIMITS);
    store.append(some(0..100)).await.unwrap();
    store.close().await.unwrap();
    assert_eq!(store.append(some(0..1)).await, Err(StoreError::Closed));
    let again = EventFile::new(folder.path(), LIMITS);
    assert_eq!(all(&again, query(&[])).await.0.len(), 100);
    assert_eq!(again.status().await.unwrap().oldest_millis, Some(NOW - 1_000_000));
    const { assert!(MAX_LATE_MILLIS > 1_000_000) };
}

// === the server ===

#[tokio::test(flavor = "multi_thread")]
async fn what_one_appends_the_other_finds_and_is_told() {
    let Some(server) = RedisServer::start().await else { return };
    let (one, other) = (at_server(&server, LIMITS).await, at_server(&server, LIMITS).await);
    let mut told = other.others();
    let mut own = one.others();
    assert!(all(&*other, query(&[])).await.0.is_empty());
    tokio::time::sleep(Duration::from_millis(1500)).await;
    one.append(some(0..10)).await.unwrap();
    assert_eq!(all(&*other, query(&[])).await.0.len(), 10);
    other.append(some(5..20)).await.unwrap();
    assert_eq!(all(&*one, query(&[])).await.0, (0..20).rev().collect::<Vec<_>>());
    let first: Value = serde_json::from_slice(&told.recv().await.unwrap()).unwrap();
    assert_eq!(first["@id"], "event_0000000000000000");
    let first: Value = serde_json::from_slice(&own.recv().await.unwrap()).unwrap();
    assert_eq!(first["@id"], "event_0000000000000005", "its own events are no news");
    // One that starts later has what came before.
    let third = at_server(&server, LIMITS).await;
    assert_eq!(all(&*third, query(&[])).await.0.len(), 20);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_hangs_keeps_no_search_and_takes_what_comes_later() {
    let Some(server) = RedisServer::start().await else { return };
    let url = format!("{}?timeout_millis=300", server.url());
    let store = open_at(&url, server.folder.path(), LIMITS).await;
    store.append(some(0..10)).await.unwrap();
    assert_eq!(all(&*store, query(&[])).await.0.len(), 10);
    server.signal(rustix::process::Signal::STOP);
    assert!(store.append(some(10..20)).await.is_err());
    assert!(all(&*store, query(&[])).await.0.len() >= 10, "what was known is found");
    server.signal(rustix::process::Signal::CONT);
    let since = now();
    while store.append(some(10..20)).await.is_err() {
        assert!(since.elapsed() < Duration::from_secs(60));
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    while all(&*store, query(&[])).await.0 != (0..20).rev().collect::<Vec<_>>() {
        assert!(since.elapsed() < Duration::from_secs(60));
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_server_has_the_room_of_events_for_what_must_not_be_lost() {
    let Some(server) = RedisServer::start_with(&["--maxmemory", "12mb", "--maxmemory-policy", "noeviction"]).await
    else {
        return;
    };
    let (store, events) = (server.open().await, at_server(&server, LIMITS).await);
    let mut number = 0;
    let refused = loop {
        // Nothing that can be compressed: the numbers of a generator, as text.
        let text: String = (0..4000_u64)
            .map(|at| {
                format!(
                    "{:016x}",
                    (number * 4000 + at + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29) ^ (at << 40)
                )
            })
            .collect();
        let mut one = event(number, NOW);
        one["message"] = json!(text);
        if let Err(error) = events.append(vec![new(&one)]).await {
            break error;
        }
        number += 1;
        assert!(number < 5000, "the server never was full");
    };
    assert!(matches!(refused, StoreError::ServerFull { .. }), "{refused}");
    // Half of the events were removed at once.
    use store::Store as _;
    assert_eq!(store.entity_put("c", "a", "x".repeat(100_000), 0).await, Ok(1));
    assert!(events.status().await.unwrap().events < number);
}

/// One that starts reads the stream in parts: the first of them may be too old altogether.
#[tokio::test(flavor = "multi_thread")]
async fn one_that_starts_removes_what_is_too_old_and_nothing_that_came_since() {
    const DAY: u64 = 86_400_000;
    let Some(server) = RedisServer::start().await else { return };
    let client = redis::Client::open(server.url()).unwrap();
    let mut connection = client.get_multiplexed_async_connection().await.unwrap();
    let came = now_millis();
    for number in 0..160_u64 {
        let days = if number < 100 { 8 } else { 3 };
        let id = if number < 150 { format!("{}-{number}", came - days * DAY) } else { format!("{came}-{number}") };
        let block = Block::pack(some(number..number + 1)).unwrap().remove(0);
        let mut add = redis::cmd("XADD");
        add.arg("{palisade}:events").arg(id).arg("by").arg("another").arg("block").arg(block.body());
        add.query_async::<String>(&mut connection).await.unwrap();
    }
    for (days, left) in [(7, 100..160_u64), (1, 150..160)] {
        let store = at_server(&server, EventLimits { age_millis: days * DAY, ..LIMITS }).await;
        let (since, expected) = (now(), left.rev().collect::<Vec<_>>());
        let length = async |connection: &mut redis::aio::MultiplexedConnection| {
            redis::cmd("XLEN").arg("{palisade}:events").query_async::<usize>(connection).await.unwrap()
        };
        while length(&mut connection).await > expected.len() {
            assert!(since.elapsed() < Duration::from_secs(60), "what is too old stays at the server");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        assert_eq!(length(&mut connection).await, expected.len(), "of {days} days");
        while all(&*store, query(&[])).await.0 != expected {
            assert!(since.elapsed() < Duration::from_secs(60), "what is not too old is found");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        assert_eq!(length(&mut connection).await, expected.len(), "of {days} days");
        store.close().await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_was_emptied_is_followed() {
    let Some(server) = RedisServer::start().await else { return };
    let store = at_server(&server, LIMITS).await;
    store.append(some(0..10)).await.unwrap();
    assert_eq!(all(&*store, query(&[])).await.0.len(), 10);
    server.ask("FLUSHALL");
    server.ask("CLIENT KILL TYPE normal");
    store.append(some(20..30)).await.ok();
    let since = now();
    while !all(&*store, query(&[])).await.0.contains(&29) {
        assert!(since.elapsed() < Duration::from_secs(60));
        store.append(some(20..30)).await.ok();
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let found = all(&*store, query(&[])).await.0;
    assert!(found.iter().all(|number| *number >= 20), "what the server lost is not found: {found:?}");
}

/// Uses every command that stored events need.
pub(crate) async fn work_as(url: &str, folder: &Path) {
    let store = open_at(url, folder, EventLimits { events: 100, ..LIMITS }).await;
    store.append(some(0..1000)).await.unwrap();
    while store.search(query(&[])).await.unwrap().events.is_empty() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    store.give_way().await.unwrap();
    store.sweep(now_millis()).await.unwrap();
    store.close().await.unwrap();
}

// === costs ===

/// Nothing is asserted of the figures: `--no-capture` shows them. `PALISADE_EVENTS` is the number of events.
#[tokio::test(flavor = "multi_thread")]
async fn costs_of_stored_events() {
    let count = std::env::var("PALISADE_EVENTS").ok().and_then(|text| text.parse().ok()).unwrap_or(20_000_u64);
    let folder = tempfile::tempdir().unwrap();
    let file = EventFile::new(folder.path(), EventLimits { bytes: 8 << 30, events: 10_000_000, ..LIMITS });
    measure("embedded", &file, count).await;
    let Some(server) = RedisServer::start().await else { return };
    let memory = || -> u64 {
        let used = server.ask("INFO memory");
        used.split("used_memory:").nth(1).unwrap().split_whitespace().next().unwrap().parse().unwrap()
    };
    let before = memory();
    let shared = at_server(&server, EventLimits { bytes: 8 << 30, events: 10_000_000, ..LIMITS }).await;
    let count = count.min(200_000);
    measure("redis, appendfsync always", &*shared, count).await;
    println!("redis: {} bytes of the server's memory for each event", (memory() - before) / count);
}

async fn measure(name: &str, store: &dyn EventStore, count: u64) {
    let lines = (0..1000).map(|number| event(number, NOW).to_string().len() as u64).sum::<u64>() / 1000;
    let mut spent = Duration::ZERO;
    for batch in 0..count / 1000 {
        let events = some(batch * 1000..(batch + 1) * 1000);
        let since = now();
        store.append(events).await.unwrap();
        spent += since.elapsed();
    }
    println!("{name}: {count} events of {lines} bytes: {:.0} each second", count as f64 / spent.as_secs_f64());
    let since = now();
    let status = store.status().await.unwrap();
    println!("{name}: {} bytes for each event; status {:?}", status.bytes / count, since.elapsed());
    let text = format!("0b0e9a3e-6c0b-4a43-{:016x}", count / 2);
    for (what, query) in [
        ("the newest 100", query(&[])),
        ("one reference", query(&[(Reference, &text)])),
        ("one route", query(&[(Route, "route-3")])),
        ("one route, refused", query(&[(Route, "route-3"), (Outcome, "blocked")])),
        ("one identity", query(&[(Identity, "ip:198.51.3.7")])),
        ("nothing, with all of its work", query(&[(Node, "edge-1"), (DryRun, "true"), (Outcome, "blocked")])),
    ] {
        let mut times = Vec::new();
        for _ in 0..20 {
            let since = now();
            store.search(query.clone()).await.unwrap();
            times.push(since.elapsed());
        }
        times.sort();
        println!("{name}: {what}: median {:?}, slowest {:?}", times[10], times[19]);
    }
}
