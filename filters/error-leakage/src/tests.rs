use exchange::fake::FakeHost;
use exchange::{Chain, Flow, Half, Request, Response, Run, Start};
use serde_json::json;
use snapshot::{Snapshot, Step};

use super::*;

const TRACE: &str = "<pre>Traceback (most recent call last):\n  File \"/srv/app.py\", line 3, in index</pre>";

struct Exchanged {
    flow: Flow,
    host: FakeHost,
    /// The body was asked for.
    held: bool,
}

fn step() -> ErrorLeakageStep {
    ErrorLeakageStep { body_limit: 262_144, paranoia_level: 1, ..ErrorLeakageStep::default() }
}

fn exchange(step: &ErrorLeakageStep, status: u16, headers: &[(&str, &str)], body: &[u8], complete: bool) -> Exchanged {
    let global = vec![Step { plugin: PLUGIN.name.into(), config: step.encode_to_vec(), ..Step::default() }];
    let snapshot = Snapshot { filter: "preset".into(), global, ..Snapshot::default() };
    let chain = Chain::load(&snapshot, &[PLUGIN]).unwrap();
    let host = FakeHost::at(0);
    let request = Request { method: b"GET".to_vec(), path: b"/".to_vec(), id: b"id-1".to_vec(), ..Request::default() };
    let start = Start { request, route: b"", peer: b"192.0.2.7:1", node: &"node".into() };
    let mut run = Run::new(&chain, start, &host);
    assert_eq!(run.request_headers(false, &host), Flow::Continue);
    let response = Response { status, headers: Headers::new(headers), streaming: false };
    let mut flow = run.response_headers(response, true, &host);
    let held = matches!(flow, Flow::Buffer { .. });
    if held {
        flow = run.response_body(Body { bytes: body, complete }, &host);
    }
    assert_eq!(run.take_replaced_body(), None);
    let _ = run.take_changes(Half::Response);
    Exchanged { flow, host, held }
}

fn html(status: u16, body: &[u8]) -> Exchanged {
    exchange(&step(), status, &[("content-type", "text/html")], body, true)
}

#[test]
fn a_leak_is_replaced_and_the_status_of_an_error_stays() {
    for (status, expected) in [(200, 500), (404, 404), (500, 500), (503, 503), (302, 500)] {
        let Flow::Answer(reply) = html(status, TRACE.as_bytes()).flow else { panic!("{status}") };
        let body: serde_json::Value = serde_json::from_slice(&reply.body).unwrap();
        let neutral = json!({ "error": "internal_error", "message": "Something went wrong.", "reference": "id-1" });
        assert_eq!((reply.status, body), (expected, neutral));
    }
}

#[test]
fn the_event_names_the_family_and_not_the_text() {
    let exchanged = html(500, TRACE.as_bytes());
    let event = &exchanged.host.events_json()[0];
    assert_eq!((&event["event"]["category"], &event["event"]["outcome"]), (&json!("leakage"), &json!("blocked")));
    assert_eq!(event["threat"]["tags"], json!(["leakage:python"]));
    assert!(!event.to_string().contains("/srv/app.py"), "{event}");
    assert_eq!(exchanged.host.logged.borrow().len(), 0);
}

#[test]
fn what_clients_need_is_kept_and_nothing_else() {
    let headers = [
        ("content-type", "text/html"),
        ("access-control-allow-origin", "*"),
        ("retry-after", "3"),
        ("x-powered-by", "PHP/8.1"),
        ("etag", "\"1\""),
    ];
    let Flow::Answer(reply) = exchange(&step(), 503, &headers, TRACE.as_bytes(), true).flow else { panic!() };
    let names: Vec<_> = reply.headers.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["content-type", "cache-control", "access-control-allow-origin", "retry-after"]);
}

#[test]
fn monitor_says_what_it_would_have_done() {
    let monitor = ErrorLeakageStep { monitor: true, ..step() };
    let exchanged = exchange(&monitor, 200, &[("content-type", "text/html")], TRACE.as_bytes(), true);
    assert_eq!(exchanged.flow, Flow::Continue);
    let event = &exchanged.host.events_json()[0];
    assert_eq!((&event["event"]["outcome"], &event["decision"]["dry_run"]), (&json!("observed"), &json!(true)));
    assert_eq!(event["decision"]["action"], "deny");
    assert!(event["message"].as_str().unwrap().contains("would have been replaced by an answer with status 500"));
}

#[test]
fn ordinary_responses_and_those_that_cannot_be_replaced_pass() {
    let exchanged = html(200, b"<p>All is well.</p>");
    assert_eq!((exchanged.flow, exchanged.host.events.borrow().len()), (Flow::Continue, 0));
    for (status, kind) in
        [(206, "text/html"), (304, "text/html"), (200, "image/png"), (200, "application/octet-stream")]
    {
        assert!(!exchange(&step(), status, &[("content-type", kind)], b"", true).held, "{status} {kind}");
    }
}

#[test]
fn lists_that_number_their_entries_are_inspected() {
    use std::io::Write as _;
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    gzip.write_all(TRACE.as_bytes()).unwrap();
    let gzip = gzip.finish().unwrap();
    for (status, range) in [(200, "0-14/*"), (200, "posts 0-24/319"), (200, "bytes 0-1/2"), (206, "items 0-14/100")] {
        for pass_ranges in [false, true] {
            let step = ErrorLeakageStep { pass_ranges, ..step() };
            let headers = [("content-type", "application/json"), ("content-range", range)];
            let plain = exchange(&step, status, &headers, TRACE.as_bytes(), true);
            let harmless = exchange(&step, status, &headers, b"[]", true);
            let headers = [headers.as_slice(), &[("content-encoding", "gzip")]].concat();
            for exchanged in [plain, exchange(&step, status, &headers, &gzip, true)] {
                assert!(matches!(&exchanged.flow, Flow::Answer(reply) if reply.status == 500), "{status} {range}");
            }
            assert_eq!(harmless.flow, Flow::Continue, "{status} {range}");
        }
    }
}

#[test]
fn compressed_long_and_wide_bodies_are_inspected() {
    use std::io::Write as _;
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    gzip.write_all(TRACE.as_bytes()).unwrap();
    let gzip = gzip.finish().unwrap();
    let headers = [("content-type", "text/html"), ("content-encoding", "gzip")];
    assert!(matches!(exchange(&step(), 200, &headers, &gzip, true).flow, Flow::Answer(_)));
    let cut = exchange(&step(), 200, &[("content-type", "text/html")], TRACE.as_bytes(), false);
    assert!(matches!(cut.flow, Flow::Answer(_)));
    let event = cut.host.events_json()[0]["message"].as_str().unwrap().to_owned();
    assert!(event.contains("only the beginning of the body was inspected"), "{event}");
    let wide: Vec<u8> = TRACE.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let headers = [("content-type", "text/html; charset=UTF-16LE")];
    assert!(matches!(exchange(&step(), 200, &headers, &wide, true).flow, Flow::Answer(_)));
    // A coding that lies: clients that ignore it see the text.
    let headers = [("content-type", "text/html"), ("content-encoding", "gzip")];
    assert!(matches!(exchange(&step(), 200, &headers, TRACE.as_bytes(), true).flow, Flow::Answer(_)));
}

/// A request for a part of a path: the headers of the request that go on, and what becomes of a part of a text.
fn part(step: &ErrorLeakageStep, path: &str) -> (bool, Flow, FakeHost) {
    let global = vec![Step { plugin: PLUGIN.name.into(), config: step.encode_to_vec(), ..Step::default() }];
    let snapshot = Snapshot { filter: "preset".into(), global, ..Snapshot::default() };
    let chain = Chain::load(&snapshot, &[PLUGIN]).unwrap();
    let host = FakeHost::at(0);
    let headers = Headers::new(&[("range", "bytes=0-9")]);
    let request = Request { method: b"GET".to_vec(), path: path.into(), headers, ..Request::default() };
    let start = Start { request, route: b"", peer: b"192.0.2.7:1", node: &"node".into() };
    let mut run = Run::new(&chain, start, &host);
    assert_eq!(run.request_headers(false, &host), Flow::Continue);
    let ranged = run.exchange().request.headers.get("range").is_some();
    let _ = run.take_changes(Half::Request);
    let headers = Headers::new(&[("content-type", "text/html"), ("content-range", "bytes 0-9/1000")]);
    let flow = run.response_headers(Response { status: 206, headers, streaming: false }, true, &host);
    (ranged, flow, host)
}

#[test]
fn clients_get_no_parts_of_texts_unless_the_configuration_lets_them() {
    let (ranged, _, _) = part(&step(), "/page");
    assert!(!ranged, "the backend answers with the whole");
    let (ranged, flow, host) = part(&step(), "/film.mp4");
    assert!(ranged, "players ask for parts");
    let Flow::Answer(reply) = flow else { panic!("a part of a text under the name of a film: {flow:?}") };
    assert_eq!(reply.status, 416);
    assert_eq!(host.events_json()[0]["event"]["outcome"], json!("blocked"));
    let (ranged, flow, host) = part(&ErrorLeakageStep { monitor: true, ..step() }, "/page");
    assert_eq!((ranged, flow), (true, Flow::Continue));
    let event = &host.events_json()[0];
    assert!(event["message"].as_str().unwrap().ends_with("it would not have been given"), "{event}");
    let (ranged, flow, host) = part(&ErrorLeakageStep { pass_ranges: true, ..step() }, "/page");
    assert_eq!((ranged, flow, host.events_json().len()), (true, Flow::Continue, 0));
}
