//! `palisade routes import` and `routes/_import`.

use std::path::Path;

use crate::cli_support::{Server, exchange, palisade, text};
use serde_json::{Value, json};

const BASE: &str = "/apis/palisade.svc/v1";
const GATEWAY: &str = include_str!("../../credentials/tests/data/gateway.yaml");

/// Runs a command against a running server: its exit code, what it says, what it complains of.
fn beside(server: &Server, data: &Path, arguments: &[&str]) -> (i32, String, String) {
    let out = palisade(arguments)
        .env("PALISADE_URL", format!("http://{}", server.rest))
        .env("PALISADE_ADMIN_KEY_FILE", data.join("admin-key.json"))
        .output()
        .unwrap();
    (out.status.code().unwrap(), text(&out.stdout), text(&out.stderr))
}

/// A call of the API: status, head and body.
fn call(server: &Server, method: &str, path: &str, kind: &str, body: &str) -> (u16, String, Value) {
    let headers = [("authorization", server.authorization.as_str()), ("content-type", kind)];
    let (status, head, body) = exchange(&server.rest, &headers, method, &format!("{BASE}{path}"), body).unwrap();
    (status, head, serde_json::from_str(&body).unwrap_or(Value::Null))
}

#[test]
fn the_command_shows_imports_and_changes_what_differs() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let file = folder.path().join("envoy.yaml");
    std::fs::write(&file, GATEWAY).unwrap();
    let place = file.to_str().unwrap();
    let server = Server::start(&data);
    let own = json!({"id": "mine", "envoy_route": "keyed", "hosts": ["own.example"],
        "credentials": {"checks": [{"kinds": ["biscuit"]}]}});
    assert_eq!(call(&server, "POST", "/routes", "application/json", &own.to_string()).0, 201);
    let run = |arguments: &[&str]| beside(&server, &data, arguments);

    let (code, out, err) = run(&["routes", "import", place, "--dry-run"]);
    assert_eq!(code, 1, "{out}{err}");
    assert!(out.starts_with(&format!("warning: {place}: /static_resources/listeners/0/")), "{out}");
    assert!(
        out.contains("\n+ routes/admin\n") && out.contains("\n~ routes/mine\n    /credentials/envoy/0: {"),
        "{out}"
    );
    assert!(out.contains("is added\n") && out.ends_with("would create 14, change 1, delete 0\n"), "{out}");
    assert_eq!(call(&server, "GET", "/routes/_count", "application/json", "").2["count"], 1);

    let (code, out, err) = run(&["routes", "import", place]);
    assert_eq!(code, 0, "{out}{err}");
    assert!(out.ends_with("created 14, changed 1, deleted 0\n"), "{out}");
    let (_, _, mine) = call(&server, "GET", "/routes/mine", "application/json", "");
    assert_eq!(mine["hosts"], json!(["own.example"]));
    assert_eq!(mine["credentials"]["checks"][0]["kinds"], json!(["biscuit"]));
    let checks = &mine["credentials"]["envoy"][0]["checks"];
    assert_eq!(checks[0]["checked_by"], "envoy.filters.http.api_key_auth");
    assert_eq!(checks[0]["carriers"], json!(["header:x-api-key"]));
    let (_, _, admin) = call(&server, "GET", "/routes/admin", "application/json", "");
    assert_eq!(
        (&admin["envoy_route"], &admin["paths"], &admin["backend"]),
        (&json!("admin"), &json!(["/admin"]), &Value::Null)
    );

    // Nothing differs now.
    let (code, out, err) = run(&["routes", "import", place, "--dry-run"]);
    assert!(code == 0 && out.ends_with("nothing to do\n"), "{out}{err}");
    std::fs::write(&file, GATEWAY.replacen("header: X-Api-Key", "header: X-Other-Key", 1)).unwrap();
    let (code, out, err) = run(&["routes", "import", place, "--color", "never"]);
    assert_eq!(code, 0, "{out}{err}");
    let expected = "~ routes/mine\n    /credentials/envoy/0/checks/0/carriers/0: \"header:x-api-key\" -> \"header:x-other-key\"\n\
         ~ routes/split\n    /credentials/envoy/0/checks/0/carriers/0: \"header:x-api-key\" -> \"header:x-other-key\"\n\
         created 0, changed 2, deleted 0\n";
    assert!(out.ends_with(expected), "{out}");

    // For tools; one listener alone; from standard input as well.
    let (code, out, err) = run(&["routes", "import", place, "--listener", "login", "--json"]);
    let answer: Value = serde_json::from_str(&out).unwrap_or_else(|_| panic!("{out}{err}"));
    assert_eq!((code, &answer["unchanged"], &answer["listeners"]), (0, &json!(1), &json!(["login"])));
    std::fs::write(&file, GATEWAY).unwrap();
    let (code, out, _) = run(&["routes", "import", place, "--dry-run", "--json"]);
    let answer: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((code, &answer["changed"], &answer["dry_run"]), (1, &json!(2), &json!(true)));
    assert_eq!(answer["changes"][0]["differences"][0]["pointer"], "/credentials/envoy/0/checks/0/carriers/0");

    // No secret is stored or shown.
    let (_, _, routes) = call(&server, "GET", "/routes", "application/json", "");
    for said in [routes.to_string(), out] {
        assert!(!said.contains("SECRET") && !said.contains("U0VDUkVU"), "{said}");
    }
    assert!(!std::fs::read_to_string(&server.log).unwrap().contains("SECRET"));

    // Faults name the file and the place.
    for (text, what) in [
        ("{}", "is no configuration of Envoy"),
        ("a: 1\na: 2\n", "no YAML that can be used"),
        ("{\"a\": 1", "no JSON that can be used"),
    ] {
        std::fs::write(&file, text).unwrap();
        let (code, out, err) = run(&["routes", "import", place]);
        assert!(code == 2 && out.is_empty() && err.contains(place) && err.contains(what), "{code} {out}{err}");
    }
    assert_eq!(run(&["routes", "import", "/does/not/exist"]).0, 2);
}

#[test]
fn a_store_at_rest_is_imported_into_and_files_are_exported_with_it() {
    let folder = tempfile::tempdir().unwrap();
    let (data, files) = (folder.path().join("data"), folder.path().join("files"));
    let file = folder.path().join("envoy.yaml");
    std::fs::write(&file, GATEWAY).unwrap();
    drop(Server::start(&data));
    let (data, file) = (data.to_str().unwrap(), file.to_str().unwrap());
    let run = |arguments: &[&str]| {
        let out = palisade(arguments).output().unwrap();
        (out.status.code().unwrap(), text(&out.stdout), text(&out.stderr))
    };
    let (code, out, err) = run(&["routes", "import", file, "--data", data]);
    assert!(code == 0 && out.ends_with("created 15, changed 0, deleted 0\n"), "{out}{err}");
    let files = files.to_str().unwrap();
    assert_eq!(run(&["export", files, "--data", data]).0, 0);
    let (code, out, err) = run(&["apply", files, "--data", data, "--dry-run"]);
    assert!(code == 0 && out.ends_with("nothing to do\n"), "{out}{err}");
}

#[test]
fn the_endpoint_imports_and_says_what_is_wrong() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(&folder.path().join("data"));
    let import =
        |query: &str, kind: &str, body: &str| call(&server, "POST", &format!("/routes/_import{query}"), kind, body);
    let (status, _, answer) = import("?dry_run=true&listener=keys", "application/yaml", GATEWAY);
    assert_eq!((status, &answer["created"], &answer["dry_run"]), (200, &json!(5), &json!(true)), "{answer}");
    let (status, _, answer) = import("", "text/yaml; charset=utf-8", GATEWAY);
    assert_eq!(
        (status, &answer["created"], &answer["changed"], &answer["unchanged"]),
        (200, &json!(15), &json!(0), &json!(0)),
        "{answer}"
    );
    assert_eq!(answer["warnings"].as_array().unwrap().len(), 2);
    let (status, _, answer) = import("", "application/yaml", GATEWAY);
    assert_eq!((status, &answer["changes"], &answer["unchanged"]), (200, &json!([]), &json!(15)), "{answer}");
    assert!(!answer.to_string().contains("SECRET"));
    let events = std::fs::read_to_string(&server.events).unwrap();
    assert!(events.contains("imported from Envoy") && !events.contains("SECRET"), "{events}");
    for (query, kind, body, status, word) in [
        ("", "application/json", "{}", 400, "invalid_configuration"),
        ("", "application/json", "{", 400, "invalid_configuration"),
        ("?listener=gone", "application/yaml", GATEWAY, 400, "invalid_configuration"),
        ("", "text/plain", GATEWAY, 415, "unsupported_media_type"),
        ("?dry=1", "application/yaml", GATEWAY, 400, "invalid_query"),
        ("?dry_run=maybe", "application/yaml", GATEWAY, 400, "invalid_query"),
    ] {
        let (got, _, answer) = import(query, kind, body);
        assert_eq!((got, answer["error"].as_str()), (status, Some(word)), "{query} {answer}");
    }
    let (status, _, answer) = call(&server, "POST", "/waf-configs/_import", "application/yaml", GATEWAY);
    assert_eq!((status, answer["error"].as_str()), (404, Some("not_found")), "{answer}");
    // More than other bodies may have, and less than the limit.
    let large = format!("{GATEWAY}\n# {}\n", "x".repeat(9 << 20));
    let (status, _, answer) = import("", "application/yaml", &large);
    assert_eq!((status, &answer["unchanged"]), (200, &json!(15)), "{answer}");
    let (status, head, _) = exchange(
        &server.rest,
        &[("content-type", "application/yaml")],
        "POST",
        &format!("{BASE}/routes/_import"),
        "a: 1",
    )
    .unwrap();
    assert!(status == 401, "{head}");
}
