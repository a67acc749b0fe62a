//! The upload guard of a preset in a real gateway with a control plane: files that are refused, that pass, and that are reported.
#![allow(clippy::indexing_slicing, clippy::unwrap_used, reason = "tests")]

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
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

/// A clamd that finds the text `infected`, until it is switched off: then it closes connections in the middle.
fn clamd(works: Arc<AtomicBool>) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let works = works.load(Ordering::SeqCst);
            std::thread::spawn(move || works.then(|| serve(stream)));
        }
    });
    port
}

fn serve(mut stream: TcpStream) -> Option<()> {
    let mut command = Vec::new();
    while command.last() != Some(&0) {
        let mut byte = [0];
        stream.read_exact(&mut byte).ok()?;
        command.push(byte[0]);
    }
    if command == b"zVERSION\0" {
        return stream.write_all(b"ClamAV 1.4.1/1/today\0").ok();
    }
    assert_eq!(command, b"zINSTREAM\0");
    let mut content = Vec::new();
    loop {
        let mut length = [0; 4];
        stream.read_exact(&mut length).ok()?;
        let length = usize::try_from(u32::from_be_bytes(length)).unwrap();
        if length == 0 {
            break;
        }
        let mut chunk = vec![0; length];
        stream.read_exact(&mut chunk).ok()?;
        content.extend(chunk);
    }
    let infected = content.windows(8).any(|window| window == b"infected");
    stream.write_all(if infected { b"stream: Test-Signature FOUND\0" } else { b"stream: OK\0" }).ok()
}

#[test]
fn files_are_scanned() {
    let works = Arc::new(AtomicBool::new(true));
    let port = clamd(Arc::clone(&works));
    let mut gateway = Gateway::start(|control, backend| {
        control.create("threat-policies", &threat_policy("demo", json!({ "tiers": [] })));
        control.create("malware-scanners", &json!({ "id": "clam", "port": port, "timeout_millis": 3000 }));
        for (id, path, action) in [("app", "/", "reject"), ("open", "/open", "allow")] {
            let config = json!({
                "threat_policy": "demo", "waf": false, "uploads": true, "uploads_scanner": "clam",
                "uploads_scan_failure_action": action,
            });
            let mut route = route(id, backend, json!([{ "plugin": "SecuritySuitePreset", "config": config }]));
            route["paths"] = json!([path]);
            control.create("routes", &route);
        }
    });
    gateway.until(&Request::get("/status/200"), 200, PATIENCE);
    let send = |request: Request| gateway.send(&request);
    let long = [vec![b'x'; 700_000], b"infected".to_vec()].concat();
    assert_eq!(send(upload("/anything", "a.txt", &vec![b'x'; 700_000])).status, 200);
    let found = send(upload("/anything", "a.txt", &long));
    assert_eq!(refusal(&found), (403, json!("upload_refused"), json!("malware")));
    assert!(found.text().contains("Test-Signature"), "{}", found.text());
    assert_eq!(send(Request::post("/anything", "application/octet-stream", b"infected")).status, 403);
    let event = gateway.control.event("malware", |event| event["threat"]["tags"] == json!(["upload:malware"]));
    assert_eq!((&event["event"]["category"], &event["event"]["outcome"]), (&json!("upload"), &json!("blocked")));

    works.store(false, Ordering::SeqCst);
    assert_eq!(
        refusal(&send(upload("/anything", "a.txt", b"other"))),
        (503, json!("upload_refused"), json!("scan_failed"))
    );
    assert_eq!(send(upload("/open/anything", "a.txt", b"other")).status, 200);
    let _ = gateway.control.event("an open failure", |event| {
        event["threat"]["tags"] == json!(["upload:scan_failed"])
            && (&event["event"]["category"], &event["event"]["outcome"]) == (&json!("dependency"), &json!("observed"))
    });
    let _ = gateway.control.event("a failing scanner", |event| {
        event["message"].as_str().is_some_and(|message| message.contains("malware scanner clam"))
    });
    // The verdict on a file that was scanned before is still known; longer bodies than the limit have none.
    assert_eq!(send(upload("/anything", "a.txt", &vec![b'x'; 700_000])).status, 200);
    assert_eq!(send(upload("/anything", "a.txt", &vec![b'x'; 1_200_000])).status, 503);
    assert!(gateway.envoy.vm_failures().is_empty());
}
