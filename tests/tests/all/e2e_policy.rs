//! Policy changed while traffic flows: in force at once, without a lost request; broken rules change nothing; dry run
//! observes; a ban holds on every worker.

use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

use palisade_tests::control_plane::ControlPlane;
use palisade_tests::gateway::{Gateway, preset, route, threat_policy, waf_config};
use palisade_tests::http::{Connection, Request, percent};
use palisade_tests::load::{Load, Plan};
use palisade_tests::process::wait_for;
use serde_json::{Value, json};

/// The promise is two seconds; a machine with other work gets more, and the time is printed.
const PROMISED: Duration = Duration::from_secs(2);
const PATIENCE: Duration = Duration::from_secs(10);
const PROBE_RULE: &str = r#"SecRule ARGS:probe "@streq 1" "id:10001,phase:1,deny,status:403,msg:'probe'""#;
const SQL: &str = "1' UNION SELECT password FROM users-- -";

#[test]
fn policy_changes_hold_at_once() {
    let mut gateway = Gateway::start(|control, backend| {
        control.create("waf-configs", &waf_config("demo", json!({"rules": []})));
        control.create("threat-policies", &threat_policy("demo", json!({})));
        control.create("routes", &route("demo", backend, preset("demo", "demo")));
    });
    gateway.until(&Request::get("/"), 200, PATIENCE);
    changes_lose_no_request(&mut gateway);
    broken_rules_change_nothing(&mut gateway);
    dry_run_observes(&mut gateway);
    tarpit_and_throttle_slow_down(&mut gateway);
    a_ban_holds_on_every_worker(&mut gateway);
    a_ban_follows_the_api_key(&mut gateway);
    let failures = gateway.envoy.vm_failures();
    assert!(failures.is_empty(), "a filter's VM failed: {failures:?}");
}

fn changes_lose_no_request(gateway: &mut Gateway) {
    let load = Load::start(Plan {
        to: gateway.address,
        connections: 8,
        requests: vec![
            Request::get("/search?q=garden+chairs").encode(),
            Request::post("/echo", "application/x-www-form-urlencoded", "name=Ada&city=London").encode(),
        ],
        pause: Duration::from_millis(1),
        cpu: None,
    });
    let probe = Request::get("/?probe=1");
    let mut times = Vec::new();
    for round in 0..3 {
        for (rules, status) in [(json!([PROBE_RULE]), 403), (json!([]), 200)] {
            let start = Instant::now();
            gateway.control.patch("waf-configs", "demo", &json!({"rules": rules}));
            gateway.until(&probe, status, PATIENCE);
            let took = start.elapsed();
            println!("round {round}: {status} in force after {took:?}");
            times.push(took);
        }
    }
    // The whole Core Rule Set comes in, too: the largest change there is.
    let attack = Request::get(format!("/search?q={}", percent(SQL)));
    let start = Instant::now();
    gateway.control.patch("waf-configs", "demo", &json!({"rules": ["@import_preset crs", PROBE_RULE]}));
    gateway.until(&attack, 403, PATIENCE);
    println!("the Core Rule Set in force after {:?}", start.elapsed());
    let report = load.stop();
    println!("{} requests meanwhile", report.answers());
    assert_eq!(report.dropped, 0, "{:?}", report.reasons);
    assert_eq!(report.statuses.keys().collect::<Vec<_>>(), [&200], "{:?}", report.statuses);
    times.sort();
    let median = times[times.len() / 2];
    assert!(median < PROMISED, "a change takes {median:?} to be in force: {times:?}");
}

fn broken_rules_change_nothing(gateway: &mut Gateway) {
    let broken = r#"SecRule ARGS "@rx (unclosed" "id:10002,phase:1,deny""#;
    let rules = json!(["@import_preset crs", PROBE_RULE, broken]);
    let mut whole = gateway.control.call("GET", &ControlPlane::path("waf-configs", "demo"), None).json();
    whole["rules"] = rules.clone();
    let put = gateway.control.call("PUT", &ControlPlane::path("waf-configs", "demo"), Some(&whole));
    let fresh = waf_config("broken", json!({"rules": rules}));
    let post = gateway.control.call("POST", &ControlPlane::path("waf-configs", ""), Some(&fresh));
    for answer in [put, post] {
        assert_eq!(answer.status, 400, "{}", answer.text());
        // The third rule, its first line, and a caret under the place.
        let text = answer.json()["error_description"].as_str().unwrap_or_default().to_owned();
        for wanted in ["10002", "rule 3, line 1, column 19", "^", "unclosed"] {
            assert!(text.contains(wanted), "no {wanted:?} in:\n{text}");
        }
    }
    let misspelt = json!({"id": "x", "name": "x", "inspect_imput_body": true});
    let answer = gateway.control.call("POST", &ControlPlane::path("waf-configs", ""), Some(&misspelt));
    assert_eq!(answer.status, 400);
    assert!(answer.text().contains("inspect_imput_body"), "{}", answer.text());
    // The old rules keep serving.
    assert_eq!(gateway.status(&Request::get("/?probe=1")), 403);
    assert_eq!(gateway.status(&Request::get("/")), 200);
}

fn dry_run_observes(gateway: &mut Gateway) {
    let control = &gateway.control;
    // The policy first: the attack passes only once the second change is in force, and then so is the first.
    let tiers = json!([{"min_score": 20, "action": "deny", "status": 418}]);
    control.patch("threat-policies", "demo", &json!({"dry_run": true, "tiers": tiers}));
    control.patch("waf-configs", "demo", &json!({"block": false}));
    let source = Ipv4Addr::new(127, 0, 2, 1);
    let attack = Request::get(format!("/search?q={}", percent(SQL)));
    let to = gateway.address;
    wait_for("the attack passes", PATIENCE, || (attack.send_from(source, to).ok()?.status == 200).then_some(()))
        .unwrap_or_else(|why| panic!("{why}\n{}", gateway.envoy.log_tail(40)));
    let event = gateway.control.event("an observed threat", |event| {
        event["event"]["category"] == "threat"
            && event["source"]["ip"] == "127.0.2.1"
            && event["event"]["outcome"] == "observed"
    });
    assert_eq!(event["decision"]["dry_run"], true, "{event}");
    assert_eq!(event["decision"]["enforced"], false, "{event}");
    assert_eq!(event["event"]["action"], "deny", "{event}");

    gateway.control.patch("threat-policies", "demo", &json!({"dry_run": false}));
    let took = gateway.until(&attack, 418, PATIENCE);
    println!("the policy was enforced after {took:?}");
    assert_eq!(gateway.status(&Request::get("/")), 200);
}

/// The milder actions: a held request arrives in the end, a throttled one within its quota.
fn tarpit_and_throttle_slow_down(gateway: &mut Gateway) {
    const HELD: Duration = Duration::from_millis(700);
    let attack = Request::get(format!("/search?q={}", percent(SQL)));
    let to = gateway.address;
    let held = HELD.as_millis() as u64;
    let tiers = json!([{"min_score": 20, "action": "tarpit", "tarpit_millis": held}]);
    gateway.control.patch("threat-policies", "demo", &json!({"tiers": tiers}));
    // Each try has an address of its own: the ledger bans one that the old policy refuses several times.
    let mut callers = 0_u8;
    let (started, source) = wait_for("the attack is held and then passes", PATIENCE, || {
        callers = callers.wrapping_add(1);
        let (started, source) = (Instant::now(), Ipv4Addr::new(127, 0, 6, callers));
        (attack.send_from(source, to).ok()?.status == 200).then_some((started, source))
    })
    .unwrap_or_else(|why| panic!("{why}\n{}", gateway.envoy.log_tail(40)));
    assert!(started.elapsed() >= HELD, "held for {:?}", started.elapsed());
    let address = source.to_string();
    let event = gateway
        .control
        .event("the tarpit", |event| event["source"]["ip"] == address.as_str() && event["event"]["action"] == "tarpit");
    assert_eq!(event["decision"]["held_ms"], held, "{event}");
    assert_eq!(event["event"]["outcome"], "observed", "it reached the backend: {event}");
    // A client that does not wait: the worker forgets it and serves the next.
    for _ in 0..20 {
        let mut gone = Connection::open_from(source, to).unwrap();
        gone.write(&attack.encode()).unwrap();
    }

    let throttle = json!({"min_score": 20, "action": "throttle", "throttle_quota": 2, "throttle_window_seconds": 60});
    gateway.control.patch("threat-policies", "demo", &json!({"tiers": [throttle]}));
    let mut callers = 0;
    let statuses = wait_for("the quota is in force", PATIENCE, || {
        callers += 1;
        let caller = Ipv4Addr::new(127, 0, 7, callers);
        let statuses: Vec<u16> = (0..3).filter_map(|_| Some(attack.send_from(caller, to).ok()?.status)).collect();
        (statuses.last() == Some(&429)).then_some(statuses)
    })
    .unwrap_or_else(|why| panic!("{why}\n{}", gateway.envoy.log_tail(40)));
    assert_eq!(statuses, [200, 200, 429]);
    let refused = attack.send_from(Ipv4Addr::new(127, 0, 7, callers), to).unwrap();
    let retry = refused.header("retry-after").and_then(|seconds| seconds.parse::<u64>().ok());
    assert!(retry.is_some_and(|seconds| (1..=60).contains(&seconds)), "{retry:?}");
}

fn a_ban_holds_on_every_worker(gateway: &mut Gateway) {
    let tiers = json!([{"min_score": 20, "action": "ban", "status": 403, "ban_for_seconds": 600}]);
    gateway.control.patch("threat-policies", "demo", &json!({"tiers": tiers}));
    let banned = Ipv4Addr::new(127, 0, 3, 1);
    let benign = Request::get("/search?q=garden+chairs");
    let attack = Request::get(format!("/search?q={}", percent(SQL)));
    let to = gateway.address;
    assert_eq!(benign.send_from(banned, to).unwrap().status, 200);
    wait_for("the attack is answered by the ban's tier", PATIENCE, || {
        (attack.send_from(banned, to).ok()?.status == 403).then_some(())
    })
    .unwrap_or_else(|why| panic!("{why}\n{}", gateway.envoy.log_tail(40)));
    let statuses = gateway.statuses_of_all_workers_from(banned, &benign);
    assert!(statuses.iter().all(|status| *status == 403), "{statuses:?}");
    // Nobody else is.
    let others = gateway.statuses_of_all_workers(&benign);
    assert!(others.iter().all(|status| *status == 200), "{others:?}");
    let event = gateway
        .control
        .event("the ban", |event| event["source"]["ip"] == "127.0.3.1" && event["event"]["action"] == "ban");
    assert_eq!(event["event"]["outcome"], Value::from("blocked"), "{event}");
}

/// The most specific identity is banned: an api key, wherever it is used from, and not the address it came from.
fn a_ban_follows_the_api_key(gateway: &mut Gateway) {
    let keys = ["stolen", "another"].map(|id| json!({"id": id, "secret": format!("{id}-0123456789abcdef")}));
    gateway.control.configure(&json!({"identity": {"api_key_header": "X-Api-Key", "api_keys": keys}}));
    let (first, second) = (Ipv4Addr::new(127, 0, 4, 1), Ipv4Addr::new(127, 0, 4, 2));
    let benign = Request::get("/search?q=garden+chairs");
    let with_key =
        |request: &Request, key: &str| request.clone().header("x-api-key", format!("{key}-0123456789abcdef"));
    let attack = Request::get(format!("/search?q={}", percent(SQL)));
    let to = gateway.address;
    // Until the change is in force an attack bans its address, so each try comes from an address of its own.
    let mut tries = 0;
    wait_for("the key is banned", PATIENCE, || {
        tries += 1;
        let source = Ipv4Addr::new(127, 0, 5, tries);
        let _ = with_key(&attack, "stolen").send_from(source, to);
        (with_key(&benign, "stolen").send_from(first, to).ok()?.status == 403).then_some(())
    })
    .unwrap_or_else(|why| panic!("{why}\n{}", gateway.envoy.log_tail(40)));
    assert_eq!(with_key(&benign, "stolen").send_from(second, to).unwrap().status, 403, "from anywhere");
    assert_eq!(benign.send_from(first, to).unwrap().status, 200, "the address is not banned");
    assert_eq!(with_key(&benign, "another").send_from(first, to).unwrap().status, 200, "nor is another key");
    let event = gateway.control.event("the refusal of the key", |event| {
        event["event"]["category"] == "ban" && event["source"]["ip"] == "127.0.4.2"
    });
    assert_eq!(event["source"]["apikey"], "stolen", "its id: {event}");
    assert!(!event.to_string().contains("stolen-0123456789abcdef"), "{event}");
}
