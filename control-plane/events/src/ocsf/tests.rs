use std::collections::BTreeSet;

use serde_json::json;

use super::*;
use crate::{published, samples};

const NOW: u64 = 1_795_687_300_000;

fn mapped(event: &Value) -> Value {
    Value::Object(map(event.to_string().as_bytes(), NOW))
}

/// What a gateway in other hands may send.
fn hostile() -> Vec<Value> {
    vec![
        json!({}),
        json!({ "@type": 7, "@id": null, "@timestamp": "yesterday", "event": [], "http": "x", "source": 1 }),
        json!({ "@type": "SvcSecurityEvent", "@timestamp": -1, "event": { "severity": 300, "category": ["a"], "outcome": 1 } }),
        json!({
            "@type": "SvcSecurityEvent", "metadata": { "uid": "mine" }, "class_uid": 2004, "unmapped": "mine",
            "event": { "severity": "high", "kind": 1, "action": {} },
            "http": { "method": "PATCH\u{7}", "path": 1, "host": "a b:99999", "status": "x", "request_id": ["x"] },
            "source": { "ip": "192.0.2.0/24", "user": "", "apikey": { "a": 1 } },
            "threat": { "score": 1e300, "tags": ["a", 1] }, "route": { "node": ["n"], "name": 5 },
        }),
        json!({ "@type": "SvcWafTrailEvent", "http": { "method": "GET" }, "block": { "rule_id": "x" }, "matches": 3 }),
        json!({ "@type": "SvcWafTrailEvent", "http": { "method": "GET" }, "config": { "id": "", "name": "no id" } }),
        json!({ "@type": "SvcSecurityEvent", "alert": { "rule": { "name": "no id" } }, "user": { "email": "a@b.test" } }),
        json!({ "@type": "SvcWafSecurityAudit", "action": "", "user": { "name": 1, "email": "nobody" } }),
    ]
}

/// Texts and numbers, without those that are empty.
fn leaves(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::String(text) if !text.is_empty() => {
            found.insert(text.clone());
        }
        Value::Number(number) => {
            found.insert(number.to_string());
        }
        Value::Array(items) => items.iter().for_each(|item| leaves(item, found)),
        Value::Object(fields) => fields.values().for_each(|field| leaves(field, found)),
        _ => {}
    }
}

#[test]
fn every_event_is_valid_for_the_published_schema() {
    let mut lines: Vec<String> = samples::all().iter().map(|line| Value::Object(map(line, NOW)).to_string()).collect();
    lines.extend(hostile().iter().map(|event| mapped(event).to_string()));
    lines.push(Value::Object(map(b"no json", NOW)).to_string());
    let said = published::run("check_ocsf.py", lines.join("\n").as_bytes());
    assert_eq!(said.trim(), format!("{} events are valid", lines.len()));
}

#[test]
fn nothing_is_lost() {
    let hostile = hostile().into_iter().map(|event| event.to_string().as_bytes().into());
    for line in samples::all().into_iter().chain(hostile) {
        let event: Value = serde_json::from_slice(&line).unwrap();
        let mut before = BTreeSet::new();
        leaves(&event, &mut before);
        // Two that are said in other words: `is_alert`, and a host and its port.
        if event["event"]["kind"] == "alert" {
            before.remove("alert");
        }
        if let Some((host, port)) = event["http"]["host"].as_str().and_then(|host| host.rsplit_once(':'))
            && port.parse::<u16>().is_ok()
        {
            before.remove(&format!("{host}:{port}"));
            before.extend([host.to_owned(), port.to_owned()]);
        }
        let mut after = BTreeSet::new();
        leaves(&mapped(&event), &mut after);
        let lost: Vec<_> = before.difference(&after).collect();
        assert!(lost.is_empty(), "{lost:?} of {event}");
    }
}

#[test]
fn a_refused_request_is_an_http_activity() {
    let event = json!({
        "@type": "SvcSecurityEvent", "@id": "event_1", "@timestamp": "2026-11-26T10:00:00.123Z",
        "event": {
            "kind": "alert", "category": "threat", "action": "deny", "outcome": "blocked", "severity": 4, "module": "waf",
            "dataset": "svc.threat",
        },
        "source": { "ip": "192.0.2.1", "apikey": null, "user": "carol" },
        "threat": { "score": 92.5, "tags": ["waf:match"], "signals": [{ "source": "waf.seclang" }] },
        "incident": { "id": "incident_1", "count": 3 },
        "route": { "id": "r1", "name": "shop", "node": "edge-1" },
        "http": { "request_id": "abc", "method": "POST", "host": "shop.test:8443", "path": "/pay", "status": 403 },
        "decision": { "action": "deny", "enforced": true, "reason": "score 92.5" },
        "message": "the request is refused",
    });
    let expected = json!({
        "class_uid": 4002, "class_name": "HTTP Activity", "category_uid": 4, "category_name": "Network Activity",
        "activity_id": 6, "activity_name": "Post", "type_uid": 400_206, "type_name": "HTTP Activity: Post",
        "time": 1_795_687_200_123_u64,
        "metadata": {
            "version": "1.6.0",
            "product": {
                "name": "Palisade", "vendor_name": "Palisade", "version": env!("CARGO_PKG_VERSION"),
                "feature": { "name": "waf" },
            },
            "profiles": ["security_control", "host"], "uid": "event_1", "log_name": "SvcSecurityEvent",
            "event_code": "threat", "correlation_uid": "incident_1", "labels": ["waf:match"],
            "original_time": "2026-11-26T10:00:00.123Z", "logged_time": NOW,
        },
        "device": { "name": "edge-1", "type_id": 99, "type": "Gateway" },
        "severity_id": 4, "severity": "High", "message": "the request is refused", "is_alert": true, "risk_score": 93,
        "action_id": 2, "action": "Denied", "disposition_id": 2, "disposition": "Blocked",
        "status_id": 2, "status": "Failure", "status_code": "403", "status_detail": "score 92.5",
        "http_request": {
            "http_method": "POST", "uid": "abc", "url": { "path": "/pay", "hostname": "shop.test", "port": 8443 },
        },
        "dst_endpoint": { "hostname": "shop.test", "port": 8443, "svc_name": "shop" },
        "http_response": { "code": 403 },
        "observables": [{ "name": "src_endpoint.ip", "type_id": 2, "type": "IP Address", "value": "192.0.2.1" }],
        "src_endpoint": { "ip": "192.0.2.1" },
        "actor": { "user": { "name": "carol" } },
        "unmapped": {
            "event": { "action": "deny", "outcome": "blocked", "dataset": "svc.threat" },
            "threat": { "score": 92.5, "signals": [{ "source": "waf.seclang" }] },
            "incident": { "count": 3 },
            "route": { "id": "r1" },
            "decision": { "action": "deny", "enforced": true },
        },
    });
    assert_eq!(mapped(&event), expected);
}

#[test]
fn a_gateway_did_what_the_event_says() {
    let did = |outcome: &str, action: &str| {
        let event = json!({
            "@type": "SvcSecurityEvent", "event": { "outcome": outcome, "action": action }, "http": { "method": "GET" },
        });
        let event = mapped(&event);
        ["action", "disposition", "status"].map(|name| event[name].as_str().unwrap().to_owned())
    };
    assert_eq!(did("blocked", "ban"), ["Denied", "Blocked", "Failure"]);
    assert_eq!(did("blocked", "challenge"), ["Denied", "Challenge", "Failure"]);
    assert_eq!(did("blocked", "tarpit"), ["Allowed", "Delayed", "Unknown"]);
    assert_eq!(did("observed", "deny"), ["Observed", "Detected", "Unknown"]);
    assert_eq!(did("observed", "log"), ["Observed", "Logged", "Unknown"]);
}

#[test]
fn audits_are_authentication_or_entity_management() {
    let class = |action: &str| {
        let event = mapped(&json!({ "@type": "SvcWafSecurityAudit", "action": action, "ref": "ip:192.0.2.1" }));
        (event["type_uid"].as_u64().unwrap(), event["status"].as_str().unwrap().to_owned())
    };
    for (action, kind, status) in [
        ("login", 300_201, "Success"),
        ("login-refused", 300_201, "Failure"),
        ("key-throttled", 300_201, "Failure"),
        ("logout", 300_202, "Success"),
        ("create", 300_401, "Success"),
        ("update", 300_403, "Success"),
        ("ban", 300_412, "Success"),
        ("ban-refused", 300_412, "Failure"),
        ("unban", 300_413, "Success"),
        ("tuning-apply", 300_499, "Success"),
    ] {
        assert_eq!(class(action), (kind, status.to_owned()), "{action}");
    }
}
