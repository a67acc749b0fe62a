//! The plugin in a real gateway with a control plane: its collection, its table, its refusals, and a change of the ranges.

use std::time::Duration;

use palisade_tests::gateway::{Gateway, route, threat_policy};
use palisade_tests::http::Request;
use serde_json::json;

const PATIENCE: Duration = Duration::from_secs(10);

#[test]
fn callers_of_a_listed_country_are_refused_until_the_ranges_change() {
    let mut gateway = Gateway::start(|control, backend| {
        control.configure(&json!({ "gateway": { "filters": ["geo-block", "threat-response"] } }));
        control.create("country-ranges", &json!({ "id": "here", "ranges": { "ZZ": ["127.0.0.0/8", "::1"] } }));
        control.create("threat-policies", &threat_policy("demo", json!({ "tiers": [] })));
        let plugins = json!([
            { "plugin": "SvcGeoBlock", "config": { "countries": ["ZZ"], "status": 451 } },
            { "plugin": "SvcThreatResponse", "plugin_index": 900, "config": { "policy": "demo" } },
        ]);
        control.create("routes", &route("demo", backend, plugins));
    });
    let request = Request::get("/");
    gateway.until(&request, 451, PATIENCE);
    let event = gateway.control.event("a refusal", |event| event["event"]["module"] == "geo-block");
    assert_eq!(
        (&event["event"]["outcome"], &event["event"]["category"]),
        (&json!("blocked"), &json!("threat")),
        "{event}"
    );

    // Gateways get no new snapshot for this: only the table changes.
    gateway.control.patch("country-ranges", "here", &json!({ "ranges": { "ZZ": ["192.0.2.0/24"] } }));
    gateway.until(&request, 200, PATIENCE);
    gateway.control.patch("country-ranges", "here", &json!({ "ranges": { "ZZ": ["127.0.0.0/8"] } }));
    gateway.until(&request, 451, PATIENCE);
    assert!(gateway.envoy.vm_failures().is_empty());
}

#[test]
fn a_wrong_field_is_answered_with_its_place() {
    let gateway = Gateway::start(|control, backend| {
        control.create("routes", &route("demo", backend, json!([])));
    });
    let wrong = json!({ "id": "wrong", "ranges": { "NL": ["192.0.2.0/33"], "nl": [] } });
    let answer = gateway.control.call(
        "POST",
        &palisade_tests::control_plane::ControlPlane::path("country-ranges", ""),
        Some(&wrong),
    );
    assert_eq!(answer.status, 400, "{}", answer.text());
    let text = answer.text();
    assert!(text.contains("/ranges/NL/0") && text.contains("/ranges/nl"), "{text}");
}
