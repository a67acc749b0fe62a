//! Fail2ban in a real gateway with two workers and a control plane: bans, a rule for a path, ignored callers, refusals of the WAF, and
//! the dry run of a preset.
#![allow(clippy::indexing_slicing, clippy::unwrap_used, reason = "tests")]

use std::net::Ipv4Addr;
use std::time::Duration;

use palisade_tests::console::Console;
use palisade_tests::gateway::{Gateway, route, threat_policy, waf_config};
use palisade_tests::http::Request;
use palisade_tests::process::wait_for;
use serde_json::{Value, json};

const PATIENCE: Duration = Duration::from_secs(15);
const RULES: [&str; 2] = ["SecRuleEngine On", "SecRule ARGS \"@contains evil\" \"id:1,phase:1,deny,status:403\""];

fn status_from(gateway: &Gateway, source: Ipv4Addr, path: &str) -> u16 {
    Request::get(path).send_from(source, gateway.address).unwrap().status
}

fn bans(console: &Console, count: usize) -> Vec<Value> {
    let listed = || console.get("_bans")["bans"].as_array().filter(|bans| bans.len() == count).cloned();
    wait_for("the bans", PATIENCE, listed).unwrap()
}

#[test]
fn callers_that_fail_too_often_are_banned_on_all_workers_until_lifted() {
    let mut gateway = Gateway::start(|control, backend| {
        control.create("threat-policies", &threat_policy("demo", json!({ "tiers": [] })));
        control.create("waf-configs", &waf_config("rules", json!({ "rules": RULES })));
        control.configure(&json!({ "gateway": { "filters": ["preset"] } }));
        let fail2ban = json!({
            "dry_run": false, "max_retry": 3, "ban_time": "2h", "ignored": ["127.0.9.4", "127.0.0.1"], "counter_key": "${req.ip}",
            "url_rules": [{ "pattern": "^/status/404", "status_codes": ["404"], "max_retry": 2, "ban_time": "30h" }],
        });
        let plugins = json!([
            { "plugin": "SvcThreatGate", "config": { "policy": "demo" } },
            { "plugin": "SvcFail2Ban", "config": fail2ban },
            { "plugin": "SvcWaf", "config": { "ref": "rules" } },
            { "plugin": "SvcThreatResponse", "config": { "policy": "demo" } },
        ]);
        control.create("routes", &route("app", backend, plugins));
    });
    gateway.until(&Request::get("/status/200"), 200, PATIENCE);
    let console = Console::login(&gateway.control);
    let [guesser, prober, attacker, office] = [1, 2, 3, 4].map(|last| Ipv4Addr::new(127, 0, 9, last));

    for path in ["/status/401", "/status/200", "/status/401", "/status/404", "/status/200", "/status/401"] {
        assert_ne!(status_from(&gateway, guesser, path), 0);
    }
    let statuses = gateway.statuses_of_all_workers_from(guesser, &Request::get("/status/200"));
    assert!(statuses.iter().all(|status| *status == 403), "banned on every worker: {statuses:?}");
    assert_eq!(gateway.status(&Request::get("/status/200")), 200, "another caller is not banned");
    let event = gateway.control.event("the ban", |event| event["event"]["module"] == "fail2ban");
    assert_eq!((&event["event"]["category"], &event["event"]["outcome"]), (&json!("fail2ban"), &json!("blocked")));
    assert_eq!((&event["source"]["ip"], &event["route"]["id"]), (&json!("127.0.9.1"), &json!("app")), "{event}");
    assert_eq!(event["threat"]["tags"], json!(["fail2ban:401", "fail2ban"]), "{event}");

    // A rule of its own, whose ban is longer than any policy's.
    (0..2).for_each(|_| assert_eq!(status_from(&gateway, prober, "/status/404"), 404));
    assert_eq!(status_from(&gateway, prober, "/status/200"), 403);
    // Refusals of the WAF, behind it.
    (0..3).for_each(|_| assert_eq!(status_from(&gateway, attacker, "/status/200?q=evil"), 403));
    assert_eq!(status_from(&gateway, attacker, "/status/200"), 403);
    (0..9).for_each(|_| assert_eq!(status_from(&gateway, office, "/status/401"), 401));
    assert_eq!(status_from(&gateway, office, "/status/200"), 200, "it is ignored");

    let bans = bans(&console, 3);
    let of = |key: &str| bans.iter().find(|ban| ban["key"] == key).unwrap_or_else(|| panic!("{bans:?}"));
    let hours = |ban: &Value| (ban["until"].as_u64().unwrap() - ban["issued_at"].as_u64().unwrap()).div_ceil(3_600_000);
    assert_eq!(hours(of("ip:127.0.9.1")), 2, "{bans:?}");
    assert_eq!(hours(of("ip:127.0.9.2")), 30, "{bans:?}");
    assert_eq!(of("ip:127.0.9.2")["tags"], json!(["fail2ban:404", "fail2ban"]), "{bans:?}");
    assert!(of("ip:127.0.9.3")["reason"].as_str().unwrap().starts_with("fail2ban: 3 failed requests"), "{bans:?}");

    assert_eq!(console.post("_unban", &json!({ "ref": "ip:127.0.9.1" }))["done"], true);
    let free = || (status_from(&gateway, guesser, "/status/200") == 200).then_some(());
    wait_for("the end of the ban", PATIENCE, free).unwrap();
    assert_eq!(status_from(&gateway, guesser, "/status/401"), 401);
    assert_eq!(status_from(&gateway, guesser, "/status/200"), 200, "counting begins anew");

    // The same in the dry run of a preset.
    let preset = json!({ "plugins": [
        { "plugin": "SecuritySuitePreset", "config": { "threat_policy": "demo", "fail2ban": true, "include": ["^/status/"] } },
    ] });
    gateway.control.patch("routes", "app", &preset);
    gateway.until(&Request::get("/status/200?q=evil"), 200, PATIENCE);
    let tester = Ipv4Addr::new(127, 0, 9, 9);
    (0..12).for_each(|_| assert_eq!(status_from(&gateway, tester, "/status/401"), 401));
    let event = gateway.control.event("the dry run", |event| event["decision"]["dry_run"] == true);
    assert_eq!((&event["event"]["outcome"], &event["source"]["ip"]), (&json!("observed"), &json!("127.0.9.9")));
    assert!(event["message"].as_str().unwrap().ends_with("would have been banned for 3600 s"), "{event}");
    assert_eq!(status_from(&gateway, tester, "/status/200"), 200);
    assert!(gateway.envoy.vm_failures().is_empty());
}

#[test]
fn refusals_of_another_filter_count() {
    let mut gateway = Gateway::start(|control, backend| {
        control.create("threat-policies", &threat_policy("demo", json!({ "tiers": [] })));
        control.create("waf-configs", &waf_config("rules", json!({ "rules": RULES })));
        let filters = ["threat-gate", "fail2ban", "waf", "threat-response"];
        control.configure(&json!({ "gateway": { "filters": filters } }));
        let plugins = json!([
            { "plugin": "SvcThreatGate", "config": { "policy": "demo" } },
            { "plugin": "SvcFail2Ban", "config": { "dry_run": false, "max_retry": 3 } },
            { "plugin": "SvcWaf", "config": { "ref": "rules" } },
            { "plugin": "SvcThreatResponse", "config": { "policy": "demo" } },
        ]);
        control.create("routes", &route("app", backend, plugins));
    });
    gateway.until(&Request::get("/status/200"), 200, PATIENCE);
    let [attacker, guesser] = [1, 2].map(|last| Ipv4Addr::new(127, 0, 9, last));
    for (source, path, status) in [(attacker, "/status/200?q=evil", 403), (guesser, "/status/401", 401)] {
        (0..2).for_each(|_| assert_eq!(status_from(&gateway, source, path), status));
        assert_eq!(status_from(&gateway, source, "/status/200"), 200, "two of three");
        assert_eq!(status_from(&gateway, source, path), status);
        assert_eq!(status_from(&gateway, source, "/status/200"), 403, "banned");
    }
    assert!(gateway.envoy.vm_failures().is_empty());
}
