use serde_json::{Value, json};

use super::*;
use entities::{EntitySet, unsaved};
use events::{BanWay, IdentityRef};
use store::fabric::Ban;

const NOW: u64 = 1_800_000_000_000;

fn rule(id: &str, fields: Value) -> Item<AlertRule> {
    let mut document = json!({ "id": id });
    document.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    let empty = EntitySet::empty();
    unsaved(document, &empty).unwrap()
}

fn sighting(identity: &str, count: u64) -> Sighting {
    Sighting {
        identity: Some(IdentityRef { kind: "ip".to_owned(), value: identity.to_owned() }),
        place: Some(Place { id: format!("inc-{identity}"), count, reopened: false }),
        score: 75.0,
        severity: 3,
        category: "threat".to_owned(),
        action: "deny".to_owned(),
        enforced: true,
        route_id: "shop".to_owned(),
        ..Sighting::default()
    }
}

fn event(event: Sighting) -> Seen {
    Seen::Event(Box::new(event))
}

fn ban(key: &str, score: Option<f64>, events: &[(&str, &str)]) -> Seen {
    let ban = Ban { key: key.to_owned(), reason: "scans".to_owned(), until: NOW + 1000, ..Ban::default() };
    let events = events.iter().map(|(category, route)| ((*category).to_owned(), (*route).to_owned())).collect();
    Seen::Ban(Box::new(BanMade { ban, way: BanWay::Tier, score, events }))
}

#[test]
fn an_incident_is_told_once_per_cooldown_from_its_least_count_on() {
    let rules = rule("r", json!({ "min_count": 3, "cooldown_seconds": 10 }));
    let rules = [&rules];
    let mut judge = Judge::default();
    let mut told = |count, at| judge.see(&event(sighting("192.0.2.1", count)), &rules, at).len();
    assert_eq!([told(1, NOW), told(2, NOW), told(3, NOW), told(4, NOW + 9_999)], [0, 0, 1, 0]);
    assert_eq!([told(5, NOW + 10_000), told(6, NOW + 10_001)], [1, 0]);
    let message = judge.see(&event(sighting("192.0.2.2", 3)), &rules, NOW + 10_001).remove(0);
    assert_eq!((message.subject.as_str(), message.incident), ("inc-192.0.2.2", Some(("inc-192.0.2.2".to_owned(), 3))));
}

#[test]
fn what_was_dropped_is_told_with_the_next_event() {
    let incident = rule("r", json!({ "cooldown_seconds": 10 }));
    let burst = rule("b", json!({ "trigger": "burst", "burst_threshold": 1, "cooldown_seconds": 10 }));
    let rules = [&incident, &burst];
    let mut judge = Judge::default();
    let told = judge.see(&event(sighting("192.0.2.1", 1)), &rules, NOW);
    assert_eq!(told.len(), 2);
    assert!(judge.see(&event(sighting("192.0.2.1", 2)), &rules, NOW + 1).is_empty(), "they cool down");
    for message in told {
        judge.dropped(&message.rule_id, &message.cools);
    }
    assert_eq!(judge.see(&event(sighting("192.0.2.1", 3)), &rules, NOW + 2).len(), 2);
}

#[test]
fn an_event_must_fit_in_all_that_a_rule_names() {
    let mut shop = rule("r", json!({ "categories": ["threat", "login"] }));
    shop.body.routes = vec!["shop".to_owned(), "till".to_owned()];
    let told = |event_of: Sighting| Judge::default().see(&event(event_of), &[&shop], NOW).len();
    let fits = sighting("192.0.2.1", 1);
    assert_eq!(told(fits.clone()), 1);
    assert_eq!(told(Sighting { score: 70.0, ..fits.clone() }), 1);
    assert_eq!(told(Sighting { score: 69.9, ..fits.clone() }), 0);
    assert_eq!(told(Sighting { enforced: false, ..fits.clone() }), 0);
    assert_eq!(told(Sighting { category: "upload".to_owned(), ..fits.clone() }), 0);
    assert_eq!(told(Sighting { route_id: "other".to_owned(), ..fits.clone() }), 0);
    assert_eq!(told(Sighting { place: None, ..fits.clone() }), 0, "an event of nobody has no incident");
    let all = rule("r", json!({ "enforced_only": false }));
    let seen = event(Sighting { enforced: false, ..fits });
    assert_eq!(Judge::default().see(&seen, &[&all], NOW).len(), 1);
}

#[test]
fn a_reopened_incident_is_told_again() {
    let rules = rule("r", json!({}));
    let mut judge = Judge::default();
    let mut told = |reopened: bool| {
        let mut sighting = sighting("192.0.2.1", 1);
        sighting.place.as_mut().unwrap().reopened = reopened;
        judge.see(&event(sighting), &[&rules], NOW).len()
    };
    assert_eq!([told(false), told(false), told(true), told(false)], [1, 0, 1, 0]);
}

#[test]
fn a_reopening_event_that_does_not_fit_leaves_the_next_one_free_to_be_told() {
    let rules = rule("r", json!({}));
    let mut judge = Judge::default();
    let seen = |score: f64, reopened: bool| {
        let place = Place { id: "i".to_owned(), count: 1, reopened };
        event(Sighting { score, place: Some(place), ..sighting("192.0.2.1", 1) })
    };
    assert_eq!(judge.see(&seen(80.0, false), &[&rules], NOW).len(), 1);
    assert_eq!(judge.see(&seen(10.0, true), &[&rules], NOW).len(), 0);
    assert_eq!(judge.see(&seen(80.0, false), &[&rules], NOW).len(), 1);
}

#[test]
fn a_burst_is_counted_over_all_identities_and_slides() {
    let rules = rule(
        "r",
        json!({
            "trigger": "burst", "burst_threshold": 3, "burst_window_seconds": 10, "cooldown_seconds": 60, "min_score": 0,
        }),
    );
    let mut judge = Judge::default();
    let mut told = |host: u64, at: u64| {
        let messages = judge.see(&event(sighting(&format!("192.0.2.{host}"), 1)), &[&rules], at);
        messages.first().map(|message| message.burst.unwrap())
    };
    assert_eq!(
        [told(1, NOW), told(2, NOW + 6_000), told(3, NOW + 12_000)],
        [None, None, None],
        "never three within ten"
    );
    assert_eq!(told(4, NOW + 13_000), Some((3, 10)));
    assert_eq!(told(5, NOW + 13_500), None, "the cooldown holds");
    assert_eq!([told(6, NOW + 73_000), told(7, NOW + 73_000), told(8, NOW + 73_000)], [None, None, Some((3, 10))]);
}

#[test]
fn events_that_do_not_fit_are_no_part_of_a_burst() {
    let rules = rule("r", json!({ "trigger": "burst", "burst_threshold": 2 }));
    let mut judge = Judge::default();
    let low = Sighting { score: 10.0, ..sighting("192.0.2.1", 1) };
    for _ in 0..5 {
        assert!(judge.see(&event(low.clone()), &[&rules], NOW).is_empty());
    }
    assert!(judge.see(&event(sighting("192.0.2.1", 1)), &[&rules], NOW).is_empty());
    assert_eq!(judge.see(&event(sighting("192.0.2.1", 1)), &[&rules], NOW).len(), 1);
}

#[test]
fn a_ban_is_told_unless_what_is_known_of_it_does_not_fit() {
    let mut rules = rule("r", json!({ "trigger": "ban", "categories": ["threat"], "cooldown_seconds": 10 }));
    rules.body.routes = vec!["shop".to_owned()];
    let told = |seen: &Seen| Judge::default().see(seen, &[&rules], NOW).len();
    assert_eq!(told(&ban("ip:192.0.2.1", None, &[])), 1, "by hand: nothing is known");
    assert_eq!(told(&ban("ip:192.0.2.1", Some(80.0), &[("login", "till"), ("threat", "shop")])), 1);
    assert_eq!(told(&ban("ip:192.0.2.1", Some(69.0), &[("threat", "shop")])), 0);
    assert_eq!(told(&ban("ip:192.0.2.1", Some(80.0), &[("threat", "till"), ("login", "shop")])), 0);

    let mut judge = Judge::default();
    assert_eq!(judge.see(&ban("user:ann", None, &[]), &[&rules], NOW).len(), 1);
    assert_eq!(judge.see(&ban("user:ann", None, &[]), &[&rules], NOW + 9_999).len(), 0);
    assert_eq!(judge.see(&ban("user:bob", None, &[]), &[&rules], NOW + 9_999).len(), 1);
    assert_eq!(judge.see(&ban("user:ann", None, &[]), &[&rules], NOW + 10_000).len(), 1);
}

#[test]
fn each_rule_waits_for_its_own_and_keeps_its_own_cooldown() {
    let (incident, ban_rule) = (rule("a", json!({})), rule("b", json!({ "trigger": "ban" })));
    let second = rule("c", json!({ "cooldown_seconds": 10 }));
    let rules = [&incident, &ban_rule, &second];
    let mut judge = Judge::default();
    let ids = |messages: Vec<Message>| messages.into_iter().map(|message| message.rule_id).collect::<Vec<_>>();
    assert_eq!(ids(judge.see(&event(sighting("192.0.2.1", 1)), &rules, NOW)), ["a", "c"]);
    assert_eq!(ids(judge.see(&event(sighting("192.0.2.1", 2)), &rules, NOW + 10_000)), ["c"]);
    assert_eq!(ids(judge.see(&ban("ip:192.0.2.1", None, &[]), &rules, NOW)), ["b"]);
}

#[test]
fn a_rule_that_is_gone_begins_anew_when_it_is_back() {
    let rules = rule("r", json!({ "trigger": "burst", "burst_threshold": 2 }));
    let mut judge = Judge::default();
    assert!(judge.see(&event(sighting("192.0.2.1", 1)), &[&rules], NOW).is_empty());
    judge.follow(&[]);
    assert!(judge.see(&event(sighting("192.0.2.1", 1)), &[&rules], NOW).is_empty());
    judge.follow(&[&rules]);
    assert_eq!(judge.see(&event(sighting("192.0.2.1", 1)), &[&rules], NOW).len(), 1);
}
