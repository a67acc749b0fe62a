//! Payloads as they are sent, and that nothing in them is markup of an attacker's.

use serde_json::json;

use super::*;
use crate::message::BanFacts;
use entities::{AlertRule, AlertTrigger, EntitySet, Item, Secret, unsaved};
use events::{BanMade, BanWay, IdentityRef, Sighting};
use store::fabric::Ban;

const NOW: u64 = 1_800_000_000_000;

fn rule(kind: &str) -> Item<AlertRule> {
    let channel = json!({ "kind": kind, "url": "https://hook.test/s3cret", "routing_key": "k3y" });
    let empty = EntitySet::empty();
    unsaved(json!({ "id": "on-call", "name": "On call", "channel": channel }), &empty).unwrap()
}

fn event() -> Sighting {
    Sighting {
        identity: Some(IdentityRef { kind: "ip".to_owned(), value: "192.0.2.1".to_owned() }),
        place: None,
        score: 95.0,
        severity: 4,
        category: "threat".to_owned(),
        action: "deny".to_owned(),
        message: "SQL injection".to_owned(),
        enforced: true,
        route_id: "shop".to_owned(),
        route_name: "The shop".to_owned(),
        node: "edge-1".to_owned(),
        tags: vec!["waf:blocked".to_owned(), "honeypot:path".to_owned()],
    }
}

fn message(kind: &str) -> Message {
    Message { id: "id-1".to_owned(), ..Message::incident(&rule(kind), &event(), "inc-1", 12, NOW) }
}

fn sent(kind: &str, message: &Message) -> (String, HeaderMap, Value) {
    match render(&rule(kind).channel, message).unwrap() {
        Rendered::Post { url, headers, body } => (url, headers, serde_json::from_slice(&body).unwrap()),
        Rendered::Event(event) => (String::new(), HeaderMap::new(), event),
    }
}

/// Every text in a document.
fn texts(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::String(text) => found.push(text.clone()),
        Value::Array(values) => values.iter().for_each(|value| texts(value, found)),
        Value::Object(fields) => fields.values().for_each(|value| texts(value, found)),
        _ => {}
    }
}

#[test]
fn slack_gets_text_and_blocks_of_plain_text() {
    let plain = |text: &str| json!({ "type": "plain_text", "text": text, "emoji": false });
    let (url, headers, body) = sent("slack", &message("slack"));
    assert_eq!(
        (url.as_str(), &headers["content-type"]),
        ("https://hook.test/s3cret", &"application/json".parse().unwrap())
    );
    assert_eq!(
        body,
        json!({
            "text": "Incident: ip:192.0.2.1, 12 events, score 95",
            "mrkdwn": false, "unfurl_links": false, "unfurl_media": false,
            "blocks": [
                { "type": "header", "text": plain("Incident: ip:192.0.2.1, 12 events, score 95") },
                { "type": "section", "fields": [
                    plain("Severity: 4 of 4"), plain("Identity: ip:192.0.2.1"), plain("Score: 95"), plain("Category: threat"),
                    plain("Action: deny"), plain("Tags: waf:blocked, honeypot:path"), plain("Route: The shop"),
                    plain("Node: edge-1"), plain("Time: 2027-01-15T08:00:00.000Z"),
                ] },
                { "type": "section", "text": plain("SQL injection") },
                { "type": "context", "elements": [plain("Palisade, alert rule On call")] },
            ],
        })
    );
}

#[test]
fn teams_gets_an_adaptive_card_of_text_runs() {
    let run = |text: &str| json!({ "type": "TextRun", "text": text });
    let fact = |name: &str, value: &str| {
        let name = json!({ "type": "TextRun", "text": name, "weight": "Bolder" });
        json!({ "type": "RichTextBlock", "inlines": [name, run(value)] })
    };
    let block = |run: Value| json!({ "type": "RichTextBlock", "inlines": [run] });
    let (_, _, body) = sent("teams", &message("teams"));
    let title = "Incident: ip:192.0.2.1, 12 events, score 95";
    let rule = "Palisade, alert rule On call";
    assert_eq!(
        body,
        json!({
            "type": "message",
            "attachments": [{
                "contentType": "application/vnd.microsoft.card.adaptive",
                "contentUrl": null,
                "content": {
                    "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
                    "type": "AdaptiveCard", "version": "1.4", "msteams": { "width": "Full" },
                    "body": [
                        block(json!({
                            "type": "TextRun", "text": title, "weight": "Bolder", "size": "Large", "color": "Attention",
                        })),
                        fact("Severity: ", "4 of 4"), fact("Identity: ", "ip:192.0.2.1"), fact("Score: ", "95"),
                        fact("Category: ", "threat"), fact("Action: ", "deny"),
                        fact("Tags: ", "waf:blocked, honeypot:path"), fact("Route: ", "The shop"),
                        fact("Node: ", "edge-1"), fact("Time: ", "2027-01-15T08:00:00.000Z"),
                        block(run("SQL injection")),
                        block(json!({ "type": "TextRun", "text": rule, "isSubtle": true, "size": "Small" })),
                    ],
                },
            }],
        })
    );
}

#[test]
fn pagerduty_gets_an_event_of_its_second_version() {
    let (url, _, body) = sent("pagerduty", &message("pagerduty"));
    assert_eq!(url, "https://hook.test/s3cret", "another address than the service's own");
    assert_eq!(
        body,
        json!({
            "routing_key": "k3y", "event_action": "trigger", "dedup_key": "inc-1", "client": "Palisade",
            "payload": {
                "summary": "Incident: ip:192.0.2.1, 12 events, score 95", "source": "ip:192.0.2.1", "severity": "critical",
                "timestamp": "2027-01-15T08:00:00.000Z", "class": "threat", "component": "edge-1",
                "custom_details": {
                    "rule": "on-call", "trigger": "incident", "test": false, "detail": "SQL injection", "score": 95,
                    "action": "deny", "tags": ["waf:blocked", "honeypot:path"], "route": "The shop", "events": 12,
                },
            },
        })
    );
    let mut own = rule("pagerduty");
    own.body.channel.url = Secret::default();
    let Rendered::Post { url, .. } = render(&own.channel, &message("pagerduty")).unwrap() else { panic!("no call") };
    assert_eq!(url, "https://events.pagerduty.com/v2/enqueue");
    let severities = [1, 2, 3, 4].map(|severity| {
        let message = Message { severity, ..message("pagerduty") };
        sent("pagerduty", &message).2["payload"]["severity"].as_str().unwrap().to_owned()
    });
    assert_eq!(severities, ["info", "warning", "error", "critical"]);
    let long = Message { subject: "x".repeat(256), ..message("pagerduty") };
    assert_eq!(sent("pagerduty", &long).2["dedup_key"].as_str().unwrap().len(), 64);
}

#[test]
fn a_webhook_gets_our_own_document() {
    let (_, _, body) = sent("webhook", &message("webhook"));
    let mut expected = json!({
        "type": "palisade.alert", "version": 1, "id": "id-1", "at": "2027-01-15T08:00:00.000Z", "test": false,
        "rule": { "id": "on-call", "name": "On call" }, "trigger": "incident", "severity": 4,
        "summary": "Incident: ip:192.0.2.1, 12 events, score 95", "detail": "SQL injection", "subject": "inc-1",
        "identity": { "kind": "ip", "value": "192.0.2.1", "key": "ip:192.0.2.1" },
        "incident": { "id": "inc-1", "count": 12 }, "score": 95, "category": "threat", "action": "deny", "enforced": true,
        "tags": ["waf:blocked", "honeypot:path"], "route": { "id": "shop", "name": "The shop", "node": "edge-1" },
        "ban": null, "burst": null,
    });
    assert_eq!(body, expected);

    let ban = Ban { key: "user:ann".to_owned(), reason: "scans".to_owned(), until: NOW + 1000, ..Ban::default() };
    let made = BanMade { ban, way: BanWay::Ledger, score: None, events: Vec::new() };
    let mut bans = rule("webhook");
    bans.body.trigger = AlertTrigger::Ban;
    let message = Message { id: "id-1".to_owned(), ..Message::ban(&bans, &made, NOW) };
    expected["summary"] = "Ban: user:ann until 2027-01-15T08:00:01.000Z".into();
    let (_, _, body) = sent("webhook", &message);
    assert_eq!(
        (&body["summary"], &body["subject"], &body["detail"]),
        (&expected["summary"], &json!("ban:user:ann"), &json!("scans"))
    );
    assert_eq!(body["ban"], json!({ "until": "2027-01-15T08:00:01.000Z", "by": "", "way": "ledger" }));
    assert_eq!((&body["score"], &body["severity"], &body["incident"]), (&Value::Null, &json!(3), &Value::Null));

    let mut burst = rule("webhook");
    burst.body.trigger = AlertTrigger::Burst;
    let (_, _, body) = sent("webhook", &Message::burst(&burst, &event(), 100, NOW));
    assert_eq!(body["burst"], json!({ "count": 100, "window_seconds": 60 }));
    assert_eq!(
        (&body["summary"], &body["subject"]),
        (&json!("Burst: 100 events within 60 s"), &json!("burst:on-call"))
    );
}

#[test]
fn an_event_is_one_more_for_the_exporters() {
    let (_, _, body) = sent("event", &message("event"));
    assert_eq!(
        body,
        json!({
            "@type": "SvcSecurityEvent", "@id": "id-1", "@timestamp": "2027-01-15T08:00:00.000Z",
            "event": {
                "kind": "alert", "category": "threat", "action": "alert", "outcome": "observed", "severity": 4,
                "module": "alerts", "dataset": "svc.alert",
            },
            "source": { "ip": "192.0.2.1", "apikey": null, "user": null },
            "threat": { "score": 95, "tags": ["waf:blocked", "honeypot:path"], "signals": [] },
            "incident": { "id": "inc-1", "count": 12 },
            "route": { "id": "shop", "name": "The shop", "node": "edge-1" },
            "message": "Incident: ip:192.0.2.1, 12 events, score 95: SQL injection",
            "alert": { "rule": { "id": "on-call", "name": "On call" }, "trigger": "incident", "test": false },
        })
    );
}

#[test]
fn what_an_attacker_writes_is_text_everywhere() {
    let nasty =
        "<!channel> <@U1> <https://evil.test|click> [x](https://evil.test) *b* & @here\r\n{{DATE(1)}}\u{202e}\0";
    let all = Sighting {
        identity: Some(IdentityRef { kind: "user".to_owned(), value: nasty.to_owned() }),
        category: nasty.to_owned(),
        action: nasty.to_owned(),
        message: nasty.to_owned(),
        route_id: nasty.to_owned(),
        route_name: nasty.to_owned(),
        node: nasty.to_owned(),
        tags: vec![nasty.to_owned()],
        ..event()
    };
    for kind in ["slack", "teams", "pagerduty", "webhook", "event"] {
        let (_, _, body) = sent(kind, &Message::incident(&rule(kind), &all, nasty, 1, NOW));
        let mut found = Vec::new();
        texts(&body, &mut found);
        for text in found.iter().filter(|text| !text.starts_with("http://adaptivecards.io/")) {
            assert!(!text.chars().any(char::is_control) && !text.contains('\u{202e}'), "{kind}: {text:?}");
            assert!(!text.contains("://") && !text.contains("{{"), "{kind}: {text:?}");
            assert!(kind != "slack" || !text.contains(['<', '>']), "{kind}: {text:?}");
        }
        let shown = body.to_string();
        assert!(kind != "slack" || !shown.contains("\"type\":\"mrkdwn\""), "{shown}");
        assert!(kind != "teams" || !shown.contains("\"TextBlock\"") && !shown.contains("\"FactSet\""), "{shown}");
    }
}

#[test]
fn nothing_is_longer_than_a_channel_takes() {
    for letter in ["x", "&", "😀"] {
        let long = letter.repeat(5000);
        let all = Sighting {
            identity: Some(IdentityRef { kind: "user".to_owned(), value: long.clone() }),
            message: long.clone(),
            route_name: long.clone(),
            tags: vec![long.clone(); 16],
            ..event()
        };
        let mut long_rule = rule("slack");
        long_rule.head.name = long.clone();
        let message = Message::incident(&long_rule, &all, &long, u64::MAX, NOW);
        let (_, _, body) = sent("slack", &message);
        let blocks = body["blocks"].as_array().unwrap();
        let length = |value: &Value| value["text"].as_str().unwrap().chars().count();
        assert!(length(&blocks[0]["text"]) <= 150, "a header that is longer is refused");
        let fields = blocks[1]["fields"].as_array().unwrap();
        assert!(fields.len() <= 10 && fields.iter().all(|field| length(field) <= 2000));
        assert!(length(&blocks[2]["text"]) <= 3000);
        for text in [&blocks[0]["text"], &blocks[2]["text"]].map(|block| block["text"].as_str().unwrap()) {
            let rest = text.trim_end_matches('…').replace("&amp;", "");
            assert!(!rest.contains('&'), "an escape is cut in two: {text}");
        }
        let (_, _, body) = sent("pagerduty", &message);
        assert!(body["payload"]["summary"].as_str().unwrap().chars().count() <= 1024);
        assert!(body["dedup_key"].as_str().unwrap().chars().count() <= 256);
        let (_, _, body) = sent("teams", &message);
        assert!(body.to_string().len() < 28 * 1024, "the limit of a card");
    }
}

#[test]
fn what_a_channel_lacks_is_said_without_its_secrets() {
    let mut bare = rule("slack");
    bare.body.channel.url = Secret::default();
    let why = |rule: &Item<AlertRule>| render(&rule.channel, &message("slack")).err().unwrap();
    assert_eq!(why(&bare), "the channel has no `url`");
    let mut keyless = rule("pagerduty");
    keyless.body.channel.routing_key = Secret::default();
    assert_eq!(why(&keyless), "the channel has no `routing_key`");
    let mut headed = rule("webhook");
    headed.body.channel.headers.insert("X-Key".to_owned(), Secret::from("s3cret"));
    let Rendered::Post { headers, .. } = render(&headed.channel, &message("webhook")).unwrap() else {
        panic!("no call")
    };
    assert!(headers["x-key"] == "s3cret" && headers["x-key"].is_sensitive());
    headed.body.channel.headers.insert("X-Key".to_owned(), Secret::from("s3cret\u{7f}"));
    let error = why(&headed);
    assert!(error.contains("`X-Key`") && !error.contains("s3cret"), "{error}");
}

#[test]
fn a_ban_and_a_test_say_what_they_are() {
    let tried = Message::test(&rule("slack"), NOW);
    assert_eq!((tried.headline().as_str(), tried.subject.as_str()), ("Test of the alert rule On call", "test:on-call"));
    let ban = BanFacts { until: NOW, by: "alice".to_owned(), way: "hand".to_owned() };
    let banned = Message { ban: Some(ban), ..message("slack") };
    assert!(banned.facts().contains(&("Banned by", "alice (hand)".to_owned())));
    assert!(banned.facts().len() <= 10);
}
