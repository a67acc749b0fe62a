//! The same requests through separate filters and through the preset: the same statuses, the same events.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::time::Duration;

use palisade_tests::gateway::{Gateway, preset, route, threat_policy, waf_config};
use palisade_tests::http::{Request, multipart, percent};
use palisade_tests::process::wait_for;
use serde_json::{Value, json};

const SQL: &str = "1' UNION SELECT password FROM users-- -";
const FORM: &str = "application/x-www-form-urlencoded";

/// Statuses and events of one run, by request.
#[derive(Debug, PartialEq)]
struct Outcome {
    statuses: BTreeMap<usize, u16>,
    events: BTreeMap<usize, Vec<String>>,
}

#[test]
fn separate_filters_and_the_preset_agree() {
    let together = run(json!(["preset"]));
    let separate = run(json!(["threat-gate", "waf", "threat-response"]));
    assert_eq!(together.statuses, separate.statuses);
    assert_eq!(together.events, separate.events);
    // Two empty lists agree as well: there must be something to agree about.
    assert!(together.statuses.values().any(|status| *status == 403), "{together:?}");
    assert!(together.statuses.values().any(|status| *status == 200), "{together:?}");
    assert!(together.events.values().flatten().any(|event| event.contains("blocked")), "{together:?}");
    assert!(together.events.values().flatten().any(|event| event.contains("waf:")), "{together:?}");
}

fn run(filters: Value) -> Outcome {
    println!("filters {filters}");
    let mut gateway = Gateway::start(|control, backend| {
        control.configure(&json!({"gateway": {"filters": filters}}));
        // Matches contribute and the fabric decides: the signal must travel from filter to filter.
        control.create("waf-configs", &waf_config("observe", json!({"block": false})));
        control.create("waf-configs", &waf_config("block", json!({})));
        let tiers = json!([
            {"min_score": 20, "action": "deny", "status": 403},
            {"min_score": 50, "action": "ban", "status": 403, "ban_for_seconds": 600},
        ]);
        control.create("threat-policies", &threat_policy("enforced", json!({"tiers": tiers})));
        control.create("threat-policies", &threat_policy("dry", json!({"tiers": tiers, "dry_run": true})));
        for (id, policy, waf) in
            [("scored", "enforced", "observe"), ("blocking", "enforced", "block"), ("dry", "dry", "observe")]
        {
            let mut route = route(id, backend, preset(policy, waf));
            route["hosts"] = json!([format!("{id}.test")]);
            control.create("routes", &route);
        }
    });
    gateway.until(&Request::get("/").header("host", "scored.test"), 200, Duration::from_secs(10));

    let mut statuses = BTreeMap::new();
    let requests = requests();
    for (index, request) in requests.iter().enumerate() {
        // Every request is a caller of its own, so that a ban of one does not answer for the next.
        for turn in 0..2 {
            let answer = request
                .send_from(caller(index), gateway.address)
                .unwrap_or_else(|error| panic!("request {index}: {error}\n{}", gateway.envoy.log_tail(40)));
            statuses.insert(index * 2 + turn, answer.status);
        }
    }
    // The last request's events are the sign that all have come.
    let last = requests.len() - 1;
    let events = wait_for("the events of the last request", Duration::from_secs(20), || {
        let events = by_request(&gateway.control.events());
        events.contains_key(&last).then_some(())
    })
    .map(|()| {
        // One flush of each worker later nothing is under way.
        std::thread::sleep(Duration::from_secs(2));
        by_request(&gateway.control.events())
    })
    .unwrap_or_else(|why| panic!("{why}\n{}", gateway.envoy.log_tail(40)));
    let failures = gateway.envoy.vm_failures();
    assert!(failures.is_empty(), "a filter's VM failed: {failures:?}");
    Outcome { statuses, events }
}

fn caller(index: usize) -> Ipv4Addr {
    Ipv4Addr::new(127, 0, 4, u8::try_from(index + 1).unwrap())
}

fn requests() -> Vec<Request> {
    let (kind, body) = multipart(&[("note", None, SQL.as_bytes())]);
    let mut requests = Vec::new();
    for host in ["scored.test", "blocking.test", "dry.test"] {
        for request in [
            Request::get("/search?q=garden+chairs"),
            Request::get(format!("/search?q={}", percent(SQL))),
            Request::post("/echo", FORM, "name=Ada"),
            Request::post("/echo", FORM, format!("name={}", percent(SQL))),
            Request::json("/echo", &json!({"name": "<script>alert(document.cookie)</script>"})),
            Request::post("/echo", &kind, &body),
            Request::get("/status/404"),
            Request::get("/").header("x-odd", b"\xff\xfe"),
        ] {
            requests.push(request.header("host", host));
        }
    }
    // The sign that everything before has come: it always has an event.
    requests.push(Request::get(format!("/last?q={}", percent(SQL))).header("host", "scored.test"));
    requests
}

/// What an event says, without what differs from run to run (ids and times), and in a fixed order.
fn by_request(events: &[Value]) -> BTreeMap<usize, Vec<String>> {
    let mut sorted: BTreeMap<usize, Vec<String>> = BTreeMap::new();
    for event in events.iter().filter(|event| event["@type"] == "SvcSecurityEvent") {
        let Some(ip) = event["source"]["ip"].as_str().and_then(|ip| ip.parse::<Ipv4Addr>().ok()) else {
            continue;
        };
        let [127, 0, 4, last] = ip.octets() else { continue };
        let mut tags: Vec<&str> =
            event["threat"]["tags"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        tags.sort_unstable();
        let what = json!({
            "category": event["event"]["category"],
            "action": event["event"]["action"],
            "outcome": event["event"]["outcome"],
            "severity": event["event"]["severity"],
            "score": event["threat"]["score"],
            "tags": tags,
            "route": event["route"]["id"],
            "tier": event["decision"]["tier"],
            "enforced": event["decision"]["enforced"],
        });
        sorted.entry(usize::from(last) - 1).or_default().push(what.to_string());
    }
    sorted.values_mut().for_each(|events| events.sort());
    sorted
}
