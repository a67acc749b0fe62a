//! What is an attack, and how attacks become alerts.

use std::sync::Arc;

use super::super::attack::{Attack, Way};
use super::super::queue::{Form, MAX_WAITING, Queue};
use super::*;

const NOW: u64 = 1_800_000_000_000;

fn read(event: &Value) -> Option<Attack> {
    Attack::read(event.to_string().as_bytes(), |module| module == "detector-with-trail", NOW)
}

fn way(event: &Value) -> Option<Way> {
    read(event).map(|attack| attack.way)
}

fn with(mut event: Value, pointer: &str, value: Value) -> Value {
    *event.pointer_mut(pointer).unwrap() = value;
    event
}

fn signal(source: &str, kind: &str, tag: &str) -> Value {
    json!({ "source": source, "kind": kind, "weight": 50, "effective_weight": 50, "tag": tag, "detail": "" })
}

#[test]
fn only_enforced_refusals_of_what_callers_do_are_attacks() {
    let event = refusal("192.0.2.7");
    assert_eq!(way(&event), Some(Way::Refused));
    assert_eq!(way(&with(event.clone(), "/event/action", json!("ban"))), Some(Way::Refused));
    for (pointer, value) in [
        ("/event/action", json!("log")),
        ("/event/outcome", json!("observed")),
        ("/event/category", json!("ban")),
        ("/event/category", json!("traffic")),
        ("/event/category", json!("dependency")),
        ("/event/module", json!("detector-with-trail")),
        ("/decision/enforced", json!(false)),
        ("/source/ip", Value::Null),
        ("/source/ip", json!("192.0.2.7:80")),
        ("/@type", json!(7)),
    ] {
        assert_eq!(read(&with(event.clone(), pointer, value.clone())), None, "{pointer} {value}");
    }
    // Rules that weigh and do not refuse by themselves.
    let by_rules = with(event, "/threat/signals", json!([signal("detector-with-trail.rules", "waf", "waf:1")]));
    assert_eq!(way(&by_rules), Some(Way::Rules));
    assert_eq!(way(&trail("192.0.2.7", true)), Some(Way::Rules));
    assert_eq!(way(&trail("192.0.2.7", false)), Some(Way::Monitored));
    let gave_up = with(trail("192.0.2.7", false), "/matches", json!([]));
    assert_eq!(way(&gave_up), None);
}

#[test]
fn what_lists_say_is_told_only_where_the_step_reports_it_and_never_to_its_source() {
    let listed = |kind: &str| {
        let tags = json!(["crowd", "reputation:svc-bouncer_b"]);
        let event = with(refusal("192.0.2.7"), "/threat/tags", tags);
        with(event, "/threat/signals", json!([signal(crate::SOURCE, kind, "crowd")]))
    };
    assert_eq!(read(&listed("reputation")), None);
    let attack = read(&listed(crate::REPORTED)).unwrap();
    assert!(attack.is_known_to(&["svc-bouncer_a".to_owned(), "svc-bouncer_b".to_owned()]));
    assert!(!attack.is_known_to(&["svc-bouncer_a".to_owned()]));
    // By a feed that weighs nothing and blocks.
    let own = with(with(listed("reputation"), "/event/module", json!("ip-reputation")), "/threat/signals", json!([]));
    assert_eq!(read(&own), None);
    // An attack of a listed caller is one.
    let both = json!([signal(crate::SOURCE, "reputation", "crowd"), signal("other", "x", "x")]);
    assert_eq!(way(&with(listed("reputation"), "/threat/signals", both)), Some(Way::Refused));
    // One of many lists.
    let mut others = signal(crate::SOURCE, crate::REPORTED, crate::OTHERS);
    others["detail"] = json!("2 more sources have the address: feed_x, svc-bouncer_c");
    let attack = read(&with(listed(""), "/threat/signals", json!([others]))).unwrap();
    assert!(attack.is_known_to(&["svc-bouncer_c".to_owned()]));
}

#[test]
fn texts_of_callers_are_bounded_and_clocks_of_gateways_are_not_believed() {
    let long = with(refusal("::ffff:192.0.2.7"), "/http/path", json!("/\n\u{1b}".repeat(10_000)));
    let attack = read(&long).unwrap();
    assert_eq!(attack.address.to_string(), "192.0.2.7");
    assert!(attack.facts.iter().all(|(_, value)| value.len() <= 1024 && !value.contains(['\n', '\u{1b}'])));
    for (text, at) in [("2099-01-01T00:00:00Z", NOW), ("1970-01-01T00:00:00Z", NOW - 3_600_000), ("x", NOW)] {
        assert_eq!(read(&with(refusal("192.0.2.7"), "/@timestamp", json!(text))).unwrap().at, at, "{text}");
    }
}

#[test]
fn alerts_are_gathered_by_address_until_they_are_on_their_way() {
    let attack = |address: &str, event: fn(&str) -> Value| Arc::new(read(&event(address)).unwrap());
    let mut queue = Queue::default();
    let refused = attack("192.0.2.1", refusal);
    (0..9).for_each(|_| queue.add(&refused));
    queue.add(&attack("192.0.2.1", |address| trail(address, false)));
    queue.add(&attack("192.0.2.2", refusal));
    assert_eq!(queue.pending(), 3, "what rules only monitor is another alert");
    let taken = queue.take(2);
    queue.add(&refused);
    assert_eq!(queue.pending(), 4, "what comes while one is on its way is another one");
    queue.put_back(taken);
    let form = Form { scenario: "s".to_owned(), decision: Some("1h".to_owned()) };
    let documents: Vec<Value> = queue.take(9).iter().map(|(_, alert)| alert.document(&form, false)).collect();
    let counts: Vec<&Value> = documents.iter().map(|document| &document["events_count"]).collect();
    assert_eq!(counts, [9, 1, 1, 1], "in their old places");
    let asks: Vec<bool> = documents.iter().map(|document| document.get("decisions").is_some()).collect();
    assert_eq!(asks, [true, false, true, true]);
    queue.settle(0);
    for number in 0..10_000_u32 {
        queue.add(&attack(&std::net::Ipv4Addr::from(number).to_string(), refusal));
    }
    assert_eq!((queue.pending(), queue.dropped), (MAX_WAITING, 10_000 - MAX_WAITING as u64));
    assert_eq!(queue.take(1)[0].1.document(&form, false)["source"]["value"], "0.0.23.16");
}
