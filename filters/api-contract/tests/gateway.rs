//! The API contract check of a preset in a real gateway with a control plane: refusals, an observed mismatch, and the console's check.
#![allow(clippy::indexing_slicing, clippy::unwrap_used, reason = "tests")]

use std::time::Duration;

use palisade_tests::gateway::{Gateway, route, threat_policy};
use palisade_tests::http::Request;
use serde_json::json;

const PATIENCE: Duration = Duration::from_secs(15);
const SHOP: &str = r#"
openapi: 3.1.0
paths:
  /status/{code}:
    get:
      parameters: [{name: code, in: path, required: true, schema: {type: integer, maximum: 299}}]
      responses: {"201": {description: made}}
  /reflect:
    post:
      requestBody: {required: true, content: {application/json: {schema: {type: object, required: [status], properties: {status: {type: integer}}}}}}
      responses: {default: {description: all}}
"#;

#[test]
fn a_contract_is_enforced_and_observed() {
    let mut gateway = Gateway::start(|control, backend| {
        control.create("threat-policies", &threat_policy("demo", json!({ "tiers": [] })));
        control.create("api-contracts", &json!({ "id": "shop", "name": "Shop", "spec": SHOP }));
        let plugin = |config| json!([{ "plugin": "SvcApiContract", "config": config }]);
        let strict = json!({ "mode": "enforce", "expose_errors": true, "validate_responses": true });
        let mut app = route("app", backend, plugin(strict));
        app["metadata"] = json!({ "svc-api-contract": "shop" });
        control.create("routes", &app);
    });
    gateway.until(&Request::get("/status/200"), 200, PATIENCE);
    for (request, status) in [
        (Request::get("/none"), 404),
        (Request::new("DELETE", "/status/200"), 405),
        (Request::get("/status/300"), 400),
        (Request::get("/status/x"), 400),
        (Request::json("/reflect", &json!({ "status": "x" })), 400),
        (Request::json("/reflect", &json!({})), 400),
        (Request::new("POST", "/reflect"), 400),
        (Request::json("/reflect", &json!({ "status": 200 })), 200),
        (Request::new("HEAD", "/status/200"), 200),
    ] {
        assert_eq!(gateway.send(&request).status, status);
    }
    let refused = gateway.send(&Request::new("DELETE", "/status/200"));
    assert_eq!(refused.header("allow"), Some("GET, HEAD".to_owned()));
    let wrong = gateway.send(&Request::json("/reflect", &json!({ "status": "x" })));
    let violations =
        json!([{ "kind": "invalid_body", "where": "body:/status", "detail": "expected the type integer" }]);
    assert_eq!(wrong.json(), json!({ "error": "contract_violation", "violations": violations }));
    let event = gateway.control.event("a refusal", |event| event["threat"]["tags"] == json!(["api:invalid_body"]));
    assert_eq!(
        (&event["event"]["category"], &event["event"]["outcome"]),
        (&json!("api"), &json!("blocked")),
        "{event}"
    );
    let observed = json!(["api:undeclared_status"]);
    let event = gateway.control.event("an undeclared status", |event| event["threat"]["tags"] == observed);
    assert_eq!(event["event"]["outcome"], "observed", "{event}");
    assert!(gateway.envoy.vm_failures().is_empty());
}

#[test]
fn a_preset_lays_down_the_check() {
    let mut gateway = Gateway::start(|control, backend| {
        control.create("threat-policies", &threat_policy("demo", json!({ "tiers": [] })));
        control.create("api-contracts", &json!({ "id": "shop", "name": "Shop", "spec": SHOP }));
        let preset = |more: serde_json::Value| {
            let mut config = json!({ "threat_policy": "demo" });
            config.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            json!([{ "plugin": "SecuritySuitePreset", "config": config }])
        };
        let enforced = json!({ "api_contract": true, "api_contract_id": "shop", "api_contract_mode": "enforce" });
        control.create("routes", &route("app", backend, preset(enforced)));
    });
    gateway.until(&Request::get("/status/200"), 200, PATIENCE);
    for (request, status) in [
        (Request::get("/none"), 404),
        (Request::new("DELETE", "/status/200"), 405),
        (Request::get("/status/x"), 400),
        (Request::json("/reflect", &json!({ "status": "x" })), 400),
        (Request::json("/reflect", &json!({ "status": 200 })), 200),
        (Request::json("/reflect", &json!({ "status": 200, "more": "a".repeat(1 << 20) })), 413),
    ] {
        assert_eq!(gateway.send(&request).status, status);
    }
    // In the mode `monitor`, which is the default, the same requests pass, and are told of.
    let config = json!([{ "plugin": "SecuritySuitePreset", "config": {
        "threat_policy": "demo", "api_contract": true, "api_contract_id": "shop",
    } }]);
    gateway.control.patch("routes", "app", &json!({ "plugins": config }));
    gateway.until(&Request::get("/status/300"), 300, PATIENCE);
    let tag = json!(["api:invalid_parameter"]);
    let observed =
        |event: &serde_json::Value| event["threat"]["tags"] == tag && event["event"]["outcome"] == "observed";
    let _ = gateway.control.event("an observed mismatch", observed);
    assert!(gateway.envoy.vm_failures().is_empty());
}
