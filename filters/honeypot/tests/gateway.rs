//! The honeypot in a real gateway with a control plane: requests without a route, bans, and changes of its policy.
#![allow(clippy::indexing_slicing, clippy::unwrap_used, reason = "tests")]

use std::net::Ipv4Addr;
use std::time::Duration;

use palisade_tests::console::Console;
use palisade_tests::gateway::{Gateway, route, threat_policy};
use palisade_tests::http::Request;
use palisade_tests::process::wait_for;
use serde_json::{Value, json};

const PATIENCE: Duration = Duration::from_secs(15);

/// A gateway whose one route has the prefix `/app`, with a honeypot and a threat gate in the global chain. The weight of the policy must
/// be low: the ledger bans a caller whose refusals add up to 100 points, in a race with the honeypot.
fn gateway(policy: &Value, filters: &Value) -> Gateway {
    let mut gateway = Gateway::start(|control, backend| {
        control.create("threat-policies", &threat_policy("demo", json!({ "tiers": [] })));
        let mut fields = json!({ "id": "traps", "name": "Traps" });
        fields.as_object_mut().unwrap().extend(policy.as_object().unwrap().clone());
        control.create("honeypot-policies", &fields);
        control.configure(&json!({ "gateway": { "filters": filters }, "incoming_request_validators": [
            { "plugin": "IncomingRequestValidatorSvcHoneypot", "config": { "policy": "traps" } },
            { "plugin": "IncomingRequestValidatorSvcThreatGate", "config": { "policy": "demo" } },
        ] }));
        let mut app = route("app", backend, json!([]));
        app["paths"] = json!(["/app"]);
        control.create("routes", &app);
    });
    gateway.until(&Request::get("/app"), 200, PATIENCE);
    gateway
}

fn events(gateway: &Gateway) -> Vec<Value> {
    gateway.control.events().into_iter().filter(|event| event["event"]["module"] == "honeypot").collect()
}

fn status_from(gateway: &Gateway, source: Ipv4Addr, request: &Request) -> u16 {
    request.send_from(source, gateway.address).unwrap().status
}

#[test]
fn a_decoy_path_without_a_route_is_refused_and_its_caller_banned_until_lifted() {
    let gateway =
        gateway(&json!({ "action": "ban", "status": 418, "ban_for_seconds": 600, "weight": 1 }), &json!(["preset"]));
    let console = Console::login(&gateway.control);
    let scanner = Ipv4Addr::new(127, 0, 9, 1);
    let harmless = Request::get("/app");
    assert_eq!(status_from(&gateway, scanner, &Request::get("/no-route")), 404, "Envoy's own answer");
    assert_eq!(status_from(&gateway, scanner, &harmless), 200);

    assert_eq!(status_from(&gateway, scanner, &Request::get("/x/../%2eENV?a=1")), 418);
    let event = gateway.control.event("the refusal", |event| event["event"]["module"] == "honeypot");
    assert_eq!((&event["event"]["category"], &event["event"]["outcome"]), (&json!("honeypot"), &json!("blocked")));
    assert_eq!((&event["source"]["ip"], &event["route"]["id"]), (&json!("127.0.9.1"), &json!(null)), "{event}");
    assert_eq!(event["threat"]["tags"], json!(["honeypot:path"]), "{event}");

    let statuses = gateway.statuses_of_all_workers_from(scanner, &harmless);
    assert!(statuses.iter().all(|status| *status == 403), "banned on every worker: {statuses:?}");
    assert_eq!(gateway.status(&harmless), 200, "another caller is not banned");
    let bans = wait_for("the ban", PATIENCE, || {
        let listed = console.get("_bans");
        listed["bans"].as_array().filter(|bans| !bans.is_empty()).cloned()
    });
    let bans = bans.unwrap();
    assert_eq!((bans.len(), &bans[0]["key"]), (1, &json!("ip:127.0.9.1")), "{bans:?}");
    assert!(bans[0].to_string().contains("the decoy path `/.env` was asked for"), "{bans:?}");
    assert_eq!(events(&gateway).len(), 1, "one event for one decoy");

    assert_eq!(console.post("_unban", &json!({ "ref": "ip:127.0.9.1" }))["done"], true);
    wait_for("the end of the ban", PATIENCE, || (status_from(&gateway, scanner, &harmless) == 200).then_some(()))
        .unwrap();
    assert!(gateway.envoy.vm_failures().is_empty());
}

#[test]
fn a_change_of_the_policy_takes_effect_and_a_canary_is_found() {
    let mut gateway = gateway(
        &json!({ "paths": ["/app/trap*"], "weight": 1 }),
        &json!(["honeypot", "threat-gate", "threat-response"]),
    );
    let trap = Request::get("/app/TRAP/x");
    assert_eq!(gateway.status(&trap), 404);
    gateway.control.patch("honeypot-policies", "traps", &json!({ "status": 410 }));
    gateway.until(&trap, 410, PATIENCE);

    let canary = json!([{ "value": "bait-4711", "description": "in the wiki", "where": "header" }]);
    gateway.control.patch("honeypot-policies", "traps", &json!({ "paths": [], "canaries": canary }));
    gateway.until(&trap, 200, PATIENCE);
    assert_eq!(gateway.status(&Request::get("/app").header("authorization", "Bearer bait-4711")), 410);
    let event = gateway.control.event("the canary", |event| event["threat"]["tags"] == json!(["honeypot:canary"]));
    assert!(event["message"].as_str().is_some_and(|text| text.contains("`in the wiki`")), "{event}");
    assert!(!event.to_string().contains("bait-4711"), "{event}");

    gateway.control.patch("honeypot-policies", "traps", &json!({ "paths": ["/app/trap*"], "action": "monitor" }));
    let observed = |gateway: &Gateway| {
        assert!([200, 410].contains(&gateway.status(&trap)));
        events(gateway).into_iter().find(|event| event["event"]["outcome"] == "observed")
    };
    let event = wait_for("an observed event", PATIENCE, || observed(&gateway)).unwrap();
    assert_eq!((&event["event"]["action"], &event["threat"]["score"]), (&json!("log"), &json!(1)), "{event}");
    assert_eq!(gateway.status(&trap), 200);

    gateway.control.patch("honeypot-policies", "traps", &json!({ "action": "deny" }));
    gateway.until(&trap, 410, PATIENCE);
    gateway.control.patch("honeypot-policies", "traps", &json!({ "enabled": false }));
    gateway.until(&trap, 200, PATIENCE);
    assert!(gateway.envoy.vm_failures().is_empty());
}

#[test]
fn a_policy_of_the_largest_size_takes_effect() {
    let mut gateway = gateway(&json!({ "paths": [], "weight": 1 }), &json!(["preset"]));
    let path = |index: usize| format!("/app/{index:04}{}", "p".repeat(1015));
    let value = |index: usize| format!("{index:04}{}", "c".repeat(1020));
    let paths: Vec<String> = (0..1000).map(path).collect();
    let canaries: Vec<Value> =
        (0..1000).map(|index| json!({ "value": value(index), "description": "d".repeat(1024) })).collect();
    gateway.control.patch(
        "honeypot-policies",
        "traps",
        &json!({ "paths": paths, "canaries": canaries, "status": 410 }),
    );
    gateway.until(&Request::get(path(999)), 410, PATIENCE);
    assert_eq!(gateway.status(&Request::get(path(1000))), 200);
    for (index, status) in [(0, 410), (999, 410), (1000, 200)] {
        assert_eq!(gateway.status(&Request::get("/app").header("x-key", value(index))), status, "{index}");
        assert_eq!(gateway.status(&Request::get(format!("/app?{}", value(index)))), status, "{index}");
    }
    assert!(gateway.envoy.vm_failures().is_empty());
}
