//! What the WAF only watches, what it finds in responses, and what limits refuse: signals, events and incidents of each, in one
//! filter and in several.

use std::net::Ipv4Addr;
use std::time::Duration;

use palisade_tests::gateway::{Gateway, preset, route, threat_policy, waf_config};
use palisade_tests::http::{Request, percent};
use serde_json::{Value, json};

const PATIENCE: Duration = Duration::from_secs(30);
const SQL: &str = "1' UNION SELECT password FROM users-- -";
const FORM: &str = "application/x-www-form-urlencoded";
/// A rule for responses, and one whose match is worth a match.
const LEAK: &str = r#"SecRule RESPONSE_STATUS "@streq 418" "id:10001,phase:3,deny,status:502,log,msg:'leak'""#;
const ODD: &str = r#"SecRule ARGS:odd "@streq 1" "id:10002,phase:1,pass,log,msg:'odd'""#;
const SWITCH: &str = r#"SecRule ARGS:watch "@streq 1" "id:10003,phase:1,pass,nolog,ctl:ruleEngine=DetectionOnly""#;

/// A request to a route, its status, and what its event says: module, outcome, action, score, tags.
type Case = (&'static str, Request, u16, Option<Value>);

#[test]
fn watching_is_seen_and_told_apart_from_blocking() {
    for filters in [json!(["preset"]), json!(["threat-gate", "waf", "threat-response"])] {
        println!("filters {filters}");
        run(&filters);
    }
}

fn run(filters: &Value) {
    let mut gateway = Gateway::start(|control, backend| {
        control.configure(&json!({
            "gateway": {"filters": filters}, "security": {"ledger": {"feed_waf_blocks": true, "ban_threshold": 1_000_000}},
        }));
        let rules = json!(["@import_preset crs", LEAK, ODD, SWITCH]);
        let small = json!({"rules": rules, "input_body_limit": 1000, "oversize_body_action": "reject"});
        let mut watching = small.clone();
        watching["block"] = json!(false);
        let mut detecting = small.clone();
        detecting["rules"].as_array_mut().unwrap().push(json!("SecRuleEngine DetectionOnly"));
        control.create("waf-configs", &waf_config("blocking", small));
        control.create("waf-configs", &waf_config("watching", watching));
        control.create("waf-configs", &waf_config("detecting", detecting));
        // No tier acts on what a block weighs.
        control
            .create("threat-policies", &threat_policy("high", json!({"tiers": [{"min_score": 99, "action": "deny"}]})));
        let alone = json!([{"plugin": "SvcWaf", "config": {"ref": "watching"}}]);
        let builtin = json!([{"plugin": "SvcWaf", "config": {"ref": "watching"}},
            {"plugin": "SvcThreatResponse", "config": {"policy": "off"}}]);
        // One that is disabled stands for the built-in one.
        control.create("threat-policies", &threat_policy("off", json!({"enabled": false})));
        for (id, plugins) in [
            ("watching", preset("high", "watching")),
            ("detecting", preset("high", "detecting")),
            ("blocking", preset("high", "blocking")),
            ("alone", alone),
            ("builtin", builtin),
        ] {
            let mut route = route(id, backend, plugins);
            route["hosts"] = json!([format!("{id}.test")]);
            control.create("routes", &route);
        }
    });
    gateway.until(&Request::get("/").header("host", "blocking.test"), 200, PATIENCE);
    gateway.until(&Request::get("/").header("host", "builtin.test"), 200, PATIENCE);
    let cases = cases();
    for (number, (host, request, status, _)) in cases.iter().enumerate() {
        let request = request.clone().header("host", format!("{host}.test"));
        let answer = request.send_from(caller(number), gateway.address).unwrap();
        assert_eq!(answer.status, *status, "case {number} on {host}");
    }
    for (number, (host, _, status, expected)) in cases.iter().enumerate() {
        let of = |kind: &str| {
            let from = |event: &Value| event["@type"] == kind && event["source"]["ip"] == caller(number).to_string();
            gateway.control.events().into_iter().filter(from).collect::<Vec<_>>()
        };
        let Some(expected) = expected else { continue };
        let own =
            |event: &Value| event["@type"] == "SvcSecurityEvent" && event["source"]["ip"] == caller(number).to_string();
        let event = gateway.control.event(&format!("case {number} on {host}"), own);
        let found = json!({
            "module": event["event"]["module"], "outcome": event["event"]["outcome"], "action": event["event"]["action"],
            "score": event["threat"]["score"], "tags": event["threat"]["tags"],
        });
        assert_eq!(found, *expected, "case {number} on {host}: {event}");
        assert_eq!(event["incident"]["count"], 1, "{event}");
        let trail = gateway.control.event("its trail", |event| {
            event["@type"] == "SvcWafTrailEvent" && event["source"]["ip"] == caller(number).to_string()
        });
        let blocked = expected["outcome"] == "blocked";
        assert_eq!((trail["blocking"].as_bool(), trail["block"].is_object()), (Some(blocked), blocked), "{trail}");
        assert_eq!(trail["would_block"].is_object(), !blocked, "{trail}");
        if blocked {
            assert_eq!(trail["block"]["status"], *status, "{trail}");
        }
        assert_eq!(of("SvcSecurityEvent").len(), 1, "case {number} on {host}: one outcome, one event");
    }
    let failures = gateway.envoy.vm_failures();
    assert!(failures.is_empty(), "a filter's VM failed: {failures:?}");
}

fn caller(case: usize) -> Ipv4Addr {
    Ipv4Addr::new(127, 9, 0, u8::try_from(case + 1).unwrap())
}

fn cases() -> Vec<Case> {
    let attack = || Request::get(format!("/search?q={}", percent(SQL)));
    let large = || Request::post("/echo", FORM, [b"a=".as_slice(), &[b'a'; 2000]].concat());
    let observed = |module: &str, action: &str, score: u32, tag: &str| {
        Some(json!({"module": module, "outcome": "observed", "action": action, "score": score, "tags": [tag]}))
    };
    let blocked = |score: u32, tag: &str| {
        Some(json!({"module": "waf", "outcome": "blocked", "action": "deny", "score": score, "tags": [tag]}))
    };
    vec![
        ("watching", Request::get("/search?q=garden"), 200, None),
        ("watching", attack(), 200, observed("waf", "deny", 50, "waf:match")),
        ("detecting", attack(), 200, observed("waf", "deny", 50, "waf:match")),
        (
            "blocking",
            Request::get(format!("/?watch=1&q={}", percent(SQL))),
            200,
            observed("waf", "deny", 50, "waf:match"),
        ),
        ("alone", attack(), 200, observed("waf", "deny", 50, "waf:match")),
        ("builtin", attack(), 200, observed("threat-response", "log", 50, "waf:match")),
        ("blocking", attack(), 403, blocked(50, "waf:blocked")),
        ("blocking", Request::get("/status/418"), 502, blocked(50, "waf:blocked")),
        ("watching", Request::get("/status/418"), 418, observed("waf", "deny", 50, "waf:match")),
        ("blocking", large(), 413, blocked(20, "waf:limit")),
        ("watching", large(), 200, observed("waf", "deny", 20, "waf:limit")),
        (
            "blocking",
            Request::post("/echo", FORM, "a=1").header("content-encoding", "made-up"),
            415,
            // The core rule set forbids the header, which weighs the rest.
            Some(json!({
                "module": "waf", "outcome": "blocked", "action": "deny", "score": 70,
                "tags": ["waf:body_error", "waf:match"],
            })),
        ),
        ("watching", Request::get("/?odd=1"), 200, None),
    ]
}
