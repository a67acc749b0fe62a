//! Bans by hand and the allowlist, from the console to every worker of a real gateway.

use std::net::Ipv4Addr;
use std::time::Duration;

use palisade_tests::console::Console;
use palisade_tests::gateway::{Gateway, preset, route, threat_policy, waf_config};
use palisade_tests::http::{Request, percent};
use palisade_tests::process::wait_for;
use serde_json::json;

const PATIENCE: Duration = Duration::from_secs(10);
const SQL: &str = "1' UNION SELECT password FROM users-- -";

#[test]
fn what_operators_decide_holds_on_every_worker() {
    let mut gateway = Gateway::start(|control, backend| {
        let tiers = json!([{"min_score": 20, "action": "ban", "status": 403, "ban_for_seconds": 600}]);
        control.create("waf-configs", &waf_config("demo", json!({"rules": ["@import_preset crs"], "block": false})));
        control.create("threat-policies", &threat_policy("demo", json!({"dry_run": false, "tiers": tiers})));
        control.create("routes", &route("demo", backend, preset("demo", "demo")));
    });
    gateway.until(&Request::get("/"), 200, PATIENCE);
    let console = Console::login(&gateway.control);
    a_ban_by_hand_is_refused_at_the_gate_until_it_is_lifted(&gateway, &console);
    a_range_is_refused_but_for_whom_the_allowlist_names(&gateway, &console);
    the_allowlist_holds_against_a_tier(&gateway, &console);
    let failures = gateway.envoy.vm_failures();
    assert!(failures.is_empty(), "a filter's VM failed: {failures:?}");
}

/// With a trusted proxy in front, the gateway appends the proxy's address to what the proxy has written: the caller is
/// who the proxy names, never the proxy, and never whom the caller names.
#[test]
fn behind_a_proxy_the_caller_is_whom_the_proxy_names() {
    let mut gateway = Gateway::start(|control, backend| {
        let tiers = json!([{"min_score": 20, "action": "ban", "status": 403, "ban_for_seconds": 600}]);
        control.patch("global-config", "global-config", &json!({"identity": {"trusted_hops": 1}}));
        control.create("waf-configs", &waf_config("demo", json!({"rules": ["@import_preset crs"], "block": false})));
        control.create("threat-policies", &threat_policy("demo", json!({"dry_run": false, "tiers": tiers})));
        control.create("routes", &route("demo", backend, preset("demo", "demo")));
    });
    gateway.until(&Request::get("/"), 200, PATIENCE);
    let from = |forwarded: &str, path: &str| Request::get(path).header("x-forwarded-for", forwarded);
    let attack = format!("/search?q={}", percent(SQL));
    assert_eq!(gateway.status(&from("198.51.100.66, 203.0.113.9", &attack)), 403);
    let event = gateway.control.event("the ban", |event| event["decision"]["action"] == "ban");
    assert_eq!(event["source"]["ip"], "203.0.113.9", "{event}");
    gateway.until(&from("203.0.113.9", "/"), 403, PATIENCE);
    assert_eq!(gateway.status(&from("203.0.113.10", "/")), 200, "the proxy is not banned");
    assert_eq!(gateway.status(&from("203.0.113.9, 203.0.113.10", "/")), 200, "nor is whom the caller names");
    assert_eq!(gateway.status(&Request::get("/")), 200);
}

fn a_ban_by_hand_is_refused_at_the_gate_until_it_is_lifted(gateway: &Gateway, console: &Console) {
    let banned = Ipv4Addr::new(127, 0, 8, 1);
    let answer = console.post("_ban", &json!({"ref": "ip:127.0.8.1", "duration_seconds": 600, "reason": "by hand"}));
    assert_eq!(answer["done"], true, "{answer}");
    until(gateway, banned, 403);
    let statuses = gateway.statuses_of_all_workers_from(banned, &Request::get("/"));
    assert!(statuses.iter().all(|status| *status == 403), "{statuses:?}");
    assert_eq!(gateway.status(&Request::get("/")), 200, "nobody else is");
    let event = gateway.control.event("the refusal", |event| event["source"]["ip"] == "127.0.8.1");
    assert_eq!(event["event"]["category"], "ban", "{event}");
    assert!(event["message"].as_str().is_some_and(|text| text.contains("by hand")), "{event}");
    let audit =
        gateway.control.event("who has banned it", |event| event["action"] == "ban" && event["ref"] == "ip:127.0.8.1");
    assert_eq!(audit["source"], json!({"ip": "127.0.0.1", "apikey": null, "user": "alice"}), "{audit}");
    assert_eq!(console.post("_unban", &json!({"ref": "ip:127.0.8.1"}))["done"], true);
    until(gateway, banned, 200);
    let statuses = gateway.statuses_of_all_workers_from(banned, &Request::get("/"));
    assert!(statuses.iter().all(|status| *status == 200), "{statuses:?}");
}

fn a_range_is_refused_but_for_whom_the_allowlist_names(gateway: &Gateway, console: &Console) {
    let (one, other) = (Ipv4Addr::new(127, 0, 9, 1), Ipv4Addr::new(127, 0, 9, 200));
    assert_eq!(console.post("_ban", &json!({"ref": "ip:127.0.9.0/24"}))["done"], true);
    until(gateway, one, 403);
    until(gateway, other, 403);
    assert_eq!(console.post("_allow", &json!({"ref": "ip:127.0.9.1", "reason": "ours"}))["done"], true);
    until(gateway, one, 200);
    assert_eq!(Request::get("/").send_from(other, gateway.address).unwrap().status, 403);
}

fn the_allowlist_holds_against_a_tier(gateway: &Gateway, console: &Console) {
    let caller = Ipv4Addr::new(127, 0, 10, 1);
    let attack = Request::get(format!("/search?q={}", percent(SQL)));
    assert_eq!(attack.send_from(caller, gateway.address).unwrap().status, 403);
    until(gateway, caller, 403);
    wait_for("the ban is recorded", PATIENCE, || {
        let bans = console.get("_bans");
        let held = bans["bans"].as_array()?.iter().find(|ban| ban["key"] == "ip:127.0.10.1")?.clone();
        (held["signals"].as_array().is_some_and(|signals| !signals.is_empty()) && held["score"].as_f64()? >= 20.0)
            .then_some(())
    })
    .unwrap_or_else(|why| panic!("{why}\n{}", console.get("_bans")));
    let answer = console.post("_allow", &json!({"ref": "ip:127.0.10.1", "reason": "a scanner of ours", "unban": true}));
    assert_eq!((&answer["done"], &answer["released"]), (&json!(true), &json!(true)), "{answer}");
    until(gateway, caller, 200);
    // Inspection goes on, and no ban comes of it.
    for _ in 0..5 {
        assert_eq!(attack.send_from(caller, gateway.address).unwrap().status, 403);
    }
    let audit = gateway.control.event("the refusal of the ban", |event| event["action"] == "ban-refused");
    assert_eq!(audit["ref"], "ip:127.0.10.1", "{audit}");
    let statuses = gateway.statuses_of_all_workers_from(caller, &Request::get("/"));
    assert!(statuses.iter().all(|status| *status == 200), "{statuses:?}");
    let refused = console.post("_ban", &json!({"ref": "ip:127.0.10.1"}));
    assert_eq!(refused["refused"], "allowlisted", "{refused}");
    // Off the list, the next attack bans again.
    assert_eq!(console.post("_disallow", &json!({"ref": "ip:127.0.10.1"}))["done"], true);
    wait_for("the attack bans", PATIENCE, || {
        attack.send_from(caller, gateway.address).ok()?;
        (Request::get("/").send_from(caller, gateway.address).ok()?.status == 403).then_some(())
    })
    .unwrap_or_else(|why| panic!("{why}\n{}", gateway.envoy.log_tail(40)));
}

fn until(gateway: &Gateway, source: Ipv4Addr, status: u16) {
    wait_for("the change is in force", PATIENCE, || {
        (Request::get("/").send_from(source, gateway.address).ok()?.status == status).then_some(())
    })
    .unwrap_or_else(|why| panic!("{source} is not answered with {status}: {why}\n{}", gateway.envoy.log_tail(40)));
}
