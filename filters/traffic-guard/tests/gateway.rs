//! The traffic guard in a real gateway with two workers and a control plane: a burst of one source is told and refused by the policy while
//! it lasts, and a preset lays the guard down.
#![allow(
    clippy::disallowed_methods,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "tests; buckets pass with the time"
)]

use std::net::Ipv4Addr;
use std::thread::sleep;
use std::time::Duration;

use palisade_tests::gateway::{Gateway, route, threat_policy};
use palisade_tests::http::Request;
use palisade_tests::process::wait_for;
use serde_json::{Value, json};

const PATIENCE: Duration = Duration::from_secs(15);

fn status_from(gateway: &Gateway, source: Ipv4Addr) -> u16 {
    Request::get("/status/200").send_from(source, gateway.address).unwrap().status
}

fn event(gateway: &Gateway, text: &str) -> Value {
    let is_it = |event: &Value| {
        event["event"]["module"] == "traffic-guard" && event["message"].as_str().is_some_and(|it| it.starts_with(text))
    };
    wait_for(text, PATIENCE, || gateway.control.events().into_iter().find(is_it)).unwrap()
}

#[test]
fn a_burst_of_one_source_is_told_and_refused_while_it_lasts() {
    let mut gateway = Gateway::start(|control, backend| {
        let tiers = json!([{ "min_score": 40, "action": "deny", "status": 418 }]);
        control.create("threat-policies", &threat_policy("demo", json!({ "tiers": tiers })));
        let settings = json!({ "traffic": { "max_keys": 5000 } });
        control.configure(&json!({ "gateway": { "filters": ["preset"] }, "security": settings }));
        let guard = json!({ "route": false, "bucket_seconds": 1, "learning_buckets": 10, "warmup_buckets": 2, "source_floor": 3 });
        let plugins = json!([
            { "plugin": "SvcTrafficGuard", "config": guard },
            { "plugin": "SvcThreatResponse", "config": { "policy": "demo" } },
        ]);
        control.create("routes", &route("app", backend, plugins));
    });
    gateway.until(&Request::get("/status/200"), 200, PATIENCE);
    let flood = Ipv4Addr::new(127, 0, 9, 1);
    // The node watches the route for longer than the warm-up.
    sleep(Duration::from_millis(3200));

    let statuses: Vec<u16> = (0..120).map(|_| status_from(&gateway, flood)).collect();
    assert_eq!((statuses[0], statuses[119]), (200, 418), "{statuses:?}");
    let passed = statuses.iter().filter(|status| **status == 200).count();
    assert!(passed < 40, "the workers count together: {passed}");
    // A request of each, on connections of both workers: several of one within a second would be a burst of its own.
    let others = (10..26).map(|last| Ipv4Addr::new(127, 0, 9, last));
    let other_statuses: Vec<u16> = others.map(|other| status_from(&gateway, other)).collect();
    assert_eq!(other_statuses, [200; 16], "other sources are not in it");

    let begin = event(&gateway, "surge of the source 127.0.9.1:");
    assert_eq!((&begin["event"]["category"], &begin["event"]["outcome"]), (&json!("traffic"), &json!("observed")));
    assert_eq!((&begin["source"]["ip"], &begin["route"]["id"]), (&json!("127.0.9.1"), &json!("app")), "{begin}");
    assert_eq!(begin["threat"]["tags"], json!(["traffic:source_surge"]), "{begin}");

    sleep(Duration::from_millis(2500));
    assert_eq!(status_from(&gateway, flood), 200, "it was calm for a bucket");
    let end = event(&gateway, "end of the surge of the source 127.0.9.1 after");
    let message = end["message"].as_str().unwrap();
    assert!(message.contains("most requests: sources 127.0.9.1 (") && message.contains("paths /status/200 ("), "{end}");
    let events = gateway.control.events();
    let of_guard = events.iter().filter(|event| event["event"]["module"] == "traffic-guard");
    let told: Vec<&str> = of_guard.filter_map(|event| event["message"].as_str()).collect();
    // The event of a surge that goes on names what it is made of.
    let begins =
        |message: &&&str| message.starts_with("surge of the source 127.0.9.1:") && !message.contains("most requests");
    let ends = |message: &&&str| message.starts_with("end of");
    let counts = (told.iter().filter(begins).count(), told.iter().filter(ends).count());
    assert_eq!(counts, (1, 1), "each once on the node: {told:?}");

    // The same by a preset, with the state of the node.
    let config = json!({ "threat_policy": "demo", "traffic": true, "traffic_sensitivity": "high", "reputation": false, "bots": false });
    gateway.control.patch(
        "routes",
        "app",
        &json!({ "plugins": [{ "plugin": "SecuritySuitePreset", "config": config }] }),
    );
    gateway.until(&Request::get("/status/200"), 200, PATIENCE);
    assert_eq!(status_from(&gateway, flood), 200);
    assert!(gateway.envoy.vm_failures().is_empty());
}
