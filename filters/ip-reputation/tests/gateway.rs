//! The plugin in a real gateway with a control plane, and a publisher of lists or a decision service beside them.
#![allow(clippy::indexing_slicing, clippy::unwrap_used, reason = "tests")]

mod alerts;
mod blocklists;
#[path = "support/mmdb.rs"]
#[allow(unreachable_pub, dead_code, clippy::panic, reason = "tests")]
mod mmdb;
mod rules;

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use palisade_tests::console::Console;
use palisade_tests::gateway::{Gateway, route, threat_policy};
use palisade_tests::http::Request;
use serde_json::{Value, json};

const PATIENCE: Duration = Duration::from_secs(15);

/// A publisher of one list; without a list it answers 500.
struct Publisher {
    address: SocketAddr,
    list: Arc<Mutex<Option<String>>>,
}

impl Publisher {
    fn start(list: &str) -> Publisher {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let list = Arc::new(Mutex::new(Some(list.to_owned())));
        let current = Arc::clone(&list);
        std::thread::spawn(move || {
            for mut stream in listener.incoming().map_while(Result::ok) {
                let mut head = Vec::new();
                let mut byte = [0];
                while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte).is_ok_and(|read| read > 0) {
                    head.push(byte[0]);
                }
                let (status, body) = match current.lock().unwrap().clone() {
                    Some(list) => ("200 OK", list),
                    None => ("500 Oops", String::new()),
                };
                let answer =
                    format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}", body.len());
                let _ = stream.write_all(answer.as_bytes());
            }
        });
        Publisher { address, list }
    }

    fn lists(&self, list: Option<&str>) {
        *self.list.lock().unwrap() = list.map(str::to_owned);
    }

    fn feed(&self, action: &str) -> Value {
        json!({ "id": "bad", "name": "Bad callers", "url": format!("http://{}/list", self.address), "allow_private": true,
                "weight": 30, "action": action, "tag": "feed:bad-callers" })
    }
}

/// A decision service: what it answers to a call for everything, and once to one for changes.
#[derive(Clone, Default)]
struct Decisions(Arc<Mutex<(String, Option<String>)>>);

impl Decisions {
    /// Serves them, to those who have the key.
    fn serve(&self) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let decisions = self.clone();
        std::thread::spawn(move || {
            for mut stream in listener.incoming().map_while(Result::ok) {
                let mut head = Vec::new();
                let mut byte = [0];
                while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte).is_ok_and(|read| read > 0) {
                    head.push(byte[0]);
                }
                let head = String::from_utf8_lossy(&head).to_ascii_lowercase();
                let mut kept = decisions.0.lock().unwrap();
                let (status, body) = match head.contains("x-api-key: hunter2") {
                    false => ("403 Forbidden", r#"{"message":"access forbidden"}"#.to_owned()),
                    true if head.contains("startup=true") => ("200 OK", kept.0.clone()),
                    true => ("200 OK", kept.1.take().unwrap_or_else(|| r#"{"new":null,"deleted":null}"#.to_owned())),
                };
                let answer =
                    format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}", body.len());
                let _ = stream.write_all(answer.as_bytes());
            }
        });
        address
    }
}

fn decision(address: &str) -> Value {
    json!({ "id": 1, "origin": "cscli", "scenario": "manual", "scope": "Ip", "type": "ban", "value": address, "duration": "3h59m1.5s" })
}

#[test]
fn a_decision_refuses_until_it_is_deleted() {
    let service = Decisions::default();
    service.0.lock().unwrap().0 = json!({ "new": [decision("192.0.2.7")], "deleted": null }).to_string();
    let address = service.serve();
    let mut gateway = Gateway::start(|control, backend| {
        control.configure(&json!({ "gateway": { "filters": ["preset"] }, "identity": { "trusted_hops": 1 } }));
        control.create(
            "svc-bouncers",
            &json!({ "id": "community", "name": "Community", "lapi_url": format!("http://{address}"), "api_key": "hunter2",
                     "allow_private": true, "poll_interval_seconds": 1 }),
        );
        let plugins = json!([{ "plugin": "SvcIpReputation", "plugin_index": 3, "config": { "status": 451 } }]);
        control.create("routes", &route("demo", backend, plugins));
    });
    gateway.until(&from("192.0.2.7"), 451, PATIENCE);
    let event = gateway.control.event("a refusal", |event| event["event"]["module"] == "ip-reputation");
    assert_eq!(event["threat"]["tags"], json!(["crowd", "reputation:community"]), "{event}");
    assert_eq!((&event["threat"]["score"], &event["source"]["ip"]), (&json!(90), &json!("192.0.2.7")), "{event}");
    assert_eq!(gateway.status(&from("192.0.2.8")), 200);
    let console = Console::login(&gateway.control);
    let status = console.show("reputation/_status");
    let store = &status["svc_bouncers"][0]["store"];
    assert_eq!(
        (&store["decisions"], &store["initialized"], &store["last_error"]),
        (&json!(1), &json!(true), &Value::Null)
    );
    let verdict = console.call("reputation/_lookup", &json!({ "ip": "192.0.2.7" }))["verdict"].clone();
    assert_eq!((&verdict["blocking"], &verdict["hits"][0]["kind"]), (&json!(true), &json!("bouncer")), "{verdict}");

    let change = json!({ "new": [decision("192.0.2.8")], "deleted": [decision("192.0.2.7")] }).to_string();
    service.0.lock().unwrap().1 = Some(change);
    gateway.until(&from("192.0.2.8"), 451, PATIENCE);
    gateway.until(&from("192.0.2.7"), 200, PATIENCE);
    let statuses = gateway.statuses_of_all_workers(&from("192.0.2.8"));
    assert!(statuses.iter().all(|status| *status == 451), "{statuses:?}");

    // Another key: what is in force stays, the failure is told, and the key is nowhere.
    gateway.control.patch("svc-bouncers", "community", &json!({ "api_key": "another-key" }));
    let told = gateway.control.event("the failure", |event| event["event"]["category"] == "dependency");
    assert!(told["message"].as_str().unwrap().contains("refuses the key (403)"), "{told}");
    assert_eq!(gateway.status(&from("192.0.2.8")), 451);
    let results = console.call("reputation/_crowd_sync", &json!({ "bouncer": "community" }))["results"].clone();
    assert_eq!((&results[0]["ok"], &results[0]["decisions"]), (&json!(false), &json!(1)), "{results}");
    let everything = format!("{:?} {} {results}", gateway.control.events(), console.show("reputation/_status"));
    assert!(!everything.contains("another-key") && !everything.contains("hunter2"));
    gateway.control.patch("svc-bouncers", "community", &json!({ "enabled": false }));
    gateway.until(&from("192.0.2.8"), 200, PATIENCE);
    assert!(gateway.envoy.vm_failures().is_empty());
}

/// Serves a file to everyone; the address.
fn serve(file: Vec<u8>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            let (mut head, mut byte) = (Vec::new(), [0]);
            while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte).is_ok_and(|read| read > 0) {
                head.push(byte[0]);
            }
            let answer = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", file.len());
            let _ = stream.write_all(&[answer.as_bytes(), &file].concat());
        }
    });
    address
}

#[test]
fn networks_weigh_and_decisions_on_networks_and_countries_refuse() {
    let table =
        "192.0.2.0\t192.0.2.255\t64496\tUS\tExample Hosting\n198.51.100.0\t198.51.100.255\t64497\tFR\tTelecom\n";
    let networks = serve(table.into());
    let germany = json!({ "country": { "iso_code": "DE", "names": { "en": "Germany" } } });
    let places = serve(mmdb::database(&[("203.0.113.0/24", germany)]));
    let service = Decisions::default();
    let on = |scope: &str, value: &str| json!({ "id": 1, "origin": "cscli", "scenario": "manual", "scope": scope, "type": "ban", "value": value, "duration": "4h" });
    service.0.lock().unwrap().0 =
        json!({ "new": [on("AS", "64497"), on("Country", "DE")], "deleted": null }).to_string();
    let bouncer = service.serve();
    let mut gateway = Gateway::start(|control, backend| {
        control.configure(&json!({ "gateway": { "filters": ["preset"] }, "identity": { "trusted_hops": 1 } }));
        control.create(
            "threat-policies",
            &threat_policy("demo", json!({ "tiers": [{ "min_score": 10, "action": "log" }] })),
        );
        control.create(
            "asn-databases",
            &json!({ "id": "net", "url": format!("http://{networks}/table"), "allow_private": true }),
        );
        control.create(
            "geo-databases",
            &json!({ "id": "places", "url": format!("http://{places}/file"), "allow_private": true, "attribution": "By us" }),
        );
        control.create(
            "svc-bouncers",
            &json!({ "id": "community", "lapi_url": format!("http://{bouncer}"), "api_key": "hunter2", "allow_private": true,
                     "scopes": ["ip", "range", "as", "country"], "poll_interval_seconds": 1 }),
        );
        let plugins = json!([
            { "plugin": "SvcIpReputation", "plugin_index": 3, "config": { "status": 451 } },
            { "plugin": "SvcThreatResponse", "plugin_index": 900, "config": { "policy": "demo" } },
        ]);
        control.create("routes", &route("demo", backend, plugins));
    });
    gateway.until(&from("198.51.100.7"), 451, PATIENCE);
    gateway.until(&from("203.0.113.7"), 451, PATIENCE);
    let statuses = gateway.statuses_of_all_workers(&from("203.0.113.8"));
    assert!(statuses.iter().all(|status| *status == 451), "{statuses:?}");
    let event = gateway.control.event("a refusal", |event| event["source"]["ip"] == "203.0.113.7");
    assert!(event["message"].as_str().unwrap().contains("bans the caller's country"), "{event}");
    let found = palisade_tests::process::wait_for("an event of the tier", PATIENCE, || {
        assert_eq!(gateway.status(&from("192.0.2.7")), 200);
        gateway.control.events().into_iter().find(|event| event["source"]["ip"] == "192.0.2.7")
    });
    let event = found.unwrap();
    assert_eq!((&event["threat"]["score"], &event["threat"]["tags"]), (&json!(15), &json!(["asn:hosting"])), "{event}");
    assert_eq!(gateway.status(&from("192.0.3.7")), 200);

    let console = Console::login(&gateway.control);
    let verdict = console.call("reputation/_lookup", &json!({ "ip": "198.51.100.7" }))["verdict"].clone();
    assert_eq!(
        (&verdict["blocking"], &verdict["hits"][0]["detail"]),
        (&json!(true), &json!("network 64497")),
        "{verdict}"
    );
    let verdict = console.call("reputation/_lookup", &json!({ "ip": "192.0.2.7" }))["verdict"].clone();
    assert_eq!((&verdict["score"], &verdict["hits"][0]["kind"]), (&json!(15), &json!("asn")), "{verdict}");
    assert_eq!(verdict["location"]["located"], false, "{verdict}");
    let answer = console.call("reputation/_geo", &json!({ "ips": ["203.0.113.7", "192.0.2.7", "10.0.0.1"] }));
    let results = &answer["results"];
    assert_eq!(
        (&results["203.0.113.7"]["country_name"], &results["203.0.113.7"]["located"]),
        (&json!("Germany"), &json!(true))
    );
    let network = &results["192.0.2.7"];
    assert_eq!(
        (&network["asn"], &network["country"], &network["located"]),
        (&json!(64496), &json!("US"), &json!(false))
    );
    assert_eq!(results["10.0.0.1"], Value::Null, "{answer}");
    assert_eq!(answer["attributions"], json!([{ "text": "By us", "url": "https://db-ip.com" }]), "{answer}");
    assert_eq!(answer["sources"].as_array().map(Vec::len), Some(2), "{answer}");
    let refreshed = console.call("reputation/_refresh", &json!({ "asn": true, "geo": true }));
    assert_eq!(
        (&refreshed["done"], refreshed["snapshots"].as_array().map(Vec::len)),
        (&json!(true), Some(2)),
        "{refreshed}"
    );
    let status = console.show("reputation/_status");
    assert_eq!(
        (&status["asn"][0]["snapshot"]["entries"], &status["geo"][0]["snapshot"]["error"]),
        (&json!(2), &Value::Null),
        "{status}"
    );

    let edited = json!({ "categories": [{ "name": "hosting", "weight": 40, "tag": "own", "asns": [64496] }] });
    gateway.control.patch("asn-databases", "net", &edited);
    let found = palisade_tests::process::wait_for("the other weight", PATIENCE, || {
        assert_eq!(gateway.status(&from("192.0.2.9")), 200);
        gateway
            .control
            .events()
            .into_iter()
            .find(|event| event["source"]["ip"] == "192.0.2.9" && event["threat"]["score"] == 40)
    });
    assert_eq!(found.unwrap()["threat"]["tags"], json!(["own"]));
    gateway.control.patch("geo-databases", "places", &json!({ "enabled": false }));
    gateway.until(&from("203.0.113.7"), 200, PATIENCE);
    assert!(gateway.envoy.vm_failures().is_empty());
}

/// A gateway whose callers are behind a proxy that names them.
fn gateway(
    filters: &Value,
    feed: &Value,
    plugins: impl FnOnce(&palisade_tests::control_plane::ControlPlane) -> Value,
) -> Gateway {
    Gateway::start(|control, backend| {
        control.configure(&json!({ "gateway": { "filters": filters }, "identity": { "trusted_hops": 1 } }));
        control.create(
            "threat-policies",
            &threat_policy("demo", json!({ "tiers": [{ "min_score": 20, "action": "log" }] })),
        );
        control.create("threat-feeds", feed);
        let plugins = plugins(control);
        control.create("routes", &route("demo", backend, plugins));
    })
}

fn from(address: &str) -> Request {
    Request::get("/").header("x-forwarded-for", address)
}

#[test]
fn a_listed_address_is_refused_until_the_list_changes() {
    let publisher = Publisher::start("192.0.2.0/24\n2001:db8::/32\n");
    let mut gateway = gateway(
        &json!(["preset"]),
        &publisher.feed("block"),
        |_| json!([{ "plugin": "SecuritySuitePreset", "config": { "threat_policy": "demo" } }]),
    );
    let console = Console::login(&gateway.control);
    gateway.until(&from("192.0.2.7"), 403, PATIENCE);
    let event = gateway.control.event("a refusal", |event| event["event"]["module"] == "ip-reputation");
    assert_eq!(
        (&event["event"]["category"], &event["event"]["outcome"]),
        (&json!("threat"), &json!("blocked")),
        "{event}"
    );
    assert_eq!(event["threat"]["tags"], json!(["feed:bad-callers", "reputation:bad"]), "{event}");
    assert_eq!((&event["threat"]["score"], &event["source"]["ip"]), (&json!(30), &json!("192.0.2.7")), "{event}");
    assert_eq!(event["threat"]["signals"][0]["source"], "reputation.feed", "{event}");
    assert_eq!((gateway.status(&from("2001:db8::7")), gateway.status(&from("198.51.100.7"))), (403, 200));
    let statuses = gateway.statuses_of_all_workers(&from("192.0.2.9"));
    assert!(statuses.iter().all(|status| *status == 403), "{statuses:?}");

    let verdict = console.call("reputation/_lookup", &json!({ "ip": "192.0.2.7" }))["verdict"].clone();
    assert_eq!((&verdict["blocking"], &verdict["score"]), (&json!(true), &json!(30)), "{verdict}");
    assert_eq!(verdict["hits"][0]["detail"], "192.0.2.0-192.0.2.255", "{verdict}");

    // What changes is the table alone.
    publisher.lists(Some("198.51.100.0/24"));
    let answer = console.call("reputation/_refresh", &json!({ "feed": "bad" }));
    assert_eq!((&answer["done"], &answer["snapshots"][0]["entries"]), (&json!(true), &json!(1)), "{answer}");
    gateway.until(&from("192.0.2.8"), 200, PATIENCE);
    gateway.until(&from("198.51.100.8"), 403, PATIENCE);

    publisher.lists(None);
    let answer = console.call("reputation/_refresh", &json!({}));
    assert_eq!(answer["snapshots"][0]["error"], "the server answers 500", "{answer}");
    let event = gateway.control.event("the failure", |event| event["event"]["module"] == "sources");
    assert_eq!(event["event"]["category"], "dependency", "{event}");
    assert!(
        event["message"].as_str().unwrap().starts_with("threat feed `bad` fails: the server answers 500"),
        "{event}"
    );
    assert_eq!(gateway.status(&from("198.51.100.9")), 403, "the list stays");

    let answer = console.call("reputation/_rollback", &json!({ "feed": "bad" }));
    assert_eq!((&answer["done"], &answer["snapshot"]["entries"]), (&json!(true), &json!(2)), "{answer}");
    gateway.until(&from("192.0.2.10"), 403, PATIENCE);
    let status = console.show("reputation/_status");
    assert_eq!((&status["feeds"][0]["previous"], &status["svc_bouncers"]), (&Value::Null, &json!([])), "{status}");
    let in_force = palisade_tests::process::wait_for("the table on all workers", PATIENCE, || {
        let status = console.show("security/_status");
        let own = |table: &&Value| table["name"].as_str().is_some_and(|name| name.starts_with("ip-reputation."));
        let table = status["tables"].as_array()?.iter().find(own)?.clone();
        (table["workers"]["behind"] == 0).then_some(table)
    });
    let table = in_force.unwrap();
    assert!(table["workers"]["current"].as_u64() >= Some(1), "{table}");
    assert_eq!(table["state"].as_str().map(str::len), Some(16), "{table}");
    assert!(gateway.envoy.vm_failures().is_empty());
}

#[test]
fn a_monitoring_plugin_adds_its_weight_alone() {
    let publisher = Publisher::start("192.0.2.0/24");
    let mut gateway = gateway(&json!(["ip-reputation", "threat-response"]), &publisher.feed("block"), |_| {
        json!([
            { "plugin": "SvcIpReputation", "plugin_index": 3, "config": { "mode": "monitor", "passthrough": ["192.0.2.99"] } },
            { "plugin": "SvcThreatResponse", "plugin_index": 900, "config": { "policy": "demo" } },
        ])
    });
    let found = palisade_tests::process::wait_for("an event of the tier", PATIENCE, || {
        assert_eq!(gateway.status(&from("192.0.2.7")), 200);
        gateway.control.events().into_iter().find(|event| event["event"]["module"] == "threat-response")
    });
    let event = found.unwrap();
    assert_eq!((&event["event"]["action"], &event["threat"]["score"]), (&json!("log"), &json!(30)), "{event}");
    assert_eq!(event["threat"]["tags"], json!(["feed:bad-callers", "reputation:bad"]), "{event}");
    let found = gateway.control.events().into_iter().find(|event| event["event"]["module"] == "ip-reputation");
    let (event, decision) = found.map(|event| (event["event"].clone(), event["decision"].clone())).unwrap();
    assert_eq!((&event["outcome"], &decision["action"]), (&json!("observed"), &json!("deny")), "{event}");
    assert_eq!(decision["dry_run"], true, "{decision}");
    assert_eq!(gateway.status(&from("192.0.2.99")), 200);
    let seen = |address: &str| gateway.control.events().iter().any(|event| event["source"]["ip"] == address);
    assert!(seen("192.0.2.7") && !seen("192.0.2.99"));

    let block = json!({ "plugins": [
        { "plugin": "SvcIpReputation", "plugin_index": 3, "config": { "status": 451, "score_threshold": 30 } },
        { "plugin": "SvcThreatResponse", "plugin_index": 900, "config": { "policy": "demo" } },
    ] });
    gateway.control.patch("threat-feeds", "bad", &json!({ "action": "monitor" }));
    gateway.control.patch("routes", "demo", &block);
    gateway.until(&from("192.0.2.8"), 451, PATIENCE);
    gateway.control.patch("threat-feeds", "bad", &json!({ "weight": 29 }));
    gateway.until(&from("192.0.2.8"), 200, PATIENCE);
    assert!(gateway.envoy.vm_failures().is_empty());
}
