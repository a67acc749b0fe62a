//! Alerts, from the event of a gateway to the service.

mod lapi;
mod reading;
mod real;

use std::time::Duration;

use serde_json::{Value, json};

use super::super::SvcBouncer;
use super::super::bouncers::tests::{KEY, World, folder};
use lapi::{Lapi, Says};

const PASSWORD: &str = "the-password-of-this-machine";

fn bouncer(lapi: &Lapi) -> SvcBouncer {
    SvcBouncer {
        lapi_url: format!("http://{}/", lapi.address),
        api_key: KEY.into(),
        allow_private: true,
        timeout_millis: 1_000,
        push_enabled: true,
        push_machine_id: "gateway".to_owned(),
        push_password: PASSWORD.into(),
        push_interval_seconds: 1,
        ..SvcBouncer::default()
    }
}

/// A refusal for an attack.
fn refusal(address: &str) -> Value {
    json!({
        "@type": "SvcSecurityEvent", "@timestamp": "2027-01-15T08:00:00.000Z",
        "event": { "category": "threat", "action": "deny", "outcome": "blocked", "module": "threat-response" },
        "source": { "ip": address },
        "threat": { "score": 60, "tags": ["waf:942100"], "signals": [
            { "source": "detector", "kind": "x", "weight": 60, "effective_weight": 60, "tag": "waf:942100", "detail": "" },
        ] },
        "route": { "id": "r", "name": "shop", "node": "n1" },
        "http": { "method": "GET", "host": "shop.example", "path": "/admin", "status": 403 },
        "message": "the score is 60", "decision": { "enforced": true, "action": "deny", "score": 60 },
    })
}

fn trail(address: &str, blocking: bool) -> Value {
    json!({
        "@type": "SvcWafTrailEvent", "@timestamp": "2027-01-15T08:00:00.000Z", "blocking": blocking,
        "block": if blocking { json!({ "status": 403, "rule_id": 1, "msg": "an injection" }) } else { Value::Null },
        "would_block": null, "matches": [{ "rule_id": 1, "msg": "an injection" }], "rule_ids": [1, 7],
        "source": { "ip": address }, "route": { "id": "r", "name": "shop", "node": "n1" },
        "http": { "method": "GET", "host": "shop.example", "path": "/", "status": null },
    })
}

async fn world(bouncers: &[(&str, SvcBouncer)]) -> (tempfile::TempDir, World) {
    let folder = folder();
    let world = World::start(folder.path(), bouncers);
    // The gatherer listens.
    world.until("a listener", |world| world.event(&json!({}))).await;
    (folder, world)
}

/// The addresses of all alerts that were taken.
fn addresses(lapi: &Lapi) -> Vec<String> {
    let alerts = lapi.taken().concat();
    alerts.iter().map(|alert| alert["source"]["value"].as_str().unwrap().to_owned()).collect()
}

fn subjects(told: &[String], what: &str) -> usize {
    told.iter().filter(|line| line.starts_with("alerts to the bouncer `a`") && line.contains(what)).count()
}

#[tokio::test]
async fn refusals_are_alerts_with_all_fields_that_the_service_requires() {
    let lapi = Lapi::start().await;
    let (_folder, world) = world(&[("a", bouncer(&lapi))]).await;
    (0..5).for_each(|_| assert!(world.event(&refusal("192.0.2.7"))));
    world.event(&refusal("2001:db8::7"));
    world.event(&trail("192.0.2.8", true));
    world.event(&trail("192.0.2.8", false));
    world.until("the alerts", |_| addresses(&lapi).len() == 2).await;
    let login = json!({ "machine_id": "gateway", "password": PASSWORD, "scenarios": ["svc/threat-protection"] });
    assert_eq!(lapi.logins(), [login]);
    let batches = lapi.taken();
    let alert = &batches[0][0];
    for field in [
        "scenario",
        "scenario_hash",
        "scenario_version",
        "message",
        "events_count",
        "start_at",
        "stop_at",
        "capacity",
        "leakspeed",
        "simulated",
        "events",
        "source",
    ] {
        assert!(alert.get(field).is_some_and(|value| !value.is_null()), "{field}");
    }
    assert_eq!((&alert["events_count"], &alert["simulated"]), (&json!(5), &json!(false)));
    assert_eq!((&alert["remediation"], alert.get("decisions")), (&json!(false), None));
    assert_eq!(alert["events"].as_array().unwrap().len(), 3, "the first ones are described");
    let facts = alert["events"][0]["meta"].as_array().unwrap();
    for (key, value) in [("http_path", "/admin"), ("target_fqdn", "shop.example"), ("score", "60"), ("node", "n1")] {
        assert!(facts.contains(&json!({ "key": key, "value": value })), "{key}: {facts:?}");
    }
    world.until("what is shown", |world| world.runtime.push("a").sent == 2).await;
    let shown = world.runtime.push("a");
    assert_eq!((shown.pending, shown.dropped, shown.last_error), (0, 0, None));
    assert!(shown.last_push.is_some());
    // Without alerts, nothing is listened to.
    world.set("a", Some(SvcBouncer { push_enabled: false, ..bouncer(&lapi) }));
    world.until("the end", |world| !world.event(&json!({}))).await;
    assert_eq!(subjects(&world.told(), "ends"), 1);
    assert_eq!(world.runtime.push("a"), crate::control::push::ShownPush::default());
}

#[tokio::test]
async fn rules_and_decisions_are_told_as_the_bouncer_says() {
    let lapi = Lapi::start().await;
    let own = SvcBouncer {
        push_with_decision: true,
        push_decision_duration: "1h30m".to_owned(),
        push_waf_detections: true,
        push_scenario: "svc/own".to_owned(),
        ..bouncer(&lapi)
    };
    let (_folder, world) = world(&[("a", own.clone())]).await;
    world.event(&trail("192.0.2.8", true));
    world.event(&trail("192.0.2.9", false));
    world.until("the block", |_| addresses(&lapi) == ["192.0.2.8"]).await;
    let alert = &lapi.taken()[0][0];
    let decision = json!({
        "duration": "1h30m", "origin": "crowdsec", "scenario": "svc/own", "scope": "Ip", "type": "ban", "value": "192.0.2.8",
        "simulated": false,
    });
    assert_eq!((&alert["decisions"], &alert["remediation"]), (&json!([decision]), &json!(true)));
    assert_eq!((&alert["scenario"], &alert["message"]), (&json!("svc/own"), &json!("an injection")));
    // What rules only monitor asks for no decision.
    world.set("a", Some(SvcBouncer { push_waf_detections: false, push_waf_monitored: true, ..own }));
    tokio::time::sleep(Duration::from_millis(100)).await;
    world.event(&trail("192.0.2.10", true));
    world.event(&trail("192.0.2.11", false));
    world.until("the match", |_| addresses(&lapi).len() == 2).await;
    assert_eq!(addresses(&lapi), ["192.0.2.8", "192.0.2.11"]);
    let alert = lapi.taken().concat().remove(1);
    assert_eq!((alert.get("decisions"), &alert["remediation"]), (None, &json!(false)));
}

#[tokio::test]
async fn a_refused_token_is_replaced_and_one_that_ends_is_not_used() {
    let lapi = Lapi::start().await;
    // Clocks of tests begin in 2027: this one has ended, so a token is used for a minute.
    lapi.expire("2026-01-01T00:00:00Z");
    let (_folder, world) = world(&[("a", bouncer(&lapi))]).await;
    world.event(&refusal("192.0.2.1"));
    world.until("one", |_| addresses(&lapi).len() == 1).await;
    assert_eq!(lapi.logins().len(), 1, "a token is used again");
    lapi.forgets();
    world.event(&refusal("192.0.2.2"));
    world.until("another", |_| addresses(&lapi).len() == 2).await;
    assert_eq!(lapi.logins().len(), 2);
    crate::control::bouncers::tests::forward(61_000);
    world.event(&refusal("192.0.2.3"));
    world.until("a third", |_| addresses(&lapi).len() == 3).await;
    assert_eq!(lapi.logins().len(), 3);
    assert!(lapi.calls().iter().any(|(path, token)| path == "/v1/heartbeat" && token == "Bearer token-1"));
    assert_eq!(subjects(&world.told(), "fails"), 0);
}

#[tokio::test]
async fn a_service_that_fails_is_asked_again_and_gets_each_alert_once() {
    let lapi = Lapi::start().await;
    let own = SvcBouncer { push_max_batch: 2, ..bouncer(&lapi) };
    let (_folder, world) = world(&[("a", own.clone())]).await;
    world.until("the login", |_| lapi.logins().len() == 1).await;
    for (says, error) in [
        (Says::Status(500), "answers 500 to alerts"),
        (Says::Status(429), "answers 429 to alerts"),
        (Says::Status(302), "answers 302 to alerts"),
        (Says::Silence, "no complete answer within 1 s"),
        (Says::Endless, "longer than"),
    ] {
        let before = lapi.taken().len();
        lapi.alerts(says.clone());
        (1..=3).for_each(|number| assert!(world.event(&refusal(&format!("192.0.2.{number}")))));
        let fails = |world: &World| world.runtime.push("a").last_error.is_some_and(|why| why.contains(error));
        world.until(error, fails).await;
        let shown = world.runtime.push("a");
        let text = shown.last_error.clone().unwrap_or_default();
        assert!(!text.contains(PASSWORD) && !text.contains("token-") && !text.contains("secret"), "{text}");
        assert_eq!(shown.pending, 3);
        lapi.alerts(Says::Works);
        // An entity that changes is asked anew at once.
        world.set("a", Some(SvcBouncer { push_scenario: format!("{says:?}"), ..own.clone() }));
        world.until("both batches", |_| lapi.taken().len() == before + 2).await;
        world.until("it works", |world| world.runtime.push("a").last_error.is_none()).await;
    }
    let all = addresses(&lapi);
    assert_eq!(all.len(), 15, "each once: {all:?}");
    let told = world.told();
    assert_eq!(subjects(&told, "fails"), 5, "{told:?}");
    assert_eq!(world.runtime.push("a").dropped, 0);
}

#[tokio::test]
async fn alerts_that_the_service_never_takes_do_not_hold_up_others() {
    let lapi = Lapi::start().await;
    let (_folder, world) = world(&[("a", bouncer(&lapi))]).await;
    lapi.alerts(Says::Status(422));
    world.event(&refusal("192.0.2.1"));
    world.until("the drop", |world| world.runtime.push("a").dropped == 1).await;
    assert_eq!(world.runtime.push("a").last_error.as_deref(), Some("the service does not take the alerts (422)"));
    lapi.alerts(Says::Works);
    world.event(&refusal("192.0.2.2"));
    world.until("the next", |_| addresses(&lapi) == ["192.0.2.2"]).await;
}

#[tokio::test]
async fn an_alert_with_which_the_service_fails_goes_alone_and_is_given_up() {
    let lapi = Lapi::start().await;
    let own = bouncer(&lapi);
    let (_folder, world) = world(&[("a", own.clone())]).await;
    world.until("the login", |_| lapi.logins().len() == 1).await;
    lapi.alerts(Says::FailsAt("192.0.2.1"));
    world.event(&refusal("192.0.2.1"));
    world.event(&refusal("192.0.2.2"));
    world.until("a failure with both", |_| lapi.sent() == [2]).await;
    for number in 1..10 {
        world.until("the failure", |world| world.runtime.push("a").pending == 2).await;
        // An entity that changes is asked anew at once.
        world.set("a", Some(SvcBouncer { push_scenario: format!("svc/{number}"), ..own.clone() }));
        world.until("the next attempt", |_| lapi.sent().len() > number).await;
    }
    world.until("the drop", |world| world.runtime.push("a").dropped == 1).await;
    assert_eq!(lapi.sent()[..10], [2, 2, 2, 1, 1, 1, 1, 1, 1, 1]);
    world.set("a", Some(own));
    world.until("the other one", |_| addresses(&lapi) == ["192.0.2.2"]).await;
}

#[tokio::test]
async fn alerts_whose_answer_is_lost_are_sent_again() {
    let lapi = Lapi::start().await;
    let (_folder, world) = world(&[("a", bouncer(&lapi))]).await;
    lapi.alerts(Says::TakesAndBreaks);
    world.event(&refusal("192.0.2.1"));
    world.until("the failure", |world| world.runtime.push("a").last_error.is_some()).await;
    assert_eq!((world.runtime.push("a").pending, world.runtime.push("a").sent), (1, 0));
    lapi.alerts(Says::Works);
    world.until("the answer", |world| world.runtime.push("a").sent == 1).await;
    let all = addresses(&lapi);
    assert!(all.len() >= 2 && all.iter().all(|address| address == "192.0.2.1"), "{all:?}");
    assert_eq!(world.runtime.push("a").pending, 0);
}

#[tokio::test]
async fn a_refused_password_is_no_secret_in_errors_and_is_not_tried_again_soon() {
    let lapi = Lapi::start().await;
    lapi.login(Says::Status(401));
    let (_folder, world) = world(&[("a", bouncer(&lapi))]).await;
    world.until("the refusal", |world| world.runtime.push("a").last_error.is_some()).await;
    let error = world.runtime.push("a").last_error.unwrap();
    assert_eq!(error, "the service refuses the machine or its password (401)");
    world.event(&refusal("192.0.2.1"));
    tokio::time::sleep(Duration::from_millis(2_500)).await;
    assert_eq!((lapi.logins().len(), world.runtime.push("a").pending), (1, 1));
    lapi.login(Says::Works);
    world.set("a", Some(SvcBouncer { push_password: "another".into(), ..bouncer(&lapi) }));
    world.until("the alert", |world| world.runtime.push("a").sent == 1).await;
    assert_eq!(addresses(&lapi), ["192.0.2.1"]);
    let told = world.told();
    assert!(subjects(&told, "fails") == 1 && subjects(&told, "works") >= 1, "{told:?}");
    assert!(!format!("{told:?}").contains(PASSWORD));
}

#[tokio::test]
async fn a_flood_is_bounded_and_loses_the_oldest() {
    let lapi = Lapi::start().await;
    lapi.alerts(Says::Silence);
    let (_folder, world) = world(&[("a", SvcBouncer { push_max_batch: 1000, ..bouncer(&lapi) })]).await;
    for number in 0..10_000_u32 {
        world.event(&refusal(&std::net::Ipv4Addr::from(0x0a00_0000 + number).to_string()));
        if number % 64 == 0 {
            // The gatherer keeps up with the channel of this test.
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
    let most = super::queue::MAX_WAITING;
    world.until("all of them", |world| world.runtime.push("a").dropped >= 10_000 - most as u64 - 1000).await;
    world.until("what is left", |world| world.runtime.push("a").pending <= most + 1000).await;
    lapi.alerts(Says::Works);
    world.set("a", Some(SvcBouncer { push_max_batch: 999, ..bouncer(&lapi) }));
    world.until("the rest", |world| world.runtime.push("a").pending == 0).await;
    let shown = world.runtime.push("a");
    assert_eq!(shown.sent + shown.dropped, 10_000);
    assert_eq!(addresses(&lapi).last().unwrap(), "10.0.39.15", "the newest is there");
}

#[tokio::test]
async fn no_ban_is_asked_for_of_private_and_allowlisted_callers() {
    let lapi = Lapi::start().await;
    let own = SvcBouncer { push_with_decision: true, allow_private: true, ..bouncer(&lapi) };
    let (_folder, world) = world(&[("a", own.clone())]).await;
    let bans = |lapi: &Lapi| {
        let alerts = lapi.taken().concat();
        let banned = alerts.iter().filter(|alert| alert["remediation"] == true && alert.get("decisions").is_some());
        banned.map(|alert| alert["source"]["value"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    world.allow("ip:192.0.2.0/28").await;
    ["10.1.2.3", "192.0.2.3", "192.0.2.77"].into_iter().for_each(|address| assert!(world.event(&refusal(address))));
    world.until("the alerts", |world| world.runtime.push("a").sent == 3).await;
    assert_eq!(bans(&lapi), ["10.1.2.3", "192.0.2.77"]);
    assert_eq!(world.runtime.push("a").skipped_bans, 1);
    // What rules only monitor asks for no ban in any case, and skips none.
    world.set("a", Some(SvcBouncer { push_waf_monitored: true, ..own.clone() }));
    world.event(&trail("192.0.2.4", false));
    world.until("the alert", |world| world.runtime.push("a").sent == 4).await;
    assert_eq!((bans(&lapi).len(), world.runtime.push("a").skipped_bans), (2, 1));
    // This test's control plane reaches the service without it.
    world.set("a", Some(SvcBouncer { allow_private: false, ..own }));
    world.event(&refusal("10.1.2.4"));
    world.until("the last alert", |world| world.runtime.push("a").sent == 5).await;
    assert_eq!((bans(&lapi).len(), world.runtime.push("a").skipped_bans), (2, 2));
}
