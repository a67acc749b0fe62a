//! `palisade contract learn`: recordings in, a document out.

use std::fmt::Write as _;
use std::fs;

use serde_json::{Value, json};

use crate::cli_support::{run, text};

/// Requests of a small shop, some refused by the backend, some by the gateway, some never answered.
fn recording() -> String {
    let mut lines = String::new();
    for number in 0..60 {
        let kind = if number % 2 == 0 { "book" } else { "game" };
        let body =
            json!({ "name": format!("thing {number}"), "kind": kind, "mail": format!("a{number}@shop.example") });
        let order = json!({ "method": "POST", "path": format!("/orders/{number}/lines?dry=true"), "headers": [["content-type", "application/json"]],
            "body": body.to_string() });
        for entry in [
            json!({ "request": order, "response": { "status": 201 }, "status": 201 }),
            json!({ "request": { "path": format!("/admin/{number}") }, "response": { "status": 404 } }),
            json!({ "request": { "path": "/orders/1/lines" }, "response": { "status": 200 }, "status": 403 }),
            json!({ "request": { "path": "/unanswered" } }),
        ] {
            let _ = writeln!(lines, "{entry}");
        }
    }
    lines.push_str("no entry\n");
    lines
}

#[test]
fn a_document_is_written_of_what_was_accepted() {
    let folder = tempfile::tempdir().unwrap();
    let (traffic, out) = (folder.path().join("shop.jsonl"), folder.path().join("shop.yaml"));
    fs::write(&traffic, recording()).unwrap();
    let traffic = traffic.to_str().unwrap();
    let learned = run(&["contract", "learn", "--traffic", traffic, "--title", "Shop", "--out", out.to_str().unwrap()]);
    let said = String::from_utf8_lossy(&learned.stderr).into_owned();
    assert!(learned.status.success(), "{said}");
    for part in [
        "1 operations of 1 paths, learned from 60 of 240",
        "120 were not accepted",
        "60 have no answer",
        "1 entries could not be read",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    let yaml = fs::read_to_string(&out).unwrap();
    assert!(yaml.contains("title: Shop") && !yaml.contains("shop.example") && !yaml.contains("/admin"), "{yaml}");
    let printed = run(&["contract", "learn", "--traffic", traffic, "--title", "Shop", "--json"]);
    let document: Value = serde_json::from_slice(&printed.stdout).unwrap();
    assert_eq!(serde_saphyr::from_str::<Value>(&yaml).unwrap(), document);
    let body =
        &document["paths"]["/orders/{orderId}/lines"]["post"]["requestBody"]["content"]["application/json"]["schema"];
    assert_eq!(body["properties"]["kind"]["enum"], json!(["book", "game"]));
    assert_eq!(body["properties"]["mail"]["format"], "email");
}

#[test]
fn what_teaches_nothing_is_an_error_and_inventories_add_paths() {
    let folder = tempfile::tempdir().unwrap();
    let (traffic, report) = (folder.path().join("a.jsonl"), folder.path().join("report.json"));
    fs::write(&traffic, "{\"request\":{\"path\":\"/a\"},\"response\":{\"status\":500}}\n").unwrap();
    let traffic = traffic.to_str().unwrap();
    let nothing = run(&["contract", "learn", "--traffic", traffic]);
    assert!(!nothing.status.success() && String::from_utf8_lossy(&nothing.stderr).contains("nothing was learned"));
    let statuses = json!({ "refused": 0, "1xx": 0, "2xx": 7, "3xx": 0, "4xx": 0, "5xx": 0 });
    let shadow = json!({ "method": "GET", "path": "/legacy/{id}/export", "confirmed": true, "statuses": statuses });
    fs::write(&report, json!({ "routes": [{ "operations": [], "shadows": [shadow] }] }).to_string()).unwrap();
    let learned = run(&["contract", "learn", "--traffic", traffic, "--inventory", report.to_str().unwrap(), "--json"]);
    assert!(text(&learned.stdout).contains("/legacy/{id}/export"), "{}", String::from_utf8_lossy(&learned.stderr));
    let wrong = run(&["contract", "learn", "--traffic", traffic, "--accept", "ok"]);
    assert!(!wrong.status.success() && String::from_utf8_lossy(&wrong.stderr).contains("2xx"));
}
