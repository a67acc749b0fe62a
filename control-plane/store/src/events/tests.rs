use std::collections::BTreeSet;
use std::sync::Arc;

use base::clock;
use serde_json::{Value, json};

use super::terms::term;
use super::*;

const NOW: u64 = 1_800_000_000_000;

fn line(event: &Value) -> Arc<[u8]> {
    event.to_string().into_bytes().into()
}

fn event(number: u64, at: u64) -> Value {
    json!({
        "@type": "SvcSecurityEvent", "@id": format!("event_{number:016x}"), "@timestamp": base::clock::rfc3339(at),
        "event": { "category": "threat", "action": "deny", "outcome": "blocked", "module": "threat-response" },
        "source": { "ip": format!("192.0.2.{}", number % 250), "apikey": null, "user": "ada" },
        "incident": { "id": format!("incident_{}", number % 10) }, "route": { "id": "shop", "node": "n1" },
        "http": { "request_id": format!("ref-{number}") }, "decision": { "dry_run": number.is_multiple_of(3) },
    })
}

fn new(number: u64, at: u64) -> NewEvent {
    NewEvent::read(&line(&event(number, at)), NOW).unwrap()
}

fn limits(bytes: u64, events: u64) -> EventLimits {
    EventLimits { age_millis: 7 * 86_400_000, bytes, events }
}

fn found(page: &EventPage) -> Vec<String> {
    let id = |event: &FoundEvent| serde_json::from_slice::<Value>(&event.line).unwrap()["@id"].as_str().unwrap().into();
    page.events.iter().map(id).collect()
}

#[test]
fn an_event_is_found_by_all_that_it_names() {
    use EventField::*;
    let has = |event: &Value, field, value: &str| {
        NewEvent::read(&line(event), NOW).unwrap().has(&[(field, value.to_owned())])
    };
    let security = event(7, NOW);
    for (field, value) in [
        (Id, "event_0000000000000007"),
        (Reference, "ref-7"),
        (Identity, "ip:192.0.2.7"),
        (Identity, "user:ada"),
        (Incident, "incident_7"),
        (Route, "shop"),
        (Node, "n1"),
        (Category, "threat"),
        (Action, "deny"),
        (Plugin, "threat-response"),
        (Outcome, "blocked"),
        (Type, "security"),
    ] {
        assert!(has(&security, field, value), "{field:?}");
        assert!(!has(&security, field, &format!("{value}%")), "{field:?}");
    }
    assert!(!has(&security, DryRun, "true") && has(&event(9, NOW), DryRun, "true"));
    let trail = json!({
        "@type": "SvcWafTrailEvent", "@id": "t", "config": { "id": "c" }, "block": null,
        "would_block": { "rule_id": 9 }, "matches": [{ "rule_id": 8 }], "rule_ids": [9, 10],
        "source": { "ip": "2001:DB8::0001", "network": "2001:db8::/64" },
    });
    for (field, value) in [
        (Config, "c"),
        (Rule, "8"),
        (Rule, "9"),
        (Rule, "10"),
        (Plugin, "waf"),
        (Outcome, "observed"),
        (DryRun, "true"),
        (Type, "trail"),
        (Identity, "ip:2001:db8::1"),
        (Identity, "ip:2001:db8::/64"),
    ] {
        assert!(has(&trail, field, value), "{field:?} {value}");
    }
    let audit = json!({
        "@type": "SvcWafSecurityAudit", "@id": "a", "action": "ban", "ref": "ip:192.0.2.9", "request_id": "r",
        "source": { "user": "alice" },
    });
    for (field, value) in
        [(Type, "audit"), (Action, "ban"), (Identity, "ip:192.0.2.9"), (Identity, "user:alice"), (Reference, "r")]
    {
        assert!(has(&audit, field, value), "{field:?}");
    }
    let signals =
        json!([{ "rules": [{ "id": 942_100, "message": "x" }, { "id": 7 }] }, { "rules": 1 }, 2, { "rules": [3] }]);
    let signalled = json!({ "@type": "SvcSecurityEvent", "@id": "s", "threat": { "signals": signals } });
    assert!(has(&signalled, Rule, "942100") && has(&signalled, Rule, "7") && !has(&signalled, Rule, "3"));
    let odd =
        json!({ "@type": 7, "source": "x", "matches": { "rule_id": 1 }, "rule_ids": [null, [], "x"], "http": [] });
    assert!(has(&odd, Rule, "x") && has(&odd, Type, "security"));
    for wrong in [&b"7"[..], b"[]", b"{", b"\xff", b""] {
        assert_eq!(NewEvent::read(&wrong.into(), NOW), None);
    }
    let bounded = NewEvent::read(&line(&json!({ "rule_ids": (0..1000).collect::<Vec<_>>() })), NOW).unwrap();
    assert!(bounded.terms.len() < 40);
}

#[test]
fn the_time_of_an_event_is_its_own_unless_its_clock_is_wrong() {
    let at =
        |stated: Value| NewEvent::read(&line(&json!({ "@id": "x", "@timestamp": stated })), NOW).unwrap().at_millis();
    assert_eq!(at(json!(NOW - 5)), NOW - 5);
    assert_eq!(at(json!(base::clock::rfc3339(NOW - MAX_LATE_MILLIS))), NOW - MAX_LATE_MILLIS);
    for wrong in [json!(NOW - MAX_LATE_MILLIS - 1), json!(NOW + 1), json!(u64::MAX), json!("soon"), json!(null)] {
        assert_eq!(at(wrong.clone()), NOW, "{wrong}");
    }
    for at in [0, NOW, NOW + 1] {
        assert_eq!(place_millis(place::of(at, u64::MAX)), at);
    }
    assert!(place::first(u64::MAX) <= i64::MAX.cast_unsigned());
}

#[test]
fn a_block_has_its_events_again() {
    let events: Vec<NewEvent> = (0..1000).map(|number| new(number, NOW - number)).collect();
    let blocks = Block::pack(events.clone()).unwrap();
    assert!(blocks.len() >= 1000 / MAX_BLOCK_EVENTS);
    let again: Vec<NewEvent> =
        blocks.iter().flat_map(|block| Block::unpack(block.body().to_vec()).events).map(|(_, event)| event).collect();
    assert_eq!(again, events);
    let spread: Arc<[u8]> = b"{\n\"@id\":\r\"a\\nb\"}"[..].into();
    let block = Block::pack(vec![NewEvent::read(&spread, NOW).unwrap()]).unwrap().remove(0);
    let read = Block::unpack(block.body.clone());
    assert_eq!(read.events[0].1.terms[0], term(EventField::Id, "a\nb"));
    // What a server has may be anything.
    for wrong in [&b""[..], b"x", &[0xff; 1000], &block.body()[..block.body().len() / 2]] {
        assert!(Block::unpack(wrong.to_vec()).events.is_empty());
    }
}

#[tokio::test]
async fn the_size_of_the_file_is_bounded_and_the_oldest_go() {
    let folder = tempfile::tempdir().unwrap();
    let store = EventFile::new(folder.path(), limits(2 << 20, 1_000_000));
    for batch in 0..200 {
        store.append((0..100).map(|number| new(batch * 100 + number, NOW - 30_000 + batch)).collect()).await.unwrap();
    }
    let status = store.status().await.unwrap();
    assert!(status.bytes <= 2 << 20 && status.events > 500, "{status:?}");
    let last = store.search(EventQuery { limit: 1, ..EventQuery::default() }).await.unwrap();
    assert_eq!(last.events[0].at_millis, NOW - 30_000 + 199);
    let filters = vec![(EventField::Reference, "ref-0".to_owned())];
    assert!(store.search(EventQuery { filters, limit: 1, ..EventQuery::default() }).await.unwrap().events.is_empty());
    assert_eq!(store.give_way().await, Ok(true));
    let halved = store.status().await.unwrap();
    assert!(halved.events <= status.events / 2 && halved.bytes < status.bytes * 2 / 3, "{halved:?}");
    assert!(std::fs::metadata(folder.path().join("events.db")).unwrap().len() < 2 << 20);
    assert_eq!(store.give_way().await, Ok(false), "not again so soon");
    assert_eq!(store.status().await.unwrap().events, halved.events);
}

/// The `@id`s of all that a query finds, page by page.
async fn all(store: &EventFile, mut query: EventQuery) -> Vec<String> {
    let mut ids = Vec::new();
    loop {
        let page = store.search(query.clone()).await.unwrap();
        ids.extend(found(&page));
        match page.next {
            Some(next) => query.before = Some(next),
            None => return ids,
        }
        assert!(ids.len() < 10_000, "a search ends");
    }
}

#[tokio::test]
async fn late_events_have_their_place_whatever_segment_they_are_in() {
    use EventField::{DryRun, Identity, Incident, Reference, Route};
    let folder = tempfile::tempdir().unwrap();
    let store = EventFile::new(folder.path(), limits(1 << 30, 600));
    // Each number once, in an order that has early and late ones in each segment.
    let order: Vec<u64> = (0..1000).map(|number| number * 377 % 1000).collect();
    for part in order.chunks(40) {
        store.append(part.iter().map(|number| new(*number, NOW - 1000 + number)).collect()).await.unwrap();
    }
    store.sweep(clock::now_millis()).await.unwrap();
    let kept = usize::try_from(store.status().await.unwrap().events).unwrap();
    assert!((500..=600).contains(&kept), "{kept}");
    let mut left: Vec<u64> = order[order.len() - kept..].to_vec();
    left.sort_by(|one, other| other.cmp(one));
    let expected = |is: &dyn Fn(u64) -> bool| {
        let numbers = left.iter().filter(|number| is(**number));
        numbers.map(|number| format!("event_{number:016x}")).collect::<Vec<_>>()
    };
    let query = |filters: &[(EventField, &str)]| {
        let filters = filters.iter().map(|(field, value)| (*field, (*value).to_owned())).collect();
        EventQuery { filters, limit: 7, ..EventQuery::default() }
    };
    assert_eq!(all(&store, query(&[])).await, expected(&|_| true));
    assert_eq!(all(&store, query(&[(Route, "shop")])).await, expected(&|_| true));
    assert_eq!(all(&store, query(&[(Incident, "incident_3")])).await, expected(&|number| number % 10 == 3));
    let both = query(&[(Incident, "incident_3"), (DryRun, "true")]);
    assert_eq!(all(&store, both).await, expected(&|number| number % 30 == 3));
    assert_eq!(all(&store, query(&[(Identity, "ip:192.0.2.9")])).await, expected(&|number| number % 250 == 9));
    for number in [0, 377, 999, left[0], left[kept - 1]] {
        let one = query(&[(Reference, &format!("ref-{number}"))]);
        assert_eq!(all(&store, one).await, expected(&|other| other == number), "{number}");
    }
    let within =
        EventQuery { from_millis: NOW - 1000 + 200, until_millis: Some(NOW - 1000 + 300), ..query(&[(Route, "shop")]) };
    assert_eq!(all(&store, within).await, expected(&|number| (200..300).contains(&number)));
    // The same events again are there already, in whatever segment.
    store.append(left.iter().map(|number| new(*number, NOW - 1000 + number)).collect()).await.unwrap();
    assert_eq!(store.status().await.unwrap().events, kept as u64);
    // What was removed leaves nothing behind.
    store.close().await.unwrap();
    let db = rusqlite::Connection::open(folder.path().join("events.db")).unwrap();
    let number = |sql: &str| db.query_row(sql, [], |row| row.get::<_, u64>(0)).unwrap();
    assert_eq!(number("SELECT count(*) FROM term WHERE place NOT IN (SELECT place FROM event)"), 0);
    assert_eq!(number("SELECT count(*) FROM term WHERE segment NOT IN (SELECT id FROM segment)"), 0);
    assert!(number("SELECT count(*) FROM segment") < 9, "segments without events are gone");
}

#[test]
fn events_are_found_beside_blocks_of_a_segment_without_a_row() {
    let folder = tempfile::tempdir().unwrap();
    let copy =
        |numbers: std::ops::Range<u64>| numbers.map(|number| new(number, NOW - 1000 + number)).collect::<Vec<_>>();
    let db = tables::open(&folder.path().join("events.db"), true).unwrap();
    let add = |numbers, came: u64| {
        let blocks = Block::pack(copy(numbers)).unwrap();
        blocks.iter().for_each(|block| tables::add(&db, block, came, &format!("{came}-0")).unwrap());
    };
    add(0..100, 1);
    // The same once more, as after a lost answer: their segment is the next one, and has no row.
    add(0..60, 2);
    let last = "SELECT segment FROM block ORDER BY id DESC LIMIT 1";
    let segment = || db.query_row(last, [], |row| row.get::<_, i64>(0)).unwrap();
    assert_eq!(segment(), 2);
    db.execute_batch("DELETE FROM segment").unwrap();
    add(200..210, 3);
    // Were it an earlier one, it would be forgotten with the first of the blocks that are in segment 2.
    assert_eq!(segment(), 2);
}

#[tokio::test]
async fn a_file_that_is_of_no_use_is_put_aside() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("events.db");
    std::fs::write(&file, "not a database, whatever its name says".repeat(200)).unwrap();
    let store = EventFile::new(folder.path(), limits(1 << 30, 1000));
    store.append(vec![new(1, NOW)]).await.unwrap();
    assert_eq!(store.status().await.unwrap().events, 1);
    assert!(folder.path().join("events.db.unusable").exists());
    store.close().await.unwrap();
    assert_eq!(store.status().await, Err(crate::StoreError::Closed));
    // It is damaged while it is in use.
    let store = EventFile::new(folder.path(), limits(1 << 30, 1000));
    store.append((0..500).map(|number| new(number, NOW)).collect()).await.unwrap();
    store.close().await.unwrap();
    let mut bytes = std::fs::read(&file).unwrap();
    bytes[4096..].fill(0xaa);
    std::fs::write(&file, bytes).unwrap();
    let store = EventFile::new(folder.path(), limits(1 << 30, 1000));
    let _may_fail_once = store.append(vec![new(1, NOW)]).await;
    store.append(vec![new(1, NOW)]).await.unwrap();
    assert_eq!(found(&store.search(EventQuery { limit: 9, ..EventQuery::default() }).await.unwrap()).len(), 1);
}

#[tokio::test]
async fn files_are_for_their_owner_alone() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().unwrap();
    let store = EventFile::new(folder.path(), limits(1 << 30, 1000));
    store.append(vec![new(1, NOW)]).await.unwrap();
    for name in ["events.db", "events.db-wal", "events.db-shm"] {
        let mode = std::fs::metadata(folder.path().join(name)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
    }
}

/// No byte of the fields that are stored ever changes its meaning.
#[test]
fn terms_are_those_of_earlier_releases() {
    let fields = [EventField::Id, EventField::Reference, EventField::Type];
    let terms: BTreeSet<i64> = fields.iter().map(|field| term(*field, "x")).collect();
    assert_eq!(terms.len(), 3);
    assert_eq!(term(EventField::Id, "x"), TERM_OF_X);
}

/// Of SHA-256 over the byte 1 and `x`, the first eight bytes, the lowest first.
const TERM_OF_X: i64 = -9_102_389_617_622_333_405;

#[test]
fn a_copy_says_which_block_it_has_removed_last_also_where_none_is_left() {
    let folder = tempfile::tempdir().unwrap();
    let copy = EventCopy::create(folder.path()).unwrap();
    let block = |number: u64| {
        let block = Block::pack(vec![new(number, NOW + number)]).unwrap().remove(0);
        (NOW + number, format!("{}-7", NOW + number), block)
    };
    copy.add(&(0..40).map(block).collect::<Vec<_>>()).unwrap();
    let age = limits(u64::MAX, u64::MAX).age_millis;
    let fit = |now| copy.fit(&limits(u64::MAX, u64::MAX), now, false).unwrap();
    assert_eq!(fit(NOW + age), None);
    assert_eq!(fit(NOW + age + 12), Some(format!("{}-7", NOW + 11)));
    assert_eq!(fit(NOW + age + 99), Some(format!("{}-7", NOW + 39)), "the server may have later ones");
    assert_eq!(fit(NOW + age + 99), None);
}
