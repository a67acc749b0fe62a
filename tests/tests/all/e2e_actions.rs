//! Every action of a threat policy, and every rule of who is subject to it, in a real Envoy.
//!
//! One gateway for most of it: each policy has a route of its own, told apart by the host.

use std::net::{Ipv4Addr, SocketAddr};
use std::thread;
use std::time::{Duration, Instant};

use palisade_tests::control_plane::ControlPlane;
use palisade_tests::gateway::{Gateway, preset, route, threat_policy, waf_config};
use palisade_tests::h2;
use palisade_tests::http::{Request, Response};
use palisade_tests::process::wait_for;
use serde_json::{Value, json};

const PATIENCE: Duration = Duration::from_secs(20);
/// A match, which is worth 20 and denies nothing; and one that denies, worth what the policy says.
const SUSPECT: &str = r#"SecRule ARGS:probe "@streq 1" "id:10001,phase:1,pass,log,msg:'suspect'""#;
const ATTACK: &str = r#"SecRule ARGS:attack "@streq 1" "id:10002,phase:1,deny,status:403,msg:'attack'""#;
/// How long the tarpit holds, and how many at once.
const HELD: Duration = Duration::from_secs(3);
const MOST: usize = 4;
const QUOTA: usize = 3;
const WINDOW: Duration = Duration::from_secs(3);
const BAN: Duration = Duration::from_secs(4);

#[test]
fn every_action_is_enforced() {
    let mut gateway = Gateway::start(|control, backend| {
        control.configure(&json!({
            // Every request comes by way of a proxy that says who the user is.
            "identity": {
                "api_key_header": "x-api-key", "api_keys": (["k1", "k2", "a1", "b4", "c6"].map(api_key)), "trusted_hops": 1,
                "verified_by": [{"kind": "trusted_header", "header": "x-user", "set_by": "proxy"}],
            },
            // Whoever fails here does so on purpose; only the tiers ban.
            "security": {"ledger": {"enabled": false}, "tarpit": {"max_held": MOST}},
        }));
        control.create("waf-configs", &waf_config("rules", json!({"rules": [SUSPECT, ATTACK]})));
        let mut unnamed = route(
            "builtin",
            backend,
            json!([
                {"plugin": "SecuritySuitePreset", "config": {"waf_config": "rules"}},
            ]),
        );
        unnamed["hosts"] = json!(["builtin.test"]);
        control.create("routes", &unnamed);
    });
    gateway.until(&to("builtin", "/"), 200, PATIENCE);
    // Before anybody has saved a policy: the first enabled one would be it.
    the_built_in_policy_observes(&gateway);
    for (name, policy) in policies() {
        let backend = gateway.backend.address();
        gateway.control.create("threat-policies", &threat_policy(name, policy));
        let mut own = route(name, backend, preset(name, "rules"));
        own["hosts"] = json!([format!("{name}.test")]);
        gateway.control.create("routes", &own);
    }
    gateway.until(&to("light", "/"), 200, PATIENCE);
    let none = json!({"security": {"tarpit": {"max_held": 0}}});
    let path = ControlPlane::path("global-config", "global-config");
    let answer = gateway.control.call("PATCH", &path, Some(&none));
    assert!(answer.status == 400 && answer.text().contains("/security/tarpit/max_held"), "{}", answer.text());
    log_lets_pass_and_records(&gateway);
    throttle_lets_so_many_pass_per_window_and_identity(&gateway);
    tarpit_holds_so_many_and_the_rest_goes_on_at_once(&gateway);
    deny_answers_with_its_status(&gateway);
    a_ban_begins_at_once_and_ends_by_itself(&gateway);
    the_highest_tier_wins_in_whatever_order(&gateway);
    exempt_callers_are_left_alone(&gateway);
    dry_run_records_what_it_would_do(&gateway);
    a_ban_takes_the_identity_that_its_policy_names(&gateway);
    a_block_of_the_waf_weighs_what_the_policy_says(&gateway);
    let failures = gateway.envoy.vm_failures();
    assert!(failures.is_empty(), "a filter's VM failed: {failures:?}");
}

/// An api key as the configuration has it.
fn api_key(id: &str) -> Value {
    json!({"id": id, "secret": secret(id)})
}

/// The key of an id.
fn secret(id: &str) -> String {
    format!("{id}-0123456789abcdef")
}

/// The policies by their names; the last one tells that all are in force.
fn policies() -> Vec<(&'static str, Value)> {
    let one = |tier: Value| json!({"tiers": [tier]});
    let (low, high) = (
        json!({"min_score": 10, "action": "deny", "status": 409}),
        json!({"min_score": 19, "action": "deny", "status": 410}),
    );
    let beyond = json!({"min_score": 30, "action": "deny", "status": 418});
    let ban = |identity: &str| {
        json!({
            "tiers": [{"min_score": 20, "action": "ban", "status": 410, "ban_for_seconds": 600}],
            "ban_identity": identity,
        })
    };
    vec![
        ("log", one(json!({"min_score": 10, "action": "log"}))),
        (
            "throttle",
            one(json!({
                "min_score": 10, "action": "throttle", "throttle_quota": QUOTA, "throttle_window_seconds": WINDOW.as_secs(),
            })),
        ),
        (
            "tarpit",
            one(json!({"min_score": 10, "action": "tarpit", "status": 409, "tarpit_millis": HELD.as_millis() as u64})),
        ),
        ("deny", one(json!({"min_score": 20, "action": "deny", "status": 451}))),
        ("ban", one(json!({"min_score": 20, "action": "ban", "status": 410, "ban_for_seconds": BAN.as_secs()}))),
        ("rising", json!({"tiers": [low, high, beyond]})),
        ("falling", json!({"tiers": [beyond, high, low]})),
        (
            "exempt",
            json!({
                "tiers": [{"min_score": 20, "action": "deny", "status": 451}], "exemptions": ["127.5.0.1", "127.5.1.0/24"],
            }),
        ),
        ("dry", json!({"tiers": [{"min_score": 20, "action": "deny", "status": 451}], "dry_run": true})),
        ("auto", ban("auto")),
        ("address", ban("ip")),
        ("key", ban("apikey")),
        ("heavy", json!({"tiers": [{"min_score": 70, "action": "ban", "status": 410}], "waf_block_weight": 80})),
        ("light", json!({"tiers": [{"min_score": 70, "action": "ban", "status": 410}], "waf_block_weight": 30})),
    ]
}

fn the_built_in_policy_observes(gateway: &Gateway) {
    let source = Ipv4Addr::new(127, 1, 0, 1);
    // 50 for what the WAF has denied reach its first tier.
    assert_eq!(status(gateway, source, &to("builtin", "/?attack=1")), 403, "the rules deny, not the policy");
    let event = decided(gateway, source, "deny");
    assert_eq!(event["decision"]["dry_run"], true, "{event}");
    assert_eq!(event["decision"]["score"], 50, "{event}");
    assert_eq!(event["decision"]["tier"], 0, "{event}");
    assert_eq!(status(gateway, source, &to("builtin", "/")), 200, "nobody is banned");
}

fn log_lets_pass_and_records(gateway: &Gateway) {
    let source = Ipv4Addr::new(127, 2, 0, 1);
    assert_eq!(status(gateway, source, &to("log", "/?probe=1")), 200);
    let event = decided(gateway, source, "log");
    assert_eq!(
        (&event["event"]["outcome"], &event["decision"]["enforced"]),
        (&json!("observed"), &json!(false)),
        "{event}"
    );
    assert_eq!(event["decision"]["score"], 20, "{event}");
}

fn throttle_lets_so_many_pass_per_window_and_identity(gateway: &Gateway) {
    let (first, second) = (Ipv4Addr::new(127, 2, 1, 1), Ipv4Addr::new(127, 2, 1, 2));
    let suspect = to("throttle", "/?probe=1");
    let begin = Instant::now();
    let statuses: Vec<u16> = (0..QUOTA + 2).map(|_| status(gateway, first, &suspect)).collect();
    assert_eq!(statuses, [200, 200, 200, 429, 429], "on whichever worker");
    let refused = suspect.send_from(first, gateway.address).unwrap();
    let seconds: u64 = refused.header("retry-after").and_then(|text| text.parse().ok()).unwrap_or_default();
    assert!((1..=WINDOW.as_secs()).contains(&seconds), "{seconds}");
    assert_eq!(status(gateway, first, &to("throttle", "/")), 200, "what reaches no tier is not counted");
    assert_eq!(status(gateway, second, &suspect), 200, "another caller has its own quota");
    // A key has one quota, wherever it is used from.
    let with_key = |key: &str| suspect.clone().header("x-api-key", secret(key));
    let statuses: Vec<u16> = [first, second, first, second].map(|from| status(gateway, from, &with_key("k1"))).into();
    assert_eq!(statuses, [200, 200, 200, 429]);
    // Keys that are made up have none of their own: they are their address.
    let made_up: Vec<u16> = (0..QUOTA + 2)
        .map(|number| status(gateway, Ipv4Addr::new(127, 2, 1, 3), &with_key(&format!("made-up-{number}"))))
        .collect();
    assert_eq!(made_up, [200, 200, 200, 429, 429]);
    assert_eq!(status(gateway, first, &with_key("k2")), 200);
    wait_for("the next window", PATIENCE, || (status(gateway, first, &suspect) == 200).then_some(())).unwrap();
    assert!(begin.elapsed() >= WINDOW, "the window ended after {:?}", begin.elapsed());
}

fn tarpit_holds_so_many_and_the_rest_goes_on_at_once(gateway: &Gateway) {
    // A request that nobody refuses goes on when its time is over, one that was refused is refused then. What is beyond the
    // most that may be held comes to the same at once.
    for (target, expected) in [("/?probe=1", 200), ("/?attack=1", 409)] {
        let request = to("tarpit", target);
        let times: Vec<Duration> = thread::scope(|scope| {
            let send = |number: u8| {
                let request = &request;
                move || {
                    let begin = Instant::now();
                    let answer = request.send_from(Ipv4Addr::new(127, 2, 2, number), gateway.address).unwrap();
                    assert_eq!(answer.status, expected);
                    begin.elapsed()
                }
            };
            let clients: Vec<_> = (1..=3 * MOST as u8).map(|number| scope.spawn(send(number))).collect();
            clients.into_iter().map(|client| client.join().unwrap()).collect()
        });
        let held = times.iter().filter(|time| **time >= HELD).count();
        assert_eq!(held, MOST, "{times:?}");
    }
    let event = decided(gateway, Ipv4Addr::new(127, 2, 2, 1), "tarpit");
    assert_eq!(event["decision"]["held_ms"], HELD.as_millis() as u64, "{event}");
}

fn deny_answers_with_its_status(gateway: &Gateway) {
    let source = Ipv4Addr::new(127, 2, 3, 1);
    let seen = gateway.backend.requests();
    assert_eq!(status(gateway, source, &to("deny", "/?probe=1")), 451);
    assert_eq!(gateway.backend.requests(), seen);
    assert_eq!(status(gateway, source, &to("deny", "/")), 200);
    let event = decided(gateway, source, "deny");
    assert_eq!(
        (&event["event"]["outcome"], &event["decision"]["enforced"]),
        (&json!("blocked"), &json!(true)),
        "{event}"
    );
}

fn a_ban_begins_at_once_and_ends_by_itself(gateway: &Gateway) {
    let source = Ipv4Addr::new(127, 2, 4, 1);
    let clean = to("ban", "/");
    let begin = Instant::now();
    assert_eq!(status(gateway, source, &to("ban", "/?probe=1")), 410);
    let statuses = gateway.statuses_of_all_workers_from(source, &clean);
    assert!(statuses.iter().all(|status| *status == 410) || begin.elapsed() >= BAN, "{statuses:?}");
    wait_for("the end of the ban", PATIENCE, || (status(gateway, source, &clean) == 200).then_some(())).unwrap();
    assert!(begin.elapsed() >= BAN, "the ban ended after {:?}", begin.elapsed());
    let statuses = gateway.statuses_of_all_workers_from(source, &clean);
    assert!(statuses.iter().all(|status| *status == 200), "{statuses:?}");
}

fn the_highest_tier_wins_in_whatever_order(gateway: &Gateway) {
    for name in ["rising", "falling"] {
        assert_eq!(status(gateway, Ipv4Addr::new(127, 3, 0, 1), &to(name, "/?probe=1")), 410, "{name}");
    }
}

fn exempt_callers_are_left_alone(gateway: &Gateway) {
    let suspect = to("exempt", "/?probe=1");
    for (source, expected) in
        [([127, 5, 0, 1], 200), ([127, 5, 0, 2], 451), ([127, 5, 1, 200], 200), ([127, 5, 2, 1], 451)]
    {
        assert_eq!(status(gateway, source.into(), &suspect), expected, "{source:?}");
    }
    // They skip the fabric, not the rules.
    assert_eq!(status(gateway, Ipv4Addr::new(127, 5, 0, 1), &to("exempt", "/?attack=1")), 403);
    let told = gateway.control.events();
    assert!(!told.iter().any(|event| event["source"]["ip"] == "127.5.1.200" && event["decision"]["tier"].is_number()));
}

fn dry_run_records_what_it_would_do(gateway: &Gateway) {
    let source = Ipv4Addr::new(127, 6, 0, 1);
    assert_eq!(status(gateway, source, &to("dry", "/?probe=1")), 200);
    let event = decided(gateway, source, "deny");
    assert_eq!(
        (&event["decision"]["dry_run"], &event["decision"]["enforced"]),
        (&json!(true), &json!(false)),
        "{event}"
    );
    assert_eq!(event["event"]["outcome"], "observed", "{event}");
}

fn a_ban_takes_the_identity_that_its_policy_names(gateway: &Gateway) {
    // What is offended with, from where; and what is banned then: (the same from elsewhere, the address without).
    type Headers = &'static [(&'static str, &'static str)];
    let cases: [(&str, u8, Headers, u16, u16); 8] = [
        ("auto", 1, &[("x-api-key", "a1"), ("x-user", "ua1")], 410, 200),
        ("auto", 2, &[("x-user", "ua2")], 410, 200),
        ("auto", 3, &[], 200, 410),
        ("address", 4, &[("x-api-key", "b4"), ("x-user", "ub4")], 200, 410),
        ("address", 5, &[("x-user", "ub5")], 200, 410),
        ("key", 6, &[("x-api-key", "c6"), ("x-user", "uc6")], 410, 200),
        ("key", 7, &[("x-user", "uc7")], 200, 200),
        ("key", 8, &[], 200, 200),
    ];
    for (policy, number, headers, elsewhere, without) in cases {
        let with = |target: &str| {
            headers.iter().fold(to(policy, target), |request, (name, value)| match *name {
                "x-api-key" => request.header(name, secret(value)),
                _ => request.header(name, value),
            })
        };
        let (here, there) = (Ipv4Addr::new(127, 7, 0, number), Ipv4Addr::new(127, 7, 1, number));
        assert_eq!(status(gateway, here, &with("/?probe=1")), 410, "{policy} {headers:?}");
        assert_eq!(status(gateway, there, &with("/")), elsewhere, "{policy} {headers:?} from elsewhere");
        assert_eq!(status(gateway, here, &to(policy, "/")), without, "{policy} {headers:?}: the address alone");
    }
    // A user's ban holds also where the user comes with a key.
    let both = to("auto", "/").header("x-user", "ua2").header("x-api-key", "another");
    assert_eq!(status(gateway, Ipv4Addr::new(127, 7, 2, 1), &both), 410);
}

fn a_block_of_the_waf_weighs_what_the_policy_says(gateway: &Gateway) {
    for (name, number, weight, expected) in [("heavy", 1, 80, 410), ("light", 2, 30, 403)] {
        let source = Ipv4Addr::new(127, 8, 0, number);
        assert_eq!(status(gateway, source, &to(name, "/?attack=1")), expected, "{name}");
        let event = gateway
            .control
            .event(name, |event| event["source"]["ip"] == source.to_string() && event["decision"].is_object());
        assert_eq!(event["decision"]["score"], weight, "{event}");
        let after = if expected == 410 { 410 } else { 200 };
        assert_eq!(status(gateway, source, &to(name, "/")), after, "{name}: whether it is banned");
    }
}

/// More at once than a gateway gives one backend by itself (1024 connections, and as many requests that wait for one), and
/// more than the stack of a VM would take.
#[test]
fn all_that_a_tarpit_lets_go_of_reach_the_backend() {
    const CLIENTS: usize = 30;
    const EACH: usize = 80;
    let slow = "/slow?millis=3000&probe=1";
    let mut gateway = Gateway::start(|control, backend| {
        control.configure(&json!({"security": {"ledger": {"enabled": false}, "tarpit": {"max_held": 100_000}}}));
        control.create("waf-configs", &waf_config("rules", json!({"rules": [SUSPECT]})));
        let tiers = json!([{"min_score": 10, "action": "tarpit", "tarpit_millis": HELD.as_millis() as u64}]);
        control.create("threat-policies", &threat_policy("slow", json!({"tiers": tiers})));
        control.create("routes", &route("own", backend, preset("slow", "rules")));
    });
    gateway.until(&Request::get("/"), 200, PATIENCE);
    let before = gateway.backend.requests();
    let requests = vec![h2::Request::get(slow); EACH];
    let others: Vec<String> = thread::scope(|scope| {
        let send = || {
            let begin = Instant::now();
            let answers = h2::exchange(gateway.address, &requests).unwrap();
            assert!(begin.elapsed() >= HELD, "nothing was held");
            answers
        };
        let clients: Vec<_> = (0..CLIENTS).map(|_| scope.spawn(send)).collect();
        let answers = clients.into_iter().flat_map(|client| client.join().unwrap());
        answers.filter(|it| !it.as_ref().is_ok_and(|it| it.status == 200)).map(|it| format!("{it:?}")).collect()
    });
    let counts = gateway.envoy.stats(r"^cluster\.backend.*(overflow|cx_open|connect_fail|connect_timeout)");
    assert!(others.is_empty(), "{} others, such as {}; {counts:?}", others.len(), others[0]);
    assert_eq!(gateway.backend.requests() - before, (CLIENTS * EACH) as u64);
    let failures = gateway.envoy.vm_failures();
    assert!(failures.is_empty(), "a filter's VM failed: {failures:?}");
}

fn to(policy: &str, target: &str) -> Request {
    Request::get(target).header("host", format!("{policy}.test"))
}

fn status(gateway: &Gateway, source: Ipv4Addr, request: &Request) -> u16 {
    answer(gateway.address, source, request).status
}

fn answer(gateway: SocketAddr, source: Ipv4Addr, request: &Request) -> Response {
    request.send_from(source, gateway).unwrap_or_else(|error| panic!("no answer to {source}: {error}"))
}

/// The event of a caller's request that this action was decided on.
fn decided(gateway: &Gateway, source: Ipv4Addr, action: &str) -> Value {
    gateway.control.event(&format!("{action} of {source}"), |event| {
        event["source"]["ip"] == source.to_string() && event["decision"]["action"] == action
    })
}
