use exchange::fake::FakeHost;
use exchange::{Chain, Flow, Half, HeaderChange, Headers, Request, Response, Run, Start};
use serde_json::json;
use snapshot::{Snapshot, Step};

use super::*;

const CARD: &str = "4111 1111 1111 1111";
const BODY: &str = r#"{"card":"4111 1111 1111 1111","key":"AKIAIOSFODNN7EXAMPLE"}"#;
const MASKED: &str = r#"{"card":"**** **** **** 1111","key":"********************"}"#;

struct Exchanged {
    flow: Flow,
    host: FakeHost,
    replaced: Option<String>,
    changes: Vec<HeaderChange>,
    held: bool,
}

fn step(actions: &[(&str, DataAction)]) -> SensitiveDataStep {
    let detector =
        |(name, action): &(&str, DataAction)| DetectorAction { detector: (*name).to_owned(), action: (*action).into() };
    SensitiveDataStep {
        body_limit: 262_144,
        email_threshold: 2,
        detectors: actions.iter().map(detector).collect(),
        ..SensitiveDataStep::default()
    }
}

fn masking() -> SensitiveDataStep {
    step(&[("card", DataAction::Mask), ("cloud_key", DataAction::Mask), ("jwt", DataAction::Log)])
}

fn exchange(step: &SensitiveDataStep, status: u16, headers: &[(&str, &str)], body: &[u8], complete: bool) -> Exchanged {
    let global = vec![Step { plugin: PLUGIN.name.into(), config: step.encode_to_vec(), ..Step::default() }];
    let snapshot = Snapshot { filter: "preset".into(), global, ..Snapshot::default() };
    let chain = Chain::load(&snapshot, &[PLUGIN]).unwrap();
    let host = FakeHost::at(0);
    let request = Request { method: b"GET".to_vec(), path: b"/".to_vec(), ..Request::default() };
    let start = Start { request, route: b"", peer: b"192.0.2.7:1", node: &"node".into() };
    let mut run = Run::new(&chain, start, &host);
    assert_eq!(run.request_headers(false, &host), Flow::Continue);
    let response = Response { status, headers: Headers::new(headers), streaming: false };
    let mut flow = run.response_headers(response, true, &host);
    let held = matches!(flow, Flow::Buffer { .. });
    if held {
        flow = run.response_body(Body { bytes: body, complete }, &host);
    }
    let replaced = run.take_replaced_body().map(|body| String::from_utf8_lossy(&body).into_owned());
    let changes = run.take_changes(Half::Response);
    Exchanged { flow, host, replaced, changes, held }
}

fn json_body(step: &SensitiveDataStep, body: &str) -> Exchanged {
    exchange(step, 200, &[("content-type", "application/json")], body.as_bytes(), true)
}

fn message(exchanged: &Exchanged) -> String {
    exchanged.host.events_json()[0]["message"].as_str().unwrap().to_owned()
}

#[test]
fn values_are_masked_and_in_no_event_or_log() {
    let exchanged = json_body(&masking(), BODY);
    assert_eq!((exchanged.flow.clone(), exchanged.replaced.as_deref()), (Flow::Continue, Some(MASKED)));
    let event = &exchanged.host.events_json()[0];
    assert_eq!((&event["event"]["category"], &event["decision"]["enforced"]), (&json!("sensitive_data"), &json!(true)));
    assert_eq!(event["threat"]["tags"], json!(["dlp:card", "dlp:cloud_key"]));
    assert!(message(&exchanged).contains("card (1 times, the first in the first 4 KiB)"), "{event}");
    let told = format!("{event}{:?}", exchanged.host.logged.borrow());
    assert!(!told.contains("4111") && !told.contains("AKIA") && !told.contains("1111"), "{told}");
}

#[test]
fn compressed_bodies_are_sent_masked_with_right_headers() {
    use std::io::Write as _;
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    gzip.write_all(BODY.as_bytes()).unwrap();
    let gzip = gzip.finish().unwrap();
    let length = gzip.len().to_string();
    let headers = [
        ("content-type", "application/json"),
        ("content-encoding", "gzip"),
        ("content-length", length.as_str()),
        ("etag", "\"1\""),
        ("repr-digest", "sha-256=:x:"),
    ];
    let exchanged = exchange(&masking(), 200, &headers, &gzip, true);
    assert_eq!(exchanged.replaced.as_deref(), Some(MASKED));
    let removed = ["content-encoding", "repr-digest", "etag"].map(HeaderChange::remove);
    let length = HeaderChange::set("content-length", MASKED.len().to_string());
    assert_eq!(exchanged.changes, [removed.as_slice(), &[length]].concat());
}

/// Lists whose header numbers their entries (PostgREST, react-admin), and a status that does not fit the header.
const LISTS: [(u16, &str); 6] = [
    (200, "0-14/*"),
    (200, "posts 0-24/319"),
    (200, "bytes 0-58/59"),
    (206, "0-14/100"),
    (206, "items 0-14/100"),
    (404, "bytes */59"),
];

#[test]
fn lists_that_number_their_entries_are_masked() {
    use std::io::Write as _;
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    gzip.write_all(BODY.as_bytes()).unwrap();
    let gzip = gzip.finish().unwrap();
    for (status, range) in LISTS {
        for pass_ranges in [false, true] {
            let step = SensitiveDataStep { pass_ranges, ..masking() };
            let headers = [("content-type", "application/json"), ("content-range", range)];
            let plain = exchange(&step, status, &headers, BODY.as_bytes(), true);
            let headers = [headers.as_slice(), &[("content-encoding", "gzip")]].concat();
            for exchanged in [plain, exchange(&step, status, &headers, &gzip, true)] {
                let what = format!("{status} {range} {pass_ranges} {:?}", exchanged.flow);
                assert_eq!((exchanged.flow, exchanged.replaced.as_deref()), (Flow::Continue, Some(MASKED)), "{what}");
            }
        }
    }
}

#[test]
fn numbers_stay_numbers_whatever_the_type_says() {
    for (kind, text, expected) in [
        ("text/html", r#"{"card":4111111111111111}"#, r#"{"card":9999999999991111}"#),
        ("text/plain", r#"[4111111111111111,1]"#, r#"[9999999999991111,1]"#),
        ("application/javascript", "cb({card:4111111111111111});", "cb({card:9999999999991111});"),
        (
            "text/html",
            "<script>var s={\"card\":4111111111111111};</script>",
            "<script>var s={\"card\":9999999999991111};</script>",
        ),
        ("text/html", "<p>4111111111111111", "<p>************1111"),
    ] {
        let exchanged = exchange(&masking(), 200, &[("content-type", kind)], text.as_bytes(), true);
        assert_eq!(exchanged.replaced.as_deref(), Some(expected), "{kind}");
    }
}

#[test]
fn the_strictest_action_decides() {
    let blocking = step(&[("card", DataAction::Mask), ("cloud_key", DataAction::Block)]);
    let Flow::Answer(reply) = json_body(&blocking, BODY).flow else { panic!() };
    assert_eq!(reply.status, 500);
    assert!(String::from_utf8(reply.body).unwrap().contains("\"response_withheld\""));
    let logging = step(&[("card", DataAction::Log)]);
    let exchanged = json_body(&logging, BODY);
    assert_eq!((exchanged.flow.clone(), exchanged.replaced.clone()), (Flow::Continue, None));
    assert!(message(&exchanged).ends_with("; it was reported"), "{}", message(&exchanged));
    // A detector that only reports has its matches left as they are.
    let mixed = step(&[("card", DataAction::Log), ("cloud_key", DataAction::Mask)]);
    assert!(json_body(&mixed, BODY).replaced.unwrap().contains(CARD));
}

#[test]
fn monitor_says_what_it_would_have_done() {
    for (action, expected, decision) in [
        (DataAction::Mask, "; it would have been masked", ("log", true)),
        (DataAction::Block, "; the response would have been withheld", ("deny", true)),
        (DataAction::Log, "; it was reported", ("log", false)),
    ] {
        let monitor = SensitiveDataStep { monitor: true, ..step(&[("card", action)]) };
        let exchanged = json_body(&monitor, BODY);
        assert_eq!((exchanged.flow.clone(), exchanged.replaced.clone()), (Flow::Continue, None));
        assert!(message(&exchanged).ends_with(expected), "{}", message(&exchanged));
        let told = &exchanged.host.events_json()[0]["decision"];
        assert_eq!(
            (&told["action"], &told["dry_run"], &told["enforced"]),
            (&json!(decision.0), &json!(decision.1), &json!(false))
        );
    }
}

#[test]
fn what_cannot_be_masked_as_a_whole_is_withheld() {
    let headers = [("content-type", "application/json")];
    let exchanged = exchange(&masking(), 200, &headers, BODY.as_bytes(), false);
    assert!(matches!(&exchanged.flow, Flow::Answer(reply) if reply.status == 500));
    assert!(message(&exchanged).contains("only the beginning of the body was inspected"));
    let harmless = exchange(&masking(), 200, &headers, b"{}", false);
    assert_eq!((harmless.flow, harmless.host.events.borrow().len()), (Flow::Continue, 0));
}

#[test]
fn what_is_no_whole_text_is_not_held() {
    for (status, kind) in
        [(206, "text/html"), (304, "text/html"), (200, "image/png"), (206, "multipart/byteranges; boundary=x")]
    {
        assert!(!exchange(&masking(), status, &[("content-type", kind)], b"", true).held, "{status} {kind}");
    }
}

#[test]
fn wide_bodies_are_masked_in_place() {
    let wide: Vec<u8> = "\u{feff}card 4111111111111111".encode_utf16().flat_map(u16::to_le_bytes).collect();
    let exchanged = exchange(&masking(), 200, &[("content-type", "text/plain")], &wide, true);
    let expected: Vec<u8> = "\u{feff}card ************1111".encode_utf16().flat_map(u16::to_le_bytes).collect();
    assert_eq!(exchanged.replaced.unwrap(), String::from_utf8_lossy(&expected));
}

#[test]
fn detectors_of_the_configuration_are_named() {
    let own = CustomDetector {
        name: "member".to_owned(),
        pattern: "MEM-[0-9]{4}".to_owned(),
        checksum: PatternChecksum::None.into(),
        action: DataAction::Mask.into(),
    };
    let step = SensitiveDataStep { custom: vec![own], ..step(&[]) };
    let exchanged = json_body(&step, r#"{"id":"MEM-0042","other":"MEM-0043"}"#);
    assert_eq!(exchanged.replaced.as_deref(), Some(r#"{"id":"***-****","other":"***-****"}"#));
    assert_eq!(exchanged.host.events_json()[0]["threat"]["tags"], json!(["dlp:member"]));
}

/// A request for a part of a path: whether it goes on as one, and what becomes of a part of a text.
fn part(step: &SensitiveDataStep, path: &str) -> (bool, Flow, FakeHost) {
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
    let headers = Headers::new(&[("content-type", "application/json"), ("content-range", "bytes 0-9/1000")]);
    let flow = run.response_headers(Response { status: 206, headers, streaming: false }, true, &host);
    (ranged, flow, host)
}

#[test]
fn clients_get_no_parts_of_texts_unless_the_configuration_lets_them() {
    assert!(!part(&masking(), "/customers").0, "the backend answers with the whole");
    let (ranged, flow, _) = part(&masking(), "/customers.zip");
    assert!(ranged && matches!(&flow, Flow::Answer(reply) if reply.status == 416), "{flow:?}");
    let (ranged, flow, host) = part(&SensitiveDataStep { monitor: true, ..masking() }, "/customers");
    assert_eq!((ranged, flow), (true, Flow::Continue));
    let decided = |host: &FakeHost| {
        let decision = host.events_json()[0]["decision"].clone();
        (decision["action"].as_str().unwrap().to_owned(), decision["dry_run"] == json!(true))
    };
    assert_eq!(decided(&host), ("deny".to_owned(), true));
    for monitor in [false, true] {
        let logging = SensitiveDataStep { monitor, ..step(&[("card", DataAction::Log)]) };
        let (_, flow, host) = part(&logging, "/customers.zip");
        assert_eq!((flow, decided(&host)), (Flow::Continue, ("log".to_owned(), false)));
        assert!(host.events_json()[0]["message"].as_str().unwrap().ends_with("it was not inspected"));
    }
    let (ranged, flow, host) = part(&SensitiveDataStep { pass_ranges: true, ..masking() }, "/customers");
    assert_eq!((ranged, flow, host.events_json().len()), (true, Flow::Continue, 0));
}
