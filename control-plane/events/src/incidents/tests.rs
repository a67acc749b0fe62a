use serde_json::json;

use super::*;
use store::fabric::Workflow;

const NOW: u64 = 1_800_000_000_000;
/// The width of the networks that callers of IPv6 are judged by.
const WIDTH: u8 = 56;

fn event(ip: &str, id: &str, at: u64, score: f64) -> SecurityEvent {
    serde_json::from_value(json!({
        "@timestamp": base::clock::rfc3339(at),
        "event": { "category": "threat", "action": "deny", "outcome": "blocked" },
        "source": { "ip": ip, "apikey": null, "user": null },
        "threat": { "score": score, "tags": ["waf:match"], "signals": [] },
        "incident": { "id": id, "count": 1 },
        "route": { "id": "r1", "name": "shop", "node": "n1" },
        "message": format!("score {score}"),
    }))
    .unwrap()
}

#[test]
fn a_scan_is_one_incident_with_a_count() {
    let mut incidents = Incidents::default();
    for number in 0..30_u32 {
        let at = NOW + u64::from(number);
        incidents.record(event("192.0.2.1", &format!("i{number}"), at, f64::from(number)), WIDTH, NOW + 99);
    }
    incidents.record(event("192.0.2.2", "other", NOW, 1.0), WIDTH, NOW + 99);
    let list = incidents.list(NOW + 99);
    assert_eq!(list.len(), 2);
    let first = &list[0];
    assert_eq!((&*first.id, &*first.key, first.count, first.enforced_count), ("i0", "ip:192.0.2.1", 30, 30));
    assert_eq!((first.first_seen, first.last_seen, first.max_score), (NOW, NOW + 29, 29.0));
    assert_eq!((first.timeline.len(), first.timeline[0].at), (IncidentLimits::default().timeline, NOW + 10));
    assert_eq!((&*first.last_message, first.nodes.len(), first.routes.len()), ("score 29", 1, 1));
    let row = serde_json::to_value(first).unwrap();
    assert_eq!(row["ref"], json!({ "kind": "ip", "value": "192.0.2.1" }));
    assert_eq!(row["state"], "open");
}

#[test]
fn addresses_of_one_network_of_ipv6_are_one_caller() {
    let mut incidents = Incidents::default();
    let mut record = |ip: &str, network: Option<&str>| {
        let mut event = event(ip, "i", NOW, 1.0);
        event.source.network = network.map(str::to_owned);
        incidents.record(event, WIDTH, NOW);
    };
    for ip in ["2001:db8:1:2::1", "2001:db8:1:ff:ffff::7", "::ffff:192.0.2.1", "192.0.2.1"] {
        record(ip, None);
    }
    record("2001:db8:1:2::1", Some("2001:db8:1::/56"));
    // A gateway that still has an earlier configuration judges by narrower networks.
    record("2001:db8:1:2::1", Some("2001:db8:1:2::/64"));
    record("2001:db8:1:2::1", Some("2001:db8:1:2::1"));
    for foreign in ["2001:db8:1::/48", "2001:db8:2::/56", "::/1", "0.0.0.0/1", "192.0.2.0/24", "nonsense"] {
        record("2001:db8:9:12::1", Some(foreign));
        record("192.0.2.9", Some(foreign));
    }
    let mut keys: Vec<_> = incidents.list(NOW).into_iter().map(|one| (one.key.to_string(), one.count)).collect();
    keys.sort();
    let expected = [
        ("ip:192.0.2.1", 2),
        ("ip:192.0.2.9", 6),
        ("ip:2001:db8:1:2::/64", 1),
        ("ip:2001:db8:1:2::1", 1),
        ("ip:2001:db8:1::/56", 3),
        ("ip:2001:db8:9::/56", 6),
    ];
    assert_eq!(keys, expected.map(|(key, count)| (key.to_owned(), count)));
}

#[test]
fn what_is_no_single_address_is_no_identity_and_scores_end_at_100() {
    let mut incidents = Incidents::default();
    for ip in ["0.0.0.0/1", "192.0.2.0/24", "2001:db8::/48", "garbage", "192.0.2.1:80", " 192.0.2.1", ""] {
        assert_eq!(incidents.record(event(ip, "i", NOW, 1.0), WIDTH, NOW), None, "{ip}");
    }
    let mut named = event("192.0.2.1", "i", NOW, 1e300);
    named.source.user = Some("x".repeat(129));
    incidents.record(named, WIDTH, NOW);
    let list = incidents.list(NOW);
    assert_eq!((list.len(), &*list[0].key, list[0].max_score), (1, "ip:192.0.2.1", 100.0));
}

#[test]
fn after_the_window_a_new_one_begins() {
    let mut incidents = Incidents::default();
    incidents.record(event("192.0.2.1", "a", NOW, 1.0), WIDTH, NOW);
    let within = NOW + IncidentLimits::default().window;
    incidents.record(event("192.0.2.1", "b", within, 1.0), WIDTH, within);
    assert_eq!(incidents.list(within)[0].id, "a");
    let after = within + IncidentLimits::default().window + 1;
    incidents.record(event("192.0.2.1", "c", after, 1.0), WIDTH, after);
    let list = incidents.list(after);
    assert_eq!((list.len(), &*list[0].id, list[0].count), (1, "c", 1));
    assert!(incidents.list(after + IncidentLimits::default().kept + 1).is_empty());
}

#[test]
fn the_most_specific_identity_counts_and_the_table_is_bounded() {
    let mut incidents = Incidents::default();
    // From everywhere: of one network, its own would give way first.
    let address = |number: u64| format!("{}.{}.0.1", 11 + number / 256, number % 256);
    let mut keyed = event("192.0.2.1", "a", NOW, 1.0);
    keyed.source.user = Some("ann".into());
    incidents.record(keyed, WIDTH, NOW);
    assert_eq!(incidents.list(NOW)[0].key, "user:ann");
    incidents.record(SecurityEvent::default(), WIDTH, NOW);
    assert_eq!((MAX_INCIDENTS, IncidentLimits::default().held), (50_000, 50_000));
    incidents.limit(IncidentLimits { held: 1000, ..IncidentLimits::default() });
    for number in 0..=1000 {
        incidents.record(event(&address(number), "i", NOW + 1 + number, 1.0), WIDTH, NOW + 1 + number);
    }
    let list = incidents.list(NOW + 1001);
    assert_eq!(list.len(), 1000);
    assert!(
        !list
            .iter()
            .any(|incident| incident.key == "user:ann" || incident.key == format!("ip:{}", address(0)).as_str())
    );
    incidents.limit(IncidentLimits { held: 10, ..IncidentLimits::default() });
    let newest: Vec<_> = incidents.list(NOW + 1001).into_iter().map(|incident| incident.key.to_string()).collect();
    assert_eq!(newest, (991..=1000).rev().map(|number| format!("ip:{}", address(number))).collect::<Vec<_>>());
    assert_eq!((incidents.count(NOW + 1001), incidents.unsaved(NOW + 1001).removed.len()), (10, 992));
}

#[test]
fn one_network_pushes_out_none_but_its_own_incidents_and_acknowledged_ones_go_last() {
    let floods: [fn(u64) -> String; 3] = [
        |at| format!("2001:db8:7:{at:x}::1"),
        |at| format!("2001:db8:{at:x}::1"),
        |at| format!("10.7.{}.{}", at / 256, at % 256),
    ];
    for flood in floods {
        let mut incidents = Incidents::default();
        incidents.limit(IncidentLimits { held: 1000, ..IncidentLimits::default() });
        let others = ["192.0.2.1", "2001:db9::1"];
        for ip in others {
            incidents.record(event(ip, "other", NOW, 1.0), 64, NOW);
        }
        // One within the network that floods.
        incidents.record(event(&flood(0), "seen", NOW, 1.0), 64, NOW);
        let key = incidents.list(NOW).into_iter().find(|incident| &*incident.id == "seen").unwrap().key.to_string();
        let acknowledged = Workflow { key: key.clone(), ..workflow("acknowledged", NOW).unwrap() };
        incidents.set_workflow(&key, Some(acknowledged));
        for at in 1..=3000 {
            incidents.record(event(&flood(at), "flood", NOW + at, 1.0), 64, NOW + at);
        }
        let list = incidents.list(NOW + 3000);
        let with = |id: &str| list.iter().filter(|incident| &*incident.id == id).count();
        assert_eq!((list.len(), with("other"), with("seen"), with("flood")), (1000, 2, 1, 997), "{}", flood(0));
        assert_eq!(list[0].last_seen, NOW + 3000, "the oldest of it are forgotten");
        assert_eq!(incidents.workflow(&key, NOW + 3000).unwrap().state, "acknowledged");
        // It is the last one to go, and goes where there is no other.
        incidents.limit(IncidentLimits { held: 1, ..IncidentLimits::default() });
        let last: Vec<String> =
            incidents.list(NOW + 3000).into_iter().map(|incident| incident.key.to_string()).collect();
        assert_eq!(last, std::slice::from_ref(&key));
        incidents.record(event("198.51.100.1", "new", NOW + 3001, 1.0), 64, NOW + 3001);
        assert_eq!(incidents.count(NOW + 3001), 1);
        // With time, it is forgotten as every other one.
        let late = NOW + 3001 + IncidentLimits::default().kept + 1;
        assert_eq!(incidents.list(late).len(), 0);
    }
}

#[test]
fn a_list_ends_at_its_oldest_and_stays_as_it_was_read() {
    let mut incidents = Incidents::default();
    for number in 0..3_u64 {
        incidents.record(event(&format!("192.0.2.{number}"), "i", NOW + number, 1.0), WIDTH, NOW + 9);
    }
    let listed = incidents.since(NOW + 1, NOW + 9);
    let keys: Vec<&str> = listed.iter().map(|(incident, _)| &*incident.key).collect();
    assert_eq!(keys, ["ip:192.0.2.2", "ip:192.0.2.1"]);
    incidents.record(event("192.0.2.2", "i", NOW + 9, 7.0), WIDTH, NOW + 9);
    assert_eq!((listed[0].0.count, listed[0].0.timeline.len()), (1, 1));
    let again = incidents.since(NOW + 9, NOW + 9);
    assert_eq!((again.len(), again[0].0.count, again[0].0.timeline.len()), (1, 2, 2));
    // One that did not change is not copied.
    assert!(std::sync::Arc::ptr_eq(&listed[1].0, &incidents.since(NOW + 1, NOW + 9)[1].0));
}

#[test]
fn a_timeline_takes_no_more_room_than_it_has_entries() {
    let mut incidents = Incidents::default();
    for number in 0..30_u64 {
        incidents.record(event("192.0.2.1", "i", NOW + number, 1.0), WIDTH, NOW + 99);
    }
    let timeline = &incidents.since(0, NOW + 99)[0].0.timeline;
    assert_eq!((timeline.len(), timeline.capacity()), (20, 20));
}

#[test]
fn signals_are_bounded_in_bytes_too() {
    let mut incidents = Incidents::default();
    let with = |detail: String| {
        let mut event = event("192.0.2.1", "a", NOW, 1.0);
        event.threat.signals = Some(vec![json!({ "detail": detail })]);
        event
    };
    incidents.record(with("first".to_owned()), WIDTH, NOW);
    incidents.record(with("x".repeat(8 << 10)), WIDTH, NOW);
    assert_eq!(incidents.signals("ip:192.0.2.1"), [json!({ "detail": "first" })]);
}

#[test]
fn a_wrong_clock_does_not_move_an_event() {
    let mut incidents = Incidents::default();
    incidents.record(event("192.0.2.1", "a", NOW + 1, 1.0), WIDTH, NOW);
    incidents.record(event("192.0.2.2", "b", 5, 1.0), WIDTH, NOW);
    assert!(incidents.list(NOW).iter().all(|incident| incident.last_seen == NOW));
}

fn place(id: &str, count: u64, reopened: bool) -> Option<Place> {
    Some(Place { id: id.to_owned(), count, reopened })
}

fn workflow(state: &str, at: u64) -> Option<Workflow> {
    Some(Workflow { key: "ip:192.0.2.1".into(), state: state.into(), by: "alice".into(), at, note: String::new() })
}

#[test]
fn a_resolved_incident_opens_again_after_the_grace_and_an_acknowledged_one_stays() {
    let mut incidents = Incidents::default();
    let state = |incidents: &mut Incidents, now| incidents.list(now)[0].state;
    incidents.record(event("192.0.2.1", "a", NOW, 1.0), WIDTH, NOW);
    incidents.set_workflow("ip:192.0.2.1", workflow("acknowledged", NOW));
    incidents.record(event("192.0.2.1", "b", NOW, 1.0), WIDTH, NOW + 60_000);
    assert_eq!(state(&mut incidents, NOW + 60_000), IncidentState::Acknowledged);
    incidents.set_workflow("ip:192.0.2.1", workflow("resolved", NOW + 60_000));
    let late = NOW + 60_000 + IncidentLimits::default().reopen_grace;
    incidents.record(event("192.0.2.1", "c", late, 1.0), WIDTH, late);
    assert_eq!(state(&mut incidents, late), IncidentState::Resolved, "it was under way");
    assert_eq!(incidents.record(event("192.0.2.1", "d", late + 1, 1.0), WIDTH, late + 1), place("a", 4, true));
    assert_eq!(state(&mut incidents, late + 1), IncidentState::Open);
    let unsaved = incidents.unsaved(late + 1);
    assert_eq!(unsaved.cleared, [("ip:192.0.2.1".to_owned(), NOW + 60_000)]);
    incidents.set_workflow("ip:192.0.2.1", workflow("acknowledged", late));
    assert!(incidents.workflow("ip:192.0.2.1", late + IncidentLimits::default().kept - 1).is_some());
    assert!(
        incidents.workflow("ip:192.0.2.1", late + IncidentLimits::default().kept).is_none(),
        "a state is kept for seven days"
    );
}

#[test]
fn what_is_saved_is_restored_and_what_was_not_taken_is_offered_again() {
    let mut incidents = Incidents::default();
    incidents.record(event("192.0.2.1", "a", NOW, 7.0), WIDTH, NOW);
    incidents.record(event("192.0.2.2", "b", NOW, 7.0), WIDTH, NOW);
    let unsaved = incidents.unsaved(NOW);
    assert_eq!(unsaved.added.len(), 2);
    assert!(incidents.unsaved(NOW).added.is_empty());
    incidents.record(event("192.0.2.1", "c", NOW, 7.0), WIDTH, NOW);
    incidents.put_back(unsaved);
    let added = incidents.unsaved(NOW).added;
    assert_eq!(added.iter().map(|part| part.count).sum::<u64>(), 3, "each event once");
    let mut after = Incidents::default();
    after.restore(added);
    assert_eq!(after.list(NOW).len(), 2);
    assert_eq!(after.record(event("192.0.2.1", "z", NOW + 1, 1.0), WIDTH, NOW + 1), place("a", 3, false));
    after.list(NOW + IncidentLimits::default().kept + 1_000);
    let mut removed = after.unsaved(NOW).removed;
    removed.sort();
    assert_eq!(removed, [("ip:192.0.2.1".to_owned(), NOW + 1), ("ip:192.0.2.2".to_owned(), NOW)]);
    assert!(after.unsaved(NOW).added.is_empty(), "what was forgotten is not kept");
}

/// Two control planes and the store between them.
#[test]
fn two_control_planes_count_in_one_incident() {
    let (mut one, mut other) = (Incidents::default(), Incidents::default());
    let mut row: Option<String> = None;
    let mut save = |incidents: &mut Incidents| {
        let (merge, unsaved) = (incidents.merge(), incidents.unsaved(NOW));
        for part in unsaved.added {
            row = Some(merge(row.as_deref(), &serde_json::to_string(&part).unwrap()));
        }
        let kept: Incident = serde_json::from_str(row.as_deref().unwrap()).unwrap();
        incidents.kept(vec![kept.clone()], NOW);
        kept
    };
    let mut ours = event("192.0.2.1", "a", NOW, 1.0);
    ours.threat.signals = Some(vec![json!({ "source": "s" })]);
    one.record(ours, WIDTH, NOW);
    other.record(event("192.0.2.1", "b", NOW + 1, 9.0), WIDTH, NOW + 1);
    save(&mut one);
    let kept = save(&mut other);
    assert_eq!((&*kept.id, kept.count, kept.max_score), ("a", 2, 9.0));
    // Counted in while the row was on its way.
    assert_eq!(one.record(event("192.0.2.1", "c", NOW + 2, 1.0), WIDTH, NOW + 2), place("a", 2, false));
    one.kept(vec![kept], NOW);
    assert_eq!((one.list(NOW)[0].count, one.signals("ip:192.0.2.1").len()), (3, 1));
    save(&mut one);
    assert_eq!(other.record(event("192.0.2.1", "d", NOW + 3, 1.0), WIDTH, NOW + 3), place("a", 3, false));
    let kept = save(&mut other);
    one.kept(vec![kept], NOW);
    let seen = |incidents: &mut Incidents| serde_json::to_value(&incidents.list(NOW)[0]).unwrap();
    assert_eq!((seen(&mut one), one.list(NOW)[0].count), (seen(&mut other), 4));
    // The other one has forgotten it; what comes meanwhile is a new one.
    one.record(event("192.0.2.1", "e", NOW + 4, 1.0), WIDTH, NOW + 4);
    one.gone(&["ip:192.0.2.1".to_owned()]);
    assert_eq!(one.list(NOW + 4)[0].count, 1);
    one.unsaved(NOW + 4);
    one.gone(&["ip:192.0.2.1".to_owned()]);
    assert!(one.list(NOW + 4).is_empty() && one.unsaved(NOW + 4).removed.is_empty());
}

#[test]
fn states_that_another_control_plane_sets_are_followed() {
    let mut incidents = Incidents::default();
    incidents.record(event("192.0.2.1", "a", NOW, 1.0), WIDTH, NOW);
    let state = |incidents: &mut Incidents, now| incidents.list(now)[0].state;
    let follow = |incidents: &mut Incidents, read: Option<Workflow>| {
        let changes = incidents.workflow_changes();
        assert!(incidents.follow_workflows(read.into_iter().collect(), changes));
    };
    follow(&mut incidents, workflow("resolved", NOW));
    assert_eq!(state(&mut incidents, NOW), IncidentState::Resolved);
    // An event opens it; the store has not cleared the state yet.
    let late = NOW + 10_000;
    assert_eq!(incidents.record(event("192.0.2.1", "b", late, 1.0), WIDTH, late), place("a", 2, true));
    follow(&mut incidents, workflow("resolved", NOW));
    assert_eq!(state(&mut incidents, late), IncidentState::Open);
    // Set here after the others were read.
    let changes = incidents.workflow_changes();
    incidents.set_workflow("ip:192.0.2.1", workflow("acknowledged", late));
    assert!(!incidents.follow_workflows(Vec::new(), changes));
    assert_eq!(state(&mut incidents, late), IncidentState::Acknowledged);
    follow(&mut incidents, None);
    assert_eq!(state(&mut incidents, late), IncidentState::Open, "another one has cleared it");
}
