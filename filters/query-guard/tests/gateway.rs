//! The query guard of a route in a real gateway with a control plane: refusals by schema and by limits, and the inventory.
#![allow(clippy::indexing_slicing, clippy::unwrap_used, reason = "tests")]

use std::time::Duration;

use palisade_tests::console::Console;
use palisade_tests::gateway::{Gateway, route, threat_policy};
use palisade_tests::http::Request;
use palisade_tests::process::wait_for;
use serde_json::json;

/// Long enough for a report of every worker.
const PATIENCE: Duration = Duration::from_secs(30);

#[test]
fn endpoints_are_enforced() {
    let tools = json!({ "tools": [{ "name": "lookup", "inputSchema": {
        "type": "object", "required": ["sku"], "properties": { "sku": { "type": "string" } } } }] });
    let mut gateway = Gateway::start(|control, backend| {
        control.create("threat-policies", &threat_policy("demo", json!({ "tiers": [] })));
        let config = json!({ "mode": "enforce", "expose_errors": true, "endpoints": [
            { "path": "/reflect", "kind": "graphql", "schema": "type Query { status(of: ID!): Int }" },
            { "path": "/mcp", "kind": "mcp", "schema": tools },
        ] });
        control.create("routes", &route("app", backend, json!([{ "plugin": "SvcQueryGuard", "config": config }])));
    });
    let ask = |query: &str| Request::json("/reflect", &json!({ "query": query }));
    gateway.until(&Request::get("/status/200"), 200, PATIENCE);
    for (request, status) in [
        (ask("{ status(of: 1) }"), 200),
        (ask("{ status }"), 400),
        (ask("{ other }"), 400),
        (ask("{ __schema { types { name } } }"), 403),
        (Request::get("/reflect?query=mutation%7Ba%7D"), 405),
        (
            Request::json(
                "/mcp",
                &json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": "drop" } }),
            ),
            403,
        ),
        (
            Request::json(
                "/mcp",
                &json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": "lookup" } }),
            ),
            400,
        ),
    ] {
        assert_eq!(gateway.send(&request).status, status, "{request:?}");
    }
    let refused = gateway.send(&ask("{ other }"));
    assert_eq!(refused.json()["errors"][0]["message"], "Query has no field `other`");
    let event = gateway.control.event("a refusal", |event| event["threat"]["tags"] == json!(["api:query_schema"]));
    assert_eq!(
        (&event["event"]["category"], &event["event"]["outcome"]),
        (&json!("api"), &json!("blocked")),
        "{event}"
    );
    let console = Console::login(&gateway.control);
    let seen = || {
        let answer = console.call("query-guard/_operations", &json!({ "route": "app", "path": "/mcp" }));
        answer["operations"].as_array().filter(|operations| operations.len() == 2).cloned()
    };
    let seen = wait_for("the inventory", PATIENCE, seen).unwrap();
    let tools: Vec<_> = seen.iter().map(|tool| (&tool["kind"], &tool["name"], &tool["mismatches"])).collect();
    assert_eq!(tools, [(&json!("tool"), &json!("drop"), &json!(1)), (&json!("tool"), &json!("lookup"), &json!(1))]);
    assert!(gateway.envoy.vm_failures().is_empty());
}
