use std::io::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use exchange::fake::FakeHost;
use exchange::{Body, Chain, Flow, Headers, Reply, Request, Run, Start};
use serde_json::{Value, json};
use snapshot::{Snapshot, Step};

use super::*;

mod bodies;
mod carriers;
mod codings;
mod limits;
mod nested;
mod scans;

const FORM: &str = "multipart/form-data; boundary=cut";
const PNG: &[u8] =
    b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR\0\0\0\x01\0\0\0\x01\x08\x06\0\0\0\x1f\x15\xc4\x89\0\0\0\0IEND\xae\x42\x60\x82";

/// The step of a configuration that changes nothing.
fn step() -> UploadStep {
    let policy = Policy::default();
    UploadStep {
        body_limit: 1 << 20,
        denied_extensions: policy.denied_extensions,
        denied_types: policy.denied_types,
        check_mismatch: true,
        max_files: 100,
        archive_max_depth: 3,
        archive_max_entries: 10_000,
        archive_max_expanded_size: 256 << 20,
        archive_max_ratio: 100,
        reject_unreadable: true,
        weight: 20.0,
        ..UploadStep::default()
    }
}

/// What came of a request.
struct Outcome {
    flow: Flow,
    host: FakeHost,
    tags: Vec<String>,
}

impl Outcome {
    fn reply(&self) -> &Reply {
        let Flow::Answer(reply) = &self.flow else { panic!("{:?}", self.flow) };
        reply
    }

    /// The status and the reason of a refusal; 200 and nothing if the request went on.
    fn verdict(&self) -> (u16, String) {
        match &self.flow {
            Flow::Answer(reply) => {
                let body: Value = serde_json::from_slice(&reply.body).unwrap();
                assert_eq!(body["error"], "upload_refused");
                (reply.status, body["reason"].as_str().unwrap().to_owned())
            }
            _ => (200, String::new()),
        }
    }
}

fn send(step: &UploadStep, method: &str, headers: &[(&str, &str)], bytes: &[u8], complete: bool) -> Outcome {
    send_to(step, method, "/files/report.php", headers, bytes, complete)
}

fn send_to(
    step: &UploadStep,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    bytes: &[u8],
    complete: bool,
) -> Outcome {
    let global = vec![Step { plugin: PLUGIN.name.into(), config: step.encode_to_vec(), ..Step::default() }];
    let snapshot = Snapshot { filter: "preset".into(), global, ..Snapshot::default() };
    let chain = Chain::load(&snapshot, &[PLUGIN]).unwrap();
    let host = FakeHost::at(0);
    let headers = Headers::new(headers);
    let request = Request {
        id: b"abc-1".to_vec(),
        method: method.as_bytes().to_vec(),
        path: path.as_bytes().to_vec(),
        headers,
        ..Request::default()
    };
    let start = Start { request, route: b"", peer: b"192.0.2.7:1", node: &"node".into() };
    let mut run = Run::new(&chain, start, &host);
    let limit = usize::try_from(step.body_limit).unwrap();
    assert_eq!(run.request_headers(true, &host), Flow::Buffer { limit });
    let flow = run.request_body(Body { bytes, complete }.prefix(limit), &host);
    let tags = run.exchange().score.tags().into_iter().map(str::to_owned).collect();
    Outcome { flow, host, tags }
}

fn post(step: &UploadStep, kind: &str, bytes: &[u8]) -> Outcome {
    send(step, "POST", &[("content-type", kind)], bytes, true)
}

/// A form with one file.
fn form(name: &str, content: &[u8]) -> Vec<u8> {
    let head = format!(
        "--cut\r\ncontent-disposition: form-data; name=\"f\"; filename=\"{name}\"\r\ncontent-type: application/octet-stream\r\n\r\n"
    );
    [head.as_bytes(), content, b"\r\n--cut--\r\n"].concat()
}

fn upload(step: &UploadStep, name: &str, content: &[u8]) -> (u16, String) {
    post(step, FORM, &form(name, content)).verdict()
}

fn refused(status: u16, reason: &str) -> (u16, String) {
    (status, reason.to_owned())
}

fn passed() -> (u16, String) {
    (200, String::new())
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn a_refusal_says_why_and_leaves_an_event_and_a_signal() {
    let outcome = post(&step(), FORM, &form("shell.php", b"<?php 1;"));
    let reply = outcome.reply();
    let body: Value = serde_json::from_slice(&reply.body).unwrap();
    assert_eq!(reply.status, 415);
    assert_eq!(
        (&body["error"], &body["reason"], &body["reference"]),
        (&json!("upload_refused"), &json!("denied_extension"), &json!("abc-1"))
    );
    assert_eq!(body["detail"], "the name `shell.php` has the denied extension php");
    assert_eq!(outcome.tags, ["upload:denied_extension", "upload:denied_type"]);
    let event = &outcome.host.events_json()[0];
    assert_eq!((&event["event"]["category"], &event["event"]["outcome"]), (&json!("upload"), &json!("blocked")));
    assert_eq!((&event["event"]["module"], &event["threat"]["score"]), (&json!("upload-guard"), &json!(0)));
    assert!(event["message"].as_str().unwrap().starts_with("denied_extension: "), "{event}");
}

#[test]
fn a_guard_that_monitors_reports_what_it_would_have_done() {
    let monitor = UploadStep { monitor: true, weight: 0.0, ..step() };
    let outcome = post(&monitor, FORM, &form("shell.php", b"<?php 1;"));
    assert_eq!(outcome.verdict(), passed());
    let event = &outcome.host.events_json()[0];
    assert_eq!((&event["event"]["outcome"], &event["decision"]["dry_run"]), (&json!("observed"), &json!(true)));
    assert_eq!(
        (&event["threat"]["score"], &event["threat"]["tags"][0]),
        (&json!(0), &json!("upload:denied_extension"))
    );
    assert!(event["message"].as_str().unwrap().ends_with("; the request would have been refused with 415"), "{event}");
    assert!(post(&monitor, FORM, &form("a.png", PNG)).host.events_json().is_empty());
}

#[test]
fn a_step_that_cannot_be_read_is_an_error() {
    let field = JsonField { path: "a[".into(), name: String::new() };
    let config = UploadStep { json_fields: vec![field], ..step() }.encode_to_vec();
    let steps = vec![Step { plugin: PLUGIN.name.into(), config, ..Step::default() }];
    let snapshot = Snapshot { filter: "preset".into(), global: steps, ..Snapshot::default() };
    assert!(Chain::load(&snapshot, &[PLUGIN]).is_err_and(|error| error.to_string().contains("the field `a[`")));
}

#[test]
fn reasons_that_show_an_attack_have_a_weight() {
    let score = |weight: f64, name: &str, content: &[u8]| {
        let outcome = post(&UploadStep { weight, ..step() }, FORM, &form(name, content));
        outcome.host.events_json()[0]["threat"]["score"].as_f64()
    };
    assert_eq!(score(20.0, "a.exe", PNG), Some(0.0), "a wrong file is no attack");
    assert_eq!(score(20.0, "a.php.png", PNG), Some(20.0));
    assert_eq!(score(35.0, "../a.php.png", PNG), Some(70.0));
}
