//! The cases of the plugin frame (`tests/modules/probe/cases`), natively, in the harness and in a real gateway, with one outcome.
//!
//! A case has `steps` (a plugin and its configuration; that of `threat-response` is a list of tiers, `threat-gate` has none) and `exchanges`, each with a
//! `request`, the backend's `response` and what is `expect`ed. `events` are compared in number and by the members that are given.
//! In the gateway each case runs with all steps in one filter, and once more with a filter for each step. A case has a path and a
//! client of its own, so that two gateways run all of them.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use double::{ControlPlane, Script, Scripted, ScriptedClusters};
use harness::engine::{Engine, Envoy, Native};
use prost::Message;
use proxy_host::traffic::{Exchange, Headers, Outcome, Request, Response};
use proxy_host::{Module, Node, Options, Vm};
use serde::Deserialize;
use serde_json::Value;
use snapshot::{LinkSettings, Policy, Snapshot, Step, Tier, TierAction, seal};
use threat_gate::ThreatGateStep;
use threat_response::ThreatResponseStep;

use crate::kit::{NOW_MILLIS, filter, own};

#[path = "../../../modules/probe/src/plugins.rs"]
pub(crate) mod probe;

use probe::ask::{ProbeAnswer, ProbeQuestion};

const RESPONSE: &str = "threat-response";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    name: String,
    /// The outcome depends on the order of steps in the response, or on bounds of one filter: it is not run with a filter for each.
    #[serde(default)]
    one_filter: bool,
    steps: Vec<StepCase>,
    exchanges: Vec<ExchangeCase>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StepCase {
    plugin: String,
    config: Value,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ExchangeCase {
    #[serde(default)]
    request: RequestCase,
    #[serde(default)]
    response: ResponseCase,
    expect: Expect,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
struct RequestCase {
    method: String,
    headers: BTreeMap<String, String>,
    body: String,
    /// A body of so many bytes `x`, where no other is given.
    body_length: usize,
    /// With trailers the body is chunked.
    trailers: BTreeMap<String, String>,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
struct ResponseCase {
    status: u16,
    headers: BTreeMap<String, String>,
    body: String,
    body_length: usize,
    trailers: BTreeMap<String, String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Expect {
    status: u16,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    #[serde(default)]
    absent: Vec<String>,
    /// `None` where any body will do.
    body: Option<String>,
    body_length: Option<usize>,
    /// What the backend gets; several headers of a name are joined by commas.
    #[serde(default)]
    request_headers: BTreeMap<String, String>,
    #[serde(default)]
    request_absent: Vec<String>,
    request_body: Option<String>,
    request_length: Option<usize>,
    backend: bool,
    #[serde(default)]
    events: Vec<Value>,
}

#[derive(Deserialize)]
struct TierCase {
    min_score: f64,
    action: String,
    status: u32,
}

fn cases() -> Vec<Case> {
    let folder = own("../modules/probe/cases");
    let mut files: Vec<PathBuf> = std::fs::read_dir(&folder).unwrap().map(|file| file.unwrap().path()).collect();
    files.sort();
    assert!(!files.is_empty(), "no cases in {}", folder.display());
    let read = |file: &PathBuf| -> Vec<Case> {
        let text = std::fs::read(file).unwrap();
        serde_json::from_slice(&text).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
    };
    files.iter().flat_map(read).collect()
}

/// The path of a case.
fn path(number: usize) -> String {
    format!("/case-{number:03}")
}

fn step(number: usize, case: &StepCase) -> Step {
    let config = match case.plugin.as_str() {
        RESPONSE => {
            let tiers: Vec<TierCase> = serde_json::from_value(case.config.clone()).unwrap();
            let tiers = (0..).zip(&tiers).map(|(index, tier)| {
                let action = match tier.action.as_str() {
                    "log" => TierAction::Log,
                    "deny" => TierAction::Deny,
                    "tarpit" => TierAction::Tarpit,
                    "ban" => TierAction::Ban,
                    other => panic!("the action {other} has no case yet"),
                };
                let (min_score, status) = (tier.min_score, tier.status);
                Tier {
                    index,
                    min_score,
                    action: action.into(),
                    status,
                    ban_for_seconds: 600,
                    tarpit_millis: 1,
                    ..Tier::default()
                }
            });
            let policy = Policy { name: "probe".into(), tiers: tiers.collect(), ..Policy::default() };
            ThreatResponseStep { policy: Some(policy), maze: None }.encode_to_vec()
        }
        "threat-gate" => ThreatGateStep { policy: Some(Policy::default()) }.encode_to_vec(),
        _ => serde_json::to_vec(&case.config).unwrap(),
    };
    Step { plugin: case.plugin.clone(), config, include: vec![path(number)], ..Step::default() }
}

fn configuration(composite: bool, global: Vec<Step>) -> Vec<u8> {
    let link = LinkSettings { cluster: Envoy::CONTROL.into(), flush_millis: 50, max_queued: 1000 };
    let snapshot = Snapshot { filter: "probe".into(), composite, global, link: Some(link), ..Snapshot::default() };
    seal(&snapshot).encode_to_vec()
}

/// What the double of the control plane does, by the question's text: `say TEXT`, `later TEXT` (in time), `late TEXT` (too late for
/// those that wait for 100 ms), `length` of the body in the question, `scan` the body that goes with it, or so many bytes of it, `stall` the
/// same until it is released, `never`, `unknown`, `garbage`, `huge`, `lose` the link, `hold TEXT` until
/// it is released.
pub(crate) fn script() -> Script {
    Arc::new(|question| {
        let Some(ProbeQuestion { script, body }) = question.read() else { return Scripted::Unknown };
        let text = |text: &str| ProbeAnswer { text: text.to_owned() }.encode_to_vec();
        match script.split_once(' ').unwrap_or((&script, "")) {
            ("say", word) => Scripted::Data(text(word)),
            ("later", word) => Scripted::After(30, text(word)),
            ("late", word) => Scripted::After(400, text(word)),
            ("length", _) => Scripted::Data(text(&body.len().to_string())),
            ("scan", most) => Scripted::Read { most: most.parse().unwrap_or(u64::MAX), answer: scanned },
            ("stall", _) => Scripted::Stall { answer: scanned },
            ("never", _) => Scripted::Never,
            ("garbage", _) => Scripted::Data(vec![0xff]),
            ("huge", _) => Scripted::Data(text(&"x".repeat(snapshot::MAX_ANSWER))),
            ("lose", _) => Scripted::Lose,
            ("hold", word) => Scripted::Held(text(word)),
            _ => Scripted::Unknown,
        }
    })
}

/// What a scanner finds in a body: `infected` if there is a certain word in it, otherwise its length and a sum over its bytes.
fn scanned(body: &[u8]) -> Vec<u8> {
    let sum =
        body.iter().zip(0_u32..).fold(0_u32, |sum, (byte, at)| sum.wrapping_add(u32::from(*byte).wrapping_mul(at | 1)));
    let infected = body.windows(5).any(|word| word == b"EICAR");
    let text = if infected { "infected".to_owned() } else { format!("{} bytes, {sum:08x}", body.len()) };
    ProbeAnswer { text }.encode_to_vec()
}

/// All steps of all cases in one filter.
fn composite(cases: &[Case]) -> Vec<u8> {
    let steps = cases.iter().enumerate().flat_map(|(number, case)| case.steps.iter().map(move |of| step(number, of)));
    configuration(true, steps.collect())
}

/// A filter for the first steps of all cases, one for the second steps, and so on. The threat response is in all of them, because
/// a refusal is answered where it is made.
fn separate(cases: &[Case]) -> Vec<Vec<u8>> {
    let most = cases.iter().map(|case| case.steps.len()).max().unwrap_or_default();
    let filter = |at: usize| {
        let of_case = |(number, case): (usize, &Case)| {
            let own = case.steps.get(at);
            let companion = case.steps.iter().find(|of| of.plugin == RESPONSE);
            let companion = companion.filter(|_| own.is_some_and(|own| own.plugin != RESPONSE));
            let companion = companion.map(|of| Step { on_refusal_only: true, ..step(number, of) });
            own.map(|own| step(number, own)).into_iter().chain(companion).collect::<Vec<_>>()
        };
        configuration(false, cases.iter().enumerate().flat_map(of_case).collect())
    };
    (0..most).map(filter).collect()
}

fn check(cases: &[Case], engine: &mut dyn Engine, world: &str) {
    for (number, case) in cases.iter().enumerate() {
        for (at, of) in case.exchanges.iter().enumerate() {
            let outcome = engine.exchange(&of.exchange(number));
            of.expect.check(&outcome, &format!("{}, exchange {}, {world}", case.name, at + 1));
        }
    }
}

fn headers(pairs: &BTreeMap<String, String>) -> Headers {
    pairs.iter().map(|(name, value)| (name.clone().into_bytes(), value.clone().into_bytes())).collect()
}

fn bytes(text: &str, length: usize) -> Vec<u8> {
    if text.is_empty() { vec![b'x'; length] } else { text.as_bytes().to_vec() }
}

/// A request as it is written with a body in chunks and trailers behind it.
fn chunked(request: &Request) -> Vec<u8> {
    let mut wire = Request { body: Vec::new(), ..request.clone() }.on_wire();
    wire.extend_from_slice(format!("{:x}\r\n", request.body.len()).as_bytes());
    wire.extend_from_slice(&request.body);
    wire.extend_from_slice(b"\r\n0\r\n");
    for (name, value) in &request.trailers {
        [name, b": ".as_slice(), value, b"\r\n"].iter().for_each(|part| wire.extend_from_slice(part));
    }
    wire.extend_from_slice(b"\r\n");
    wire
}

impl ExchangeCase {
    fn exchange(&self, number: usize) -> Exchange {
        let RequestCase { method, headers: sent, body, body_length, trailers } = &self.request;
        let body = bytes(body, *body_length);
        let mut request = Request { body, ..Request::get(&path(number)) };
        request.peer = format!("192.0.2.{}:40000", number + 1);
        if !method.is_empty() {
            request.headers[0].1 = method.clone().into_bytes();
        }
        request.headers.extend(headers(sent));
        if !trailers.is_empty() {
            request.trailers = headers(trailers);
            request.headers.push((b"transfer-encoding".to_vec(), b"chunked".to_vec()));
            request.wire = chunked(&request);
        } else if !request.body.is_empty() {
            request.headers.push((b"content-length".to_vec(), request.body.len().to_string().into_bytes()));
        }
        let ResponseCase { status, headers: answered, body, body_length, trailers } = &self.response;
        let (status, body) = (if *status == 0 { 200 } else { *status }, bytes(body, *body_length));
        let (mut head, trailers) = (headers(answered), headers(trailers));
        if trailers.is_empty() && status != 304 {
            head.push((b"content-length".to_vec(), body.len().to_string().into_bytes()));
        }
        let response = Response { status, headers: head, body, trailers };
        Exchange { request, response }
    }
}

impl Expect {
    fn check(&self, outcome: &Outcome, what: &str) {
        assert!(outcome.fault.is_none(), "{what}: {:?}", outcome.fault);
        assert_eq!((outcome.status, outcome.reached_backend), (self.status, self.backend), "{what}: {outcome:?}");
        let found = |headers: &Headers, name: &str| {
            let of_name = |(known, _): &&(Vec<u8>, Vec<u8>)| known.eq_ignore_ascii_case(name.as_bytes());
            let values = headers.iter().filter(of_name).map(|(_, value)| String::from_utf8_lossy(value));
            values.collect::<Vec<_>>().join(", ")
        };
        let (request, response) = (&outcome.request_headers, &outcome.response_headers);
        for (name, value) in &self.headers {
            assert_eq!(found(response, name), *value, "{what}: {name}");
        }
        for (name, value) in &self.request_headers {
            // On the wire it is the other.
            let known = if name == "host" && found(request, name).is_empty() { ":authority" } else { name };
            assert_eq!(found(request, known), *value, "{what}: the request's {name}");
        }
        for name in &self.absent {
            assert_eq!(found(response, name), "", "{what}: {name}");
        }
        for name in &self.request_absent {
            assert_eq!(found(request, name), "", "{what}: the request's {name}");
        }
        if let Some(body) = &self.body {
            assert_eq!(String::from_utf8_lossy(&outcome.body), *body, "{what}");
        }
        let lengths = [(self.body_length, outcome.body.len()), (self.request_length, outcome.request_body.len())];
        for (expected, found) in lengths {
            assert_eq!(found, expected.unwrap_or(found), "{what}");
        }
        if let Some(body) = &self.request_body {
            assert_eq!(String::from_utf8_lossy(&outcome.request_body), *body, "{what}: the request's body");
        }
        assert_eq!(outcome.events.len(), self.events.len(), "{what}: {:?}", outcome.events);
        for (event, expected) in outcome.events.iter().zip(&self.events) {
            assert_has(event, expected, what);
        }
    }
}

/// Whether a value has everything of another; `null` stands for a member that is not there.
fn assert_has(value: &Value, expected: &Value, what: &str) {
    match expected {
        Value::Object(members) => {
            members.iter().for_each(|(name, expected)| assert_has(&value[name], expected, &format!("{what}: {name}")));
        }
        expected => assert_eq!(value, expected, "{what}"),
    }
}

#[test]
fn cases_come_out_natively() {
    let cases = cases();
    let native = Native::load_of(probe::PLUGINS, &composite(&cases), "gateway-1", NOW_MILLIS, 7).unwrap();
    let mut native = native.with_control_plane(script());
    check(&cases, &mut native, "natively");
}

#[test]
fn cases_come_out_in_the_harness() {
    let (module, cases) = (Module::compile(&filter("probe")).unwrap(), cases());
    let (node, clusters) = (Node::new("gateway-1", NOW_MILLIS, 7), Box::new(ScriptedClusters::new(script())));
    let mut vm = Vm::with_clusters(&module, &composite(&cases), &node, Options::default(), clusters).unwrap();
    vm.advance(1000).unwrap();
    check(&cases, &mut vm, "in the harness");
}

#[test]
fn cases_come_out_in_a_gateway_in_one_filter_and_in_separate_ones() {
    let variable = |name: &str, default: &str| std::env::var_os(name).map_or_else(|| own(default), PathBuf::from);
    let program = variable("PALISADE_ENVOY", "../../.cache/envoy/envoy");
    let module = variable("PALISADE_FILTERS", "../../target/filters").join("probe.wasm");
    let cases = cases();
    let apart: Vec<Case> = self::cases().into_iter().filter(|case| !case.one_filter).collect();
    for (configurations, cases, world) in
        [(vec![composite(&cases)], &cases, "one filter"), (separate(&apart), &apart, "separate filters")]
    {
        let filters: Vec<&[u8]> = configurations.iter().map(Vec::as_slice).collect();
        let control = ControlPlane::start(script()).unwrap();
        let envoy = Envoy::of_filters(&program, &module, &filters, Some(control.address()));
        let mut envoy = envoy.unwrap_or_else(|why| panic!("{why}"));
        check(cases, &mut envoy, &format!("in {world} of a gateway"));
    }
}
