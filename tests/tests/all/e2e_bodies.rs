//! Long bodies: the limits without files and with files, uploads that are read as they come, and what hides behind padding.

use std::io::Write;
use std::time::Duration;

use flate2::Compression;
use flate2::write::GzEncoder;
use palisade_tests::gateway::{Gateway, route, waf_config};
use palisade_tests::http::Request;
use serde_json::{Value, json};

/// A change to be in force.
const PATIENCE: Duration = Duration::from_secs(20);
const FORM: &str = "application/x-www-form-urlencoded";
const FORM_DATA: &str = "multipart/form-data; boundary=frontier";
const MIB: usize = 1 << 20;

const RULES: &str = "SecRuleEngine On\nSecRequestBodyAccess On\n\
    SecRule ARGS \"@contains union select\" \"id:1,phase:2,deny,status:403,log,t:lowercase,msg:'SQL'\"";
const SQL: &str = "1 UNION SELECT password";

fn config(id: &str, more: Value) -> Value {
    let mut config = json!({"rules": [RULES]});
    more.as_object().unwrap().iter().for_each(|(name, value)| config[name] = value.clone());
    waf_config(id, config)
}

/// A form whose attack is behind so many bytes.
fn form(padding: usize, value: &str) -> String {
    format!("a={}&q={value}", "x".repeat(padding))
}

/// A form with a file of so many bytes, and a field behind it.
fn upload(file: usize, field: &str) -> Vec<u8> {
    let disposition = "--frontier\r\nContent-Disposition: form-data; name=";
    let mut body = format!("{disposition}\"f\"; filename=\"f.bin\"\r\n\r\n").into_bytes();
    // No line ends: the whole content is one line.
    body.extend(std::iter::repeat_n(b'\x01', file));
    body.extend(format!("\r\n{disposition}\"q\"\r\n\r\n{field}\r\n--frontier--\r\n").into_bytes());
    body
}

#[test]
fn long_bodies_are_inspected_or_refused_and_uploads_pass() {
    let mut gateway = Gateway::start(|control, backend| {
        let plugin = |id: &str| json!([{"plugin": "SvcWaf", "config": {"ref": id}}]);
        let prefix = json!({"oversize_body_action": "inspect_prefix"});
        for (id, more) in [("default", json!({})), ("prefix", prefix), ("watching", json!({"block": false}))] {
            control.create("waf-configs", &config(id, more));
            let mut route = route(id, backend, plugin(id));
            route["paths"] = json!([format!("/{id}")]);
            control.create("routes", &route);
        }
    });
    gateway.until(&Request::get("/watching"), 200, PATIENCE);
    let ask = |path: &str, kind: &str, body: &[u8], chunked: bool| {
        let request = Request::post(format!("/{path}/echo"), kind, body);
        let request = if chunked { request.chunked(60_000) } else { request };
        gateway.status(&request)
    };
    let padded = form(2 * MIB, SQL);
    for chunked in [false, true] {
        for (what, path, kind, body, status) in [
            ("a form within the limit", "default", FORM, form(MIB - 100, "1").into_bytes(), 200),
            ("an attack within the limit", "default", FORM, form(MIB - 100, SQL).into_bytes(), 403),
            ("an attack behind padding", "default", FORM, padded.clone().into_bytes(), 413),
            ("a body of no known type", "default", "application/octet-stream", vec![0; MIB + 1], 413),
            ("a large upload", "default", FORM_DATA, upload(12 * MIB, "1"), 200),
            ("an attack behind a large file", "default", FORM_DATA, upload(12 * MIB, SQL), 403),
            ("an upload over the limit", "default", FORM_DATA, upload(13 * MIB, "1"), 413),
            ("a field over the limit", "default", FORM_DATA, upload(10, &"x".repeat(MIB + 1)), 413),
            ("an attack behind the inspected part", "prefix", FORM, padded.clone().into_bytes(), 403),
            ("a long form", "prefix", FORM, form(2 * MIB, "1").into_bytes(), 200),
            ("an attack where nothing is denied", "watching", FORM, padded.clone().into_bytes(), 200),
            ("a large upload where nothing is denied", "watching", FORM_DATA, upload(12 * MIB, SQL), 200),
        ] {
            assert_eq!(ask(path, kind, &body, chunked), status, "{what}, chunked {chunked}");
        }
    }
    // Longer than what is inspected and held, and what unpacks to as much.
    let gzip = |text: &str| {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(text.as_bytes()).unwrap();
        encoder.finish().unwrap()
    };
    let long = |value: &str| form(13 * MIB, value);
    let word = |at: u32| u64::from(at).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20;
    let spaced = |blocks: u32| (0..blocks).map(|at| format!("union {:x} selected ", word(at))).collect::<String>();
    for (what, body, encoding, status) in [
        ("a long body", long("1").into_bytes(), "identity", 200),
        ("an attack at its end", long(SQL).into_bytes(), "identity", 403),
        ("what unpacks to more than is held", gzip(&spaced(560_000)), "gzip", 413),
        ("what unpacks to as much as is held", gzip(&spaced(400_000)), "gzip", 200),
        ("an attack at its end", gzip(&format!("a={}&q={SQL}", spaced(400_000))), "gzip", 403),
    ] {
        let request = Request::post("/prefix/echo", FORM, &body).header("content-encoding", encoding);
        assert_eq!(gateway.status(&request), status, "{what}, {encoding}");
    }
    // All of an upload reaches the backend.
    let body = upload(12 * MIB, "1");
    let answer = Request::post("/default/echo", FORM_DATA, &body).send(gateway.address).unwrap();
    assert_eq!(answer.json()["body_length"], json!(body.len()));
    let told = gateway.control.event("what was left out", |event| {
        event["config"]["id"] == "watching" && event["uninspected"][0]["collection"] == "REQUEST_BODY"
    });
    assert_eq!(told["block"], Value::Null, "{told}");
    let failures = gateway.envoy.vm_failures();
    assert!(failures.is_empty(), "a filter's VM failed: {failures:?}");
}
