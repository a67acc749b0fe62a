//! Both response guards of a preset in a real gateway with a control plane: masked, replaced, withheld, monitored and untouched
//! responses.
#![allow(clippy::indexing_slicing, clippy::unwrap_used, reason = "tests")]

use std::io::Write as _;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use palisade_tests::gateway::{Gateway, route, threat_policy};
use palisade_tests::http::Request;
use serde_json::{Value, json};

const PATIENCE: Duration = Duration::from_secs(15);
const BODY: &str = r#"{"card":"4111 1111 1111 1111","key":"AKIAIOSFODNN7EXAMPLE"}"#;
const MASKED: &str = r#"{"card":"**** **** **** 1111","key":"********************"}"#;

fn gateway(fields: &Value) -> Gateway {
    let mut gateway = Gateway::start(|control, backend| {
        control.create("threat-policies", &threat_policy("demo", json!({ "tiers": [] })));
        let mut config = json!({ "threat_policy": "demo", "waf": false });
        config.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        let plugins = json!([{ "plugin": "SecuritySuitePreset", "config": config }]);
        control.create("routes", &route("app", backend, plugins));
    });
    gateway.until(&Request::get("/status/200"), 200, PATIENCE);
    gateway
}

/// A response that the backend gives.
fn reflect(status: u16, headers: &Value, body: &[u8]) -> Request {
    let answer = json!({ "status": status, "headers": headers, "encodedBody": STANDARD.encode(body) });
    Request::json("/reflect", &answer)
}

#[test]
fn responses_are_masked_replaced_and_withheld() {
    let gateway = gateway(&json!({ "sensitive_data": true, "error_leakage": true }));
    let kind = json!({ "content-type": "application/json" });
    let plain = gateway.send(&reflect(200, &kind, BODY.as_bytes()));
    assert_eq!((plain.status, plain.text().as_str()), (200, MASKED));
    assert_eq!(plain.header("content-length"), Some(MASKED.len().to_string()));

    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    gzip.write_all(BODY.as_bytes()).unwrap();
    let coded = json!({ "content-type": "application/json", "content-encoding": "gzip", "etag": "\"1\"" });
    let decoded = gateway.send(&reflect(200, &coded, &gzip.finish().unwrap()));
    assert_eq!((decoded.status, decoded.text().as_str()), (200, MASKED));
    assert_eq!((decoded.header("content-encoding"), decoded.header("etag")), (None, None));

    let event = gateway.control.event("a mask", |event| event["event"]["module"] == "sensitive-data");
    assert_eq!(event["threat"]["tags"], json!(["dlp:card", "dlp:cloud_key"]), "{event}");
    let told = format!("{:?}{}", gateway.control.events(), gateway.access_log());
    assert!(!told.contains("4111 1111") && !told.contains("AKIAIOSFODNN7EXAMPLE"), "a value was told");

    let leak = gateway.send(&Request::get("/leak"));
    assert_eq!((leak.status, &leak.json()["error"]), (500, &json!("internal_error")));
    assert!(!leak.text().contains("SQL syntax"), "{}", leak.text());
    let event = gateway.control.event("a leak", |event| event["event"]["module"] == "error-leakage");
    assert_eq!((&event["event"]["category"], &event["event"]["outcome"]), (&json!("leakage"), &json!("blocked")));

    let lines = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj\n".repeat(4);
    let key = format!("-----BEGIN PRIVATE KEY-----\n{lines}-----END PRIVATE KEY-----\n");
    let text = json!({ "content-type": "text/plain" });
    let withheld = gateway.send(&reflect(200, &text, key.as_bytes()));
    assert_eq!((withheld.status, &withheld.json()["error"]), (500, &json!("response_withheld")));

    // What is no whole text goes on as it is.
    for (status, headers) in [
        (206, json!({ "content-type": "application/json", "content-range": "bytes 0-58/100" })),
        (200, json!({ "content-type": "application/octet-stream" })),
    ] {
        assert_eq!(gateway.send(&reflect(status, &headers, BODY.as_bytes())).text(), BODY, "{status}");
    }
    assert_eq!(gateway.status(&Request::new("HEAD", "/status/200")), 200);
    let page = gateway.send(&Request::get("/"));
    assert!(page.status == 200 && page.text().contains("Demo shop"));
    assert!(gateway.envoy.vm_failures().is_empty());
}

#[test]
fn monitoring_guards_change_nothing() {
    let gateway = gateway(&json!({
        "sensitive_data": true, "sensitive_data_mode": "monitor", "error_leakage": true, "error_leakage_mode": "monitor",
    }));
    let kind = json!({ "content-type": "application/json" });
    assert_eq!(gateway.send(&reflect(200, &kind, BODY.as_bytes())).text(), BODY);
    assert!(gateway.send(&Request::get("/leak")).text().contains("SQL syntax"));
    for module in ["sensitive-data", "error-leakage"] {
        let event = gateway.control.event("what was observed", |event| event["event"]["module"] == module);
        assert_eq!((&event["event"]["outcome"], &event["decision"]["dry_run"]), (&json!("observed"), &json!(true)));
        assert!(event["message"].as_str().is_some_and(|text| text.contains("would have been")), "{event}");
    }
    assert!(gateway.envoy.vm_failures().is_empty());
}
