//! A challenge from the first request to the last, the plugins linked in and as the shipped module.

use crate::kit;

use ftw::rules::compile_text;
use harness::engine::{Engine, Native};
use proxy_host::traffic::{Exchange, Outcome, Request, Response};
use proxy_host::{Module, Node, Vm};
use snapshot::{Challenge, Message as _, Policy, RouteChain, Snapshot, Step, Tier, TierAction, Widget, open, seal};
use threat_gate::ThreatGateStep;
use threat_response::ThreatResponseStep;
use waf::WafStep;

const BITS: u32 = 6;

/// The proof of work.
fn work() -> Challenge {
    Challenge {
        provider: "c".into(),
        difficulty_floor: BITS,
        difficulty_ceiling: BITS,
        challenge_ttl_seconds: 300,
        clearance_ttl_seconds: 600,
        cookie_name: "clearance".into(),
        keys: vec![b"key".to_vec()],
        bind_ip: true,
        bind_ua: true,
        ..Challenge::default()
    }
}

/// What `?q=a` weighs is challenged, and the rules refuse every POST.
fn snapshot(challenge: Challenge) -> Vec<u8> {
    let rules = r#"
SecRule ARGS:q "@contains a" "id:1,phase:1,pass,log,msg:'has a'"
SecRule REQUEST_METHOD "@streq POST" "id:2,phase:1,deny,status:406"
"#;
    let (_, waf) = open(&compile_text("rules", rules).unwrap().snapshot).unwrap();
    let mut rules = WafStep::decode(waf.global[0].config.as_slice()).unwrap();
    (rules.block, rules.contribute, rules.match_weight) = (true, true, 50.0);
    let tier = Tier { min_score: 40.0, action: TierAction::Challenge.into(), status: 429, ..Tier::default() };
    let policy = Policy { id: "p".into(), tiers: vec![tier], challenge: Some(challenge), ..Policy::default() };
    let step = |plugin: &str, config: Vec<u8>| Step { plugin: plugin.into(), config, ..Step::default() };
    let steps = vec![
        step("threat-gate", ThreatGateStep { policy: Some(policy.clone()) }.encode_to_vec()),
        step("waf", rules.encode_to_vec()),
        step("threat-response", ThreatResponseStep { policy: Some(policy), maze: None }.encode_to_vec()),
    ];
    let routes = vec![RouteChain { name: "demo".into(), steps, ..RouteChain::default() }];
    seal(&Snapshot { filter: "preset".into(), routes, parts: waf.parts, ..Snapshot::default() }).encode_to_vec()
}

fn send(engine: &mut dyn Engine, method: &str, headers: &[(&str, &str)]) -> Outcome {
    let mut request = Request { route: "demo".into(), peer: "192.0.2.1:4000".into(), ..Request::get("/?q=a") };
    for (name, value) in &mut request.headers {
        if name == b":method" {
            *value = method.into();
        }
    }
    request.headers.extend(headers.iter().map(|(name, value)| (name.as_bytes().to_vec(), value.as_bytes().to_vec())));
    engine.exchange(&Exchange { request, response: Response::default() })
}

/// Status, whether the backend saw it, and what the events say.
fn said(outcome: &Outcome) -> (u16, bool, Vec<String>) {
    let words = outcome.events.iter().filter(|event| event["@type"] == "SvcSecurityEvent").map(|event| {
        let of = &event["event"];
        format!("{} {} {}: {}", of["module"], of["category"], of["outcome"], event["message"])
    });
    (outcome.status, outcome.reached_backend, words.collect())
}

/// What is said of each request of a visit.
fn visit(engine: &mut dyn Engine) -> Vec<(u16, bool, Vec<String>)> {
    let asked = send(engine, "GET", &[("accept", "application/json")]);
    let body: serde_json::Value = serde_json::from_slice(&asked.body).unwrap();
    let challenge = body["challenge"].as_str().unwrap();
    let solves = |nonce: &u32| challenge::solves(challenge.as_bytes(), nonce.to_string().as_bytes(), BITS);
    let nonce = (0_u32..).find(solves).unwrap();
    let solution = format!(r#"{{"challenge":"{challenge}","nonce":{nonce}}}"#);
    let earned = send(engine, "POST", &[("x-svc-challenge", &solution)]);
    let cookie = earned.response_headers.iter().find(|(name, _)| name == b"set-cookie").unwrap();
    let cookie = String::from_utf8(cookie.1.clone()).unwrap();
    let again = send(engine, "POST", &[("x-svc-challenge", &solution)]);
    let cleared = send(engine, "GET", &[("cookie", cookie.split(';').next().unwrap())]);
    let page = send(engine, "GET", &[("accept", "text/html")]);
    assert!(page.body.starts_with(b"<!doctype html>"));
    [asked, earned, again, cleared, page].iter().map(said).collect()
}

#[test]
fn native_and_wasm_agree_on_a_visit() {
    let snapshot = snapshot(work());
    let module = Module::compile(&kit::filter("preset")).unwrap();
    let mut native = Native::load(&snapshot, "node-1", kit::NOW_MILLIS, 7).unwrap();
    let mut wasm = Vm::load(&module, &snapshot, &Node::new("node-1", kit::NOW_MILLIS, 7)).unwrap();
    let (linked, shipped) = (visit(&mut native), visit(&mut wasm));
    assert_eq!(linked, shipped);
    let statuses: Vec<_> = linked.iter().map(|(status, reached, _)| (*status, *reached)).collect();
    assert_eq!(statuses, [(429, false), (204, false), (403, false), (200, true), (429, false)]);
    assert!(linked.iter().all(|(.., events)| events.len() == 1), "one outcome, one event: {linked:#?}");
}

#[test]
fn native_and_wasm_agree_on_a_widget_that_nobody_can_verify() {
    let widget = Widget {
        site_key: "public".into(),
        script_url: "https://vendor.example/api.js".into(),
        html: "<div data-key='{site_key}'></div><script nonce={nonce}></script>".into(),
        response_field: "f".into(),
        ..Widget::default()
    };
    let snapshot = snapshot(Challenge { widget: Some(widget), ..work() });
    let module = Module::compile(&kit::filter("preset")).unwrap();
    let mut native = Native::load(&snapshot, "node-1", kit::NOW_MILLIS, 7).unwrap();
    let mut wasm = Vm::load(&module, &snapshot, &Node::new("node-1", kit::NOW_MILLIS, 7)).unwrap();
    let visit = |engine: &mut dyn Engine| {
        let asked = send(engine, "GET", &[("accept", "application/json")]);
        assert!(String::from_utf8_lossy(&asked.body).contains(r#""kind":"vendor""#));
        let submitted = send(engine, "POST", &[("x-svc-challenge", r#"{"token":"t"}"#)]);
        let malformed = send(engine, "POST", &[("x-svc-challenge", r#"{"token":""}"#)]);
        let page = send(engine, "GET", &[("accept", "text/html")]);
        assert!(page.body.starts_with(b"<!doctype html>"));
        [asked, submitted, malformed, page].iter().map(said).collect::<Vec<_>>()
    };
    let (linked, shipped) = (visit(&mut native), visit(&mut wasm));
    assert_eq!(linked, shipped);
    let statuses: Vec<_> = linked.iter().map(|(status, reached, events)| (*status, *reached, events.len())).collect();
    // That nobody could verify it is an event of its own.
    assert_eq!(statuses, [(429, false, 1), (403, false, 2), (403, false, 1), (429, false, 1)], "{linked:#?}");
}
