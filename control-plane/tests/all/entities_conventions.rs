//! What every collection of the API keeps to, one test for each convention.

use crate::entities_samples;

use crate::entities_support::{Answer, Api, BASE};
use serde_json::{Value, json};

/// An API with the rulesets r0 to r4.
async fn filled() -> Api {
    let api = Api::new().await;
    for number in 0..5 {
        let document =
            json!({"id": format!("r{number}"), "name": format!("n{}", 9 - number), "enabled": number % 2 == 0});
        assert_eq!(api.call("POST", "/waf-rulesets", Some(document)).await.status, 201);
    }
    api
}

fn ids(list: &Value) -> Vec<&str> {
    list.as_array().unwrap().iter().map(|entity| entity["id"].as_str().unwrap()).collect()
}

fn refused(answer: &Answer) -> (u16, &str) {
    assert!(answer.body["error_description"].as_str().is_some_and(|text| !text.is_empty()), "{}", answer.text);
    (answer.status.as_u16(), answer.body["error"].as_str().unwrap())
}

#[tokio::test]
async fn a_list_is_a_bare_array_in_pages_and_parts() {
    let api = filled().await;
    let list = async |query: &str| api.call("GET", &format!("/waf-rulesets{query}"), None).await;
    let all = list("").await;
    assert_eq!((ids(&all.body).len(), all.header("x-pages")), (5, "1"));
    let page = list("?page=2&pageSize=2").await;
    assert_eq!((ids(&page.body), page.header("x-pages")), (vec!["r2", "r3"], "3"));
    assert_eq!(ids(&list("?page=4&pageSize=2").await.body), Vec::<&str>::new());
    assert_eq!(list("?fields=id,name&page=1&pageSize=1").await.body, json!([{"id": "r0", "name": "n9"}]));
    assert_eq!(ids(&list("?filter.enabled=false").await.body), ["r1", "r3"]);
    assert_eq!(ids(&list("?sorted=name:asc").await.body), ["r4", "r3", "r2", "r1", "r0"]);
    assert_eq!(ids(&list("?sorted=id:desc&filter.enabled=true").await.body), ["r4", "r2", "r0"]);
    let wrapped = list("?envelope=true&fields=id").await;
    assert_eq!(wrapped.body.as_object().unwrap().keys().collect::<Vec<_>>(), ["data"]);
    assert_eq!(wrapped.body["data"][0], json!({"id": "r0"}));
    let (pretty, plain) = (list("?pretty=true").await, list("?pretty=false").await);
    assert_eq!(pretty.body, plain.body);
    assert!(pretty.text.lines().count() > 5 && plain.text.lines().count() == 1);
    assert_eq!(refused(&list("?pageSize=none").await), (400, "invalid_query"));
}

#[tokio::test]
async fn post_answers_201_with_the_entity_and_409_for_an_id_that_exists() {
    let api = Api::new().await;
    let created = api.call("POST", "/waf-rulesets", Some(json!({"id": "a", "name": "A"}))).await;
    assert_eq!((created.status.as_u16(), &created.body["name"]), (201, &json!("A")));
    let again = api.call("POST", "/waf-rulesets", Some(json!({"id": "a", "name": "B"}))).await;
    assert_eq!(refused(&again), (409, "conflict"));
    assert_eq!(api.call("GET", "/waf-rulesets/a", None).await.body["name"], "A");
}

#[tokio::test]
async fn changing_what_is_missing_is_404_and_delete_answers_the_entity() {
    let api = filled().await;
    for method in ["PUT", "PATCH", "DELETE", "GET"] {
        let body = (method != "DELETE" && method != "GET").then(|| json!({}));
        assert_eq!(refused(&api.call(method, "/waf-rulesets/none", body).await), (404, "not_found"), "{method}");
    }
    let before = api.call("GET", "/waf-rulesets/r0", None).await.body;
    let deleted = api.call("DELETE", "/waf-rulesets/r0", None).await;
    assert_eq!((deleted.status.as_u16(), &deleted.body), (200, &before));
    assert_eq!(api.call("GET", "/waf-rulesets/r0", None).await.status, 404);
}

#[tokio::test]
async fn patch_takes_a_merge_patch_or_a_json_patch() {
    let api = filled().await;
    let one = "/waf-rulesets/r0";
    let merged = api.call("PATCH", one, Some(json!({"tags": ["a"], "name": null}))).await;
    assert_eq!((&merged.body["tags"], &merged.body["name"]), (&json!(["a"]), &json!("")), "{}", merged.text);
    let patch = json!([
        {"op": "test", "path": "/tags/0", "value": "a"}, {"op": "add", "path": "/tags/-", "value": "b"},
        {"op": "replace", "path": "/name", "value": "N"}, {"op": "copy", "from": "/name", "path": "/description"},
        {"op": "remove", "path": "/tags/0"}, {"op": "move", "from": "/tags/0", "path": "/tags/0"}
    ]);
    let patched = api.call("PATCH", one, Some(patch)).await;
    assert_eq!(patched.body["tags"], json!(["b"]), "{}", patched.text);
    assert_eq!((&patched.body["name"], &patched.body["description"]), (&json!("N"), &json!("N")));
    let test = json!([{"op": "replace", "path": "/name", "value": "X"}, {"op": "test", "path": "/tags", "value": []}]);
    assert_eq!(refused(&api.call("PATCH", one, Some(test)).await), (409, "patch_test_failed"));
    assert_eq!(api.call("GET", one, None).await.body["name"], "N", "the operations before the test are undone");
}

#[tokio::test]
async fn a_merge_patch_may_have_either_spelling_of_a_field() {
    let api = filled().await;
    let one = "/global-config/global-config";
    for (patch, pointer, expected) in [
        (json!({ "security": { "traffic": { "max-keys": 900 } } }), "/security/traffic/max_keys", json!(900)),
        (json!({ "security": { "traffic": { "max_keys": 901 } } }), "/security/traffic/max_keys", json!(901)),
        (json!({ "security": { "objects": { "max-keys": 902 } } }), "/security/objects/max_keys", json!(902)),
        (
            json!({ "security": { "api": { "inventory": { "max-records": 903 } } } }),
            "/security/api/inventory/max_records",
            json!(903),
        ),
        (json!({ "waf": { "fail-open": true } }), "/waf/fail_open", json!(true)),
    ] {
        let answer = api.call("PATCH", one, Some(patch.clone())).await;
        assert_eq!(answer.status, 200, "{patch} {}", answer.text);
        assert_eq!(answer.body.pointer(pointer), Some(&expected), "{patch}");
    }
    let both = json!({ "security": { "traffic": { "max-keys": 1000, "max_keys": 1001 } } });
    assert_eq!(api.call("PATCH", one, Some(both)).await.status, 400, "which of the two is meant, it does not say");
}

#[tokio::test]
async fn every_collection_counts_describes_and_takes_many() {
    let api = filled().await;
    assert_eq!(api.call("GET", "/waf-rulesets/_count", None).await.body, json!({"count": 5}));
    for kind in entities::registry::KINDS.iter() {
        let path = |name: &str| format!("/{}/{name}", kind.collection);
        let template = api.call("GET", &path("_template"), None).await.body;
        let word = template["kind"].as_str().unwrap();
        assert!(word == kind.kind || kind.own_kinds.contains(&word), "{template}");
        assert_eq!(template.get("id"), None);
        assert_eq!(api.call("GET", &path("_schema"), None).await.body["type"], "object");
        assert!(api.call("GET", &path("_count"), None).await.body["count"].is_u64());
        let mut line = entities_samples::minimal(kind);
        line["id"] = json!(kind.singleton.unwrap_or("many"));
        let method = if kind.singleton.is_some() { "PUT" } else { "POST" };
        let many = api.raw(method, &path("_bulk"), "application/x-ndjson", &line.to_string()).await;
        assert_eq!(many.status, 200, "{}", many.text);
        assert!(matches!(many.body["status"].as_u64(), Some(200 | 201)), "{}", many.text);
    }
}

#[tokio::test]
async fn errors_have_a_word_and_a_sentence() {
    let api = Api::new().await;
    let invalid = api.call("POST", "/waf-rulesets", Some(json!({"enabled": 1}))).await;
    assert_eq!(refused(&invalid), (400, "invalid_entity"));
    assert!(invalid.body["error_description"].as_str().unwrap().starts_with("/enabled: invalid type"));
    let request = axum::http::Request::builder().uri(format!("{BASE}/waf-rulesets"));
    let stranger = api.send(request.body(axum::body::Body::empty()).unwrap()).await;
    assert_eq!(refused(&stranger), (401, "unauthorized"));
    assert_eq!(refused(&api.call("GET", "/nothing", None).await), (404, "not_found"));
    assert_eq!(refused(&api.raw("POST", "/waf-rulesets", "text/xml", "{}").await), (415, "unsupported_media_type"));
    assert_eq!(refused(&api.raw("PATCH", "/waf-rulesets/a", "text/xml", "{}").await), (415, "unsupported_media_type"));
}

#[tokio::test]
async fn put_patch_and_delete_keep_to_if_match() {
    let api = filled().await;
    let one = "/waf-rulesets/r0";
    let stale = api.call("GET", one, None).await.header("etag").to_owned();
    let fresh = api.call("PATCH", one, Some(json!({"name": "x"}))).await.header("etag").to_owned();
    for (method, body) in [("PUT", Some(json!({}))), ("PATCH", Some(json!({}))), ("DELETE", None)] {
        let answer = api.call_with(method, one, body, &[("if-match", &stale)]).await;
        assert_eq!(refused(&answer), (412, "precondition_failed"), "{method}");
    }
    assert_eq!(api.call("GET", one, None).await.header("etag"), fresh);
    let mut tag = fresh;
    for (method, body) in [("PUT", Some(json!({}))), ("PATCH", Some(json!({}))), ("DELETE", None)] {
        let answer = api.call_with(method, one, body, &[("if-match", &tag)]).await;
        assert_eq!(answer.status, 200, "{method}: {}", answer.text);
        tag = answer.header("etag").to_owned();
    }
}
