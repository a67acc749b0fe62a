//! Admin keys in front of the entity API, and what needs none.

use crate::entities_support::{Answer, Api, BASE, basic, key};
use accounts::Scope;
use api::access::guard;
use api::openapi::{Group, Operation, Routes};
use api::rest;
use api::rest::RestConfig;
use axum::body::Body;
use axum::http::{Method, Request, StatusCode};
use base::clock;
use serde_json::json;
use store::SqliteOptions;

async fn call(api: &Api, method: &str, authorization: Option<&str>) -> Answer {
    let mut request = Request::builder().method(method).uri(format!("{BASE}/waf-rulesets"));
    request = request.header("content-type", "application/json");
    if let Some(value) = authorization {
        request = request.header("authorization", value);
    }
    api.send(request.body(Body::from(if method == "POST" { "{}" } else { "" })).unwrap()).await
}

#[tokio::test]
async fn scopes_are_enforced() {
    let api = Api::new().await;
    let cases = [
        (vec![Scope::Read], 200, 403),
        (vec![Scope::Write], 403, 201),
        (vec![Scope::Read, Scope::Write], 200, 201),
        (vec![Scope::Report], 403, 403),
    ];
    for (scopes, reading, writing) in cases {
        let header = key(&api.state, &scopes, None).await;
        assert_eq!(call(&api, "GET", Some(&header)).await.status, reading, "{scopes:?}");
        assert_eq!(call(&api, "POST", Some(&header)).await.status, writing, "{scopes:?}");
    }
    let header = key(&api.state, &[Scope::Report], None).await;
    let refused = call(&api, "GET", Some(&header)).await;
    assert_eq!(refused.body["error"], "forbidden");
    assert!(refused.text.contains("`read`"), "{}", refused.text);
}

#[tokio::test]
async fn a_missing_wrong_expired_or_revoked_key_is_401() {
    let api = Api::new().await;
    let now = clock::now_millis();
    let expired = key(&api.state, &Scope::ALL, Some(now)).await;
    // By id: keys of one millisecond are in no order.
    let ids =
        async || -> Vec<String> { api.state.store.admin_keys().await.unwrap().into_iter().map(|key| key.id).collect() };
    let before = ids().await;
    let revoked = key(&api.state, &Scope::ALL, None).await;
    let id = ids().await.into_iter().find(|id| !before.contains(id)).unwrap();
    assert!(api.state.store.admin_key_revoke(&id, now).await.unwrap());
    let keys = api.state.store.admin_keys().await.unwrap();
    let live = keys.iter().find(|key| key.expires_at_millis.is_none() && key.id != id).unwrap();
    let wrong = basic(&live.id, "wrong");
    for header in [None, Some("Bearer x"), Some("Basic ?"), Some(&expired), Some(&revoked), Some(&wrong)] {
        let answer = call(&api, "GET", header).await;
        assert_eq!((answer.status.as_u16(), &answer.body["error"]), (401, &json!("unauthorized")), "{header:?}");
        assert!(answer.header("www-authenticate").starts_with("Basic realm="));
    }
    assert_eq!(call(&api, "GET", Some(&api.authorization)).await.status, 200);
}

#[tokio::test]
async fn failures_are_throttled_and_right_keys_are_not() {
    let api = Api::new().await;
    let wrong = basic("admin-key_x", "guess");
    let mut statuses = Vec::new();
    for _ in 0..12 {
        statuses.push(call(&api, "GET", Some(&wrong)).await.status.as_u16());
    }
    assert_eq!(statuses, [vec![401; 10], vec![429; 2]].concat());
    let waiting = call(&api, "GET", Some(&wrong)).await;
    let seconds: u64 = waiting.header("retry-after").parse().unwrap();
    assert!((1..=60).contains(&seconds));
    assert_eq!(call(&api, "GET", Some(&api.authorization)).await.status, 200);
}

#[tokio::test]
async fn health_readiness_and_metrics_need_no_key() {
    let api = Api::new().await;
    let get = async |path: &str| api.send(Request::builder().uri(path).body(Body::empty()).unwrap()).await;
    assert_eq!(get("/healthz").await.status, 200);
    assert_eq!(get("/readyz").await.status, 200);
    let gate = api.state.readiness.register("snapshot");
    let waiting = get("/readyz").await;
    assert_eq!((waiting.status.as_u16(), &waiting.body["missing"]), (503, &json!(["snapshot"])));
    gate.set(true);
    assert_eq!(get("/readyz").await.status, 200);
    let metrics = get("/metrics").await.text;
    assert!(
        metrics.contains("palisade_http_requests_total{method=\"GET\",route=\"/readyz\",status=\"503\"}"),
        "{metrics}"
    );
    api.state.store.close().await.unwrap();
    let closed = get("/readyz").await;
    assert_eq!((closed.status.as_u16(), &closed.body["missing"]), (503, &json!(["store"])));
    assert_eq!(get("/healthz").await.status, 200);
    let nowhere = get("/nowhere").await;
    assert_eq!((nowhere.status.as_u16(), &nowhere.body["error"]), (404, &json!("not_found")));
}

#[tokio::test]
async fn a_sane_request_id_is_kept_and_another_replaced() {
    let api = Api::new().await;
    for (sent, kept) in [("abc-1", true), ("a b", false), ("", false)] {
        let request = Request::builder().uri("/healthz").header("x-request-id", sent).body(Body::empty()).unwrap();
        let answer = api.send(request).await;
        let id = answer.header("x-request-id");
        assert_eq!(id == sent, kept, "{sent} {id}");
        assert!(!id.is_empty());
    }
}

#[tokio::test]
async fn further_routes_stand_beside_the_api() {
    let mut api = Api::new().await;
    let group = Group { name: "reports".to_owned(), about: "Reports.".to_owned() };
    let described = Operation::new(Method::GET, "/api/report", "report", group, "A report").answers_as(
        StatusCode::OK,
        "The report.",
        "text/plain",
        json!({ "type": "string" }),
    );
    let reports = Routes::new().on(described, || async { "report" });
    let reports = guard(reports, api.state.access.clone(), Some(Scope::Report));
    api.router = rest::router_with(api.state.clone(), reports);
    let report = async |header: &str| {
        let request = Request::builder().uri("/api/report").header("authorization", header);
        api.send(request.body(Body::empty()).unwrap()).await
    };
    assert_eq!(report(&key(&api.state, &[Scope::Report], None).await).await.text, "report");
    assert_eq!(report(&key(&api.state, &[Scope::Read, Scope::Write], None).await).await.status, 403);
    let document = api.send(Request::builder().uri("/openapi.json").body(Body::empty()).unwrap()).await.body;
    let described = &document["paths"]["/api/report"]["get"];
    assert_eq!(described["security"], json!([{ "adminKey": ["report"] }]));
    assert!(["200", "401", "403", "429"].iter().all(|status| described["responses"][status].is_object()));
    assert_eq!(call(&api, "GET", Some(&api.authorization)).await.status, 200);
}

#[tokio::test]
async fn another_host_is_answered_with_421_but_for_health() {
    let config = RestConfig { hosts: vec!["admin.example".to_owned()], ..RestConfig::default() };
    let api = Api::with(SqliteOptions::default(), config).await;
    let get = async |path: &str, host: &str| {
        let request = Request::builder().uri(path).header("host", host).header("authorization", &api.authorization);
        api.send(request.body(Body::empty()).unwrap()).await
    };
    let list = format!("{BASE}/waf-rulesets");
    assert_eq!(get(&list, "admin.example:8900").await.status, 200);
    for path in [&list, "/openapi.json", "/nowhere"] {
        let refused = get(path, "evil.example").await;
        assert_eq!((refused.status.as_u16(), &refused.body["error"]), (421, &json!("wrong_host")), "{path}");
        assert!(!refused.header("x-request-id").is_empty());
    }
    for path in ["/healthz", "/readyz", "/metrics"] {
        assert_eq!(get(path, "10.0.0.7:8900").await.status, 200, "{path}");
    }
}
