use serde_json::{Value, json};

use super::auth::Auth;
use super::compare::{DriftKind, Finding, compare};
use super::contracts::ReadContract;
use super::declared::Declared;
use super::document::{Known, document};
use super::routes::ReportedRoute;
use super::state::{RouteRecord, State};
use crate::drift::shape_of;
use crate::inventory::counts::CallCounts;
use crate::inventory::messages::{AnswerSeen, DriftSample};
use crate::inventory::paths::MAX_PATHS;

const NOW: u64 = 1_800_000_000_000;
const DAY: u64 = 86_400_000;

fn contract() -> Value {
    json!({
        "openapi": "3.0.3",
        "paths": {
            "/items/{id}": {
                "get": { "operationId": "getItem", "responses": {
                    "200": { "description": "ok", "content": { "application/json": { "schema": { "$ref": "#/components/schemas/Item" } } } },
                    "4XX": { "description": "no" },
                } },
                "put": {
                    "requestBody": { "content": { "application/json": { "schema": { "$ref": "#/components/schemas/Item" } } } },
                    "responses": { "default": { "description": "all", "content": { "application/*": { "schema": { "type": "object" } } } } },
                },
            },
            "/free": { "post": { "requestBody": { "content": { "application/json": { "schema": {} } } }, "responses": {} } },
        },
        "components": { "schemas": {
            "Item": {
                "type": "object",
                "required": ["id", "name", "secret"],
                "properties": {
                    "id": { "type": "integer", "readOnly": true },
                    "secret": { "type": "string", "writeOnly": true },
                    "name": { "type": "string", "nullable": true },
                    "price": { "type": "number" },
                    "tags": { "type": "array", "items": { "type": "object", "properties": { "label": { "type": "string" } } } },
                    "parent": { "$ref": "#/components/schemas/Item" },
                    "extra": { "type": "object", "additionalProperties": { "type": "string" } },
                    "any": {},
                    "kind": { "oneOf": [
                        { "type": "object", "properties": { "a": { "type": "string" } } },
                        { "type": "object", "properties": { "b": { "type": "integer" } }, "required": ["b"] },
                    ] },
                    "prénom": { "type": "string" },
                },
                "allOf": [{ "properties": { "more": { "type": "boolean" } } }],
            },
        } },
    })
}

fn found(
    method: &str,
    path: &str,
    status: u32,
    media: &str,
    body: Option<Value>,
) -> Vec<(&'static str, String, String, bool)> {
    let declared = Declared::read(&contract());
    let shape = body.map(|body| shape_of(body.to_string().as_bytes()).unwrap());
    let sample = DriftSample {
        route: "app".into(),
        method: method.into(),
        path: path.into(),
        status,
        media: media.into(),
        shape,
    };
    let findings = compare(&declared, &sample).into_iter();
    findings.map(|one| (one.kind.word(), one.place, one.observed, one.sensitive)).collect()
}

fn places(body: Value) -> Vec<String> {
    let found = found("GET", "/items/{id}", 200, "application/json", Some(body));
    found.into_iter().map(|(kind, place, observed, _)| format!("{kind} {place}: {observed}")).collect()
}

#[test]
fn a_payload_that_matches_has_no_findings() {
    let whole = json!({
        "id": 1, "name": null, "price": 3, "tags": [{ "label": "a" }, {}], "more": true, "any": [{ "x": 1 }], "extra": { "x": "y" },
        "kind": { "a": "x", "b": 1 }, "prénom": "x", "parent": { "id": 2, "name": "n", "parent": { "id": 3, "name": "n" } },
    });
    assert_eq!(places(whole), [] as [String; 0]);
    assert_eq!(found("POST", "/free", 0, "application/json", Some(json!({ "password": [1] }))), []);
    assert_eq!(found("PUT", "/items/{id}", 0, "application/json", Some(json!({ "name": "x", "secret": "s" }))), []);
    assert_eq!(found("GET", "/none", 200, "application/json", Some(json!({}))), []);
}

#[test]
fn each_kind_of_drift_is_found_where_it_is() {
    let body = json!({
        "id": "7", "name": "x", "ssn": "078-05-1120", "price": 1.5, "tags": [{ "label": 1, "hidden": {} }, { "label": "x" }],
        "kind": { "c": 1 }, "parent": { "id": 1.5, "name": "x" },
    });
    assert_eq!(
        places(body),
        [
            "type_mismatch 200 $.id: string, declared integer",
            "undeclared_field 200 $.ssn: string",
            "type_mismatch 200 $.tags[].label: integer, declared string",
            "undeclared_field 200 $.tags[].hidden: object",
            "undeclared_field 200 $.kind.c: integer",
            "type_mismatch 200 $.parent.id: number, declared integer",
        ]
    );
    assert_eq!(places(json!({ "id": 1 })), ["missing_field 200 $.name: absent in 1 of 1"]);
    let mut many: serde_json::Map<String, Value> = (0..600_u32)
        .map(|number| (format!("x{}", "y".repeat(number as usize % 60) + &"z".repeat(number as usize / 60)), json!(1)))
        .collect();
    many.insert("zzz".to_owned(), json!(1));
    assert!(
        places(Value::Object(many)).iter().all(|one| !one.starts_with("missing_field")),
        "it was not looked at as a whole"
    );
    assert_eq!(places(json!([1])), ["type_mismatch 200 $: array, declared object"]);
    let request = found("PUT", "/items/{id}", 0, "application/json", Some(json!({ "name": "x", "cardNumber": 1 })));
    let missing = ("missing_field", "request $.secret".to_owned(), "absent in 1 of 1".to_owned(), true);
    assert_eq!(request, [("undeclared_field", "request $.cardNumber".to_owned(), "integer".to_owned(), true), missing]);
}

#[test]
fn statuses_and_media_types_are_declared_exactly_by_class_or_by_default() {
    let status = |method: &str, status: u32, media: &str| {
        let found = found(method, "/items/{id}", status, media, None);
        found.into_iter().map(|(kind, place, observed, _)| format!("{kind} {place}: {observed}")).collect::<Vec<_>>()
    };
    assert_eq!(status("GET", 404, "text/html"), [] as [String; 0], "a response without content declares no media type");
    assert_eq!(status("GET", 500, "text/html"), ["undeclared_status 500: 500"]);
    assert_eq!(status("GET", 200, "text/html"), ["undeclared_media_type 200: text/html"]);
    assert_eq!(status("GET", 200, ""), [] as [String; 0]);
    assert_eq!(status("PUT", 500, "application/problem+json"), [] as [String; 0]);
    assert_eq!(status("PUT", 500, "text/plain"), ["undeclared_media_type 500: text/plain"]);
}

#[test]
fn a_hostile_contract_takes_no_stack_and_a_bounded_number_of_places() {
    let mut schemas = serde_json::Map::new();
    for number in 0..50_000 {
        let next = format!("#/components/schemas/S{}", (number + 1) % 50_000);
        schemas.insert(format!("S{number}"), json!({ "properties": { "next": { "$ref": next } } }));
    }
    let content = json!({ "application/json": { "schema": { "$ref": "#/components/schemas/S0" } } });
    let document = json!({
        "openapi": "3.1.0",
        "paths": { "/a": { "post": { "requestBody": { "content": content }, "responses": {} } } },
        "components": { "schemas": schemas },
    });
    let declared = Declared::read(&document);
    let sample = |body: Value| DriftSample {
        method: "POST".into(),
        path: "/a".into(),
        media: "application/json".into(),
        shape: shape_of(body.to_string().as_bytes()),
        ..DriftSample::default()
    };
    let findings = compare(&declared, &sample(json!({ "next": { "next": { "x": 1 } } })));
    assert_eq!(findings[0].place, "request $.next.next.x");
    let circle = json!({ "openapi": "3.1.0", "paths": { "/a": { "post": {
        "requestBody": { "content": { "application/json": { "schema": { "$ref": "#/x" } } } }, "responses": {}
    } } }, "x": { "$ref": "#/y" }, "y": { "$ref": "#/x", "allOf": [{ "$ref": "#/x" }] } });
    assert_eq!(compare(&Declared::read(&circle), &sample(json!({ "a": 1 }))), []);
    for odd in [
        json!(null),
        json!([]),
        json!({ "paths": 7 }),
        json!({ "paths": { "/a": { "get": 1, "post": { "responses": [] } } } }),
    ] {
        Declared::read(&odd);
    }
}

fn read(document: &Value) -> ReadContract {
    ReadContract { declared: Declared::read(document), version: "v".to_owned(), ..ReadContract::default() }
}

fn report(record: &RouteRecord, zombie_days: u64) -> Value {
    let route = ReportedRoute {
        id: "app".into(),
        name: "App".into(),
        contract: Some("shop".into()),
        mode: Some("monitor".into()),
        counted: true,
    };
    let contract = read(&contract());
    let auth = Auth { checks: vec![], findings: vec![json!({ "severity": "high" }), json!({ "severity": "info" })] };
    let known = Known { route: &route, contract: Some(("shop", "Shop", &contract)), record: Some(record), auth };
    let bare = ReportedRoute { id: "bare".into(), name: "bare".into(), ..ReportedRoute::default() };
    let bare = Known { route: &bare, contract: None, record: None, auth: Auth::default() };
    document_of(&[known, bare], zombie_days)
}

fn document_of(routes: &[Known<'_>], zombie_days: u64) -> Value {
    document(routes, zombie_days, NOW)
}

fn calls(hits: u64, class: usize, days_ago: u64) -> CallCounts {
    let mut counts = CallCounts { hits, last_seen: NOW - days_ago * DAY, ..CallCounts::default() };
    counts.classes[class - 1] = hits;
    counts.not_found = if class == 4 { hits } else { 0 };
    counts
}

#[test]
fn operations_are_used_unused_or_zombies() {
    let mut record = RouteRecord { observed_since: NOW - 30 * DAY, ..RouteRecord::default() };
    let key = |method: &str, path: &str| (method.to_owned(), path.to_owned());
    record.operations.entry(key("GET", "/items/{id}")).or_default().counts = calls(5, 2, 1);
    record.operations.entry(key("PUT", "/items/{id}")).or_default().counts = calls(5, 2, 20);
    record.operations.entry(key("GET", "/gone")).or_default().counts = calls(5, 2, 1);
    let states = |days: u64| {
        let report = report(&record, days);
        let operations = report["routes"][0]["operations"].as_array().unwrap().clone();
        let shown = operations.iter().map(|one| {
            format!(
                "{} {} {}",
                one["method"].as_str().unwrap(),
                one["path"].as_str().unwrap(),
                one["state"].as_str().unwrap()
            )
        });
        let mut shown: Vec<String> = shown.collect();
        shown.sort();
        (shown, report["summary"].clone())
    };
    let (shown, summary) = states(90);
    assert_eq!(shown, ["GET /items/{id} used", "POST /free unused", "PUT /items/{id} used"]);
    assert_eq!((&summary["zombies"], &summary["unused"], &summary["operations"]), (&json!(0), &json!(1), &json!(3)));
    let (shown, summary) = states(10);
    assert_eq!(shown, ["GET /items/{id} used", "POST /free zombie", "PUT /items/{id} zombie"]);
    assert_eq!((&summary["zombies"], &summary["routes"], &summary["with_contract"]), (&json!(2), &json!(2), &json!(1)));
    assert_eq!(summary["auth"], json!({ "high": 1, "medium": 0, "low": 0, "info": 1 }));
}

#[test]
fn paths_that_exist_are_shadows_unless_any_path_is_answered_so() {
    let mut record = RouteRecord::default();
    let mut path = |path: &str, counts: CallCounts, answer: Option<AnswerSeen>| {
        *record.paths.get("GET", path, counts.classes[1] > 0, MAX_PATHS) = CallCounts { answer, ..counts };
    };
    let page = |length: u64| Some(AnswerSeen::new(200, Some(length), Some(b"text/html")));
    path("/spa-a", calls(3, 2, 1), page(5000));
    path("/spa-b/deep", calls(2, 2, 1), page(5010));
    path("/parent", calls(1, 2, 1), page(900));
    path("/parent/child", calls(1, 2, 1), page(900));
    path("/real", calls(9, 2, 1), Some(AnswerSeen::new(200, Some(5000), Some(b"application/json"))));
    path("/varied", calls(8, 2, 1), Some(AnswerSeen { varies: true, ..page(5000).unwrap() }));
    path("/any/{slug}", calls(4, 2, 1), page(77));
    path("/wp-admin", calls(4, 4, 1), None);
    path("/locked", CallCounts { not_found: 0, ..calls(4, 4, 1) }, None);
    record.paths.other().add(&calls(100, 4, 1));
    let report = report(&record, 90);
    let list = |name: &str, what: &str| {
        let all = report["routes"][0][name].as_array().unwrap();
        all.iter().map(|one| format!("{} {}", one["path"].as_str().unwrap(), one[what])).collect::<Vec<_>>()
    };
    assert_eq!(
        list("shadows", "confirmed"),
        [
            "/real true",
            "/varied true",
            "/any/{slug} false",
            "/spa-a false",
            "/spa-b/deep false",
            "/parent true",
            "/parent/child true",
        ]
    );
    assert_eq!(list("probes", "state"), ["/locked \"unclear\"", "/wp-admin \"probe\"", "(other paths) \"probe\""]);
    let summary = &report["summary"];
    assert_eq!(
        (&summary["shadows"], &summary["confirmed_shadows"], &summary["probes"]),
        (&json!(7), &json!(4), &json!(3))
    );
}

#[test]
fn drift_is_shown_with_the_sensitive_first() {
    let mut state = State::default();
    state.observe(["app"].into_iter(), NOW);
    let finding = |place: &str, sensitive: bool| Finding {
        kind: DriftKind::UndeclaredField,
        place: place.into(),
        observed: "string".into(),
        sensitive,
    };
    let all = vec![finding("200 $.a", false), finding("200 $.ssn", true)];
    state.drifted("app", "GET /items/{id}", "v", all, NOW);
    let report = report(&state.routes["app"], 90);
    let drift = &report["routes"][0]["drift"];
    let first = json!({
        "operation": "GET /items/{id}", "kind": "undeclared_field", "where": "200 $.ssn", "observed": "string", "sensitive": true,
        "count": 1, "last_seen": NOW,
    });
    assert_eq!((&drift[0], drift.as_array().unwrap().len()), (&first, 2));
    assert_eq!((&report["summary"]["drift"], &report["summary"]["sensitive_drift"]), (&json!(2), &json!(1)));
}
