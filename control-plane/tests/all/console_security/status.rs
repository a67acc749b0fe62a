//! The status of the decision fabric.

use super::Desk;
use base::clock;
use serde_json::{Value, json};

#[tokio::test]
async fn the_status_counts() {
    let desk = Desk::new().await;
    desk.post("_ban", json!({"ref": "ip:192.0.2.9"})).await;
    desk.post("_allow", json!({"ref": "user:ada"})).await;
    desk.event("192.0.2.7", 55.0, "waf");
    let status = desk.get("_status").await;
    assert_eq!((&status["bans"]["bans"], &status["allowlist"]["entries"]), (&json!(1), &json!(1)), "{status}");
    assert_eq!(status["incidents"], json!({"held": 1, "window_seconds": 1800, "stale_after_sec": 300}));
    assert_eq!(
        status["ledger"],
        json!({"enabled": true, "window_seconds": 3600, "ban_threshold": 100, "ban_duration_seconds": 3600})
    );
    assert_eq!(status["shared_state"]["dedicated_store"], false);
    assert!(status["node"].as_str().is_some_and(|node| !node.is_empty()));
}

#[tokio::test]
async fn every_field_of_the_status_follows_what_it_tells() {
    let desk = Desk::new().await;
    let at = |status: &Value, pointer: &str| status.pointer(pointer).unwrap_or_else(|| panic!("{pointer}")).clone();
    let millis = |status: &Value, pointer: &str| at(status, pointer).as_u64().unwrap();
    let later = async |than: u64| {
        while clock::now_millis() <= than {
            tokio::task::yield_now().await;
        }
    };
    let first = desk.get("_status").await;
    for (pointer, value) in [
        ("/enabled", json!(false)),
        ("/shared_state/dedicated_store", json!(false)),
        ("/shared_state/distributed", json!(false)),
        ("/bans/last_error", Value::Null),
        ("/alerts", json!({"enabled": false, "rules": 0})),
        ("/nodes", json!({"known": 0, "connected": 0, "behind": 0, "stale": 0, "links": 0})),
        ("/tables", json!([])),
        ("/problems", json!([])),
    ] {
        assert_eq!(at(&first, pointer), value, "{pointer}");
    }
    assert!(at(&first, "/shared_state/warning").as_str().unwrap().contains("No gateway is linked"));

    let (bans, allowed) = (millis(&first, "/bans/last_refresh"), millis(&first, "/allowlist/last_refresh"));
    later(bans.max(allowed)).await;
    let same = desk.get("_status").await;
    assert_eq!((millis(&same, "/bans/last_refresh"), millis(&same, "/allowlist/last_refresh")), (bans, allowed));
    desk.post("_ban", json!({"ref": "ip:192.0.2.9"})).await;
    let banned = desk.get("_status").await;
    assert!(millis(&banned, "/bans/last_refresh") > bans, "it has changed");
    assert_eq!((millis(&banned, "/bans/bans"), millis(&banned, "/allowlist/last_refresh")), (1, allowed));
    desk.post("_allow", json!({"ref": "user:ada"})).await;
    assert!(millis(&desk.get("_status").await, "/allowlist/last_refresh") > allowed);

    let api = &desk.console.api;
    let write = async |method: &str, path: &str, document: Value| {
        let answer = api.call(method, path, Some(document)).await;
        assert!(answer.status.is_success(), "{}", answer.text);
    };
    let security = json!({
        "incidents": {"stale_after_seconds": 60}, "tarpit": {"max_held": 7},
        "ledger": {"enabled": false, "window_seconds": 5, "ban_threshold": 6, "ban_duration_seconds": 7},
    });
    write("PATCH", "/global-config/global-config", json!({"security": security})).await;
    write("POST", "/threat-policies", json!({"id": "p", "name": "P", "dry_run": true})).await;
    write("POST", "/alert-rules", json!({"id": "on", "name": "On"})).await;
    write("POST", "/alert-rules", json!({"id": "off", "name": "Off", "enabled": false})).await;
    let route =
        |enabled: bool| json!({"id": "r", "name": "r", "plugins": [{"plugin": "SvcThreatGate", "enabled": enabled}]});
    write("POST", "/routes", route(false)).await;
    assert_eq!(desk.get("_status").await["enabled"], false, "a plugin that does not run enables nothing");
    write("PUT", "/routes/r", route(true)).await;
    let changed = desk.get("_status").await;
    for (pointer, value) in [
        ("/enabled", json!(true)),
        ("/incidents/stale_after_sec", json!(60)),
        ("/tarpit/max_held", json!(7)),
        ("/ledger", json!({"enabled": false, "window_seconds": 5, "ban_threshold": 6, "ban_duration_seconds": 7})),
        ("/policies", json!([{"id": "p", "name": "P", "dry_run": true}])),
        ("/alerts", json!({"enabled": true, "rules": 1})),
    ] {
        assert_eq!(at(&changed, pointer), value, "{pointer}");
    }

    // The store loses the bans: what was counted last, and why it is not what there is now.
    let db = rusqlite::Connection::open(api.folder().join("palisade.db")).unwrap();
    db.execute_batch("ALTER TABLE ban RENAME TO away").unwrap();
    let broken = desk.get("_status").await;
    assert!(at(&broken, "/bans/last_error").as_str().unwrap().contains("no such table: ban"), "{broken}");
    assert_eq!((millis(&broken, "/bans/bans"), millis(&broken, "/allowlist/entries")), (1, 1));
    db.execute_batch("ALTER TABLE away RENAME TO ban").unwrap();
    assert_eq!(at(&desk.get("_status").await, "/bans/last_error"), Value::Null);
}
