//! Alerts to CrowdSec itself, as Debian has it.

use super::super::super::bouncers::tests::real::{CrowdSec, PASSWORD};
use super::*;

#[tokio::test]
async fn the_real_service_takes_alerts_and_their_decisions_come_back() {
    let Some(mut crowdsec) = CrowdSec::find() else {
        println!("LEFT OUT: crowdsec is not on this machine: run `make crowdsec`");
        eprintln!("LEFT OUT: crowdsec is not on this machine: run `make crowdsec`");
        return;
    };
    crowdsec.start().await;
    let own = SvcBouncer {
        lapi_url: format!("http://127.0.0.1:{}", crowdsec.port),
        api_key: KEY.into(),
        allow_private: true,
        poll_interval_seconds: 1,
        push_enabled: true,
        push_machine_id: "pusher".to_owned(),
        push_password: PASSWORD.into(),
        push_interval_seconds: 1,
        push_waf_monitored: true,
        ..SvcBouncer::default()
    };
    let (_folder, world) = world(&[("a", own.clone())]).await;
    let alerts = || -> Vec<Value> {
        let listed: Value = serde_json::from_str(&crowdsec.cscli(&["alerts", "list", "-a", "-o", "json"])).unwrap();
        listed.as_array().cloned().unwrap_or_default()
    };
    (0..5).for_each(|_| assert!(world.event(&refusal("203.0.113.7"))));
    world.event(&refusal("2001:db8::7"));
    world.event(&trail("203.0.113.8", false));
    world.until("the alerts", |world| world.runtime.push("a").sent == 3).await;
    let listed = alerts();
    assert_eq!(listed.len(), 3, "{listed:?}");
    let alert = listed.iter().find(|alert| alert["source"]["value"] == "203.0.113.7").unwrap();
    assert_eq!((&alert["events_count"], &alert["scenario"]), (&json!(5), &json!("svc/threat-protection")));
    assert!(alert["decisions"].as_array().is_none_or(Vec::is_empty), "none is asked for: {alert}");
    let id = alert["id"].to_string();
    let shown: Value = serde_json::from_str(&crowdsec.cscli(&["alerts", "inspect", &id, "-d", "-o", "json"])).unwrap();
    let facts = shown.pointer("/events/0/meta").or_else(|| shown.pointer("/0/events/0/meta")).unwrap();
    assert!(facts.as_array().unwrap().contains(&json!({ "key": "http_path", "value": "/admin" })), "{shown}");
    // With a decision: it comes back, and refuses the caller.
    world.set("a", Some(SvcBouncer { push_with_decision: true, push_decision_duration: "1h".into(), ..own.clone() }));
    tokio::time::sleep(Duration::from_millis(100)).await;
    world.event(&refusal("203.0.113.9"));
    world.event(&trail("203.0.113.10", false));
    world.until("the decision", |world| world.bans("203.0.113.9")).await;
    assert!(!world.bans("203.0.113.10") && !world.bans("203.0.113.7"));
    let decisions = crowdsec.cscli(&["decisions", "list", "-o", "json"]);
    assert!(decisions.contains("203.0.113.9") && decisions.contains("svc/threat-protection"), "{decisions}");
    // Gone, and there again: what waited arrives once. A token of before still holds.
    crowdsec.stop();
    world.event(&refusal("203.0.113.11"));
    world.until("the failure", |world| world.runtime.push("a").last_error.is_some()).await;
    assert_eq!(world.runtime.push("a").pending, 1);
    crowdsec.start().await;
    world.until("the alert", |world| world.runtime.push("a").pending == 0).await;
    let found = crowdsec.cscli(&["alerts", "list", "-a", "-o", "json"]);
    let found: Vec<Value> = serde_json::from_str(&found).unwrap();
    let on_it = found.iter().filter(|alert| alert["source"]["value"] == "203.0.113.11");
    assert_eq!(on_it.count(), 1, "{found:?}");
    // A wrong password.
    world.set("a", Some(SvcBouncer { push_password: "wrong".into(), ..own }));
    world.until("the refusal", |world| world.runtime.push("a").last_error.is_some()).await;
    let error = world.runtime.push("a").last_error.unwrap();
    assert_eq!(error, "the service refuses the machine or its password (401)");
}
