//! Alert rules of a running control plane: what happens reaches each kind of channel, over real connections.

use std::time::Duration;

use serde_json::{Value, json};
use snapshot::{BanRequest, Up};

use crate::alerts_support::{Channels, LONG, TAKEN, Then, World};

fn delivered(channel: &str) -> String {
    format!("palisade_alerts_messages_total{{channel=\"{channel}\",outcome=\"delivered\"}}")
}

#[tokio::test(flavor = "multi_thread")]
async fn an_incident_reaches_each_kind_of_channel_once() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::start(&folder.path().join("data")).await;
    let (mut slack, mut teams) = (Channels::start(&[]).await, Channels::start(&[]).await);
    let (mut pagerduty, mut webhook) = (Channels::start(&[]).await, Channels::start(&[]).await);
    world.rule("slack", json!({ "channel": { "kind": "slack", "url": slack.url } }));
    world.rule("teams", json!({ "channel": { "kind": "teams", "url": teams.url } }));
    let channel = json!({ "kind": "pagerduty", "url": pagerduty.url, "routing_key": "k3y" });
    world.rule("pagerduty", json!({ "channel": channel }));
    let channel = json!({ "kind": "webhook", "url": webhook.url, "headers": { "X-Token": "t0ken" } });
    world.rule("webhook", json!({ "channel": channel }));
    world.rule("event", json!({ "channel": { "kind": "event" } }));
    world.rule("off", json!({ "enabled": false, "channel": { "kind": "slack", "url": slack.url } }));
    let alerts = &world.console("GET", "_status", &Value::Null)["alerts"];
    assert_eq!(alerts, &json!({ "enabled": true, "rules": 5 }));
    // The gateway's link is up by now, or soon.
    let ends = tokio::time::Instant::now() + LONG;
    while world.console("GET", "_status", &Value::Null)["shared_state"]["distributed"] != true {
        assert!(tokio::time::Instant::now() < ends, "no link");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let warning = &world.console("GET", "_status", &Value::Null)["shared_state"]["warning"];
    assert!(warning.as_str().unwrap().contains("the file of this control plane"), "{warning}");

    world.event("192.0.2.9", 95.0).await;
    let (head, body) = slack.next().await;
    assert!(head.starts_with("POST /hook/s3cret HTTP/1.1"), "{head}");
    assert_eq!(body["text"], "Incident: ip:192.0.2.9, 1 event, score 95");
    let fields = body["blocks"][1]["fields"].to_string();
    assert!(fields.contains("Route: &lt;!channel&gt;") && !fields.contains("<!channel>"), "{fields}");
    let (_, body) = teams.next().await;
    let card = &body["attachments"][0]["content"];
    assert_eq!((&card["type"], &card["body"][0]["type"]), (&"AdaptiveCard".into(), &"RichTextBlock".into()));
    let (_, body) = pagerduty.next().await;
    let keys = (&body["routing_key"], &body["dedup_key"], &body["payload"]["severity"]);
    assert_eq!(keys, (&"k3y".into(), &"inc-192.0.2.9".into(), &"critical".into()));
    let (head, body) = webhook.next().await;
    assert!(head.to_lowercase().contains("x-token: t0ken"), "{head}");
    assert_eq!(
        (&body["incident"], &body["rule"]["id"]),
        (&json!({ "id": "inc-192.0.2.9", "count": 1 }), &"webhook".into())
    );
    let alert = |event: &Value| event["event"]["module"] == "alerts";
    let events = world.exported(alert).await;
    let told = events.iter().find(|event| alert(event)).unwrap();
    assert_eq!((&told["source"]["ip"], &told["alert"]["rule"]["id"]), (&"192.0.2.9".into(), &"event".into()));

    // The same incident within its cooldown, one of too low a score, another one.
    world.event("192.0.2.9", 99.0).await;
    world.event("192.0.2.10", 69.0).await;
    world.event("192.0.2.11", 70.0).await;
    let (_, body) = webhook.next().await;
    assert_eq!(body["identity"]["key"], "ip:192.0.2.11");
    for (channel, expected) in [("slack", 2), ("teams", 2), ("pagerduty", 2), ("webhook", 2), ("event", 2)] {
        world.metric(&delivered(channel), |count| count >= expected).await;
    }
    world.idle().await;
    for channel in ["slack", "teams", "pagerduty", "webhook", "event"] {
        assert_eq!(world.metric(&delivered(channel), |_| true).await, 2, "{channel}: neither twice nor for all");
    }
    let gone = "palisade_alerts_dropped_total{reason=\"gone\"}";
    assert_eq!(world.metric(gone, |_| true).await, 0, "a rule that is disabled makes no message");
    let incidents = world.console("GET", "_incidents", &Value::Null);
    assert_eq!(incidents["incidents"].as_array().unwrap().len(), 3, "alerts are part of none: {incidents}");
}

#[tokio::test(flavor = "multi_thread")]
async fn bans_by_hand_by_a_tier_and_by_the_ledger_are_told() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::start(&folder.path().join("data")).await;
    let mut webhook = Channels::start(&[]).await;
    world.rule("bans", json!({ "trigger": "ban", "channel": { "kind": "webhook", "url": webhook.url } }));
    world.console("POST", "_ban", &json!({ "ref": "user:ann", "reason": "scans" }));
    let (_, body) = webhook.next().await;
    assert_eq!(
        (&body["subject"], &body["ban"]["way"], &body["ban"]["by"]),
        (&"ban:user:ann".into(), &"hand".into(), &"alice".into())
    );
    assert_eq!((&body["detail"], &body["score"]), (&"scans".into(), &Value::Null));

    let until_millis = base::clock::now_millis() + 600_000;
    let tier = |key: &str, score| BanRequest {
        key: key.into(),
        until_millis,
        reason: "tier 3".into(),
        score,
        tags: vec!["waf:blocked".into()],
        issued_at_millis: base::clock::now_millis(),
        ..BanRequest::default()
    };
    let bans = vec![tier("ip:192.0.2.20", 69.0), tier("ip:192.0.2.21", 91.0), tier("ip:192.0.2.21", 95.0)];
    world.up.send(Up { node: "edge-1".into(), bans, ..Up::default() }).await.unwrap();
    let (_, body) = webhook.next().await;
    assert_eq!(
        (&body["subject"], &body["ban"]["way"], &body["severity"]),
        (&"ban:ip:192.0.2.21".into(), &"tier".into(), &json!(4))
    );

    // Twice 60 points are a ban by the ledger.
    world.event("192.0.2.30", 60.0).await;
    world.event("192.0.2.30", 60.0).await;
    let (_, body) = webhook.next().await;
    assert_eq!((&body["subject"], &body["ban"]["way"]), (&"ban:ip:192.0.2.30".into(), &"ledger".into()));
    world.idle().await;
    assert_eq!(world.metric(&delivered("webhook"), |_| true).await, 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_channel_that_is_down_is_tried_again_and_one_that_refuses_is_told_of() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::start(&folder.path().join("data")).await;
    let mut flaky = Channels::start(&[Then::Nothing, Then::Answer("503 Busy\r\nretry-after: 0", "")]).await;
    world.rule(
        "flaky",
        json!({ "trigger": "burst", "burst_threshold": 2, "channel": { "kind": "slack", "url": flaky.url } }),
    );
    world.event("192.0.2.40", 80.0).await;
    world.event("192.0.2.41", 80.0).await;
    let first = flaky.next().await.1;
    assert_eq!(first["text"], "Burst: 2 events within 60 s");
    assert_eq!((&flaky.next().await.1, &flaky.next().await.1), (&first, &first), "the same again");
    world.metric(&delivered("slack"), |count| count == 1).await;
    assert_eq!(world.metric("palisade_alerts_retries_total{channel=\"slack\"}", |_| true).await, 2);

    // What is changed of a rule holds at once.
    world.patch("flaky", json!({ "enabled": false }));
    let mut refusing = Channels::start(&[Then::Answer("404 Not Found", "no_service"), TAKEN]).await;
    world.rule("refusing", json!({ "channel": { "kind": "webhook", "url": refusing.url } }));
    // Whatever its rules say, an alert about alerts is none that they look at.
    let all = json!({ "trigger": "burst", "burst_threshold": 1, "min_score": 0, "enforced_only": false, "categories": ["dependency"] });
    world.rule("loop", all);
    world.event("192.0.2.42", 80.0).await;
    refusing.next().await;
    let module = |event: &Value, what: &str| {
        event["event"]["category"] == "dependency" && event["message"].as_str().unwrap().contains(what)
    };
    world
        .exported(|event| {
            module(event, "the webhook channel of the alert rule refusing fails: the channel answers 404")
        })
        .await;
    world.event("192.0.2.43", 80.0).await;
    refusing.next().await;
    let events = world.exported(|event| module(event, "the alert rule refusing works again")).await;
    world.idle().await;
    let failed = "palisade_alerts_messages_total{channel=\"webhook\",outcome=\"failed\"}";
    assert_eq!(world.metric(failed, |_| true).await, 1, "what is refused is not tried again");
    assert_eq!(world.metric(&delivered("event"), |_| true).await, 0, "no alert about alerts");
    let all = format!("{} {}", std::fs::read_to_string(&world.server.log).unwrap(), json!(events));
    assert!(!all.contains("s3cret"), "the address is a secret: {all}");
    assert!(flaky.requests.try_recv().is_err(), "a rule that is disabled does nothing");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_channel_can_be_tried() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::start(&folder.path().join("data")).await;
    let long: &'static str = Box::leak("ä".repeat(2000).into_boxed_str());
    let mut channels = Channels::start(&[TAKEN, Then::Answer("403 Forbidden", long)]).await;
    world.rule("stored", json!({ "enabled": false, "channel": { "kind": "slack", "url": channels.url } }));
    let test = |body: Value| world.console("POST", "_alert_test", &body);
    let delivery = json!({ "status": 200, "ok": true, "body": "ok" });
    assert_eq!(test(json!({ "id": "stored" })), json!({ "done": true, "channel": "slack", "delivery": delivery }));
    assert_eq!(channels.next().await.1["text"], "Test of the alert rule Rule stored");

    let rule = json!({ "trigger": "ban", "channel": { "kind": "webhook", "url": channels.url } });
    let answer = test(json!({ "rule": rule }));
    let (status, ok) = (&answer["delivery"]["status"], &answer["delivery"]["ok"]);
    assert_eq!((&answer["done"], status, ok), (&json!(true), &json!(403), &json!(false)), "{answer}");
    assert_eq!(answer["delivery"]["body"].as_str().unwrap(), "ä".repeat(1024), "cut to 2 KiB");
    assert_eq!(channels.next().await.1["test"], true);

    let event = json!({ "status": null, "ok": true, "body": "" });
    assert_eq!(test(json!({ "rule": {} })), json!({ "done": true, "channel": "event", "delivery": event }));
    let error = |body: Value| {
        let answer = test(body);
        assert_eq!(answer["done"], false, "{answer}");
        answer["error"].as_str().unwrap().to_owned()
    };
    let at = |url: &str| json!({ "rule": { "channel": { "kind": "webhook", "url": url } } });
    let refused = error(at("http://10.0.0.5/hook/s3cret"));
    assert_eq!(
        refused,
        "http://10.0.0.5:80: 10.0.0.5 is a private address; start palisade with --outbound-allow 10.0.0.5/32 if this is meant"
    );
    assert!(error(at("http://169.254.169.254/latest")).contains("a link-local address"));
    assert!(error(json!({})).contains("no alert rule provided"));
    assert!(error(json!({ "id": "none" })).contains("there is no alert rule `none`"));
    assert!(error(json!({ "id": "stored", "rule": {} })).contains("exclude each other"));
    assert!(error(json!({ "rule": { "min_score": 101 } })).contains("/min_score"));
    assert!(error(json!({ "rule": { "channel": { "kind": "slack" } } })).contains("needs a URL"));
    let unused = json!({ "rule": { "enabled": false, "channel": { "kind": "slack" } } });
    assert_eq!(error(unused), "the channel has no `url`");
    let masked = json!({ "rule": { "channel": { "kind": "slack", "url": "********" } } });
    assert!(error(masked).contains("none is stored"), "a stored secret is not sent elsewhere");

    let audited = |event: &Value| event["action"] == "alert-test";
    let last = |event: &Value| audited(event) && event["detail"] == "slack: the channel has no `url`";
    let events = world.exported(last).await;
    let audits: Vec<&Value> = events.iter().filter(|event| audited(event)).collect();
    let details: Vec<&str> = audits.iter().map(|audit| audit["detail"].as_str().unwrap()).collect();
    assert_eq!(details[..3], ["slack: answered 200 OK", "webhook: answered 403 Forbidden", "event: as an event"]);
    assert_eq!((&audits[0]["ref"], &audits[0]["user"]["name"]), (&"alert-rules/stored".into(), &"alice".into()));
    assert!(!json!(audits).to_string().contains("s3cret"));
}

#[tokio::test(flavor = "multi_thread")]
async fn neither_what_waits_nor_what_cools_down_is_lost_by_kill_9() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let world = World::start(&data).await;
    let mut webhook = Channels::start(&[Then::Answer("503 Busy\r\nretry-after: 300", ""), TAKEN]).await;
    world.rule("bans", json!({ "trigger": "ban", "channel": { "kind": "webhook", "url": webhook.url } }));
    world.console("POST", "_ban", &json!({ "ref": "user:ann", "reason": "scans" }));
    let (_, first) = webhook.next().await;
    assert_eq!(first["subject"], "ban:user:ann");
    // It waits for its second attempt, which would be in five minutes.
    world.metric("palisade_alerts_retries_total{channel=\"webhook\"}", |retries| retries == 1).await;
    let world = world.again(&data).await;
    let (_, second) = webhook.next().await;
    assert_eq!(second, first, "the same message with the same id, once more");
    world.metric(&delivered("webhook"), |count| count == 1).await;
    world.idle().await;

    let world = world.again(&data).await;
    world.console("POST", "_unban", &json!({ "ref": "user:ann" }));
    world.console("POST", "_ban", &json!({ "ref": "user:ann", "reason": "scans" }));
    world.console("POST", "_ban", &json!({ "ref": "user:bob", "reason": "scans" }));
    let (_, third) = webhook.next().await;
    assert_eq!(third["subject"], "ban:user:bob", "of the first one it was told before the restart");
    world.idle().await;
    assert_eq!(world.metric(&delivered("webhook"), |_| true).await, 1, "what was delivered is not sent again");
    assert!(webhook.requests.try_recv().is_err());
}
