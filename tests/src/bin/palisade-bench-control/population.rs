//! A store with many entities of every kind.

use palisade_tests::control_plane::{ControlPlane, ENTITIES};
use palisade_tests::http::Request;
use serde_json::{Value, json};

/// Lines of one batch.
const BATCH: usize = 1000;
/// Policies and WAF configs that routes share.
const POLICIES: usize = 50;
const WAFS: usize = 5;
/// What the rest is made of, in parts of a whole.
const REST: [(&str, usize); 7] = [
    ("threat-feeds", 40),
    ("alert-rules", 15),
    ("waf-rulesets", 15),
    ("svc-bouncers", 10),
    ("honeypot-policies", 10),
    ("api-contracts", 5),
    ("bot-policies", 5),
];

/// Creates `routes` routes with what they refer to, and other entities up to `entities` in all.
pub(crate) fn create(control: &ControlPlane, entities: usize, routes: usize, backend: u16) -> Result<(), String> {
    let mut lines = Vec::new();
    let mut line = |collection: &str, entity: Value| {
        lines.push(json!({"op": "create", "collection": collection, "entity": entity}));
    };
    for number in 0..POLICIES {
        let tiers = json!([{"min_score": 60, "action": "deny", "status": 403}]);
        line("threat-policies", json!({"id": format!("policy-{number}"), "name": "policy", "tiers": tiers}));
    }
    for number in 0..WAFS {
        let crs = json!({"inbound_anomaly_threshold": 5 + number});
        let rules = ["@import_preset crs"];
        line("waf-configs", json!({"id": format!("waf-{number}"), "name": "waf", "rules": rules, "crs": crs}));
    }
    for number in 0..routes {
        line("routes", route(number, backend));
    }
    let rest = entities.saturating_sub(routes + POLICIES + WAFS);
    for (collection, share) in REST {
        let template = control.call("GET", &format!("{ENTITIES}/{collection}/_template"), None).json();
        for number in 0..rest * share / 100 {
            let mut entity = template.clone();
            entity["id"] = json!(format!("{collection}-{number}"));
            entity["name"] = json!(format!("{collection} number {number}"));
            match collection {
                "waf-rulesets" => entity["rules"] = json!([ruleset(number)]),
                "threat-feeds" => {
                    entity["url"] = json!(format!("https://feeds.example/{number}.txt"));
                    // What is measured is entities, and no fetches of what is not there.
                    entity["enabled"] = json!(false);
                }
                "api-contracts" => entity["spec"] = json!(contract(number)),
                "svc-bouncers" => entity["api_key"] = json!("k"),
                "alert-rules" => entity["channel"] = json!({"kind": "event"}),
                _ => {}
            }
            line(collection, entity);
        }
    }
    for lines in lines.chunks(BATCH) {
        batch(control, lines)?;
    }
    Ok(())
}

/// One route of the many.
pub(crate) fn route(number: usize, backend: u16) -> Value {
    json!({
        "id": format!("route-{number}"),
        "name": format!("shop {number}"),
        "hosts": [format!("shop-{number}.example")],
        "backend": {"address": "127.0.0.1", "port": backend},
        "plugins": [{"plugin": "SecuritySuitePreset", "config": {
            "threat_policy": format!("policy-{}", number % POLICIES),
            "waf_config": format!("waf-{}", number % WAFS),
        }}],
    })
}

fn ruleset(number: usize) -> String {
    format!(
        "SecRule ARGS:field{number} \"@rx ^[a-z]{{1,{}}}$\" \"id:{},phase:2,pass,log\"",
        1 + number % 9,
        10_000 + number
    )
}

fn contract(number: usize) -> String {
    format!("{{\"openapi\":\"3.1.0\",\"info\":{{\"title\":\"c{number}\",\"version\":\"1\"}},\"paths\":{{}}}}")
}

fn batch(control: &ControlPlane, lines: &[Value]) -> Result<(), String> {
    let body: String = lines.iter().map(|line| format!("{line}\n")).collect();
    let request = Request::new("POST", format!("{ENTITIES}/_bulk?atomic=true"))
        .header("authorization", control.authorization())
        .header("content-type", "application/x-ndjson")
        .body(body);
    let answer = request.send(control.rest()).map_err(|error| format!("a batch got no answer: {error}"))?;
    if answer.status == 200 {
        return Ok(());
    }
    let refused = answer.text().lines().find(|line| !line.contains("\"status\":424")).unwrap_or_default().to_owned();
    Err(format!("a batch was refused with {}: {refused}", answer.status))
}
