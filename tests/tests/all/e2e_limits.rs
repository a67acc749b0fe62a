//! Rules whose patterns give up: the trail names them, the metric counts them, and the workers go on serving.

use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

use palisade_tests::gateway::{Gateway, preset, route, threat_policy, waf_config};
use palisade_tests::http::Request;
use palisade_tests::process::wait_for;
use serde_json::{Value, json};

/// A change to be in force.
const PATIENCE: Duration = Duration::from_secs(20);

/// Quantifiers within a quantifier, and a lookahead, which only a backtracking matcher can do. Without a limit, a value of
/// 200 characters would keep a worker busy for longer than anybody waits: the caller's patience would end the test.
const CLOSED: &str = r#"SecRule ARGS "@rx (x+x+)+(?=y)z" "id:10001,phase:2,deny,status:403,log,msg:'closed'""#;
/// The same for a parameter that no request has while the WAF answers 503.
const OPEN: &str = r#"SecRule ARGS:open "@rx (w+w+)+(?=y)z" "id:10002,phase:2,deny,status:403,log,msg:'open'""#;
/// Speaks, and denies nothing: its events come behind those of the same worker's earlier requests.
const MARKER: &str = r#"SecRule ARGS:marker "@streq 1" "id:10003,phase:1,pass,log,msg:'marker'""#;
/// Denies without a pattern: that rules are still looked at.
const PROBE: &str = r#"SecRule ARGS:probe "@streq 1" "id:10004,phase:1,deny,status:403,log,msg:'probe'""#;

/// A caller of its own for each step, so that the incidents of one are not those of the next.
const fn caller(step: u8) -> Ipv4Addr {
    Ipv4Addr::new(127, 0, 5, step)
}

#[test]
fn patterns_that_give_up_are_told_counted_and_survived() {
    let mut gateway = Gateway::start(|control, backend| {
        control.create("waf-configs", &waf_config("demo", json!({"rules": [CLOSED, OPEN, MARKER, PROBE]})));
        control.create("threat-policies", &threat_policy("demo", json!({})));
        control.create("routes", &route("demo", backend, preset("demo", "demo")));
    });
    gateway.until(&Request::get("/?q=garden"), 200, PATIENCE);
    assert_eq!((limits_met(&gateway), trails(&gateway, 10001).len()), (0, 0), "nothing has given up yet");
    what_cannot_be_judged_is_answered_503(&gateway);
    let budgets = a_form_of_many_values_has_one_budget(&gateway);
    what_passes_unjudged_is_told_once(&gateway);
    // What a filter counts as its own failure is that it could not judge; of the VMs none failed.
    let unjudged = format!("wasmcustom.palisade.plugin_failures: {}", limits_met(&gateway) - budgets);
    assert_eq!(gateway.envoy.vm_failures(), [unjudged]);
    assert!(gateway.envoy.lives());
}

fn what_cannot_be_judged_is_answered_503(gateway: &Gateway) {
    let before = limits_met(gateway);
    let start = Instant::now();
    let statuses = gateway.statuses_of_all_workers_from(caller(1), &Request::get(format!("/?q={}yz", "x".repeat(200))));
    println!("{} requests whose pattern gave up were answered in {:?}", statuses.len(), start.elapsed());
    assert!(statuses.iter().all(|status| *status == 503), "{statuses:?}");
    let trail = gateway.control.event("the limit of rule 10001", |event| names(event, 10001));
    assert_eq!(trail["limits"], json!([{"rule_id": 10001, "variable": "ARGS:q", "values": 1}]), "{trail}");
    assert_eq!((&trail["config"]["id"], &trail["blocking"]), (&json!("demo"), &json!(true)), "{trail}");
    assert_eq!((&trail["block"]["status"], &trail["matched"]), (&json!(503), &json!(0)), "{trail}");
    assert_eq!(trail["source"]["ip"], "127.0.5.1", "{trail}");
    // One rule gave up in each of them, on whatever worker.
    assert_eq!(limits_met(gateway) - before, count(&statuses));
    workers_go_on(gateway);
}

/// How many of the limits that were met were ends of a budget: their requests have met another one before.
fn a_form_of_many_values_has_one_budget(gateway: &Gateway) -> u64 {
    let before = limits_met(gateway);
    let fields: Vec<String> = (0..300).map(|number| format!("f{number}={}yz", "x".repeat(60))).collect();
    let form = Request::post("/", "application/x-www-form-urlencoded", fields.join("&"));
    let start = Instant::now();
    let statuses = gateway.statuses_of_all_workers_from(caller(2), &form);
    println!("{} forms of 300 such values were answered in {:?}", statuses.len(), start.elapsed());
    assert!(statuses.iter().all(|status| *status == 503), "{statuses:?}");
    let trail = gateway.control.event("the limit of a form", |event| event["source"]["ip"] == "127.0.5.2");
    let limits = trail["limits"].as_array().unwrap();
    // A row for what the pattern gave up on, and one for where the budget of the transaction ended.
    assert_eq!(limits.len(), 2, "{trail}");
    assert_eq!((&limits[0]["rule_id"], &limits[0]["variable"]), (&json!(10001), &json!("ARGS:f0")), "{trail}");
    assert_eq!(limits[1]["rule_id"], 10001, "{trail}");
    assert!(limits[1]["cost"]["work"].as_u64() > limits[1]["cost"]["work_ceiling"].as_u64(), "{trail}");
    let met = limits_met(gateway) - before;
    assert_eq!(met, 2 * count(&statuses), "a row counts once in a request");
    workers_go_on(gateway);
    count(&statuses)
}

fn what_passes_unjudged_is_told_once(gateway: &Gateway) {
    gateway.control.configure(&json!({"waf": {"fail_open": true}}));
    let evil = Request::get(format!("/?q={}yz", "x".repeat(200)));
    wait_for("every worker fails open", PATIENCE, || {
        let statuses = gateway.statuses_of_all_workers_from(caller(3), &evil);
        statuses.iter().all(|status| *status == 200).then_some(())
    })
    .unwrap_or_else(|why| panic!("{why}\n{}", gateway.envoy.log_tail(40)));
    let before = limits_met(gateway);
    let open = Request::get(format!("/?open={}yz", "w".repeat(200)));
    let statuses = gateway.statuses_of_all_workers_from(caller(4), &open);
    assert!(statuses.iter().all(|status| *status == 200), "{statuses:?}");
    assert_eq!(limits_met(gateway) - before, count(&statuses), "counted every time");
    let trail = gateway.control.event("the limit of rule 10002", |event| names(event, 10002));
    assert_eq!(trail["limits"], json!([{"rule_id": 10002, "variable": "ARGS:open", "values": 1}]), "{trail}");
    assert_eq!((&trail["block"], &trail["matched"]), (&Value::Null, &json!(0)), "{trail}");
    // Events of a worker arrive in order, so that whatever came of those requests is here when the markers are.
    let markers = gateway.statuses_of_all_workers_from(caller(5), &Request::get("/?marker=1")).len();
    wait_for("the markers' events", PATIENCE, || {
        let arrived = gateway.control.events().iter().filter(|event| event["rule_ids"] == json!([10003])).count();
        (arrived >= markers).then_some(())
    })
    .unwrap_or_else(|why| panic!("{why}\n{}", gateway.control.log()));
    // Callers choose the values: what they set off is told once a minute, by all workers together. Where this took
    // longer than a minute, twice is right as well; but never each time.
    let told = trails(gateway, 10002).len();
    assert!(told < statuses.len().min(3), "{told} events for {} requests", statuses.len());
    workers_go_on(gateway);
}

/// What is harmless passes and what is denied is denied, on every worker.
fn workers_go_on(gateway: &Gateway) {
    for (path, expected) in [("/?q=garden", 200), ("/?probe=1", 403)] {
        let statuses = gateway.statuses_of_all_workers_from(caller(9), &Request::get(path));
        assert!(statuses.iter().all(|status| *status == expected), "{path}: {statuses:?}");
    }
}

/// The trail events in which a rule has given up.
fn trails(gateway: &Gateway, rule: u64) -> Vec<Value> {
    gateway.control.events().into_iter().filter(|event| names(event, rule)).collect()
}

fn names(event: &Value, rule: u64) -> bool {
    let limits = event["limits"].as_array().map_or(&[][..], Vec::as_slice);
    event["@type"] == "SvcWafTrailEvent" && limits.iter().any(|limit| limit["rule_id"] == rule)
}

/// `palisade.rule_limits`, as Envoy has it.
fn limits_met(gateway: &Gateway) -> u64 {
    gateway.envoy.stats(r"palisade\.rule_limits$").values().sum()
}

fn count<T>(of: &[T]) -> u64 {
    u64::try_from(of.len()).unwrap()
}
