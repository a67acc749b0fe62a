//! The document of the admin API says what is served, and what is served is in the document.

use crate::entities_samples;

use std::collections::BTreeSet;

use crate::console_support::ConsoleApi;
use crate::entities_support::{Answer, Api};
use accounts::Scope;
use alerts::Alerts;
use api::access::guard;
use api::console::{self, Console};
use api::names::NAMESPACE;
use api::openapi::component_name;
use api::rest;
use api::rest::report::{self, Reports};
use axum::body::Body;
use axum::http::Request;
use base::clock;
use entities::registry::KINDS;
use fabric::{Announcer, Fabric};
use kit::Runtimes;
use outbound::Outbound;
use serde_json::{Value, json};
use xds::Hub;

/// All that `palisade serve` serves.
async fn whole() -> Api {
    let mut api = Api::new().await;
    let reports = Reports { events: api.state.events.clone(), nodes: Hub::with_clock(clock::now_millis) };
    let listen = Some(([127, 0, 0, 1], 8900).into());
    let (store, entities, events) = (api.state.store.clone(), api.state.entities.clone(), api.state.events.clone());
    let told = std::sync::Arc::new(clock::now_millis);
    let console =
        Console::new(store.clone(), entities.clone(), events.clone(), listen, told.clone(), Runtimes::default());
    let outbound = Outbound::new(Vec::new());
    let alerts = Alerts::new(store.clone(), entities.clone(), events.clone(), outbound, told.clone());
    let fabric = Fabric::new(store, entities, events, Announcer::new(clock::now_millis), told);
    let reports = report::router(reports).merge(console::report_router(&console));
    let reports = guard(reports, api.state.access.clone(), Some(Scope::Report));
    let further =
        reports.merge(console::router(&console)).merge(console::security_router(&console, fabric, Hub::new(), alerts));
    api.router = rest::router_with(api.state.clone(), further);
    api
}

async fn send(api: &Api, method: &str, path: &str) -> Answer {
    let request = Request::builder().method(method).uri(path).header("authorization", &api.authorization);
    api.send(request.body(Body::empty()).unwrap()).await
}

async fn document(api: &Api) -> Value {
    let answer = send(api, "GET", "/openapi.json").await;
    assert_eq!((answer.status.as_u16(), answer.header("content-type")), (200, "application/json"));
    answer.body
}

/// A path of the document with something in the place of its parameters.
fn filled(path: &str) -> String {
    path.split('/').map(|part| if part.starts_with('{') { "x" } else { part }).collect::<Vec<_>>().join("/")
}

#[tokio::test]
async fn every_path_has_the_methods_that_the_document_names_and_no_others() {
    let api = whole().await;
    let document = document(&api).await;
    let mut seen = 0;
    for (path, methods) in document["paths"].as_object().unwrap() {
        let described: BTreeSet<String> = methods.as_object().unwrap().keys().map(|name| name.to_uppercase()).collect();
        let answer = send(&api, "PROPFIND", &filled(path)).await;
        // A guard may ask for a key first, and a console's for a session.
        let allow = answer.header("allow");
        if path.starts_with(NAMESPACE) && answer.status == 401 {
            continue;
        }
        assert_eq!(answer.status, 405, "{path}: {}", answer.text);
        let served: BTreeSet<String> = allow.split(',').map(str::to_owned).filter(|name| name != "HEAD").collect();
        assert_eq!(served, described, "{path}");
        seen += 1;
    }
    assert!(seen > 90, "{seen}");
}

#[tokio::test]
async fn every_collection_has_all_its_operations() {
    let api = whole().await;
    let document = document(&api).await;
    for kind in KINDS.iter() {
        let base = format!("/apis/palisade.svc/v1/{}", kind.collection);
        for (below, methods) in [
            ("", vec!["get", "post"]),
            ("/{id}", vec!["get", "put", "patch", "delete"]),
            ("/_count", vec!["get"]),
            ("/_schema", vec!["get"]),
            ("/_template", vec!["get"]),
            ("/_bulk", vec!["post", "put", "patch", "delete"]),
        ] {
            let path = &document["paths"][format!("{base}{below}")];
            let mut found: Vec<&str> = path.as_object().unwrap().keys().map(String::as_str).collect();
            found.sort_unstable();
            let mut methods = methods;
            methods.sort_unstable();
            assert_eq!(found, methods, "{base}{below}");
        }
    }
}

#[tokio::test]
async fn every_operation_says_what_it_is_for_and_what_it_answers() {
    let api = whole().await;
    let document = document(&api).await;
    let mut ids = BTreeSet::new();
    for (path, methods) in document["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            let place = format!("{method} {path}");
            assert!(ids.insert(operation["operationId"].as_str().unwrap().to_owned()), "{place}: the id is taken");
            assert!(operation["summary"].as_str().is_some_and(|text| !text.is_empty()), "{place}");
            let answers = operation["responses"].as_object().unwrap();
            assert!(answers.keys().any(|status| status.starts_with('2') || status == "409"), "{place}");
            let secured = !operation["security"].as_array().unwrap().is_empty();
            let open = ["/healthz", "/readyz", "/metrics", "/openapi", "/openapi.json"];
            let login = format!("{}/session/_login", NAMESPACE);
            assert_eq!(!secured, open.contains(&path.as_str()) || *path == login, "{place}");
            if secured {
                assert!(answers.contains_key("401"), "{place}");
            }
            for name in path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}')) {
                let declared = operation["parameters"].as_array().unwrap();
                assert!(declared.iter().any(|own| own["in"] == "path" && own["name"] == name), "{place}: {name}");
            }
        }
    }
    assert!(ids.len() > 200, "{}", ids.len());
}

#[tokio::test]
async fn references_and_links_lead_somewhere_and_the_page_has_everything() {
    let api = whole().await;
    let document = document(&api).await;
    let text = document.to_string();
    let page = send(&api, "GET", "/openapi").await;
    assert_eq!((page.status.as_u16(), page.header("content-type")), (200, "text/html; charset=utf-8"));
    assert!(page.header("content-security-policy").starts_with("default-src 'none'; style-src 'sha256-"));
    assert!(!page.text.contains("<script") && !page.text.contains("src=") && !page.text.contains("url("));
    for target in text.split("\"$ref\":\"").skip(1).filter_map(|rest| rest.split('"').next()) {
        assert!(document.pointer(target.trim_start_matches('#')).is_some(), "{target}");
    }
    for id in text.split("\"operationId\":\"").skip(1).filter_map(|rest| rest.split('"').next()) {
        assert!(page.text.contains(&format!("id=\"op-{}\"", id.replace(['.', '_'], "-"))), "{id}");
    }
    for target in page.text.split("href=\"#").skip(1).filter_map(|rest| rest.split('"').next()) {
        assert!(page.text.contains(&format!("id=\"{target}\"")), "{target}");
    }
}

#[tokio::test]
async fn what_the_api_answers_is_what_the_schemas_say() {
    let api = whole().await;
    let document = document(&api).await;
    for kind in KINDS.iter().filter(|kind| kind.singleton.is_none()) {
        let name = component_name(kind);
        let schema = json!({ "$ref": format!("#/components/schemas/{name}"), "components": document["components"] });
        let validator = jsonschema::draft202012::new(&schema).unwrap();
        let mut entity = entities_samples::minimal(kind);
        entity.as_object_mut().unwrap().shift_remove("id");
        let created = api.call("POST", &format!("/{}", kind.collection), Some(entity)).await;
        assert_eq!(created.status, 201, "{name}: {}", created.text);
        let errors: Vec<String> = validator.iter_errors(&created.body).map(|error| error.to_string()).collect();
        assert_eq!(errors, Vec::<String>::new(), "{name}");
        assert!(!validator.is_valid(&json!({ "enabledd": true })), "{name}");
    }
}

#[tokio::test]
async fn a_path_that_is_no_utf_8_is_an_error_of_the_api() {
    let api = whole().await;
    let answer = send(&api, "GET", "/apis/palisade.svc/v1/waf-configs/%FF").await;
    assert_eq!((answer.status.as_u16(), &answer.body["error"]), (400, &json!("invalid_path")), "{}", answer.text);
}

#[tokio::test]
async fn a_slip_in_a_switch_deletes_nothing() {
    let api = Api::new().await;
    assert_eq!(api.call("POST", "/waf-rulesets", Some(json!({ "id": "a" }))).await.status, 201);
    for query in ["force=flase", "force=2", "force=false&force=x"] {
        let answer = api.call("DELETE", &format!("/waf-rulesets/a?{query}"), None).await;
        assert_eq!((answer.status.as_u16(), &answer.body["error"]), (400, &json!("invalid_query")), "{query}");
    }
    assert_eq!(api.call("GET", "/waf-rulesets/a?pretty=maybe", None).await.status, 400);
    assert_eq!(api.call("GET", "/waf-rulesets/_count", None).await.body["count"], 1);
}

#[tokio::test]
async fn a_parameter_of_the_query_that_is_not_described_is_refused_everywhere() {
    let api = whole().await;
    let document = document(&api).await;
    let mut refused = 0;
    for (path, methods) in document["paths"].as_object().unwrap() {
        for method in methods.as_object().unwrap().keys() {
            let answer = send(&api, &method.to_uppercase(), &format!("{}?no_such_parameter=1", filled(path))).await;
            let place = format!("{method} {path}: {} {}", answer.status, answer.text);
            if ["/healthz", "/readyz", "/metrics"].contains(&path.as_str()) {
                assert_ne!(answer.status, 400, "{place}");
                continue;
            }
            // Who has no session is not told what there is.
            if path.starts_with(NAMESPACE) && answer.status == 401 {
                continue;
            }
            assert_eq!((answer.status.as_u16(), &answer.body["error"]), (400, &json!("invalid_query")), "{place}");
            assert!(answer.text.contains("no_such_parameter"), "{place}");
            refused += 1;
        }
    }
    assert!(refused > 200, "{refused}");
    assert_eq!(api.call("GET", "/waf-rulesets/_count", None).await.body["count"], 0, "nothing was written");
}

#[tokio::test]
async fn a_slip_in_a_list_shows_nothing_else_than_was_asked_for() {
    let api = Api::new().await;
    assert_eq!(
        api.call("POST", "/waf-rulesets", Some(json!({ "id": "a", "metadata": { "team": "x" } }))).await.status,
        201
    );
    for (query, near) in [
        ("filter.nmae=x", "`name`"),
        ("filtr.name=x", "`filter.name`"),
        ("sort=name", "`sorted`"),
        ("sorted=nmae", "`name`"),
        ("sorted=name:down", "`:asc` or `:desc`"),
        ("fields=id,nmae", "`name`"),
        ("pagesize=1", "`pageSize`"),
        ("filter.rules.x=1", "`rules`"),
    ] {
        let answer = api.call("GET", &format!("/waf-rulesets?{query}"), None).await;
        assert_eq!((answer.status.as_u16(), &answer.body["error"]), (400, &json!("invalid_query")), "{query}");
        assert!(answer.body["error_description"].as_str().unwrap().contains(near), "{query}: {}", answer.text);
    }
    for query in [
        "filter.metadata.team=x",
        "filter.kind=waf-ruleset",
        "sorted=metadata.team:desc,id",
        "fields=metadata.team",
        "",
    ] {
        let answer = api.call("GET", &format!("/waf-rulesets?{query}"), None).await;
        assert_eq!(
            (answer.status.as_u16(), answer.body.as_array().map(Vec::len)),
            (200, Some(1)),
            "{query}: {}",
            answer.text
        );
    }
    assert_eq!(api.call("GET", "/waf-rulesets/a?page=1", None).await.status, 400, "one entity has no pages");
}

#[tokio::test]
async fn the_console_is_described_where_it_is_served() {
    let console = ConsoleApi::new().await;
    let answer = send(&console.api, "GET", "/openapi.json").await;
    assert!(answer.body["paths"][format!("{}/utils/_test", NAMESPACE)]["post"].is_object());
    let bare = Api::new().await;
    let answer = send(&bare, "GET", "/openapi.json").await;
    assert!(!answer.text.contains(NAMESPACE) || answer.body["paths"][NAMESPACE].is_null());
}
