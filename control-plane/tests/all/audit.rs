//! What the control plane tells about itself: who has logged in, who was refused, who has changed what. And no secret.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use crate::console_support::{ConsoleApi, PASSWORD};
use crate::entities_support::{Api, BASE, basic, key};
use accounts::Scope;
use axum::body::Body;
use axum::extract::ConnectInfo;
use axum::http::Request;
use entities::{Admission, EntityRef, EntitySet, FieldProblem};
use serde_json::{Value, json};
use tower::ServiceExt as _;

/// The audit events so far.
async fn audited(api: &Api) -> Vec<Value> {
    let events = api.events().await;
    assert!(events.iter().all(|event| event["@type"] == "SvcWafSecurityAudit"), "{events:?}");
    events
}

/// The action, the name and the reference of each; `-` for null.
fn in_brief(events: &[Value]) -> Vec<String> {
    let text = |value: &Value| value.as_str().unwrap_or("-").to_owned();
    events
        .iter()
        .map(|event| format!("{} {} {}", text(&event["action"]), text(&event["user"]["name"]), text(&event["ref"])))
        .collect()
}

/// A read with this key.
async fn read(api: &Api, authorization: &str) -> u16 {
    let request = Request::builder().uri(format!("{BASE}/waf-rulesets")).header("authorization", authorization);
    api.send(request.body(Body::empty()).unwrap()).await.status.as_u16()
}

#[tokio::test]
async fn logins_and_logouts_are_told_with_the_operator() {
    let console = ConsoleApi::new().await;
    let login = console.login("alice").await;
    assert_eq!(console.get(&login, "/session/_me").await.status, 200);
    assert_eq!(console.post(&login, "/session/_logout", &json!({})).await.status, 200);
    assert_eq!(console.try_login(9, "bob", "wrong").await.status, 401);
    // What is no operator's name may be anybody's password.
    assert_eq!(console.try_login(9, PASSWORD, "alice").await.status, 401);
    assert_eq!(console.try_login(9, "correct-horse", "alice").await.status, 401);

    let events = audited(&console.api).await;
    let expected = ["login alice -", "logout alice -", "login-refused bob -", "login-refused - -", "login-refused - -"];
    assert_eq!(in_brief(&events), expected);
    assert_eq!(events[0]["user"], json!({ "name": "alice", "email": "alice@example.com" }));
    assert_eq!(events[1]["source"], json!({ "ip": "192.0.2.1", "apikey": null, "user": "alice" }));
    assert_eq!(
        (&events[2]["detail"], &events[2]["source"]["ip"]),
        (&json!("the password is wrong"), &json!("192.0.2.9"))
    );
    assert_eq!(events[3]["user"], json!({ "name": null, "email": null }));
    assert_eq!(events[3]["detail"], "the name is not known");
    let ids: std::collections::BTreeSet<_> = events.iter().map(|event| event["@id"].as_str().unwrap()).collect();
    assert_eq!(ids.len(), events.len());
    let all = json!(events).to_string();
    let token = login.cookie.split_once('=').unwrap().1;
    for secret in [PASSWORD, "correct-horse", "argon2", token, &login.csrf] {
        assert!(!all.contains(secret), "{secret}: {all}");
    }
}

#[tokio::test]
async fn who_waits_is_told_once_a_minute() {
    let console = ConsoleApi::new().await;
    for host in 0..15 {
        console.try_login(host, "bob", "wrong").await;
    }
    let events = audited(&console.api).await;
    assert_eq!(in_brief(&events), [vec!["login-refused bob -"; 10], vec!["login-throttled bob -"]].concat());
    assert_eq!(events[10]["detail"], "too many failed logins for this name; try again in 60 s");
    assert_eq!(events[10]["source"]["ip"], "192.0.2.10");

    console.advance(60_000);
    for guess in 0..35 {
        console.try_login(7, &format!("name{guess}"), "wrong").await;
    }
    let events = audited(&console.api).await;
    assert_eq!(in_brief(&events[11..]), [vec!["login-refused - -"; 30], vec!["login-throttled - -"]].concat());
}

#[tokio::test]
async fn changes_are_told_with_the_key_and_what_changed_nothing_is_not() {
    let api = Api::new().await;
    let id = api.state.store.admin_keys().await.unwrap()[0].id.clone();
    let ruleset = |rules: &str| json!({ "id": "base", "name": "Base", "rules": [rules] });
    let create = api.call("POST", "/waf-rulesets", Some(ruleset("SecAction \"id:1,pass,nolog,msg:'s3cret'\""))).await;
    assert_eq!(create.status, 201, "{}", create.text);
    assert_eq!(api.call("POST", "/waf-rulesets", Some(ruleset(""))).await.status, 409);
    assert_eq!(api.call("POST", "/waf-rulesets", Some(json!({ "nonsense": 1 }))).await.status, 400);
    assert_eq!(api.call("PUT", "/waf-rulesets/none", Some(ruleset(""))).await.status, 404);
    assert_eq!(api.call("GET", "/waf-rulesets/base", None).await.status, 200);
    let stale = [("if-match", "\"999\"")];
    assert_eq!(api.call_with("DELETE", "/waf-rulesets/base", None, &stale).await.status, 412);
    let put = json!({ "id": "base", "name": "Base", "rules": [] });
    assert_eq!(api.call("PUT", "/waf-rulesets/base", Some(put)).await.status, 200);
    let patch = api.call("PATCH", "/waf-rulesets/base", Some(json!({ "enabled": false }))).await;
    assert_eq!(patch.status, 200, "{}", patch.text);
    assert_eq!(api.call("DELETE", "/waf-rulesets/base", None).await.status, 200);
    let global = api.call("PATCH", "/global-config/global-config", Some(json!({ "waf": { "fail_open": true } }))).await;
    assert_eq!(global.status, 200, "{}", global.text);

    let events = audited(&api).await;
    let expected = [
        "create test waf-rulesets/base",
        "update test waf-rulesets/base",
        "update test waf-rulesets/base",
        "delete test waf-rulesets/base",
        "update test global-config/global-config",
    ];
    assert_eq!(in_brief(&events), expected);
    assert_eq!(events[0]["source"], json!({ "ip": "192.0.2.1", "apikey": id, "user": null }));
    assert_eq!(events[2]["detail"], format!("revision {}", patch.header("etag").trim_matches('"')));
    let all = json!(events).to_string();
    let secret = api.authorization.trim_start_matches("Basic ");
    assert!(!all.contains(secret) && !all.contains("s3cret"), "what is written is not told: {all}");
}

#[tokio::test]
async fn keys_that_are_refused_are_told() {
    let api = Api::new().await;
    let id = api.state.store.admin_keys().await.unwrap()[0].id.clone();
    let reader = key(&api.state, &[Scope::Report], None).await;
    assert_eq!(read(&api, &basic(&id, "s3cret-guess")).await, 401);
    // Sent in the wrong order.
    assert_eq!(read(&api, &basic("s3cret-itself", &id)).await, 401);
    assert_eq!(read(&api, &reader).await, 403);
    for _ in 0..12 {
        read(&api, &basic("admin-key_x", "s3cret-guess")).await;
    }
    let events = audited(&api).await;
    let refused = ["key-refused test -", "key-refused - -", "key-refused test -"];
    assert_eq!(in_brief(&events), [refused.to_vec(), vec!["key-refused - -"; 8], vec!["key-throttled - -"]].concat());
    assert_eq!(events[0]["source"]["apikey"], id.as_str());
    assert_eq!(events[0]["detail"], "the admin key is not known or its secret is wrong");
    assert!(events[2]["detail"].as_str().unwrap().contains("lacks the scope `read`"), "{}", events[2]);
    assert!(!json!(events).to_string().contains("s3cret"), "{events:?}");
}

/// Says when a write has begun, and holds it until it is told to go on.
struct Held {
    begun: tokio::sync::mpsc::UnboundedSender<()>,
    go: Mutex<mpsc::Receiver<()>>,
}

impl Admission for Held {
    fn admit(&self, _: &EntitySet, _: &EntityRef) -> Result<Vec<String>, Vec<FieldProblem>> {
        self.begun.send(()).unwrap();
        self.go.lock().unwrap().recv().unwrap();
        Ok(Vec::new())
    }
}

#[tokio::test]
async fn a_change_is_told_although_its_caller_has_gone_away() {
    let api = Api::new().await;
    let (begun, mut has_begun) = tokio::sync::mpsc::unbounded_channel();
    let (go, wait) = mpsc::channel();
    api.state.entities.add_admission(Arc::new(Held { begun, go: Mutex::new(wait) }));
    let request = Request::builder().method("POST").uri(format!("{BASE}/waf-rulesets"));
    let request = request.header("authorization", &api.authorization).header("content-type", "application/json");
    let mut request = request.body(Body::from(r#"{"id": "base", "name": "Base"}"#)).unwrap();
    request.extensions_mut().insert(ConnectInfo(SocketAddr::from(([192, 0, 2, 1], 1))));
    let calling = tokio::spawn(api.router.clone().oneshot(request));
    has_begun.recv().await.unwrap();
    calling.abort();
    assert!(calling.await.unwrap_err().is_cancelled());
    let mut changes = api.state.entities.subscribe();
    go.send(()).unwrap();
    changes.changed().await.unwrap();
    let told = async {
        while audited(&api).await.is_empty() {
            tokio::task::yield_now().await;
        }
    };
    // The bound only keeps a silence from hanging the test.
    tokio::time::timeout(Duration::from_secs(20), told).await.unwrap();
    assert_eq!(in_brief(&audited(&api).await), ["create test waf-rulesets/base"]);
}
