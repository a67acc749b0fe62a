//! The login guard in a real gateway with two workers and a control plane: credential stuffing that a policy refuses, an attacked
//! account, a takeover, breached passwords from a file and from an address, and a preset.
#![allow(clippy::indexing_slicing, clippy::unwrap_used, reason = "tests")]

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use palisade_tests::gateway::{Gateway, route, threat_policy};
use palisade_tests::http::Request;
use palisade_tests::process::wait_for;
use serde_json::{Value, json};
use sha1::{Digest as _, Sha1};

const PATIENCE: Duration = Duration::from_secs(15);

/// A login whose outcome is the status in its path.
fn login(gateway: &Gateway, source: Ipv4Addr, status: u16, user: &str, password: &str) -> u16 {
    let body = json!({ "data": { "email": user, "password": password } });
    let request = Request::json(format!("/status/{status}"), &body);
    request.send_from(source, gateway.address).unwrap().status
}

fn events(gateway: &Gateway, text: &str) -> Vec<Value> {
    let events = gateway.control.events();
    let own = events.into_iter().filter(|event| event["event"]["module"] == "login-guard");
    own.filter(|event| event["message"].as_str().is_some_and(|message| message.contains(text))).collect()
}

fn event(gateway: &Gateway, text: &str) -> Value {
    wait_for(text, PATIENCE, || events(gateway, text).pop()).unwrap()
}

#[test]
fn attacks_on_logins_are_noticed_and_refused_by_the_policy() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("breached.txt");
    let hashes = ["hunter2", "letmein", "qwertz"].map(|password| hex(&Sha1::digest(password)));
    let mut lines: Vec<String> = hashes.iter().map(|hash| format!("{hash}:17\r\n")).collect();
    lines.sort();
    std::fs::write(&file, lines.concat()).unwrap();

    let mut gateway = Gateway::start(|control, backend| {
        let tiers = json!([{ "min_score": 50, "action": "deny", "status": 418 }]);
        control.create("threat-policies", &threat_policy("demo", json!({ "tiers": tiers })));
        let settings = json!({ "breached_file": file.to_str().unwrap(), "wait_millis": 2000 });
        control.configure(&json!({ "gateway": { "filters": ["preset"] }, "security": { "login": settings } }));
        let plugins = json!([
            { "plugin": "SvcLoginGuard", "config": { "login_paths": ["/status/*"], "breached_passwords": true, "takeover_weight": 49 } },
            { "plugin": "SvcThreatResponse", "config": { "policy": "demo" } },
        ]);
        control.create("routes", &route("app", backend, plugins));
    });
    gateway.until(&Request::get("/status/200"), 200, PATIENCE);
    let [stuffer, user] = [1, 2].map(|last| Ipv4Addr::new(127, 0, 9, last));

    // Ten accounts of one source, over both workers. The tenth answer is replaced: it is still held when the pattern is noticed.
    let statuses: Vec<u16> =
        (0..12).map(|number| login(&gateway, stuffer, 401, &format!("u{number}"), &format!("p{number}"))).collect();
    assert_eq!(statuses[..9], [401; 9]);
    assert_eq!(statuses[10..], [418; 2], "refused before the backend sees it");
    let found = event(&gateway, "credential stuffing: logins to 10 accounts failed from one source");
    assert_eq!((&found["event"]["category"], &found["event"]["outcome"]), (&json!("login"), &json!("observed")));
    assert_eq!((&found["source"]["ip"], &found["route"]["id"]), (&json!("127.0.9.1"), &json!("app")), "{found}");
    assert_eq!(found["threat"]["tags"], json!(["login:credential_stuffing"]), "{found}");
    assert_eq!(found["threat"]["signals"][0]["module"], "login-guard", "{found}");
    let about = |event: &Value| (event["decision"]["tag"].clone(), event["decision"]["subject"].clone());
    assert_eq!(about(&found), (json!("login:credential_stuffing"), Value::Null));
    assert_eq!(login(&gateway, user, 200, "u1", "right"), 200, "another caller");

    // One account from many sources, and a login from a new place.
    assert_eq!(login(&gateway, user, 200, "Ada@Example.com", "right"), 200);
    for last in 0..10 {
        assert_eq!(
            login(&gateway, Ipv4Addr::new(127, last + 1, 7, 1), 401, "ada@example.com", &format!("p{last}")),
            401
        );
    }
    let attacked = event(&gateway, "account under attack: 10 different logins to an account failed from 10 sources");
    let pseudonym = attacked["message"].as_str().unwrap().rsplit_once("; the account is ").unwrap().1.to_owned();
    assert_eq!(pseudonym.len(), 12, "{attacked}");
    assert_eq!(about(&attacked), (json!("login:account_under_attack"), json!(pseudonym)));
    assert_eq!(login(&gateway, user, 200, "ada@example.com", "right"), 200);
    assert_eq!(events(&gateway, "account takeover"), [] as [Value; 0], "its owner");
    login(&gateway, Ipv4Addr::new(127, 99, 7, 1), 200, "ada@example.com", "guessed");
    let taken = event(&gateway, "account takeover: a login to an account succeeded from a new place");
    assert!(taken["message"].as_str().unwrap().ends_with(&pseudonym), "{taken}");

    // Breached passwords; the control plane reads them from a file.
    let breached = |password: &str| login(&gateway, Ipv4Addr::new(127, 0, 8, 1), 200, password, password);
    for password in ["hunter2", "letmein", "qwertz", "a password of its own"] {
        assert_eq!(breached(password), 200);
    }
    let count = || Some(events(&gateway, "breached password").len()).filter(|count| *count == 3);
    wait_for("three breached passwords", PATIENCE, count).unwrap();
    assert_eq!(events(&gateway, "breached password").len(), 3);

    // The same from an address, which is asked with five digits of the hash.
    let (address, asked) = ranges();
    let url = format!("http://{address}/range/");
    let settings = json!({ "breached_file": "", "breached_url": url, "allow_private": true });
    gateway.control.configure(&json!({ "security": { "login": settings } }));
    let count = || {
        breached("s3cret");
        Some(()).filter(|()| events(&gateway, "breached password").len() >= 4)
    };
    wait_for("a breached password of the address", PATIENCE, count).unwrap();
    assert!(asked.lock().unwrap().iter().any(|path| *path == format!("/range/{}", &hex(&Sha1::digest("s3cret"))[..5])));

    let told = format!("{:?}{}{}", gateway.control.events(), gateway.access_log(), gateway.envoy.log_tail(10_000));
    for secret in ["ada@example.com", "guessed", "hunter2"] {
        assert!(!told.to_lowercase().contains(secret), "{secret}");
    }

    // The same by a preset.
    let preset = json!({ "plugins": [{ "plugin": "SecuritySuitePreset", "config": {
        "threat_policy": "demo", "login": true, "login_paths": ["/reflect"],
    } }] });
    gateway.control.patch("routes", "app", &preset);
    let other = Ipv4Addr::new(127, 0, 9, 77);
    let mut number = 0;
    let refused = || {
        number += 1;
        let body = json!({ "status": 401, "headers": {}, "email": format!("v{number}"), "password": number });
        let status = Request::json("/reflect", &body).send_from(other, gateway.address).unwrap().status;
        (status == 418).then_some(())
    };
    wait_for("a refusal", PATIENCE, refused).unwrap();
    assert!(gateway.envoy.vm_failures().is_empty());
}

/// A server with one breached password, and the paths that it was asked for.
fn ranges() -> (SocketAddr, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (address, asked) = (listener.local_addr().unwrap(), Arc::<Mutex<Vec<String>>>::default());
    let own = Arc::clone(&asked);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut head = String::new();
            let mut lines = BufReader::new(stream.try_clone().unwrap());
            while !head.ends_with("\r\n\r\n") && lines.read_line(&mut head).unwrap() > 0 {}
            let path = head.split(' ').nth(1).unwrap().to_owned();
            let hash = hex(&Sha1::digest("s3cret"));
            let body = if path.ends_with(&hash[..5]) { format!("{}:9\r\n", &hash[5..]) } else { String::new() };
            own.lock().unwrap().push(path);
            let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", body.len());
            stream.write_all([head, body].concat().as_bytes()).unwrap();
        }
    });
    (address, asked)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02X}")).collect()
}

#[test]
fn the_guard_works_as_a_filter_of_its_own() {
    let mut gateway = Gateway::start(|control, backend| {
        let tiers = json!([{ "min_score": 50, "action": "deny", "status": 418 }]);
        control.create("threat-policies", &threat_policy("demo", json!({ "tiers": tiers })));
        control.configure(&json!({ "gateway": { "filters": ["login-guard", "threat-response"] } }));
        let plugins = json!([
            { "plugin": "SvcLoginGuard", "config": { "login_paths": ["/status/*"] } },
            { "plugin": "SvcThreatResponse", "config": { "policy": "demo" } },
        ]);
        control.create("routes", &route("app", backend, plugins));
    });
    gateway.until(&Request::get("/status/200"), 200, PATIENCE);
    let stuffer = Ipv4Addr::new(127, 0, 9, 1);
    let statuses: Vec<u16> =
        (0..12).map(|number| login(&gateway, stuffer, 401, &format!("u{number}"), &format!("p{number}"))).collect();
    assert_eq!((&statuses[..9], &statuses[10..]), (&[401; 9][..], &[418; 2][..]));
    event(&gateway, "credential stuffing: logins to 10 accounts failed from one source");
    assert!(gateway.envoy.vm_failures().is_empty());
}
