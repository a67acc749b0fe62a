//! Published addresses of a bot in a real gateway.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::time::Duration;

use palisade_tests::console::Console;
use palisade_tests::gateway::{Gateway, route, threat_policy};
use palisade_tests::http::Request;
use serde_json::json;

const PATIENCE: Duration = Duration::from_secs(30);

fn publisher(list: String) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            let (mut head, mut byte) = (Vec::new(), [0]);
            while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte).is_ok_and(|read| read > 0) {
                head.push(byte[0]);
            }
            let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{list}", list.len());
            let _ = stream.write_all(head.as_bytes());
        }
    });
    address
}

fn asks(address: &str) -> Request {
    Request::get("/").header("x-forwarded-for", address).header("user-agent", "x (ListedBot/1.0)")
}

#[test]
fn a_bot_is_verified_by_the_addresses_that_its_owner_publishes() {
    let list = json!({ "prefixes": [{ "ipv4Prefix": "52.0.0.0/24" }, { "ipv6Prefix": "2600:1::/64" }] });
    let publisher = publisher(list.to_string());
    let allow = ["--outbound-allow", "127.0.0.1/32"].map(String::from);
    let mut gateway = Gateway::start_with(&allow, |control, backend| {
        control
            .configure(&json!({ "identity": { "trusted_hops": 1 }, "security": { "ledger": { "enabled": false } } }));
        control.create("threat-policies", &threat_policy("demo", json!({ "tiers": [] })));
        let signature = json!({
            "name": "listedbot", "category": "ai", "ua_contains": ["listedbot"], "ip_ranges": [format!("http://{publisher}/")]
        });
        control.create(
            "bot-policies",
            &json!({
                "id": "bots", "signatures": [signature], "rules": [], "deny_status": 451, "verify_by_ip_ranges": true,
            }),
        );
        let plugins = json!([{ "plugin": "SecuritySuitePreset", "config": { "threat_policy": "demo" } }]);
        control.create("routes", &route("demo", backend, plugins));
    });
    gateway.until(&asks("52.0.1.1"), 451, PATIENCE);
    for address in ["52.0.0.1", "2600:1::7"] {
        let statuses = gateway.statuses_of_all_workers(&asks(address));
        assert!(statuses.iter().all(|status| *status == 200), "{address}: {statuses:?}");
    }
    let event = gateway.control.event("the impersonator", |event| event["source"]["ip"] == "52.0.1.1");
    assert_eq!(event["threat"]["tags"][0], "bot:impersonator:listedbot", "{event}");
    let shown = Console::login(&gateway.control).get("_bot_status")["ranges"].clone();
    assert_eq!(
        (&shown[0]["bot"], &shown[0]["in_force"], &shown[0]["ranges"]),
        (&json!("listedbot"), &json!(true), &json!(2))
    );
    // Without the switch nothing is known of its addresses.
    gateway.control.patch("bot-policies", "bots", &json!({ "verify_by_ip_ranges": false }));
    gateway.until(&asks("52.0.1.1"), 200, PATIENCE);
    assert!(gateway.envoy.vm_failures().is_empty());
}
