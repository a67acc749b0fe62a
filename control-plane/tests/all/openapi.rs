//! The document of the admin API says what is served, and what is served is in the document.

use crate::entities_samples;

use std::collections::BTreeSet;

use crate::console_support::{ConsoleApi, Login};
use crate::entities_support::{Answer, Api};
use api::names::NAMESPACE;
use api::openapi::component_name;
use axum::body::Body;
use axum::http::Request;
use entities::registry::KINDS;
use serde_json::{Value, json};

/// All that `palisade serve` serves, and the session of an operator.
struct Whole {
    console: ConsoleApi,
    login: Login,
}

async fn whole() -> Whole {
    let console = ConsoleApi::new().await;
    let login = console.login("alice").await;
    Whole { console, login }
}

impl Whole {
    fn api(&self) -> &Api {
        &self.console.api
    }

    /// With an admin key, or in the console with the session.
    async fn send(&self, method: &str, path: &str) -> Answer {
        let request = Request::builder().method(method).uri(path);
        let request = match path.starts_with(NAMESPACE) {
            true => request.header("cookie", &self.login.cookie).header("x-csrf-token", &self.login.csrf),
            false => request.header("authorization", &self.api().authorization),
        };
        self.api().send(request.body(Body::empty()).unwrap()).await
    }

    async fn document(&self) -> Value {
        let answer = self.send("GET", "/openapi.json").await;
        assert_eq!((answer.status.as_u16(), answer.header("content-type")), (200, "application/json"));
        answer.body
    }
}

/// A path of the document with something in the place of its parameters.
fn filled(path: &str) -> String {
    path.split('/').map(|part| if part.starts_with('{') { "x" } else { part }).collect::<Vec<_>>().join("/")
}

#[tokio::test]
async fn every_path_has_the_methods_that_the_document_names_and_no_others() {
    let whole = whole().await;
    let document = whole.document().await;
    let mut seen = 0;
    for (path, methods) in document["paths"].as_object().unwrap() {
        let described: BTreeSet<String> = methods.as_object().unwrap().keys().map(|name| name.to_uppercase()).collect();
        let answer = whole.send("PROPFIND", &filled(path)).await;
        assert_eq!(answer.status, 405, "{path}: {}", answer.text);
        let served: BTreeSet<String> =
            answer.header("allow").split(',').map(str::to_owned).filter(|name| name != "HEAD").collect();
        assert_eq!(served, described, "{path}");
        seen += 1;
    }
    assert!(seen > 180, "{seen}");
}

#[tokio::test]
async fn every_collection_has_all_its_operations() {
    let whole = whole().await;
    let document = whole.document().await;
    let sides = ["/apis/palisade.svc/v1".to_owned(), format!("{NAMESPACE}/entities")];
    for (side, kind) in sides.iter().flat_map(|side| KINDS.iter().map(move |kind| (side, kind))) {
        let base = format!("{side}/{}", kind.collection);
        for (below, methods) in [
            ("", vec!["get", "post"]),
            ("/{id}", vec!["get", "put", "patch", "delete"]),
            ("/{id}/_history", vec!["get"]),
            ("/{id}/_history/{version}", vec!["get"]),
            ("/{id}/_revert", vec!["post"]),
            ("/_deleted", vec!["get"]),
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
    let whole = whole().await;
    let document = whole.document().await;
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
            let logins = [
                "_login",
                "_redeem",
                "_login_code",
                "_methods",
                "_oidc_begin",
                "_oidc_finish",
                "_passkey_login_begin",
                "_passkey_login",
            ]
            .map(|below| format!("{NAMESPACE}/session/{below}"));
            assert_eq!(!secured, open.contains(&path.as_str()) || logins.contains(path), "{place}");
            if secured {
                assert!(answers.contains_key("401"), "{place}");
            }
            for name in path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}')) {
                let declared = operation["parameters"].as_array().unwrap();
                assert!(declared.iter().any(|own| own["in"] == "path" && own["name"] == name), "{place}: {name}");
            }
        }
    }
    assert!(ids.len() > 400, "{}", ids.len());
}

#[tokio::test]
async fn references_and_links_lead_somewhere_and_the_page_has_everything() {
    let whole = whole().await;
    let document = whole.document().await;
    let text = document.to_string();
    let page = whole.send("GET", "/openapi").await;
    assert_eq!((page.status.as_u16(), page.header("content-type")), (200, "text/html; charset=utf-8"));
    assert!(page.header("content-security-policy").starts_with("default-src 'none'; style-src 'sha256-"));
    assert!(!page.text.contains("<script") && !page.text.contains("src=") && !page.text.contains("url("));
    for target in text.split("\"$ref\":\"").skip(1).filter_map(|rest| rest.split('"').next()) {
        assert!(document.pointer(target.trim_start_matches('#')).is_some(), "{target}");
    }
    let anchors: BTreeSet<&str> = page.text.split("id=\"").skip(1).filter_map(|rest| rest.split('"').next()).collect();
    for id in text.split("\"operationId\":\"").skip(1).filter_map(|rest| rest.split('"').next()) {
        assert!(anchors.contains(format!("op-{}", id.replace(['.', '_'], "-")).as_str()), "{id}");
    }
    for target in page.text.split("href=\"#").skip(1).filter_map(|rest| rest.split('"').next()) {
        assert!(anchors.contains(target), "{target}");
    }
}

#[tokio::test]
async fn what_the_api_answers_is_what_the_schemas_say() {
    let whole = whole().await;
    let document = whole.document().await;
    for kind in KINDS.iter().filter(|kind| kind.singleton.is_none()) {
        let name = component_name(kind);
        let schema = json!({ "$ref": format!("#/components/schemas/{name}"), "components": document["components"] });
        let validator = jsonschema::draft202012::new(&schema).unwrap();
        let mut entity = entities_samples::minimal(kind);
        entity.as_object_mut().unwrap().shift_remove("id");
        let created = whole.api().call("POST", &format!("/{}", kind.collection), Some(entity)).await;
        assert_eq!(created.status, 201, "{name}: {}", created.text);
        let errors: Vec<String> = validator.iter_errors(&created.body).map(|error| error.to_string()).collect();
        assert_eq!(errors, Vec::<String>::new(), "{name}");
        assert!(!validator.is_valid(&json!({ "enabledd": true })), "{name}");
    }
}

#[tokio::test]
async fn a_path_that_is_no_utf_8_is_an_error_of_the_api() {
    let whole = whole().await;
    for side in ["/apis/palisade.svc/v1".to_owned(), format!("{NAMESPACE}/entities")] {
        let answer = whole.send("GET", &format!("{side}/waf-configs/%FF")).await;
        assert_eq!((answer.status.as_u16(), &answer.body["error"]), (400, &json!("invalid_path")), "{}", answer.text);
    }
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
    let whole = whole().await;
    let document = whole.document().await;
    let mut refused = 0;
    for (path, methods) in document["paths"].as_object().unwrap() {
        for method in methods.as_object().unwrap().keys() {
            let answer = whole.send(&method.to_uppercase(), &format!("{}?no_such_parameter=1", filled(path))).await;
            let place = format!("{method} {path}: {} {}", answer.status, answer.text);
            if ["/healthz", "/readyz", "/metrics"].contains(&path.as_str()) {
                assert_ne!(answer.status, 400, "{place}");
                continue;
            }
            assert_eq!((answer.status.as_u16(), &answer.body["error"]), (400, &json!("invalid_query")), "{place}");
            assert!(answer.text.contains("no_such_parameter"), "{place}");
            refused += 1;
        }
    }
    assert!(refused > 400, "{refused}");
    assert_eq!(whole.api().call("GET", "/waf-rulesets/_count", None).await.body["count"], 0, "nothing was written");
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
    let document = whole().await.document().await;
    assert!(document["paths"][format!("{NAMESPACE}/utils/_test")]["post"].is_object());
    let bare = Api::new().await;
    let request = Request::builder().uri("/openapi.json").body(Body::empty()).unwrap();
    let paths = bare.send(request).await.body["paths"].clone();
    let mut paths = paths.as_object().unwrap().keys();
    assert!(paths.len() > 90 && !paths.any(|path| path.starts_with(NAMESPACE)));
}

#[tokio::test]
async fn the_entities_are_described_alike_on_both_sides() {
    let document = whole().await.document().await;
    let of = |path: String| document["paths"][path].as_object().unwrap().clone();
    for kind in KINDS.iter() {
        for below in ["", "/{id}", "/{id}/_history", "/{id}/_history/{version}", "/{id}/_revert", "/_deleted", "/_bulk"]
        {
            let by_key = of(format!("/apis/palisade.svc/v1/{}{below}", kind.collection));
            let by_session = of(format!("{NAMESPACE}/entities/{}{below}", kind.collection));
            for (method, key) in by_key {
                let (session, place) = (&by_session[&method], format!("{method} {}{below}", kind.collection));
                assert_eq!(
                    session["operationId"],
                    format!("console.{}", key["operationId"].as_str().unwrap()),
                    "{place}"
                );
                assert_eq!(session["tags"][0], format!("console: {}", kind.collection), "{place}");
                for same in ["summary", "description", "parameters", "requestBody"] {
                    assert_eq!(session[same], key[same], "{place} {same}");
                }
                let needed =
                    if method == "get" { json!([{ "session": [] }]) } else { json!([{ "session": [], "csrf": [] }]) };
                assert_eq!(session["security"], needed, "{place}");
                let links = session["responses"]["201"]["links"].as_object();
                assert!(links.is_none_or(|links| links.keys().all(|to| to.starts_with("console."))), "{place}");
            }
        }
    }
}
