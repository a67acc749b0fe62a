//! The object guard in real gateways with a control plane: patterns that the policy acts on, objects of an API contract, the budget of a
//! preset, and a budget that two gateways share.
#![allow(clippy::disallowed_methods, clippy::indexing_slicing, clippy::panic, clippy::unwrap_used, reason = "tests")]

use std::net::Ipv4Addr;
use std::time::{Duration, SystemTime};

use palisade_tests::gateway::{Gateway, route, threat_policy};
use palisade_tests::http::{Request, Response};
use palisade_tests::process::wait_for;
use serde_json::{Value, json};

mod budget;

const PATIENCE: Duration = Duration::from_secs(15);

fn from(gateway: &Gateway, source: Ipv4Addr, path: &str) -> Response {
    Request::get(path).send_from(source, gateway.address).unwrap()
}

fn event(gateway: &Gateway, text: &str) -> Value {
    let is_it = |event: &Value| event["message"].as_str().is_some_and(|message| message.starts_with(text));
    wait_for(text, PATIENCE, || gateway.control.events().into_iter().find(is_it)).unwrap()
}

/// A day, whose end is far: a budget in it does not begin anew while a test runs.
fn far_window() -> u64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs();
    [86_400, 75_600, 64_800].into_iter().find(|window| window - now % window > 3600).unwrap()
}

const SHOP: &str = r#"
openapi: 3.1.0
paths:
  /status/{code}:
    get:
      parameters: [{name: code, in: path, required: true, schema: {type: integer}}]
      responses: {default: {description: all}}
"#;

#[test]
fn walks_and_enumerations_are_reported_and_refused_by_the_policy() {
    let mut gateway = Gateway::start(|control, backend| {
        let tiers = json!([{ "min_score": 50, "action": "deny", "status": 418 }]);
        control.create("threat-policies", &threat_policy("demo", json!({ "tiers": tiers })));
        control.create("api-contracts", &json!({ "id": "shop", "name": "Shop", "spec": SHOP }));
        control.configure(
            &json!({ "gateway": { "filters": ["preset"] }, "security": { "objects": { "max_keys": 500 } } }),
        );
        let guard = json!({ "contribute": true, "sequential_min": 6, "sequential_max_gap": 1, "enumeration_min": 5 });
        let plugins = json!([
            { "plugin": "SvcApiContract", "config": { "contract": "shop" } },
            { "plugin": "SvcObjectGuard", "config": guard },
            { "plugin": "SvcThreatResponse", "config": { "policy": "demo" } },
        ]);
        control.create("routes", &route("app", backend, plugins));
    });
    gateway.until(&Request::get("/status/200"), 200, PATIENCE);
    let [walker, prober, other] = [1, 2, 3].map(|last| Ipv4Addr::new(127, 0, 9, last));

    // Each spelt in another way, on fresh connections, so that both workers see some of them.
    let paths = [
        "/status/200",
        "/status/201",
        "/status/%32%30%32",
        "/status/0203",
        "//status/204/",
        "/status/205",
        "/status/206",
    ];
    let statuses = paths.map(|path| from(&gateway, walker, path).status);
    assert_eq!((statuses[0], statuses[5], statuses[6]), (200, 418, 418), "{statuses:?}");
    assert!(statuses[..5].iter().all(|status| *status != 418), "{statuses:?}");
    assert_eq!(from(&gateway, other, "/status/207").status, 207, "another consumer");
    let walk = event(&gateway, "sequential walk: 6 numbered objects of `/status/{code}` between 200 and 205");
    assert_eq!((&walk["event"]["category"], &walk["event"]["outcome"]), (&json!("objects"), &json!("observed")));
    assert_eq!((&walk["source"]["ip"], &walk["route"]["id"]), (&json!("127.0.9.1"), &json!("app")), "{walk}");
    assert_eq!(walk["event"]["module"], "object-guard");
    assert!(walk["threat"]["tags"].as_array().unwrap().contains(&json!("objects:sequential")), "{walk}");

    let statuses: Vec<u16> = (0..7).map(|_| from(&gateway, prober, "/status/404").status).collect();
    assert_eq!(statuses, [404, 404, 404, 404, 418, 418, 418]);
    let found = event(&gateway, "enumeration of objects: 5 of 5 requests for `/status/{code}`");
    assert_eq!(found["source"]["ip"], "127.0.9.2", "{found}");
    let events = gateway.control.events();
    let of_guard = events.iter().filter(|event| event["event"]["module"] == "object-guard");
    assert_eq!(of_guard.count(), 2, "one a minute for each consumer and pattern");
    assert!(gateway.envoy.vm_failures().is_empty());
}

#[test]
fn a_preset_keeps_a_budget_and_reports_patterns() {
    let mut gateway = Gateway::start(|control, backend| {
        control.create("threat-policies", &threat_policy("demo", json!({ "tiers": [] })));
        control.configure(&json!({ "gateway": { "filters": ["preset"] } }));
        let config = json!({
            "threat_policy": "demo", "reputation": false, "bots": false,
            "objects": true, "objects_budget": 3, "objects_paths": [{ "path": "/status/{code}", "name": "statuses" }],
        });
        control
            .create("routes", &route("app", backend, json!([{ "plugin": "SecuritySuitePreset", "config": config }])));
    });
    gateway.until(&Request::get("/status/200"), 200, PATIENCE);
    let mut consumer = 0;
    // The first questions of a worker wait for its link; a window may end in between.
    let admitted = wait_for("a budget of three", PATIENCE, || {
        consumer += 1;
        let source = Ipv4Addr::new(127, 0, 8, consumer);
        let paths =
            ["/status/200", "/status/201", "/status/202", "/status/201", "/status/203", "/status/203", "/status/200"];
        let answers = paths.map(|path| from(&gateway, source, path));
        let statuses = answers.each_ref().map(|answer| answer.status);
        (statuses == [200, 201, 202, 201, 429, 429, 200]).then_some(answers)
    });
    let admitted = admitted.unwrap();
    let seconds: u64 = admitted[4].header("retry-after").unwrap().parse().unwrap();
    assert!((1..=3600).contains(&seconds), "{seconds}");
    let refused =
        event(&gateway, "budget of objects: one more than 3 distinct objects of `statuses` in the window of 3600 s");
    assert_eq!((&refused["event"]["category"], &refused["event"]["outcome"]), (&json!("objects"), &json!("blocked")));
    assert_eq!(refused["threat"]["tags"], json!(["objects:budget"]), "{refused}");
    assert!(gateway.envoy.vm_failures().is_empty());
}
