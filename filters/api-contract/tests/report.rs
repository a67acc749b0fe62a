//! The API report of two workers in a real gateway, whose control plane is killed in the middle.
#![allow(clippy::indexing_slicing, clippy::panic, clippy::unwrap_used, reason = "tests")]

use std::time::Duration;

use palisade_tests::console::Console;
use palisade_tests::gateway::{Gateway, route, threat_policy};
use palisade_tests::http::Request;
use palisade_tests::process::wait_for;
use serde_json::{Value, json};

/// A worker reports every half a minute, and sends each report once more with the next one.
const PATIENCE: Duration = Duration::from_secs(120);
const REPORT: &str = "/api/extensions/svc/waf/api/_report";
const SHOP: &str = r#"
openapi: 3.1.0
paths:
  /status/{code}:
    get:
      parameters: [{name: code, in: path, required: true, schema: {type: integer, maximum: 299}}]
      responses: {"200": {description: ok}}
  /reflect:
    post:
      requestBody: {required: true, content: {application/json: {schema: {type: object}}}}
      responses: {"200": {description: ok, content: {application/json: {schema: {type: object, properties: {name: {type: string}}}}}}}
  /never:
    get: {operationId: never, responses: {"200": {description: ok}}}
"#;

/// The route of the report.
fn reported(gateway: &Gateway) -> Value {
    let answer = gateway.control.call("GET", &format!("{REPORT}?route_ids=app"), None);
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer.json()["routes"][0].clone()
}

fn operation(route: &Value, path: &str) -> Value {
    let operations = route["operations"].as_array().unwrap();
    operations.iter().find(|one| one["path"] == path).unwrap().clone()
}

/// Waits until calls of `/status/{code}` are as many; more than that is an error at once.
fn wait_for_hits(gateway: &Gateway, hits: u64) -> Value {
    let found = wait_for(&format!("{hits} calls"), PATIENCE, || {
        let route = reported(gateway);
        let counted = operation(&route, "/status/{code}")["hits"].as_u64().unwrap();
        assert!(counted <= hits, "a call was counted twice: {counted} of {hits}");
        (counted == hits).then_some(route)
    });
    found.unwrap_or_else(|why| panic!("{why}\n{}\n{}", reported(gateway), gateway.envoy.log_tail(40)))
}

#[test]
fn two_workers_add_up_and_nothing_is_lost_when_the_control_plane_is_killed() {
    let mut gateway = Gateway::start(|control, backend| {
        control.create("threat-policies", &threat_policy("demo", json!({ "tiers": [] })));
        control.create("api-contracts", &json!({ "id": "shop", "name": "Shop", "spec": SHOP }));
        let config = json!({ "contract": "shop", "drift_sampling_seconds": 1 });
        control.create("routes", &route("app", backend, json!([{ "plugin": "SvcApiContract", "config": config }])));
        control.create(
            "routes",
            &route("bare", backend, json!([]))
                .as_object_mut()
                .map(|bare| {
                    bare.insert("hosts".to_owned(), json!(["bare.example"]));
                    Value::Object(bare.clone())
                })
                .unwrap(),
        );
    });
    let ok = Request::get("/status/200");
    gateway.until(&Request::get("/page-one"), 200, Duration::from_secs(30));
    let mut hits = u64::try_from(gateway.statuses_of_all_workers(&ok).len()).unwrap();
    for _ in 0..3 {
        assert_eq!(gateway.status(&Request::get("/status/abc")), 200, "nothing is refused");
        hits += 1;
    }
    for path in ["/page-one", "/page-two/deep", "/legacy/42/export", "/legacy/43/export"] {
        assert_eq!(gateway.status(&Request::get(path)), 200);
    }
    assert_eq!(gateway.status(&Request::new("POST", "/status/404")), 404);
    let answer = json!({ "status": 200, "headers": { "content-type": "application/json" }, "body": "{\"ssn\":\"078-05-1120\"}" });
    assert_eq!(gateway.status(&Request::json("/reflect", &answer)), 200);

    let route = wait_for_hits(&gateway, hits);
    assert!(route["observed_since"].as_u64() > Some(0) && route["compiles"] == true, "{route}");
    let status = operation(&route, "/status/{code}");
    assert_eq!((&status["state"], &status["statuses"]["2xx"]), (&json!("used"), &json!(hits)), "{status}");
    let would = &status["would_refuse"];
    assert_eq!((&would["requests"], &would["callers"]), (&json!(3), &json!(1)), "{would}");
    assert_eq!(
        (&would["samples"][0]["kind"], &would["samples"][0]["where"]),
        (&json!("invalid_parameter"), &json!("path:code"))
    );
    assert_eq!(operation(&route, "/never")["state"], "unused");
    // Each worker reports its own share, so that a path may be known before all its calls are counted.
    let exports = |route: &Value| {
        let shadows = route["shadows"].as_array().unwrap().iter();
        shadows.filter(|one| one["path"] == "/legacy/{id}/export").filter_map(|one| one["hits"].as_u64()).sum::<u64>()
    };
    let found = wait_for("all of the first requests", PATIENCE, || {
        let route = reported(&gateway);
        let paths = |list: &str| route[list].as_array().unwrap().len();
        (paths("shadows") == 3 && paths("probes") == 1 && paths("drift") > 0 && exports(&route) >= 2).then_some(route)
    });
    let route = found.unwrap_or_else(|why| panic!("{why}\n{}", reported(&gateway)));
    for shadow in route["shadows"].as_array().unwrap() {
        assert_eq!(shadow["confirmed"], false, "the backend has the same page for every path: {shadow}");
    }
    assert_eq!(exports(&route), 2, "{}", route["shadows"]);
    assert_eq!((&route["probes"][0]["method"], &route["probes"][0]["state"]), (&json!("POST"), &json!("probe")));
    let drift = route["drift"].as_array().unwrap().iter().find(|one| one["where"] == "200 $.ssn").unwrap();
    assert_eq!(
        (&drift["kind"], &drift["sensitive"], &drift["observed"]),
        (&json!("undeclared_field"), &json!(true), &json!("string"))
    );
    assert!(!route.to_string().contains("078-05"), "no value is kept");

    for _ in 0..2 {
        gateway.control.kill();
        hits += u64::try_from(gateway.statuses_of_all_workers(&ok).len()).unwrap();
        gateway.control.restart();
        hits += u64::try_from(gateway.statuses_of_all_workers(&ok).len()).unwrap();
    }
    let route = wait_for_hits(&gateway, hits);
    assert!(route["shadows"].as_array().unwrap().len() == 3, "what was known before is known still: {route}");

    let console = Console::login(&gateway.control);
    let whole = console.get("_api_report");
    assert_eq!(whole["summary"]["routes"], 2);
    assert_eq!(whole["summary"]["auth"].as_object().unwrap().len(), 4);
    assert_eq!(whole["routes"].as_array().unwrap().iter().filter(|route| route["contract"].is_null()).count(), 1);
    assert!(gateway.envoy.vm_failures().is_empty());
}
