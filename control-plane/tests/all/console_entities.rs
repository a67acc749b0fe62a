//! The entities in the console: by session what admin keys have by key.

use crate::console_support::{ConsoleApi, Login, PASSWORD};
use crate::entities_support::{Answer, BASE, key};
use accounts::{Scope, SessionLimits};
use api::names::NAMESPACE;
use axum::body::Body;
use axum::http::Request;
use serde_json::{Value, json};

/// A request to the entities, without credentials.
struct Sent {
    method: &'static str,
    /// Below the collections.
    path: String,
    headers: Vec<(&'static str, String)>,
    body: String,
}

/// A request of JSON, or without a body for null.
fn sent(method: &'static str, path: &str, body: &Value) -> Sent {
    if body.is_null() {
        return Sent { method, path: path.to_owned(), headers: Vec::new(), body: String::new() };
    }
    typed(method, path, "application/json", &body.to_string())
}

fn typed(method: &'static str, path: &str, media_type: &str, body: &str) -> Sent {
    let headers = vec![("content-type", media_type.to_owned())];
    Sent { method, path: path.to_owned(), headers, body: body.to_owned() }
}

/// Lines of JSON.
fn lines(method: &'static str, path: &str, lines: &[Value]) -> Sent {
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    typed(method, path, "application/x-ndjson", &text)
}

impl Sent {
    fn with(mut self, name: &'static str, value: &str) -> Sent {
        self.headers.push((name, value.to_owned()));
        self
    }

    async fn to(&self, console: &ConsoleApi, base: &str, credentials: &[(&str, &str)]) -> Answer {
        let mut request = Request::builder().method(self.method).uri(format!("{base}{}", self.path));
        let own = self.headers.iter().map(|(name, value)| (*name, value.as_str()));
        for (name, value) in own.chain(credentials.iter().copied()) {
            request = request.header(name, value);
        }
        console.api.send(request.body(Body::from(self.body.clone())).unwrap()).await
    }

    async fn by_key(&self, console: &ConsoleApi) -> Answer {
        self.to(console, BASE, &[("authorization", &console.api.authorization)]).await
    }

    async fn by_session(&self, console: &ConsoleApi, login: &Login) -> Answer {
        self.with_headers(console, &[("cookie", &login.cookie), ("x-csrf-token", &login.csrf)]).await
    }

    /// To the console with these credentials.
    async fn with_headers(&self, console: &ConsoleApi, credentials: &[(&str, &str)]) -> Answer {
        self.to(console, &base(), credentials).await
    }
}

/// What the paths of the entities begin with in the console.
fn base() -> String {
    format!("{NAMESPACE}/entities")
}

/// One of every change, of entities that there are where it matters.
fn changes() -> Vec<Sent> {
    let line = [json!({ "id": "of-a-batch" })];
    let any = [json!({ "op": "delete", "collection": "waf-rulesets", "id": "a" })];
    vec![
        sent("POST", "/waf-rulesets", &json!({ "id": "b" })),
        sent("PUT", "/waf-rulesets/a", &json!({ "name": "put" })),
        sent("PATCH", "/waf-rulesets/a", &json!({ "name": "patched" })),
        sent("DELETE", "/waf-rulesets/a", &Value::Null),
        lines("POST", "/waf-rulesets/_bulk", &line),
        lines("PUT", "/waf-rulesets/_bulk", &[json!({ "id": "a", "name": "put" })]),
        lines("PATCH", "/waf-rulesets/_bulk", &[json!({ "id": "a", "name": "patched" })]),
        lines("DELETE", "/waf-rulesets/_bulk", &[json!({ "id": "a" })]),
        lines("POST", "/_bulk", &any),
        sent("POST", "/waf-rulesets/h/_revert", &json!({ "version": 2 })),
        sent("POST", "/routes/_import", &json!({ "static_resources": { "listeners": [] } })),
    ]
}

/// One of every read.
fn reads() -> Vec<Sent> {
    let paths = ["", "/a", "/_count", "/_schema", "/_template", "/h/_history", "/h/_history/2", "/_deleted"];
    paths.iter().map(|below| sent("GET", &format!("/waf-rulesets{below}"), &Value::Null)).collect()
}

/// A console with the ruleset `a` at revision 1, and `h` at 2.
async fn with_rulesets() -> ConsoleApi {
    let console = ConsoleApi::new().await;
    for id in ["a", "h"] {
        assert_eq!(sent("POST", "/waf-rulesets", &json!({ "id": id })).by_key(&console).await.status, 201);
    }
    console
}

/// The rulesets as they are stored, with their revisions.
fn rulesets(console: &ConsoleApi) -> Vec<(u64, Value)> {
    let set = console.api.state.entities.current();
    set.slots("waf-rulesets").map(|slot| (slot.revision, slot.entity.stored())).collect()
}

/// An answer without what differs from one request to the next, and between the two sides.
fn comparable(answer: &Answer) -> (u16, Vec<(String, String)>, String) {
    let headers = answer.headers.iter().filter(|(name, _)| *name != "x-request-id" && *name != "cache-control");
    let headers = headers.map(|(name, value)| (name.to_string(), value.to_str().unwrap().replace(&base(), BASE)));
    let mut headers: Vec<_> = headers.filter(|(name, _)| name != "content-length").collect();
    headers.sort();
    let text = without_authors(&answer.text);
    // Times are the only texts of this shape.
    let text = text.split('"').map(|part| match part.len() == 24 && part.ends_with('Z') {
        true => "TIME",
        false => part,
    });
    (answer.status.as_u16(), headers, text.collect::<Vec<_>>().join("\""))
}

/// An answer without the authors of versions, which are a key on one side and an operator on the other.
fn without_authors(text: &str) -> String {
    let mut parts = text.split("\"author\":{");
    let first = parts.next().unwrap().to_owned();
    parts.fold(first, |text, part| text + part.split_once('}').unwrap().1)
}

/// Requests of all kinds, right ones and wrong ones, each on what those before it have left.
fn conversation() -> Vec<(u16, Sent)> {
    let none = &Value::Null;
    let get = |path: &str| sent("GET", path, none);
    let feed = json!({ "id": "f", "url": "https://feeds.example/list", "headers": { "x-key": "hunter2" } });
    let shown = json!({ "url": "https://feeds.example/other", "headers": { "x-key": "********" } });
    let long = |path: &str| sent("POST", path, &json!({ "description": "x".repeat(9 << 20) }));
    let batch = [
        json!({ "op": "create", "collection": "waf-rulesets", "entity": { "id": "c" } }),
        json!({ "op": "patch", "collection": "waf-rulesets", "id": "a", "patch": { "name": "n" }, "if_match": "\"99\"" }),
    ];
    vec![
        (201, sent("POST", "/waf-rulesets", &json!({ "id": "a", "name": "first", "metadata": { "team": "x" } }))),
        (409, sent("POST", "/waf-rulesets", &json!({ "id": "a" }))),
        (400, sent("POST", "/waf-rulesets", &json!({ "id": "b", "enabled": "yes", "ruels": [] }))),
        (400, typed("POST", "/waf-rulesets", "application/json", "{")),
        (415, typed("POST", "/waf-rulesets", "text/plain", "{}")),
        (413, long("/waf-rulesets")),
        // The documents of this collection may be longer; this one lacks a contract.
        (400, long("/api-contracts")),
        (409, sent("POST", "/global-config", &json!({}))),
        (201, sent("POST", "/waf-rulesets", &json!({ "id": "b", "name": "second" }))),
        (201, sent("POST", "/waf-configs", &json!({ "id": "w", "rulesets": ["b"] }))),
        (400, sent("POST", "/waf-configs", &json!({ "id": "v", "rulesets": ["gone"] }))),
        // With a warning.
        (
            201,
            sent("POST", "/threat-policies", &json!({ "id": "t", "tiers": [{ "min_score": 1, "action": "shout" }] })),
        ),
        (201, sent("POST", "/threat-feeds", &feed)),
        (200, sent("PUT", "/threat-feeds/f", &shown)),
        (
            400,
            sent(
                "POST",
                "/threat-feeds",
                &json!({ "id": "g", "url": "https://a.example/", "headers": { "x": "********" } }),
            ),
        ),
        (200, get("/threat-feeds")),
        (200, get("/threat-feeds?filter.headers.x-key=hunter2")),
        (200, get("/waf-rulesets")),
        (200, get("/waf-rulesets?page=2&pageSize=1&sorted=name:desc&fields=id,metadata.team&envelope=true&pretty")),
        (200, get("/waf-rulesets?filter.metadata.team=x")),
        (400, get("/waf-rulesets?filter.nmae=x")),
        (400, get("/waf-rulesets?pagesize=1")),
        (400, get("/waf-rulesets?page=0")),
        (200, get("/waf-rulesets/a")),
        (200, sent("HEAD", "/waf-rulesets/a", none)),
        (200, get("/waf-rulesets/a?fields=name&pretty=true")),
        (304, get("/waf-rulesets/a").with("if-none-match", "\"1\"")),
        (404, get("/waf-rulesets/gone")),
        (404, get("/waf-rules")),
        (400, get("/waf-rulesets/%FF")),
        (200, get("/waf-rulesets/_count")),
        (200, get("/waf-rulesets/_schema")),
        (200, get("/routes/_template?pretty")),
        (412, sent("PUT", "/waf-rulesets/a", &json!({ "name": "stale" })).with("if-match", "\"77\"")),
        (200, sent("PUT", "/waf-rulesets/a", &json!({ "name": "third" })).with("if-match", "\"1\"")),
        (404, sent("PUT", "/waf-rulesets/gone", &json!({}))),
        (200, sent("PATCH", "/waf-rulesets/a", &json!({ "tags": ["one"] }))),
        (200, sent("PATCH", "/waf-rulesets/a", &json!([{ "op": "add", "path": "/tags/-", "value": "two" }]))),
        (409, sent("PATCH", "/waf-rulesets/a", &json!([{ "op": "test", "path": "/name", "value": "x" }]))),
        (400, typed("PATCH", "/waf-rulesets/a", "application/merge-patch+json", "[]")),
        (200, sent("PATCH", "/global-config/global-config", &json!({ "waf": { "fail_open": true } }))),
        (409, sent("DELETE", "/global-config/global-config", none)),
        (200, lines("POST", "/_bulk", &batch)),
        (412, lines("POST", "/_bulk?atomic", &batch[1..])),
        (200, lines("POST", "/_bulk?dry_run=true", &batch[..1])),
        (200, lines("POST", "/waf-rulesets/_bulk", &[json!({ "id": "d" }), json!({ "id": "a" })])),
        (200, lines("PATCH", "/waf-rulesets/_bulk", &[json!({ "id": "d", "name": "n" })])),
        (400, lines("DELETE", "/waf-rulesets/_bulk", &[])),
        (415, sent("POST", "/_bulk", &json!({}))),
        (200, sent("POST", "/routes/_import?dry_run", &json!({ "static_resources": { "listeners": [] } }))),
        (400, typed("POST", "/routes/_import", "application/yaml", "a: [")),
        (404, sent("POST", "/waf-rulesets/_import", &json!({}))),
        (200, get("/waf-rulesets/a/_history")),
        (200, get("/waf-rulesets/a/_history?page=2&pageSize=1")),
        (400, get("/waf-rulesets/a/_history?page=0")),
        (404, get("/waf-rulesets/gone/_history")),
        (200, get("/waf-rulesets/a/_history/1")),
        (404, get("/waf-rulesets/a/_history/x")),
        // Both versions have a secret.
        (200, get("/threat-feeds/f/_history/5?since=6")),
        (404, get("/threat-feeds/f/_history/5?since=999")),
        (412, sent("POST", "/waf-rulesets/a/_revert", &json!({ "version": 1 })).with("if-match", "\"77\"")),
        (200, sent("POST", "/waf-rulesets/a/_revert", &json!({ "version": 1 }))),
        (404, sent("POST", "/waf-rulesets/a/_revert", &json!({ "version": 999 }))),
        (400, sent("POST", "/waf-rulesets/a/_revert", &json!({ "version": "1" }))),
        (413, sent("POST", "/waf-rulesets/a/_revert", &json!({ "version": 1, "reason": "x".repeat(4096) }))),
        (409, sent("DELETE", "/waf-rulesets/b", none)),
        (400, sent("DELETE", "/waf-rulesets/b?force=flase", none)),
        (200, sent("DELETE", "/waf-rulesets/b?force", none)),
        (412, sent("DELETE", "/waf-rulesets/d", none).with("if-match", "\"1\"")),
        (200, sent("DELETE", "/waf-rulesets/d", none)),
        (200, get("/waf-rulesets/_deleted?page=1&pageSize=1")),
        (405, sent("PUT", "/waf-rulesets", &json!({}))),
    ]
}

#[tokio::test]
async fn the_same_requests_have_the_same_answers_by_key_and_by_session() {
    let (keyed, console) = (ConsoleApi::new().await, ConsoleApi::new().await);
    let login = console.login("alice").await;
    let mut warned = Vec::new();
    for (status, request) in conversation() {
        let place = format!("{} {}", request.method, request.path);
        let (by_key, by_session) = (request.by_key(&keyed).await, request.by_session(&console, &login).await);
        assert_eq!(by_key.status.as_u16(), status, "{place}: {}", by_key.text);
        assert_eq!(comparable(&by_session), comparable(&by_key), "{place}");
        // Which methods a path has is answered in front of the check of sessions.
        let expected = if status == 405 { "" } else { "no-store" };
        assert_eq!(by_session.header("cache-control"), expected, "{place}");
        assert!(!by_session.text.contains("hunter2"), "{place}: {}", by_session.text);
        if by_session.status == 201 {
            let id = by_session.body["id"].as_str().unwrap();
            let collection = request.path.as_str();
            assert_eq!(by_session.header("location"), format!("{}{collection}/{id}", base()));
            let followed = sent("GET", &format!("{collection}/{id}"), &Value::Null).by_session(&console, &login).await;
            assert_eq!((followed.status.as_u16(), followed.header("etag")), (200, by_session.header("etag")));
        }
        if !by_session.header("x-palisade-warnings").is_empty() {
            warned.push(request.path);
        }
    }
    assert_eq!(warned, ["/threat-policies", "/waf-rulesets/b?force"]);
    let stored = console.api.state.entities.current().slot("threat-feeds", "f").unwrap().entity.stored();
    assert_eq!(
        (&stored["headers"]["x-key"], &stored["url"]),
        (&json!("hunter2"), &json!("https://feeds.example/other"))
    );
}

#[tokio::test]
async fn every_operator_reads_and_changes_and_no_key_does() {
    let console = with_rulesets().await;
    for name in ["alice", "bob"] {
        let login = console.login(name).await;
        for request in reads().into_iter().chain(changes()) {
            let answer = request.by_session(&console, &login).await;
            let place = format!("{name} {} {}: {}", request.method, request.path, answer.text);
            assert!(answer.status.is_success() && !answer.text.contains("\"error\":"), "{place}");
            // The next one finds what this one has found.
            for id in ["a", "b", "of-a-batch"] {
                sent("DELETE", &format!("/waf-rulesets/{id}"), &Value::Null).by_key(&console).await;
            }
            assert_eq!(sent("POST", "/waf-rulesets", &json!({ "id": "a" })).by_key(&console).await.status, 201);
        }
    }
    let before = rulesets(&console);
    for scope in Scope::ALL {
        let header = key(&console.api.state, &[scope], None).await;
        for request in reads().into_iter().chain(changes()) {
            let answer = request.with_headers(&console, &[("authorization", &header)]).await;
            assert_eq!((answer.status.as_u16(), &answer.body["error"]), (401, &json!("unauthorized")), "{scope}");
            assert!(answer.text.contains("an admin key is not accepted here"), "{}", answer.text);
        }
    }
    assert_eq!(rulesets(&console), before);
}

#[tokio::test]
async fn a_change_needs_the_token_of_its_session_and_a_read_does_not() {
    let console = with_rulesets().await;
    let (alice, bob) = (console.login("alice").await, console.login("bob").await);
    let before = rulesets(&console);
    for request in changes() {
        for token in [None, Some(""), Some("wrong"), Some(bob.csrf.as_str())] {
            let mut headers = vec![("cookie", alice.cookie.as_str())];
            headers.extend(token.map(|token| ("x-csrf-token", token)));
            let answer = request.with_headers(&console, &headers).await;
            let place = format!("{} {} {token:?}", request.method, request.path);
            assert_eq!((answer.status.as_u16(), &answer.body["error"]), (403, &json!("csrf")), "{place}");
            assert_eq!(answer.header("cache-control"), "no-store", "{place}");
        }
    }
    assert_eq!(rulesets(&console), before);
    for request in reads() {
        assert_eq!(request.with_headers(&console, &[("cookie", &alice.cookie)]).await.status, 200, "{}", request.path);
    }
}

#[tokio::test]
async fn without_a_session_or_after_its_end_there_is_nothing() {
    let console = with_rulesets().await;
    let (idle, out, removed) = (console.login("alice").await, console.login("alice").await, console.login("bob").await);
    assert_eq!(console.post(&out, "/session/_logout", &json!({})).await.status, 200);
    assert!(console.api.state.store.operator_remove("bob").await.unwrap());
    let before = rulesets(&console);
    console.advance(SessionLimits::default().idle_millis);
    let none = Login { cookie: "other=1".to_owned(), csrf: String::new() };
    for login in [&none, &idle, &out, &removed] {
        // Not even which collections there are.
        let further = [sent("GET", "/no-such-collection", &Value::Null)];
        for request in reads().into_iter().chain(changes()).chain(further) {
            let answer = request.by_session(&console, login).await;
            let place = format!("{} {}: {}", request.method, request.path, answer.text);
            assert_eq!((answer.status.as_u16(), &answer.body["error"]), (401, &json!("unauthorized")), "{place}");
            assert!(answer.header("www-authenticate").starts_with("Session "), "{place}");
        }
    }
    assert_eq!(rulesets(&console), before);
    assert_eq!(console.try_login(1, "alice", PASSWORD).await.status, 200);
}

#[tokio::test]
async fn of_two_who_have_read_the_same_entity_one_writes() {
    let console = with_rulesets().await;
    let (alice, bob) = (console.login("alice").await, console.login("bob").await);
    let read = sent("GET", "/waf-rulesets/a", &Value::Null);
    let tag = read.by_session(&console, &alice).await.header("etag").to_owned();
    assert_eq!(read.by_session(&console, &bob).await.header("etag"), tag);
    let put = |name: &str, tag: &str| sent("PUT", "/waf-rulesets/a", &json!({ "name": name })).with("if-match", tag);
    let first = put("of alice", &tag).by_session(&console, &alice).await;
    assert_eq!(first.status, 200, "{}", first.text);
    for stale in [put("of bob", &tag), sent("DELETE", "/waf-rulesets/a", &Value::Null).with("if-match", &tag)] {
        let answer = stale.by_session(&console, &bob).await;
        assert_eq!((answer.status.as_u16(), &answer.body["error"]), (412, &json!("precondition_failed")));
    }
    assert_eq!(put("of a key", &tag).by_key(&console).await.status, 412);
    assert_eq!(read.by_session(&console, &bob).await.body["name"], "of alice");
    // And between the two sides.
    assert_eq!(put("of a key", first.header("etag")).by_key(&console).await.status, 200);
    assert_eq!(put("of bob", first.header("etag")).by_session(&console, &bob).await.status, 412);
}

#[tokio::test]
async fn the_event_of_a_change_names_the_operator() {
    let console = with_rulesets().await;
    let login = console.login("bob").await;
    let sequence = [
        sent("POST", "/waf-rulesets", &json!({ "id": "b" })).with("x-request-id", "mine"),
        sent("PUT", "/waf-rulesets/b", &json!({})),
        sent("PATCH", "/waf-rulesets/b", &json!({ "name": "n" })),
        sent("POST", "/waf-rulesets/b/_revert", &json!({ "version": 3 })),
        lines("POST", "/_bulk", &[json!({ "op": "create", "collection": "waf-rulesets", "entity": { "id": "c" } })]),
        // These change nothing.
        lines("POST", "/waf-rulesets/_bulk?dry_run", &[json!({ "id": "d" })]),
        sent("POST", "/waf-rulesets", &json!({ "id": "b" })),
        sent("GET", "/waf-rulesets", &Value::Null),
        sent("DELETE", "/waf-rulesets/b", &Value::Null),
    ];
    for request in &sequence {
        request.by_session(&console, &login).await;
    }
    let events = console.events().await;
    let own: Vec<&Value> = events.iter().filter(|event| event["user"]["name"] == "bob").collect();
    let brief: Vec<String> = own.iter().map(|event| format!("{} {}", event["action"], event["ref"])).collect();
    let expected = [
        "\"login\" null",
        "\"create\" \"waf-rulesets/b\"",
        "\"update\" \"waf-rulesets/b\"",
        "\"update\" \"waf-rulesets/b\"",
        "\"revert\" \"waf-rulesets/b\"",
        "\"create\" \"waf-rulesets/c\"",
        "\"delete\" \"waf-rulesets/b\"",
    ];
    assert_eq!(brief, expected);
    assert_eq!(own[1]["user"], json!({ "name": "bob", "email": "bob@example.com" }));
    assert_eq!(own[1]["source"], json!({ "ip": "192.0.2.1", "apikey": null, "user": "bob" }));
    assert_eq!((&own[1]["request_id"], &own[1]["detail"]), (&json!("mine"), &json!("revision 3")));
    assert_eq!(events.len(), expected.len() + 2, "two more, of the key: {events:?}");
    // So does the history.
    for (id, detail) in [("b", Value::Null), ("c", json!("_bulk"))] {
        let history = sent("GET", &format!("/waf-rulesets/{id}/_history"), &Value::Null).by_key(&console).await;
        let newest = &history.body[0];
        assert_eq!(newest["author"], json!({ "kind": "operator", "id": "bob", "name": null }), "{id}");
        assert_eq!(newest["detail"], detail, "{id}");
    }
}

#[tokio::test]
async fn a_collection_that_does_not_exist_is_named_with_the_one_that_was_meant() {
    let console = ConsoleApi::new().await;
    let login = console.login("alice").await;
    for request in [
        sent("GET", "/waf-ruleset", &Value::Null),
        sent("GET", "/waf-ruleset/a", &Value::Null),
        sent("GET", "/waf-ruleset/_count", &Value::Null),
        sent("POST", "/waf-ruleset", &json!({})),
        sent("DELETE", "/waf-ruleset/a", &Value::Null),
        lines("POST", "/waf-ruleset/_bulk", &[json!({})]),
    ] {
        let answer = request.by_session(&console, &login).await;
        assert_eq!((answer.status.as_u16(), &answer.body["error"]), (404, &json!("not_found")), "{}", answer.text);
        assert!(answer.text.contains("waf-rulesets"), "{}", answer.text);
    }
}

#[tokio::test]
async fn ten_thousand_entities_are_read_page_by_page() {
    let console = ConsoleApi::new().await;
    let login = console.login("alice").await;
    let ids: Vec<String> = (0..10_000).map(|number| format!("r{number:05}")).collect();
    let documents: Vec<Value> = ids.iter().map(|id| json!({ "id": id, "name": format!("name of {id}") })).collect();
    let written = lines("POST", "/waf-rulesets/_bulk?atomic", &documents).by_session(&console, &login).await;
    assert_eq!((written.status.as_u16(), written.text.lines().count()), (200, 10_000));
    let mut seen = Vec::new();
    for page in 1..=4 {
        let path = format!("/waf-rulesets?page={page}&pageSize=3000&sorted=name:desc&fields=id");
        let request = sent("GET", &path, &Value::Null);
        let answer = request.by_session(&console, &login).await;
        assert_eq!((answer.status.as_u16(), answer.header("x-pages")), (200, "4"));
        assert_eq!(answer.text, request.by_key(&console).await.text);
        seen.extend(answer.body.as_array().unwrap().iter().map(|item| item["id"].as_str().unwrap().to_owned()));
    }
    seen.reverse();
    assert!(seen == ids, "every entity once, in the order asked for");
    let beyond = sent("GET", "/waf-rulesets?page=5&pageSize=3000", &Value::Null).by_session(&console, &login).await;
    assert_eq!((beyond.body, beyond.status.as_u16()), (json!([]), 200));
}
