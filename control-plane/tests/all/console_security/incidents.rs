//! Incidents from the console.

use super::Desk;
use crate::entities_support::key;
use accounts::Scope;
use axum::body::Body;
use axum::http::Request;
use base::clock;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::Ordering;

#[tokio::test]
async fn an_incident_is_acknowledged_resolved_and_open_again() {
    let desk = Desk::new().await;
    for _ in 0..3 {
        desk.event("192.0.2.7", 55.0, "waf");
    }
    let incidents = desk.get("_incidents").await["incidents"].clone();
    let one = &incidents[0];
    assert_eq!((one["key"].as_str(), one["count"].as_u64()), (Some("ip:192.0.2.7"), Some(3)), "{one}");
    assert_eq!((&one["state"], &one["workflow"], &one["banned"]), (&json!("open"), &Value::Null, &json!(false)));
    let events = desk.console.api.events().await;
    let places: Vec<&Value> =
        events.iter().filter(|event| event["@type"] == "SvcSecurityEvent").map(|event| &event["incident"]).collect();
    assert_eq!(
        places,
        [
            &json!({"id": "node-made", "count": 1}),
            &json!({"id": "node-made", "count": 2}),
            &json!({"id": "node-made", "count": 3})
        ]
    );
    assert!(events.iter().any(|event| event["event"]["severity"] == 2), "a severity by the score");

    let body = json!({"key": "ip:192.0.2.7", "state": "acknowledged", "note": "looking"});
    let answer = desk.post("_incident_state", body).await;
    let workflow =
        json!({"key": "ip:192.0.2.7", "state": "acknowledged", "by": "alice", "at": desk.now(), "note": "looking"});
    assert_eq!(answer, json!({"done": true, "workflow": workflow}));
    desk.post("_ban", json!({"ref": "ip:192.0.2.0/24"})).await;
    desk.post("_allow", json!({"ref": "ip:192.0.2.7", "unban": false})).await;
    let one = desk.get("_incidents").await["incidents"][0].clone();
    assert_eq!((&one["state"], &one["workflow"]), (&json!("acknowledged"), &workflow));
    assert_eq!((&one["banned"], &one["ban"]["key"]), (&json!(true), &json!("ip:192.0.2.0/24")));
    assert_eq!((&one["allowlisted"], &one["allowlist_entry"]["key"]), (&json!(true), &json!("ip:192.0.2.7")));

    desk.post("_incident_state", json!({"key": "ip:192.0.2.7", "state": "resolved"})).await;
    assert_eq!(desk.get("_incidents").await, json!({"incidents": []}), "it drops off the list");
    // Resolved a while ago: the caller comes back.
    desk.console.clock.fetch_sub(10_000, Ordering::Relaxed);
    desk.post("_incident_state", json!({"key": "ip:192.0.2.7", "state": "resolved"})).await;
    desk.console.clock.fetch_add(10_000, Ordering::Relaxed);
    desk.event("192.0.2.7", 55.0, "waf");
    let one = desk.get("_incidents").await["incidents"][0].clone();
    assert_eq!((&one["state"], &one["count"]), (&json!("open"), &json!(4)), "reopened, not a second one");
    desk.post("_incident_state", json!({"key": "ip:192.0.2.7", "state": "open"})).await;
    let audits = desk.audits().await;
    let actions: Vec<&str> = audits
        .iter()
        .filter_map(|audit| audit["action"].as_str())
        .filter(|action| action.starts_with("incident"))
        .collect();
    assert_eq!(actions, ["incident-acknowledged", "incident-resolved", "incident-resolved", "incident-open"]);
}

/// There may be many: they are answered and read in parts.
#[tokio::test]
async fn the_report_has_all_incidents_and_a_start_reads_all() {
    let desk = Desk::new().await;
    let api = &desk.console.api;
    let authorization = key(&api.state, &[Scope::Report], None).await;
    let report = async || {
        let path = "/api/extensions/svc/waf/api/_incidents";
        let request = Request::get(path).header("authorization", &authorization).body(Body::empty());
        let answer = api.send(request.unwrap()).await;
        assert_eq!((answer.status.as_u16(), answer.header("content-type")), (200, "application/json"));
        answer
    };
    assert_eq!(report().await.text, r#"{"incidents":[]}"#);
    let callers = || (0..1100).map(|number| format!("198.51.{}.{}", number / 100, number % 100));
    callers().for_each(|caller| desk.event(&caller, 55.0, "waf"));
    let resolved = json!({"key": "ip:198.51.0.7", "state": "resolved"});
    desk.post("_incident_state", resolved).await;
    let answer = report().await;
    let incidents = answer.body["incidents"].as_array().unwrap();
    let keys: BTreeSet<&str> = incidents.iter().map(|incident| incident["key"].as_str().unwrap()).collect();
    assert_eq!((incidents.len(), keys.len()), (1100, 1100));
    assert!(answer.text.len() > 256 << 10, "it has several parts");
    let states = incidents.iter().filter(|incident| incident["state"] == "resolved");
    assert_eq!(states.map(|incident| &incident["key"]).collect::<Vec<_>>(), ["ip:198.51.0.7"]);
    assert_eq!(desk.get("_incidents?pageSize=10000").await["incidents"].as_array().unwrap().len(), 1099);

    let store = &api.state.store;
    events::save_incidents(store.as_ref(), &api.state.events).await.unwrap();
    let after = events::EventHub::new(Vec::new(), clock::now_millis);
    events::restore_incidents(store.as_ref(), &after).await.unwrap();
    let restored: BTreeSet<String> =
        after.incidents_since(0).into_iter().map(|(incident, _)| incident.key.to_string()).collect();
    assert_eq!(restored, callers().map(|caller| format!("ip:{caller}")).collect());
}

#[tokio::test]
async fn states_and_incidents_outlive_the_process() {
    let desk = Desk::new().await;
    desk.event("192.0.2.7", 55.0, "waf");
    desk.event("192.0.2.7", 55.0, "waf");
    desk.post("_incident_state", json!({"key": "ip:192.0.2.7", "state": "acknowledged", "note": "mine"})).await;
    let store = &desk.console.api.state.store;
    events::save_incidents(store.as_ref(), &desk.console.api.state.events).await.unwrap();
    let after = events::EventHub::new(Vec::new(), clock::now_millis);
    events::restore_incidents(store.as_ref(), &after).await.unwrap();
    let (incident, state) = &after.incidents_since(0)[0];
    assert_eq!((&*incident.id, incident.count), ("node-made", 2));
    assert_eq!(*state, events::IncidentState::Acknowledged);
    assert_eq!(after.workflow("ip:192.0.2.7").unwrap().note, "mine");
}

#[tokio::test]
async fn more_incidents_than_are_written_at_a_time_are_all_kept_though_the_store_fails_between() {
    let desk = Desk::new().await;
    let callers = || (0..300).map(|number| format!("198.51.{}.{}", number / 100, number % 100));
    let (store, hub) = (&desk.console.api.state.store, &desk.console.api.state.events);
    let counted = async || {
        let after = events::EventHub::new(Vec::new(), clock::now_millis);
        events::restore_incidents(store.as_ref(), &after).await.unwrap();
        let kept = after.incidents_since(0).into_iter();
        kept.map(|(incident, _)| (incident.key.to_string(), incident.count)).collect::<BTreeMap<_, _>>()
    };
    callers().for_each(|caller| desk.event(&caller, 55.0, "waf"));
    // Two hundred incidents find room, but not the rest.
    let db = rusqlite::Connection::open(desk.console.api.folder().join("palisade.db")).unwrap();
    db.execute_batch(
        "CREATE TRIGGER full BEFORE INSERT ON incident WHEN (SELECT count(*) FROM incident) >= 200
         BEGIN SELECT raise(ABORT, 'full'); END",
    )
    .unwrap();
    events::save_incidents(store.as_ref(), hub).await.unwrap_err();
    let first = counted().await.len();
    assert!((1..300).contains(&first), "{first}");
    callers().for_each(|caller| desk.event(&caller, 55.0, "waf"));
    db.execute_batch("DROP TRIGGER full").unwrap();
    events::save_incidents(store.as_ref(), hub).await.unwrap();
    assert_eq!(counted().await, callers().map(|caller| (format!("ip:{caller}"), 2)).collect());
}
