//! `palisade report`: the API report for people and for pipelines.

use std::path::Path;

use crate::cli_support::{Server, palisade, request, text};
use serde_json::{Value, json};

const BASE: &str = "/apis/palisade.svc/v1";
const REPORT: &str = "/api/extensions/svc/waf/api/_report";

fn run(server: &Server, data: &Path, arguments: &[&str]) -> (i32, String, String) {
    let out = palisade(&[&["report"], arguments].concat())
        .env("PALISADE_URL", format!("http://{}", server.rest))
        .env("PALISADE_ADMIN_KEY_FILE", data.join("admin-key.json"))
        .output()
        .unwrap();
    (out.status.code().unwrap(), text(&out.stdout), text(&out.stderr))
}

fn create(server: &Server, collection: &str, entity: &Value) {
    let answer =
        request(&server.rest, &server.authorization, "POST", &format!("{BASE}/{collection}"), &entity.to_string());
    assert_eq!(answer.as_ref().unwrap().0, 201, "{answer:?}");
}

fn get(server: &Server, query: &str) -> (u16, Value) {
    let (status, text) = request(&server.rest, &server.authorization, "GET", &format!("{REPORT}{query}"), "").unwrap();
    (status, serde_json::from_str(&text).unwrap())
}

#[test]
fn a_report_is_a_page_of_text_or_json_and_has_exit_codes() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let server = Server::start(&data);
    let spec =
        "openapi: 3.0.3\npaths:\n  /items:\n    get: {operationId: list, responses: {'200': {description: ok}}}\n";
    create(&server, "api-contracts", &json!({ "id": "shop", "name": "Shop", "spec": spec }));
    create(&server, "api-contracts", &json!({ "id": "broken", "spec": "openapi: 2.0\n" }));
    let route = |id: &str, contract: &str| {
        let plugins = json!([{ "plugin": "SvcApiContract", "config": { "contract": contract } }]);
        json!({ "id": id, "hosts": [format!("{id}.example")], "plugins": plugins })
    };
    create(&server, "routes", &route("good", "shop"));
    create(&server, "routes", &route("bad", "broken"));
    create(&server, "routes", &json!({ "id": "bare", "hosts": ["bare.example"] }));

    let (code, out, err) = run(&server, &data, &["--fail-on", "high,shadow", "--fail-on", "zombie"]);
    assert_eq!((code, err.as_str()), (0, ""), "{out}");
    assert!(out.contains("good (good): contract shop, not observed yet\n  operations:\n"), "{out}");
    assert!(out.contains("    unused  GET     /items  0"), "{out}");
    assert!(out.contains("bad (bad): contract broken, which does not compile"), "{out}");
    assert!(out.contains("bare (bare): no contract"), "{out}");
    assert!(out.contains("3 routes, 2 with a contract; 1 operations: 0 zombies, 1 unused\n"), "{out}");

    let (code, out, err) = run(&server, &data, &["--json", "--fail-on", "broken"]);
    assert_eq!((code, err.as_str()), (1, "palisade: --fail-on broken: 1\n"));
    let shown: Value = serde_json::from_str(&out).unwrap();
    let (status, report) = get(&server, "");
    assert_eq!((status, &report), (200, &shown));
    assert_eq!(shown["summary"]["auth"].as_object().unwrap().len(), 4);

    let (code, out, _) = run(&server, &data, &["--json", "--routes", "good", "--fail-on", "broken"]);
    let shown: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((code, shown["routes"].as_array().unwrap().len()), (0, 1));
    assert_eq!(shown["routes"][0]["operations"][0]["operation_id"], "list");

    for (arguments, says) in [
        (&["--routes", "god"][..], "no route that is enabled has the id `god`"),
        (&["--zombie-days", "999"], "`zombie_days` is a whole number from 1 to 183"),
        (&["--fail-on", "everything"], "invalid value 'everything'"),
        (&["--data", "."], "this needs one that does"),
        (&["--url", "http://127.0.0.1:1"], "cannot call 127.0.0.1:1"),
    ] {
        let (code, _, err) = run(&server, &data, arguments);
        assert_eq!(code, 2, "{arguments:?}: {err}");
        assert!(err.contains(says), "{arguments:?}: {err}");
    }
}

#[test]
fn credentials_that_nothing_checks_end_a_pipeline() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let server = Server::start(&data);
    let spec = json!({
        "openapi": "3.1.0",
        "info": { "title": "Shop", "version": "1" },
        "components": { "securitySchemes": { "key": { "type": "apiKey", "in": "header", "name": "x-key" } } },
        "security": [{ "key": [] }],
        "paths": { "/items": { "get": { "responses": {} } }, "/health": { "get": { "security": [], "responses": {} } } },
    });
    create(&server, "api-contracts", &json!({ "id": "shop", "spec": spec.to_string() }));
    let plugins = json!([{ "plugin": "SvcApiContract", "config": { "contract": "shop" } }]);
    create(&server, "routes", &json!({ "id": "closed", "hosts": ["shop.example"], "plugins": plugins }));

    let (code, out, err) = run(&server, &data, &["--fail-on", "high"]);
    assert_eq!((code, err.as_str()), (1, "palisade: --fail-on high: 1\n"), "{out}");
    assert!(out.contains("unauthenticated"), "{out}");
    let (_, report) = get(&server, "?route_ids=closed");
    assert_eq!(report["summary"]["auth"], json!({ "high": 1, "medium": 0, "low": 0, "info": 1 }));
    let findings = report["routes"][0]["auth"]["findings"].as_array().unwrap();
    let found: Vec<_> =
        findings.iter().map(|one| (one["kind"].as_str().unwrap(), one["path"].as_str().unwrap())).collect();
    assert_eq!(found, [("unauthenticated", "/items"), ("public", "/health")]);

    let check =
        json!({ "checked_by": "gateway", "kinds": ["api_key"], "carriers": ["header:x-key"], "exclude": ["/health"] });
    let change = json!({ "credentials": { "checks": [check] } }).to_string();
    let path = format!("{BASE}/routes/closed");
    let answer = request(&server.rest, &server.authorization, "PATCH", &path, &change);
    assert_eq!(answer.as_ref().unwrap().0, 200, "{answer:?}");
    let (code, out, err) = run(&server, &data, &["--fail-on", "high,medium"]);
    assert_eq!((code, err.as_str()), (0, ""), "{out}");
    let (_, report) = get(&server, "");
    assert_eq!(report["routes"][0]["auth"]["checks"][0]["plugin"], "gateway");
}

#[test]
fn the_endpoint_takes_its_two_parameters_and_the_scope_report() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(&folder.path().join("data"));
    let (status, report) = get(&server, "?zombie_days=7&route_ids=");
    assert_eq!((status, &report["zombie_after_days"], &report["routes"]), (200, &json!(7), &json!([])));
    assert_eq!(get(&server, "").1["zombie_after_days"], 90);
    for (query, says) in [
        ("?zombie_days=0", "not `0`"),
        ("?zombie_days=x", "not `x`"),
        ("?zombie_days=1&zombie_days=2", "`zombie_days` comes twice"),
        ("?zombi_days=1", "did you mean `zombie_days`?"),
        ("?route_ids=a,b", "no route that is enabled has the id `a`"),
    ] {
        let (status, answer) = get(&server, query);
        assert_eq!((status, &answer["error"]), (400, &json!("invalid_query")), "{query}: {answer}");
        assert!(answer["error_description"].as_str().unwrap().contains(says), "{query}: {answer}");
    }
    let (status, _) = request(&server.rest, "Basic bm86Ym9keQ==", "GET", REPORT, "").unwrap();
    assert_eq!(status, 401);
}
