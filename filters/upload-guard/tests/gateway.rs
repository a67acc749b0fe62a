//! The upload guard of a preset in a real gateway with a control plane: files that are refused, that pass, and that are reported.
#![allow(clippy::indexing_slicing, clippy::unwrap_used, reason = "tests")]

use std::io::Write as _;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use palisade_tests::gateway::{Gateway, route, threat_policy};
use palisade_tests::http::{Request, Response};
use serde_json::{Value, json};

const PATIENCE: Duration = Duration::from_secs(15);
const FORM: &str = "multipart/form-data; boundary=cut";
const PNG: &[u8] =
    b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR\0\0\0\x01\0\0\0\x01\x08\x06\0\0\0\x1f\x15\xc4\x89\0\0\0\0IEND\xae\x42\x60\x82";

fn upload(path: &str, name: &str, content: &[u8]) -> Request {
    let head = format!(
        "--cut\r\ncontent-disposition: form-data; name=\"f\"; filename=\"{name}\"\r\ncontent-type: application/octet-stream\r\n\r\n"
    );
    Request::post(path, FORM, [head.as_bytes(), content, b"\r\n--cut--\r\n"].concat())
}

fn refusal(response: &Response) -> (u16, Value, Value) {
    let body = response.json();
    assert!(body["reference"].is_string() && body["detail"].is_string(), "{body}");
    (response.status, body["error"].clone(), body["reason"].clone())
}

#[test]
fn files_are_refused_pass_and_are_reported() {
    let mut gateway = Gateway::start(|control, backend| {
        control.create("threat-policies", &threat_policy("demo", json!({ "tiers": [] })));
        let preset = |more: Value| {
            let mut config = json!({ "threat_policy": "demo", "waf": false, "uploads": true });
            config.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            json!([{ "plugin": "SecuritySuitePreset", "config": config }])
        };
        let place = |id: &str, path: &str, plugins: Value| {
            let mut route = route(id, backend, plugins);
            route["paths"] = json!([path]);
            control.create("routes", &route);
        };
        place("app", "/", preset(json!({})));
        place("watched", "/watched", preset(json!({ "uploads_mode": "monitor" })));
        place("pictures", "/pictures", preset(json!({ "uploads_allowed_extensions": ["png"] })));
        let config = json!({ "json_fields": [{ "path": "files[].content", "name": "name" }], "body_limit": 65536 });
        let plugins = json!([{ "plugin": "SvcUploadGuard", "config": config }, { "plugin": "SvcThreatResponse", "config": { "policy": "demo" } }]);
        place("json", "/json", plugins);
    });
    gateway.until(&Request::get("/status/200"), 200, PATIENCE);

    let refused = |reason: &str| json!(reason);
    let send = |request: Request| gateway.send(&request);
    assert_eq!(
        refusal(&send(upload("/anything", "shell.php", b"x"))),
        (415, json!("upload_refused"), refused("denied_extension"))
    );
    assert_eq!(send(upload("/anything", "a.png", PNG)).status, 200);
    let mut bomb = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    bomb.write_all(&vec![0; 16 << 20]).unwrap();
    let bomb = bomb.finish().unwrap();
    assert_eq!(refusal(&send(upload("/anything", "a.gz", &bomb))).2, refused("archive_bomb"));
    assert_eq!(send(upload("/anything", "a.gz", &bomb)).status, 413);
    assert_eq!(
        refusal(&send(upload("/anything", "a/../../b.txt", b"x"))),
        (400, json!("upload_refused"), refused("zip_slip"))
    );
    let raw = Request::new("PUT", "/anything/a.jsp").header("content-type", "application/octet-stream").body(b"x");
    assert_eq!(refusal(&send(raw)).2, refused("denied_extension"));
    let chunked = upload("/anything", "a.sh", &vec![b'x'; 100_000]).chunked(1000);
    assert_eq!(refusal(&send(chunked)).2, refused("denied_extension"));
    let event = gateway.control.event("a refusal", |event| event["event"]["module"] == "upload-guard");
    assert_eq!((&event["event"]["category"], &event["event"]["outcome"]), (&json!("upload"), &json!("blocked")));
    assert_eq!(event["threat"]["tags"], json!(["upload:denied_extension"]), "{event}");

    assert_eq!(send(upload("/watched/anything", "shell.php", b"<?php 1;")).status, 200);
    let event = gateway.control.event("what was observed", |event| {
        (&event["event"]["module"], &event["event"]["outcome"]) == (&json!("upload-guard"), &json!("observed"))
    });
    assert_eq!((&event["event"]["category"], &event["decision"]["dry_run"]), (&json!("upload"), &json!(true)));
    assert!(event["message"].as_str().unwrap().contains("would have been refused with 415"), "{event}");

    assert_eq!(send(upload("/pictures/anything", "a.png", PNG)).status, 200);
    assert_eq!(refusal(&send(upload("/pictures/anything", "a.txt", b"x"))).2, refused("extension_not_allowed"));

    let document = |name: &str, content: &[u8]| {
        Request::json("/json/anything", &json!({ "files": [{ "name": name, "content": STANDARD.encode(content) }] }))
    };
    assert_eq!(send(document("a.png", PNG)).status, 200);
    assert_eq!(refusal(&send(document("a.png", b"#!/bin/sh\nid"))).2, refused("denied_type"));
    // What is longer than the limit is inspected as far as that goes, and its rest goes on unchanged.
    let long = send(upload("/json/anything", "a.bin", &[1; 300_000]));
    assert_eq!(long.status, 200);
    assert_eq!(send(upload("/json/anything", "a.exe", &[1; 300_000])).status, 415);
    assert!(gateway.envoy.vm_failures().is_empty());
}
