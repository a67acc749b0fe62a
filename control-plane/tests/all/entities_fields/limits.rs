//! The values just inside and just outside of every limit.

use serde_json::{Value, json};

use super::entities_samples::{minimal, problems};
use super::kind;

#[test]
fn limits_are_where_the_page_says() {
    let long = |bytes: usize| json!("x".repeat(bytes));
    let path = |bytes: usize| json!(format!("/{}", "x".repeat(bytes - 1)));
    let list = |entry: &str, entries: usize| json!(vec![entry; entries]);
    let target = |prefix: &str, entries: usize| {
        Value::from((0..entries).map(|number| json!({"target": format!("{prefix}{number}")})).collect::<Vec<_>>())
    };
    let bots = |count: usize| {
        let bot = |number| json!({"name": format!("b{number}"), "category": "ai", "ua_contains": ["x"]});
        Value::from((0..count).map(bot).collect::<Vec<_>>())
    };
    let classes = |count: usize| Value::from((0..count).map(|n| json!({"name": format!("c{n}")})).collect::<Vec<_>>());
    let headers = |count: usize| Value::Object((0..count).map(|number| (format!("x-{number}"), json!("v"))).collect());
    let groups = |count: usize| Value::Object((0..count).map(|number| (format!("g{number}"), json!({}))).collect());
    // Collection, pointer, the values just inside, the values just outside.
    let cases: Vec<(&str, &str, Vec<Value>, Vec<Value>)> = vec![
        ("global-config", "/groups", vec![groups(100), json!({"x".repeat(128): {}})], vec![groups(101)]),
        ("global-config", "/gateway/delivery", vec![json!("full"), json!("ecds")], vec![json!("ads"), json!(null)]),
        (
            "global-config",
            "/security/incidents/max_held",
            vec![json!(1000), json!(100_000)],
            vec![json!(999), json!(100_001)],
        ),
        ("threat-feeds", "/refresh_interval_seconds", vec![json!(1), json!(31536000)], vec![json!(0), json!(31536001)]),
        ("threat-feeds", "/timeout_millis", vec![json!(1), json!(600000)], vec![json!(0), json!(600001)]),
        ("threat-feeds", "/max_entries", vec![json!(1), json!(10000000)], vec![json!(0), json!(10000001)]),
        ("threat-feeds", "/weight", vec![json!(0), json!(100)], vec![json!(-0.1), json!(100.1)]),
        ("threat-feeds", "/tag", vec![long(128), json!("feed:tor-exit")], vec![long(129), json!("a b")]),
        ("threat-feeds", "/headers", vec![headers(64)], vec![headers(65)]),
        ("threat-feeds", "/method", vec![json!("GET"), json!("POST")], vec![json!("PUT"), json!("get")]),
        ("threat-feeds", "/catalog_ref", vec![json!("azure-ranges"), json!(null)], vec![json!("azure")]),
        (
            "asn-databases",
            "/refresh_interval_seconds",
            vec![json!(1), json!(31536000)],
            vec![json!(0), json!(31536001)],
        ),
        ("asn-databases", "/timeout_millis", vec![json!(1), json!(3600000)], vec![json!(0), json!(3600001)]),
        ("asn-databases", "/max_entries", vec![json!(1), json!(10000000)], vec![json!(0), json!(10000001)]),
        ("asn-databases", "/categories", vec![classes(64)], vec![classes(65)]),
        ("asn-databases", "/categories/0/weight", vec![json!(0), json!(100)], vec![json!(-1), json!(101)]),
        ("asn-databases", "/categories/0/name", vec![long(64)], vec![long(65), json!(""), json!("A")]),
        ("asn-databases", "/categories/0/action", vec![json!("monitor")], vec![json!("block")]),
        ("asn-databases", "/categories/0/tag", vec![long(128)], vec![long(129)]),
        ("asn-databases", "/categories/0/org_contains", vec![list("x", 1000)], vec![list("x", 1001)]),
        ("asn-databases", "/categories/0/org_contains/0", vec![long(256)], vec![long(257), json!(" ")]),
        ("asn-databases", "/categories/0/asns", vec![json!(vec![1; 10000])], vec![json!(vec![1; 10001])]),
        (
            "geo-databases",
            "/refresh_interval_seconds",
            vec![json!(1), json!(31536000)],
            vec![json!(0), json!(31536001)],
        ),
        ("geo-databases", "/timeout_millis", vec![json!(1), json!(3600000)], vec![json!(0), json!(3600001)]),
        ("geo-databases", "/max_size_mb", vec![json!(1), json!(4096)], vec![json!(0), json!(4097)]),
        ("geo-databases", "/attribution", vec![long(1024)], vec![long(1025)]),
        ("geo-databases", "/attribution_url", vec![json!(""), json!("https://a")], vec![json!("a")]),
        ("geo-databases", "/username", vec![long(256)], vec![long(257), json!("a:b")]),
        ("geo-databases", "/headers", vec![headers(64)], vec![headers(65)]),
        ("geo-databases", "/url", vec![json!("http://a/{yyyy}-{MM}")], vec![json!("http://a/{dd}"), json!("x")]),
        ("svc-bouncers", "/poll_interval_seconds", vec![json!(1), json!(86400)], vec![json!(0), json!(86401)]),
        ("svc-bouncers", "/timeout_millis", vec![json!(1), json!(600000)], vec![json!(0), json!(600001)]),
        ("svc-bouncers", "/scopes", vec![json!(["as"]), json!(["ip", "range", "country", "as"])], vec![json!([])]),
        ("svc-bouncers", "/scopes/1", vec![json!("country")], vec![json!("ip"), json!("asn")]),
        ("svc-bouncers", "/origins_filter", vec![list("x", 100)], vec![list("x", 101)]),
        ("svc-bouncers", "/origins_filter/0", vec![long(128)], vec![long(129), json!(""), json!("a,b")]),
        ("svc-bouncers", "/weight", vec![json!(0), json!(100)], vec![json!(-1), json!(101)]),
        ("svc-bouncers", "/tag", vec![long(128)], vec![long(129)]),
        ("svc-bouncers", "/push_machine_id", vec![long(256)], vec![long(257)]),
        ("svc-bouncers", "/push_scenario", vec![long(256)], vec![long(257)]),
        ("svc-bouncers", "/push_interval_seconds", vec![json!(1), json!(86400)], vec![json!(0), json!(86401)]),
        ("svc-bouncers", "/push_max_batch", vec![json!(1), json!(1000)], vec![json!(0), json!(1001)]),
        (
            "svc-bouncers",
            "/push_decision_duration",
            vec![json!("4h"), json!("1h30m"), json!("1s"), json!("10m0s")],
            vec![json!(""), json!("4"), json!("h"), json!("0s"), json!("-4h"), json!("4d"), json!("4 h")],
        ),
        ("bot-policies", "/signatures", vec![json!([bots(1)[0]]), bots(1000)], vec![bots(1001)]),
        ("bot-policies", "/signatures/0/name", vec![long(64)], vec![long(65), json!(""), json!("A")]),
        ("bot-policies", "/signatures/0/ua_contains", vec![list("x", 64)], vec![list("x", 65), json!([])]),
        ("bot-policies", "/signatures/0/ua_contains/0", vec![long(256)], vec![long(257), json!("")]),
        ("bot-policies", "/signatures/0/rdns_suffixes", vec![list(".a", 64)], vec![list(".a", 65)]),
        (
            "bot-policies",
            "/signatures/0/rdns_suffixes/0",
            vec![json!(".a.b")],
            vec![json!("a.b"), json!("."), json!("..a")],
        ),
        ("bot-policies", "/signatures/0/ip_ranges", vec![list("https://a", 8)], vec![list("https://a", 9)]),
        ("bot-policies", "/signatures/0/ip_ranges/0", vec![json!("https://a/b.json")], vec![json!("a"), json!("")]),
        (
            "bot-policies",
            "/signatures/0/key_directory",
            vec![json!(""), json!("https://a"), json!("http://127.0.0.1:1")],
            vec![json!("a"), json!("http://a"), json!("https://a/b")],
        ),
        ("bot-policies", "/signatures/0/key_directory_type", vec![json!("directory")], vec![json!("card")]),
        ("bot-policies", "/signature_max_age_seconds", vec![json!(10), json!(604_800)], vec![json!(9), json!(604_801)]),
        ("bot-policies", "/signature_hosts", vec![list("a", 64)], vec![list("a", 65)]),
        (
            "bot-policies",
            "/signature_hosts/0",
            vec![json!("a.example"), json!("*.a.example")],
            vec![json!(""), json!("https://a"), json!("*")],
        ),
        ("bot-policies", "/signatures_per_second", vec![json!(1), json!(10_000)], vec![json!(0), json!(10_001)]),
        ("bot-policies", "/signatures/0/homepage", vec![json!(""), json!("http://a")], vec![json!("a")]),
        (
            "bot-policies",
            "/rules",
            vec![list_of(json!({"target": "*"}), 1000)],
            vec![list_of(json!({"target": "*"}), 1001)],
        ),
        (
            "bot-policies",
            "/rules/0/target",
            vec![json!("*"), json!("name:gptbot"), json!("category:seo")],
            vec![json!("name:gtpbot"), json!("category:seos"), json!("gptbot"), json!("")],
        ),
        ("bot-policies", "/rules/0/action", vec![json!("allow"), json!("deny")], vec![json!("challenge")]),
        ("bot-policies", "/rules/0/weight", vec![json!(0), json!(100)], vec![json!(-1), json!(101)]),
        ("bot-policies", "/impersonator_weight", vec![json!(0), json!(100)], vec![json!(-1), json!(101)]),
        ("bot-policies", "/impersonator_action", vec![json!("monitor")], vec![json!("ban")]),
        ("bot-policies", "/unknown_bot_weight", vec![json!(0), json!(100)], vec![json!(-1), json!(101)]),
        ("bot-policies", "/deny_status", vec![json!(200), json!(599)], vec![json!(199), json!(600)]),
        ("bot-policies", "/robots_extra", vec![long(65536)], vec![long(65537)]),
        ("bot-policies", "/llms_txt", vec![long(1048576)], vec![long(1048577)]),
        ("bot-policies", "/robots_licenses", vec![list("http://a/", 16)], vec![list("http://a/", 17)]),
        ("bot-policies", "/robots_licenses/0", vec![json!("http://a")], vec![json!("a")]),
        (
            "bot-policies",
            "/fingerprints/pairs",
            vec![list_of(json!({"family": "go", "fingerprints": []}), 100)],
            vec![list_of(json!({"family": "go", "fingerprints": []}), 101)],
        ),
        ("bot-policies", "/fingerprints/pairs/0/family", vec![json!("firefox")], vec![json!("netscape"), json!("")]),
        (
            "bot-policies",
            "/fingerprints/pairs/0/fingerprints",
            vec![list("*_1d37bd780c83_*", 100)],
            vec![list("*_1d37bd780c83_*", 101)],
        ),
        (
            "bot-policies",
            "/fingerprints/rules/0/fingerprint",
            vec![json!("t13d3012h2_1d37bd780c83_d339722ba4af"), json!("cd08e31494f9531f560d64c695473da9")],
            vec![json!("*_*_*"), json!("curl"), json!("")],
        ),
        ("bot-policies", "/fingerprints/rules/0/weight", vec![json!(0), json!(100)], vec![json!(-1), json!(101)]),
        ("bot-policies", "/fingerprints/rules/0/action", vec![json!("allow"), json!("monitor")], vec![json!("ban")]),
        (
            "bot-policies",
            "/fingerprints/rules/0/requests_per_minute",
            vec![json!(0), json!(1_000_000)],
            vec![json!(1_000_001)],
        ),
        ("bot-policies", "/fingerprints/mismatch_weight", vec![json!(0), json!(100)], vec![json!(-1), json!(101)]),
        ("bot-policies", "/fingerprints/unknown_weight", vec![json!(0), json!(100)], vec![json!(-1), json!(101)]),
        ("bot-policies", "/fingerprints/rotation_weight", vec![json!(0), json!(100)], vec![json!(-1), json!(101)]),
        ("bot-policies", "/fingerprints/rotation_families", vec![json!(2), json!(16)], vec![json!(1), json!(17)]),
        ("bot-policies", "/fingerprints/rotation_networks", vec![json!(1), json!(64)], vec![json!(0), json!(65)]),
        ("bot-policies", "/robots_weight", vec![json!(0), json!(100)], vec![json!(-1), json!(101)]),
        ("challenge-providers", "/difficulty_floor", vec![json!(1), json!(24)], vec![json!(0)]),
        ("challenge-providers", "/difficulty_ceiling", vec![json!(18), json!(32)], vec![json!(17), json!(33)]),
        ("challenge-providers", "/wait_floor_seconds", vec![json!(2), json!(30)], vec![json!(1)]),
        ("challenge-providers", "/wait_ceiling_seconds", vec![json!(5), json!(600)], vec![json!(4), json!(601)]),
        ("challenge-providers", "/challenge_ttl_seconds", vec![json!(1), json!(86400)], vec![json!(0), json!(86401)]),
        (
            "challenge-providers",
            "/clearance_ttl_seconds",
            vec![json!(1), json!(2592000)],
            vec![json!(0), json!(2592001)],
        ),
        ("challenge-providers", "/cookie_name", vec![long(128)], vec![long(129), json!(""), json!("a=b"), json!("a;")]),
        ("challenge-providers", "/preset_ref", vec![json!("hcaptcha"), json!(null)], vec![json!("hcapcha")]),
        ("challenge-providers", "/kind", vec![json!("pow")], vec![json!("widget")]),
        ("challenge-providers", "/response_field", vec![json!(""), long(128)], vec![long(129), json!("a b")]),
        ("challenge-providers", "/site_key", vec![long(1024)], vec![long(1025)]),
        ("challenge-providers", "/widget_html", vec![long(65536)], vec![long(65537)]),
        ("challenge-providers", "/title", vec![long(1024)], vec![long(1025)]),
        ("challenge-providers", "/message", vec![long(65536)], vec![long(65537)]),
        ("challenge-providers", "/verify_url", vec![json!(""), json!("https://a/b")], vec![json!("javascript:x")]),
        ("challenge-providers", "/widget_script_url", vec![json!("https://a/b")], vec![json!("//a/b")]),
        ("honeypot-policies", "/paths", vec![list("/x", 1000), json!([])], vec![list("/x", 1001)]),
        (
            "honeypot-policies",
            "/paths/0",
            vec![path(1024), json!("/a*")],
            vec![path(1025), json!("/"), json!("/*"), json!("a"), json!("/a*b"), json!("/a?b")],
        ),
        ("honeypot-policies", "/weight", vec![json!(0), json!(100)], vec![json!(-1), json!(101)]),
        ("honeypot-policies", "/action", vec![json!("monitor"), json!("ban")], vec![json!("block")]),
        ("honeypot-policies", "/ban_for_seconds", vec![json!(1), json!(31536000)], vec![json!(0), json!(31536001)]),
        ("honeypot-policies", "/status", vec![json!(200), json!(599)], vec![json!(199), json!(600)]),
        (
            "honeypot-policies",
            "/canaries",
            vec![list_of(json!({"value": "abcd"}), 1000)],
            vec![list_of(json!({"value": "abcd"}), 1001)],
        ),
        ("honeypot-policies", "/canaries/0/value", vec![long(4), long(1024)], vec![long(3), long(1025)]),
        (
            "api-contracts",
            "/base_path",
            vec![json!(""), json!("/api"), path(1024)],
            vec![json!("api"), json!("/a b"), json!("/a?b"), path(1025)],
        ),
        (
            "api-contracts",
            "/spec",
            vec![json!("x"), long(64 * 1024 * 1024)],
            vec![json!(""), json!(" \n"), long(64 * 1024 * 1024 + 1)],
        ),
        ("alert-rules", "/trigger", vec![json!("ban"), json!("burst")], vec![json!("bans")]),
        ("alert-rules", "/min_score", vec![json!(0), json!(100)], vec![json!(-0.5), json!(100.5)]),
        ("alert-rules", "/min_count", vec![json!(1), json!(1000000)], vec![json!(0), json!(1000001)]),
        ("alert-rules", "/burst_threshold", vec![json!(1), json!(1000000)], vec![json!(0), json!(1000001)]),
        ("alert-rules", "/burst_window_seconds", vec![json!(1), json!(86400)], vec![json!(0), json!(86401)]),
        ("alert-rules", "/cooldown_seconds", vec![json!(10), json!(604800)], vec![json!(9), json!(604801)]),
        ("alert-rules", "/categories/0", vec![json!("sensitive_data"), json!("fail2ban")], vec![json!("waf")]),
        ("alert-rules", "/channel/timeout_millis", vec![json!(1), json!(600000)], vec![json!(0), json!(600001)]),
        ("alert-rules", "/channel/headers", vec![headers(64)], vec![headers(65)]),
        ("alert-rules", "/channel/url", vec![json!("https://a/b")], vec![json!("a")]),
        ("malware-scanners", "/kind", vec![json!("clamd"), json!("icap")], vec![json!("clam")]),
        (
            "malware-scanners",
            "/host",
            vec![json!("a.b"), json!("::1")],
            vec![json!(""), json!("tcp://a"), json!("a b")],
        ),
        ("malware-scanners", "/port", vec![json!(1), json!(65535)], vec![json!(0), json!(65536)]),
        ("malware-scanners", "/service", vec![json!("a/b"), long(128)], vec![json!(""), long(129), json!("a b")]),
        ("malware-scanners", "/icap_mode", vec![json!("reqmod")], vec![json!("req")]),
        ("malware-scanners", "/timeout_millis", vec![json!(1), json!(600000)], vec![json!(0), json!(600001)]),
        ("malware-scanners", "/max_file_size", vec![json!(1), json!(1073741824)], vec![json!(0), json!(1073741825)]),
    ];
    assert_eq!(problems(kind("bot-policies"), with("bot-policies", "/rules", target("name:b", 1))).len(), 1);
    let mut wrong = Vec::new();
    for (collection, pointer, inside, outside) in cases {
        for (values, fine) in [(inside, true), (outside, false)] {
            for value in values {
                let found = problems(kind(collection), with(collection, pointer, value.clone()));
                let pointers: Vec<_> = found.iter().map(|problem| problem.split(": ").next().unwrap()).collect();
                let expected = if fine { vec![] } else { vec![pointer] };
                let value: String = value.to_string().chars().take(60).collect();
                if pointers != expected {
                    wrong.push(format!("{collection}{pointer} = {value}: {found:?}"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

fn list_of(entry: Value, entries: usize) -> Value {
    Value::from(vec![entry; entries])
}

/// The smallest valid document of a collection, with one thing set.
fn with(collection: &str, pointer: &str, value: Value) -> Value {
    let mut document = minimal(kind(collection));
    if pointer.starts_with("/signatures") || pointer == "/signatures" {
        document["rules"] = json!([]);
    }
    if pointer.starts_with("/channel/") {
        document["channel"] = json!({"kind": "event"});
    }
    if pointer.starts_with("/categories/0") && collection == "asn-databases" {
        document["categories"] = json!([{"name": "one"}]);
    }
    if pointer.starts_with("/canaries/0") {
        document["canaries"] = json!([{"value": "abcd"}]);
    }
    if pointer.starts_with("/fingerprints/pairs/0/") {
        document["fingerprints"] = json!({"pairs": [{"family": "curl", "fingerprints": []}]});
    }
    if pointer.starts_with("/fingerprints/rules/0/") {
        document["fingerprints"] = json!({"rules": [{"fingerprint": "t12i100500_*_*"}]});
    }
    set(&mut document, pointer, value);
    document
}

/// Sets the value at a pointer, and the objects and entries on the way there.
fn set(document: &mut Value, pointer: &str, value: Value) {
    let mut place = document;
    for step in pointer.split('/').skip(1) {
        if place.is_null() && step.parse::<usize>().is_ok() {
            *place = json!([]);
        }
        if place.is_array() {
            let index: usize = step.parse().unwrap();
            while place.as_array().unwrap().len() <= index {
                place.as_array_mut().unwrap().push(json!({}));
            }
            place = &mut place[index];
        } else {
            place = &mut place[step];
        }
    }
    *place = value;
}
