use std::collections::BTreeSet;

use contract::compile::{Options, compile};
use exchange::fake::FakeHost;
use exchange::{Body, Caller, Headers, Plugin, Request, Response, Route as ExchangeRoute, Slot, Verdict};
use prost::Message as _;
use snapshot::content_hash;

use super::messages::{Counted, DRIFT, DriftSample, INVENTORY, InventoryReport, Shape};
use super::*;
use crate::ApiContractStep;

const SHOP: &str = r#"
openapi: 3.0.3
paths:
  /items:
    get:
      parameters: [{name: limit, in: query, schema: {type: integer}}]
      responses: {"200": {description: ok, content: {application/json: {schema: {type: array}}}}}
    post:
      requestBody: {required: true, content: {application/json: {schema: {type: object, required: [name], properties: {name: {type: string}}}}}}
      responses: {"201": {description: ok}}
"#;
const START: u64 = 1_800_000_000_000;

fn plugin_of(spec: &str, change: impl FnOnce(&mut ApiContractStep)) -> Box<dyn Plugin> {
    let image = compile(spec, "/api", Options { responses: false }).unwrap().image;
    let hash = content_hash(&image);
    let mut step = ApiContractStep {
        contract: hash.to_vec(),
        name: "shop".to_owned(),
        id: "shop".to_owned(),
        max_body_bytes: 1024,
        inventory: true,
        max_records: 20_000,
        ..ApiContractStep::default()
    };
    change(&mut step);
    let parts = [(hash.as_slice(), image.as_slice())];
    crate::build(&step.encode_to_vec(), &mut exchange::Build::new(parts.into_iter())).unwrap()
}

fn plugin(change: impl FnOnce(&mut ApiContractStep)) -> Box<dyn Plugin> {
    plugin_of(SHOP, change)
}

/// What the backend answers with.
#[derive(Clone, Copy)]
struct Answered<'a> {
    status: &'a str,
    headers: &'a [(&'a str, &'a str)],
    body: &'a [u8],
}

const OK: Answered<'static> = Answered { status: "200", headers: &[], body: b"" };
const NOT_FOUND: Answered<'static> = Answered { status: "404", headers: &[], body: b"" };

/// One exchange from its beginning to its end.
struct Sent<'a> {
    method: &'a str,
    path: &'a [u8],
    body: &'a [u8],
    ip: &'a str,
    route: &'a str,
    secret: bool,
}

impl Default for Sent<'_> {
    fn default() -> Self {
        Sent { method: "GET", path: b"/api/items", body: b"", ip: "192.0.2.7", route: "app", secret: false }
    }
}

fn send(plugin: &dyn Plugin, sent: &Sent<'_>, answer: Option<Answered<'_>>, host: &FakeHost) {
    let mut headers: Vec<(&str, &[u8])> = vec![(":method", sent.method.as_bytes()), (":path", sent.path)];
    if !sent.body.is_empty() {
        headers.push(("content-type", b"application/json"));
    }
    let (request, _) = Request::read(Headers::new(&headers), b"HTTP/1.1".to_vec(), false);
    let route = ExchangeRoute { id: sent.route.into(), ..ExchangeRoute::default() };
    let caller = Caller { ip: sent.ip.to_owned(), ..Caller::default() };
    let mut exchange = Exchange { request, caller, route, target_is_secret: sent.secret, ..Exchange::default() };
    let mut slot = Slot::default();
    let has_body = !sent.body.is_empty();
    let mut verdict = plugin.request(&mut exchange, has_body, &mut slot, host);
    if let Verdict::NeedBody(_) = verdict {
        verdict = plugin.request_body(&mut exchange, Body { bytes: sent.body, complete: true }, &mut slot, host);
    }
    if let Verdict::Refuse(_) = verdict {
        exchange.answered = true;
    } else if let Some(answer) = answer {
        let mut headers = vec![(":status", answer.status)];
        headers.extend(answer.headers);
        exchange.response = Some(Response::read(Headers::new(&headers), exchange::Opening::default()));
        let has_body = !answer.body.is_empty();
        if let Verdict::NeedBody(_) = plugin.response(&mut exchange, has_body, &mut slot, host) {
            let body = Body { bytes: answer.body, complete: true };
            plugin.response_body(&mut exchange, body, &mut slot, host);
        }
    }
    plugin.finish(&mut exchange, &mut slot, host);
}

fn get(plugin: &dyn Plugin, path: &str, answer: Answered<'_>, host: &FakeHost) {
    send(plugin, &Sent { path: path.as_bytes(), ..Sent::default() }, Some(answer), host);
}

/// The reports of counts since the last call.
fn reports(host: &FakeHost) -> Vec<InventoryReport> {
    let sent = std::mem::take(&mut *host.reports.borrow_mut());
    let counts = sent.iter().filter(|(kind, _)| *kind == INVENTORY);
    counts.map(|(_, report)| InventoryReport::decode(report.as_slice()).unwrap()).collect()
}

fn samples(host: &FakeHost) -> Vec<DriftSample> {
    let sent = std::mem::take(&mut *host.reports.borrow_mut());
    let samples = sent.iter().filter(|(kind, _)| *kind == DRIFT);
    samples.map(|(_, report)| DriftSample::decode(report.as_slice()).unwrap()).collect()
}

/// All paths of reports with their hits, reports that came before left out.
fn paths(reports: &[InventoryReport]) -> Vec<(String, u64)> {
    let mut seen = BTreeSet::new();
    let fresh = reports.iter().filter(|report| seen.insert(report.sequence));
    let routes = fresh.flat_map(|report| &report.routes);
    routes
        .flat_map(|route| {
            let paths = route.paths.iter().map(|path| (path.path.clone(), path.counted.as_ref().unwrap().hits));
            let others = route.others.as_ref().map(|others| ("(others)".to_owned(), others.hits));
            paths.chain(others).collect::<Vec<_>>()
        })
        .collect()
}

fn counted(hits: u64, refused: u64, classes: [u64; 5], not_found: u64) -> Counted {
    Counted { hits, refused, classes: classes.to_vec(), not_found, age: 0, answer: None }
}

#[test]
fn operations_and_paths_are_counted_by_what_was_answered() {
    let (plugin, host) = (plugin(|_| {}), FakeHost::at(START));
    plugin.on_timer(&host);
    assert_eq!(reports(&host)[0].contracts, ["shop"]);
    get(&*plugin, "/api/items", OK, &host);
    get(&*plugin, "/api/items?limit=5", NOT_FOUND, &host);
    get(&*plugin, "/api/legacy/42/export", OK, &host);
    get(&*plugin, "/api/legacy/43/export", NOT_FOUND, &host);
    send(&*plugin, &Sent::default(), None, &host);
    plugin.on_timer(&host);
    let report = &reports(&host)[1];
    let route = &report.routes[0];
    assert_eq!((report.sequence, route.route.as_str(), route.operations.len()), (2, "app", 1));
    let operation = &route.operations[0];
    assert_eq!((operation.method.as_str(), operation.path.as_str()), ("GET", "/items"));
    assert_eq!(operation.counted, Some(counted(3, 0, [0, 1, 0, 1, 0], 1)));
    let path = &route.paths[0];
    assert_eq!((path.method.as_str(), path.path.as_str()), ("GET", "/api/legacy/{id}/export"));
    let expected = Counted {
        answer: Some(AnswerSeen { status: 200, ..AnswerSeen::default() }),
        ..counted(2, 0, [0, 1, 0, 1, 0], 1)
    };
    assert_eq!(path.counted, Some(expected));
    assert!(route.others.is_none());
}

#[test]
fn what_the_gateway_refuses_is_no_answer() {
    let (strict, host) = (plugin(|step| step.enforce = true), FakeHost::at(START));
    get(&*strict, "/api/items?limit=x", OK, &host);
    get(&*strict, "/api/none", OK, &host);
    strict.on_timer(&host);
    let report = reports(&host).remove(0);
    let route = &report.routes[0];
    assert_eq!(route.operations[0].counted, Some(counted(1, 1, [0; 5], 0)));
    assert_eq!(route.paths[0].counted, Some(counted(1, 1, [0; 5], 0)));
    assert!(route.operations[0].would_refuse.is_none() && route.outside.is_none(), "it is refused already");
}

#[test]
fn a_report_is_sent_twice_and_what_comes_after_a_silence_at_once() {
    let (plugin, host) = (plugin(|_| {}), FakeHost::at(START));
    let tick = |millis: u64| {
        host.advance(millis);
        plugin.on_timer(&host);
        reports(&host).iter().map(|report| (report.sequence, report.routes.len())).collect::<Vec<_>>()
    };
    assert_eq!(tick(0), [(1, 0)]);
    get(&*plugin, "/api/items", OK, &host);
    assert_eq!(tick(1000), [(1, 0), (2, 1)]);
    get(&*plugin, "/api/items", OK, &host);
    assert_eq!(tick(1000), [], "another one within half a minute waits");
    assert_eq!(tick(28_000), []);
    assert_eq!(tick(1000), [(2, 1), (3, 1)]);
    assert_eq!(tick(30_000), [(3, 1), (4, 0)]);
    host.clock.set(START - 1_000_000);
    assert_eq!(tick(0), [(4, 0), (5, 0)], "the clock was put back");
}

#[test]
fn counts_add_up_in_place_while_there_is_no_control_plane() {
    let (plugin, host) = (plugin(|_| {}), FakeHost::at(START));
    get(&*plugin, "/api/items", OK, &host);
    plugin.on_timer(&host);
    assert_eq!(reports(&host).len(), 1);
    exchange::offline::mark(host.shared(), START + 3_600_000, START);
    for _ in 0..100 {
        host.advance(30_000);
        get(&*plugin, "/api/items", OK, &host);
        plugin.on_timer(&host);
    }
    assert_eq!(reports(&host).len(), 0);
    exchange::offline::clear(host.shared(), host.now());
    plugin.on_timer(&host);
    let sent = reports(&host);
    let hits: Vec<u64> =
        sent.iter().map(|report| report.routes[0].operations[0].counted.as_ref().unwrap().hits).collect();
    assert_eq!(hits, [1, 100], "the one that may be lost comes again, and all that was counted since");
}

#[test]
fn counts_stay_when_a_snapshot_comes() {
    let host = FakeHost::at(START);
    get(&*plugin(|_| {}), "/api/items", OK, &host);
    let changed = SHOP.replace("/items", "/goods");
    let next = plugin_of(&changed, |_| {});
    get(&*next, "/api/goods", OK, &host);
    get(&*next, "/api/items", OK, &host);
    next.on_timer(&host);
    let report = reports(&host).remove(0);
    let mut operations: Vec<&str> = report.routes[0].operations.iter().map(|one| one.path.as_str()).collect();
    operations.sort_unstable();
    assert_eq!(operations, ["/goods", "/items"], "each by the name it had when it was called");
    assert_eq!(paths(&[report]), [("/api/items".to_owned(), 1)]);
}

#[test]
fn what_enforcing_would_refuse_has_its_callers_and_a_sample_without_values() {
    let (plugin, host) = (plugin(|step| step.reject_unknown_query_params = true), FakeHost::at(START));
    for caller in 0..6 {
        let ip = format!("192.0.2.{}", caller % 3);
        let path = format!("/api/items?limit=secret{caller}");
        send(&*plugin, &Sent { path: path.as_bytes(), ip: &ip, ..Sent::default() }, Some(OK), &host);
    }
    let token = Sent { path: b"/api/items?9f86d081884c7d659a2feaa0c55ad015=1", ..Sent::default() };
    send(&*plugin, &token, Some(OK), &host);
    let post = Sent { method: "POST", body: br#"{"name": 4711}"#, ..Sent::default() };
    send(&*plugin, &post, Some(OK), &host);
    get(&*plugin, "/api/items?limit=1", OK, &host);
    get(&*plugin, "/api/none", NOT_FOUND, &host);
    plugin.on_timer(&host);
    let sent = host.reports.borrow().iter().flat_map(|(_, report)| report.clone()).collect::<Vec<u8>>();
    for secret in [b"secret".as_slice(), b"4711", b"9f86d081"] {
        assert!(!sent.windows(secret.len()).any(|bytes| bytes == secret), "no value is sent");
    }
    let route = reports(&host).remove(0).routes.remove(0);
    let of = |method: &str| {
        let operation = route.operations.iter().find(|one| one.method == method).unwrap();
        operation.would_refuse.clone().unwrap()
    };
    let get = of("GET");
    assert_eq!((get.requests, get.callers.len()), (7, 4));
    let shown: Vec<(&str, u64, &str)> =
        get.kinds.iter().map(|one| (one.kind.as_str(), one.requests, one.place.as_str())).collect();
    assert_eq!(shown, [("invalid_parameter", 6, "query:limit"), ("unknown_parameter", 1, "query:{id}")]);
    assert_eq!(of("POST").kinds[0].place, "body:/name");
    let outside = route.outside.unwrap();
    assert_eq!((outside.requests, outside.kinds[0].kind.as_str()), (1, "unknown_path"));
}

#[test]
fn payloads_are_looked_at_once_in_a_while_on_the_node() {
    let host = FakeHost::at(START);
    let sampled = |step: &mut ApiContractStep| step.drift_sampling_millis = 60_000;
    // Two workers have a memory of their own, and what the node shares in common.
    let (one, two) = (plugin(sampled), plugin(sampled));
    let json = [("content-type", "application/json; charset=utf-8"), ("content-length", "12")];
    let answer = Answered { status: "200", headers: &json, body: br#"[{"ssn":"1"}]"# };
    get(&*one, "/api/items", answer, &host);
    get(&*one, "/api/items", answer, &host);
    get(&*two, "/api/items", answer, &host);
    let found = samples(&host);
    assert_eq!(found.len(), 1);
    assert_eq!((found[0].status, found[0].path.as_str(), found[0].media.as_str()), (200, "/items", "application/json"));
    let items = found[0].shape.as_ref().unwrap().items.clone().unwrap();
    assert_eq!((items.fields[0].name.as_str(), items.types), ("ssn", Shape::OBJECT));
    get(&*two, "/api/items", Answered { status: "503", ..answer }, &host);
    assert_eq!(samples(&host).len(), 1, "each status by itself");
    send(&*one, &Sent { method: "POST", body: br#"{"name":"x"}"#, ..Sent::default() }, Some(OK), &host);
    let found = samples(&host);
    assert_eq!((found.len(), found[0].status, found[0].shape.as_ref().unwrap().fields.len()), (2, 0, 1));
    host.advance(60_000);
    get(&*two, "/api/items", answer, &host);
    assert_eq!(samples(&host).len(), 1);
}

#[test]
fn a_body_of_unknown_length_or_of_another_type_is_not_held() {
    let sampled = |step: &mut ApiContractStep| step.drift_sampling_millis = 1;
    let (plugin, host) = (plugin(sampled), FakeHost::at(START));
    let json = ("content-type", "application/json");
    for headers in [
        vec![json],
        vec![json, ("content-length", "1025")],
        vec![("content-type", "text/html"), ("content-length", "5")],
        vec![json, ("content-length", "5"), ("content-encoding", "zstd")],
    ] {
        host.advance(10);
        get(&*plugin, "/api/items", Answered { status: "200", headers: &headers, body: b"[[1]]" }, &host);
        let found = samples(&host);
        assert_eq!((found.len(), found[0].shape.is_some()), (1, false), "{headers:?}");
    }
}

#[test]
fn a_million_different_paths_take_no_more_than_two_hundred_records() {
    let (plugin, host) = (plugin(|_| {}), FakeHost::at(START));
    for number in 0..50_000_u32 {
        let hash = number.wrapping_mul(2_654_435_761);
        let path: String = (0..8).map(|at| char::from(b'a' + ((hash >> (4 * at)) & 15) as u8)).collect();
        get(&*plugin, &format!("/api/{path}/x"), if number % 2 == 0 { OK } else { NOT_FOUND }, &host);
    }
    get(&*plugin, &format!("/{}", "y/".repeat(30_000)), NOT_FOUND, &host);
    send(&*plugin, &Sent { path: b"/\xff\xfe/\x80", ..Sent::default() }, Some(OK), &host);
    send(&*plugin, &Sent { path: b"/reset/plain-secret", secret: true, ..Sent::default() }, Some(OK), &host);
    let mut all = Vec::new();
    for _ in 0..5 {
        host.advance(30_000);
        plugin.on_timer(&host);
        assert!(
            host.reports.borrow().len() <= 8 && host.reports.borrow().iter().all(|(_, report)| report.len() <= 60_000)
        );
        all.extend(reports(&host));
    }
    let found = paths(&all);
    assert!(found.len() <= MAX_PATHS + 1, "{}", found.len());
    assert_eq!(found.iter().map(|(_, hits)| hits).sum::<u64>(), 50_003, "nothing is lost");
    assert!(found.iter().any(|(path, _)| path == "/%FF%FE/%80"), "what exists has room");
    assert!(!found.iter().any(|(path, _)| path.contains("reset")), "a path with a secret is told nowhere");
}

#[test]
fn the_records_of_a_worker_are_bounded_and_the_calls_beyond_are_counted_all_the_same() {
    let (plugin, host) = (plugin(|step| step.max_records = 3), FakeHost::at(START));
    for route in ["a", "b", "c", "d", "e"] {
        send(&*plugin, &Sent { route, ..Sent::default() }, Some(OK), &host);
        let outside = Sent { route, path: b"/api/other", ..Sent::default() };
        send(&*plugin, &outside, Some(OK), &host);
    }
    plugin.on_timer(&host);
    let report = reports(&host).remove(0);
    let records: usize = report.routes.iter().map(|route| route.operations.len() + route.paths.len()).sum();
    let others: u64 = report.routes.iter().filter_map(|route| route.others.as_ref()).map(|others| others.hits).sum();
    assert_eq!((report.routes.len(), records, others), (5, 3, 7));
    // What is idle and was reported makes room.
    host.advance(IDLE + 30_001);
    plugin.on_timer(&host);
    reports(&host);
    send(&*plugin, &Sent { route: "f", ..Sent::default() }, Some(OK), &host);
    plugin.on_timer(&host);
    assert_eq!(reports(&host).last().unwrap().routes[0].operations.len(), 1);
}

#[test]
fn many_records_go_up_in_several_reports_and_the_rest_the_next_time() {
    let operations: String = (0..4_000)
        .map(|number| format!("  /resource-{number}/with/a/rather/long/path/{{id}}:\n    get: {{responses: {{\"200\": {{description: ok}}}}}}\n"))
        .collect();
    let (plugin, host) = (plugin_of(&format!("openapi: 3.0.3\npaths:\n{operations}"), |_| {}), FakeHost::at(START));
    for number in 0..4_000 {
        get(&*plugin, &format!("/api/resource-{number}/with/a/rather/long/path/7"), OK, &host);
    }
    let mut hits = 0;
    let mut seen = BTreeSet::new();
    for _ in 0..6 {
        plugin.on_timer(&host);
        for report in reports(&host).into_iter().filter(|report| seen.insert(report.sequence)) {
            hits += report
                .routes
                .iter()
                .flat_map(|route| &route.operations)
                .map(|one| one.counted.as_ref().unwrap().hits)
                .sum::<u64>();
        }
        host.advance(30_000);
    }
    assert_eq!(hits, 4_000);
}

#[test]
fn nothing_is_counted_where_the_inventory_is_off() {
    let off = |step: &mut ApiContractStep| (step.inventory, step.drift_sampling_millis) = (false, 1);
    let (plugin, host) = (plugin(off), FakeHost::at(START));
    assert_eq!(plugin.timer(), None);
    get(&*plugin, "/api/items", OK, &host);
    get(&*plugin, "/api/none", OK, &host);
    plugin.on_timer(&host);
    assert!(reports(&host).iter().all(|report| report.routes.is_empty()));
}
