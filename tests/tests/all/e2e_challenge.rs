//! The proof of work in front of a backend: asked for, done, and worth a clearance once, on whichever node.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::time::Duration;

use palisade_tests::bootstrap::shipped;
use palisade_tests::browser::Browser;
use palisade_tests::challenge;
use palisade_tests::envoy::Envoy;
use palisade_tests::gateway::{
    Gateway, WRITTEN_ADMIN_PORT, WRITTEN_XDS_PORT, preset, route, threat_policy, waf_config,
};
use palisade_tests::http::{Request, Response};
use palisade_tests::process::wait_for;
use serde_json::{Value, json};

const PATIENCE: Duration = Duration::from_secs(30);
/// What a match weighs, and the tier below asks for.
const SUSPECT: &str = r#"SecRule ARGS:probe "@streq 1" "id:10001,phase:1,pass,log,msg:'suspect'""#;
/// No submission would get past this one.
const NO_POST: &str = r#"SecRule REQUEST_METHOD "@streq POST" "id:10002,phase:1,deny,status:406""#;
/// Zero bits: some thousand tries.
const BITS: u32 = 12;
/// Submissions of one solution at once, each on a connection of its own.
const SUBMISSIONS: usize = 1000;
/// Bits that are what the default asks for.
const FLOOR: u32 = 18;

/// A gateway that challenges whoever asks for `?probe=1`.
fn gateway(filters: Value, bits: u32) -> Gateway {
    let mut gateway = Gateway::start(|control, backend| {
        control.configure(&json!({"gateway": {"filters": filters}}));
        let provider = json!({"id": "work", "difficulty_floor": bits, "difficulty_ceiling": bits});
        control.create("challenge-providers", &provider);
        control.create("waf-configs", &waf_config("demo", json!({"rules": [SUSPECT, NO_POST]})));
        let tiers =
            json!([{"min_score": 20, "action": "challenge", "status": 429}, {"min_score": 90, "action": "deny"}]);
        let policy = threat_policy("demo", json!({"tiers": tiers, "challenge_provider": "work"}));
        control.create("threat-policies", &policy);
        control.create("routes", &route("demo", backend, preset("demo", "demo")));
    });
    gateway.until(&Request::get("/"), 200, PATIENCE);
    gateway
}

fn suspect() -> Request {
    Request::get("/?probe=1")
}

/// The same from a program.
fn program() -> Request {
    Request::new("GET", "/?probe=1").header("accept", "application/json").header("user-agent", "program/1")
}

/// The header of a submission that solves the challenge in an answer.
fn solve(answer: &Response) -> String {
    assert_eq!((answer.status, &answer.json()["error"]), (429, &json!("challenge_required")), "{}", answer.text());
    challenge::solve(answer).unwrap()
}

fn submission(solution: &str) -> Request {
    Request::new("POST", "/?probe=1").header("user-agent", "program/1").header("x-svc-challenge", solution).body("")
}

fn cookie(answer: &Response) -> String {
    assert_eq!(answer.status, 204, "{}", answer.text());
    let cookie = answer.header("set-cookie").expect("a cookie");
    assert!(cookie.contains("; HttpOnly; SameSite=Lax") && !cookie.contains("Secure"), "{cookie}");
    assert_eq!(answer.header("cache-control").as_deref(), Some("no-store"));
    cookie.split(';').next().unwrap().to_owned()
}

#[test]
fn whoever_works_goes_on_in_one_filter() {
    works_and_goes_on(json!(["preset"]));
}

#[test]
fn whoever_works_goes_on_in_separate_filters() {
    works_and_goes_on(json!(["threat-gate", "waf", "threat-response"]));
}

fn works_and_goes_on(filters: Value) {
    let gateway = gateway(filters, BITS);
    let page = gateway.send(&suspect());
    assert_eq!(page.status, 429);
    assert_eq!(page.header("cache-control").as_deref(), Some("no-store"));
    assert!(page.header("content-security-policy").is_some_and(|policy| policy.contains("script-src 'sha256-")));
    assert!(page.text().contains("<noscript>") && page.body.len() < 12 << 10, "{}", page.text());

    let answer = gateway.send(&program());
    assert_eq!(answer.header("content-type").as_deref(), Some("application/json"));
    let solution = solve(&answer);
    let seen = gateway.backend.requests();
    // The rules deny every POST; this one never gets to them.
    let cookie = cookie(&gateway.send(&submission(&solution)));
    assert_eq!(gateway.status(&Request::new("POST", "/?probe=1").body("")), 406);
    let cleared = program().header("cookie", &cookie);
    let statuses = gateway.statuses_of_all_workers(&cleared);
    assert!(statuses.iter().all(|status| *status == 200), "{statuses:?}");
    assert!(gateway.backend.requests() > seen);

    assert_eq!(gateway.status(&submission(&solution)), 403, "it was spent");
    assert_eq!(gateway.status(&program()), 429, "without the cookie");
    let elsewhere = cleared.send_from(Ipv4Addr::new(127, 0, 9, 1), gateway.address).unwrap();
    assert_eq!(elsewhere.status, 429, "another network");
    let near = cleared.send_from(Ipv4Addr::new(127, 0, 0, 9), gateway.address).unwrap();
    assert_eq!(near.status, 200, "the same network");
    for wrong in ["{}", "x", r#"{"challenge":"e30.00","nonce":1}"#] {
        assert_eq!(gateway.status(&submission(wrong)), 403, "{wrong}");
    }

    let of = |outcome: &'static str, tag: &'static str| {
        gateway.control.event(&format!("{outcome} {tag}"), move |event| {
            event["event"]["category"] == "challenge"
                && event["event"]["action"] == "challenge"
                && event["event"]["outcome"] == outcome
                && event["threat"]["tags"].as_array().is_some_and(|tags| tags.iter().any(|known| known == tag))
        })
    };
    of("blocked", "waf:match");
    of("observed", "challenge:passed");
    of("blocked", "challenge:failed");
    let told = gateway.control.events();
    assert!(!told.iter().any(|event| event["event"]["category"] == "dependency"), "the control plane was there");
    let failures = gateway.envoy.vm_failures();
    assert!(failures.is_empty(), "a filter's VM failed: {failures:?}");
}

#[test]
fn of_a_thousand_submissions_at_once_on_two_nodes_one_counts() {
    let mut gateway = gateway(json!(["preset"]), BITS);
    // The kernel divides connections between the two: both listen on the one port.
    let ports = [(WRITTEN_XDS_PORT, gateway.control.xds().port()), (WRITTEN_ADMIN_PORT, 0)];
    let other = Envoy::start(&shipped("xds.yaml", &ports));
    let requests = |envoy: &Envoy| envoy.stats("^http.*downstream_rq_2xx").values().sum::<u64>();
    wait_for("requests on both nodes", PATIENCE, || {
        let _ = Request::get("/").send(gateway.address);
        (requests(&other) > 0).then_some(())
    })
    .unwrap_or_else(|why| panic!("{why}\n{}", other.log_tail(40)));
    for round in 0..3 {
        let solution = submission(&solve(&gateway.send(&program())));
        let refused = |envoy: &Envoy| envoy.stats("^http.*downstream_rq_4xx").values().sum::<u64>();
        let before = (refused(&gateway.envoy), refused(&other));
        let counts = challenge::at_once(&solution, gateway.address, SUBMISSIONS);
        let after = (refused(&gateway.envoy), refused(&other));
        println!("round {round}: refused by each node: {} and {}", after.0 - before.0, after.1 - before.1);
        assert_eq!(counts, BTreeMap::from([(204, 1), (403, SUBMISSIONS - 1)]), "0 stands for no answer");
        assert!(after.0 > before.0 && after.1 > before.1, "one node had all of them");
    }
    let failures = [gateway.envoy.vm_failures(), other.vm_failures()].concat();
    assert!(failures.is_empty(), "a filter's VM failed: {failures:?}");
    assert!(gateway.envoy.lives());
}

#[test]
fn without_its_control_plane_a_node_goes_on_and_says_so() {
    let mut gateway = gateway(json!(["preset"]), BITS);
    let first = solve(&gateway.send(&program()));
    let before = cookie(&gateway.send(&submission(&first)));
    gateway.control.kill();
    let second = solve(&gateway.send(&program()));
    assert_eq!(gateway.status(&submission(&first)), 403, "this node knows that it was spent");
    cookie(&gateway.send(&submission(&second)));
    assert_eq!(gateway.status(&submission(&second)), 403);
    // The keys are those of before.
    gateway.control.restart();
    // Beside the event of the outage itself.
    let unanswered =
        |event: &Value| event["event"]["category"] == "dependency" && event["event"]["module"] != "node-link";
    let event = gateway.control.event("a dependency", unanswered);
    assert!(event["message"].as_str().unwrap().contains("did not say whether a puzzle was spent"), "{event}");
    gateway.control.patch("threat-policies", "demo", &json!({"description": "compiled anew"}));
    gateway.control.patch("waf-configs", "demo", &json!({"rules": [SUSPECT]}));
    gateway.until(&Request::new("POST", "/").body(""), 200, PATIENCE);
    assert_eq!(gateway.status(&program().header("cookie", &before)), 200);

    // Another generation of the made key: what the one before has signed still counts, and then no more.
    for (generation, status) in [(1, 200), (2, 429)] {
        gateway.control.patch("challenge-providers", "work", &json!({"secret_generation": generation}));
        let rule = format!(r#"SecRule ARGS:key "@streq {generation}" "id:10003,phase:1,deny,status:403""#);
        gateway.control.patch("waf-configs", "demo", &json!({"rules": [SUSPECT, rule]}));
        gateway.until(&Request::get(format!("/?key={generation}")), 403, PATIENCE);
        assert_eq!(gateway.status(&program().header("cookie", &before)), status, "generation {generation}");
    }
}

/// A real browser: `PALISADE_CHROMIUM`, or `chromium` where there is one.
#[test]
fn a_browser_gets_to_the_page_behind() {
    let Some(chromium) = Browser::program() else {
        println!("there is no chromium: nothing was tested");
        return;
    };
    let gateway = gateway(json!(["preset"]), FLOOR);
    let browser = Browser::start(&chromium, &[]).unwrap();
    browser.open(&format!("http://{}/?probe=1", gateway.address)).unwrap();
    let passed = |method: &'static str| {
        move |event: &Value| {
            event["http"]["method"] == method
                && event["event"]["outcome"] == "observed"
                && event["threat"]["tags"]
                    .as_array()
                    .is_some_and(|tags| tags.iter().any(|tag| tag == "challenge:passed"))
        }
    };
    for method in ["POST", "GET"] {
        let event = wait_for(&format!("the browser's {method}"), Duration::from_secs(60), || {
            gateway.control.events().into_iter().find(passed(method))
        })
        .unwrap_or_else(|why| panic!("{why}\n{:?}\n{}", gateway.control.events().last(), browser.log_tail(40)));
        println!("{}: {}", event["@timestamp"], event["message"]);
    }
    drop(browser);
    let asked = gateway.control.events().iter().filter(|event| event["event"]["outcome"] == "blocked").count();
    assert_eq!(asked, 1, "it was asked once");
}
