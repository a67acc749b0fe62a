//! What a change costs: rules that are the same are not sent to the gateway again, nor decoded by a worker.

use std::time::Duration;

use palisade_tests::gateway::{Gateway, preset, route, threat_policy, waf_config};
use palisade_tests::http::{Connection, Request};
use palisade_tests::process::wait_for;
use serde_json::{Value, json};

/// A change to be in force.
const PATIENCE: Duration = Duration::from_secs(30);

#[test]
fn workers_keep_the_rules_that_a_change_leaves_alone() {
    let mut gateway = Gateway::start(|control, backend| {
        control.create("waf-configs", &waf_config("demo", json!({})));
        control.create("threat-policies", &threat_policy("demo", json!({})));
        control.create("routes", &route("demo", backend, preset("demo", "demo")));
    });
    gateway.until(&Request::get("/"), 200, PATIENCE);
    // Workers report once they have seen traffic.
    let _ = gateway.statuses_of_all_workers(&Request::get("/"));
    let first = settled(&gateway, "");
    assert_eq!((&first["parts_decoded"], &first["parts_reused"]), (&json!(1), &json!(0)), "{first}");
    let all = sent_bytes(&gateway);
    assert!(all > 300_000, "the Core Rule Set is in it: {all} bytes");

    gateway.control.patch("threat-policies", "demo", &json!({"waf_block_weight": 60}));
    let second = settled(&gateway, first["version"].as_str().unwrap_or_default());
    assert_eq!((&second["parts_decoded"], &second["parts_reused"]), (&json!(0), &json!(1)), "{second}");
    let change = sent_bytes(&gateway) - all;
    assert!((100..8_000).contains(&change), "the change alone is sent, {change} bytes");
    gateway.until(&Request::get("/?id=1%27%20UNION%20SELECT%20password%20FROM%20users--%20-"), 403, PATIENCE);

    let rule = r#"SecRule ARGS:probe "@streq 1" "id:10001,phase:1,deny,status:403""#;
    gateway.control.patch("waf-configs", "demo", &json!({"rules": [rule]}));
    let third = settled(&gateway, second["version"].as_str().unwrap_or_default());
    assert_eq!((&third["parts_decoded"], &third["parts_reused"]), (&json!(1), &json!(0)), "{third}");
    gateway.until(&Request::get("/?probe=1"), 403, PATIENCE);
}

/// What a gateway has is known for as long as it is connected.
#[test]
fn a_control_plane_that_is_started_anew_sends_all_parts() {
    let mut gateway = Gateway::start(|control, backend| {
        control.create("waf-configs", &waf_config("demo", json!({})));
        control.create("threat-policies", &threat_policy("demo", json!({})));
        control.create("routes", &route("demo", backend, preset("demo", "demo")));
    });
    let attack = Request::get("/?id=1%27%20UNION%20SELECT%20password%20FROM%20users--%20-");
    gateway.until(&attack, 403, PATIENCE);
    let _ = gateway.statuses_of_all_workers(&attack);
    let first = settled(&gateway, "");
    gateway.control.restart();
    gateway.control.patch("threat-policies", "demo", &json!({"waf_block_weight": 70}));
    let second = settled(&gateway, first["version"].as_str().unwrap_or_default());
    assert!(sent_bytes(&gateway) > 300_000, "{second}");
    gateway.control.patch("threat-policies", "demo", &json!({"waf_block_weight": 75}));
    settled(&gateway, second["version"].as_str().unwrap_or_default());
    gateway.until(&attack, 403, PATIENCE);
}

/// A gateway that gets a configuration again while connections on it are open takes up what it has of it, and tells the filter nothing.
#[test]
fn a_configuration_that_comes_back_while_connections_hold_it_has_the_link_again() {
    let mut gateway = Gateway::start(|control, backend| {
        control.create("waf-configs", &waf_config("demo", json!({})));
        control.create("threat-policies", &threat_policy("demo", json!({})));
        control.create("routes", &route("demo", backend, preset("demo", "demo")));
    });
    gateway.until(&Request::get("/"), 200, PATIENCE);
    let _ = gateway.statuses_of_all_workers(&Request::get("/"));
    let mut version = settled(&gateway, "")["version"].clone();
    let mut change = |gateway: &Gateway, weight: u32| {
        gateway.control.patch("threat-policies", "demo", &json!({"waf_block_weight": weight}));
        let _ = gateway.statuses_of_all_workers(&Request::get("/"));
        let now = settled(gateway, version.as_str().unwrap_or_default())["version"].clone();
        version.clone_from(&now);
        now
    };
    // The first configuration has the rules in it, those that follow name them: from then on equal ones are equal byte by byte.
    let held = change(&gateway, 60);
    let sockets: Vec<Connection> = (0..16).map(|_| websocket(&gateway)).collect();
    let other = change(&gateway, 70);
    assert_ne!(held, other);
    assert_eq!(change(&gateway, 60), held);
    // The other one has no connection and ends; its link ends with it.
    std::thread::sleep(Duration::from_secs(5));
    settled(&gateway, other.as_str().unwrap_or_default());
    let attack = Request::get("/came-back?id=1%27%20UNION%20SELECT%20password%20FROM%20users--%20-");
    assert_eq!(gateway.status(&attack), 403);
    let _ = gateway.control.event("the refusal", |event| event["http"]["path"] == "/came-back");
    drop(sockets);
}

fn websocket(gateway: &Gateway) -> Connection {
    let mut socket = Connection::open(gateway.address).unwrap();
    let upgrade = Request::get("/ws")
        .header("connection", "Upgrade")
        .header("upgrade", "websocket")
        .header("sec-websocket-version", "13")
        .header("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ==");
    socket.write(&upgrade.encode()).unwrap();
    assert_eq!(socket.read_head().unwrap().status, 101);
    socket
}

/// The bytes of filters that the control plane has sent.
fn sent_bytes(gateway: &Gateway) -> u64 {
    let text = gateway.control.call("GET", "/metrics", None).text();
    let line = text.lines().find_map(|line| line.strip_prefix(r#"palisade_xds_sent_bytes_total{type="filter"} "#));
    line.unwrap_or_else(|| panic!("no such metric:\n{text}")).parse().unwrap()
}

/// What the workers said of their filter, once both run what is served now and that is another version than `before`.
fn settled(gateway: &Gateway, before: &str) -> Value {
    let mut last = Value::Null;
    let found = wait_for("both workers report on the current version", PATIENCE, || {
        let nodes = gateway.control.call("GET", "/api/extensions/svc/waf/api/_nodes", None).json();
        let filter = &nodes["nodes"][0]["filters"][0];
        last = filter.clone();
        let current = filter["current_version"].as_str().filter(|version| !version.is_empty() && *version != before)?;
        let vms = filter["vms"].as_array()?;
        // The main thread has a VM of its own beside those of the two workers.
        let all = vms.len() == 1 && vms[0]["version"] == current && vms[0]["vms"].as_u64() >= Some(2);
        (all && filter["version"] == current).then(|| filter.clone())
    });
    found.unwrap_or_else(|why| panic!("{why}; the last was {last}"))
}
