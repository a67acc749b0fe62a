//! The console's `reputation/…` as far as it needs no gatherer; with one it is tested beside the plugin.

use crate::console_support::ConsoleApi;
use api::names::NAMESPACE;
use axum::body::Body;
use axum::http::Request;
use serde_json::{Value, json};

#[tokio::test]
async fn a_feed_is_made_of_an_entry_of_the_catalogue_and_can_be_saved() {
    let console = ConsoleApi::new().await;
    let login = console.login("alice").await;
    let catalog = console.get(&login, "/reputation/_catalog").await;
    assert_eq!(catalog.status.as_u16(), 200, "{}", catalog.text);
    assert_eq!(catalog.body["categories"], json!(["anonymity", "blocklist", "cloud", "allowlist"]));
    let entries = catalog.body["entries"].as_array().unwrap();
    assert_eq!(entries.len(), 14);
    let drop = entries.iter().find(|entry| entry["id"] == "spamhaus-drop").unwrap();
    let expected = json!({ "weight": 90, "action": "block", "tag": "feed:spamhaus-drop", "format": "cidr_lines", "options": {},
                           "refresh_interval_seconds": 43_200, "requires_auth": false, "auth_hint": null, "manual_url": false });
    for (field, value) in expected.as_object().unwrap() {
        assert_eq!(drop[field], *value, "{field}");
    }
    for entry in entries {
        let made = console.post(&login, "/reputation/_template", &json!({ "entry": entry["id"] })).await;
        assert_eq!((made.status.as_u16(), &made.body["done"]), (200, &json!(true)), "{}", made.text);
        let feed = made.body["feed"].clone();
        assert_eq!((&feed["catalog_ref"], &feed["url"], &feed["tag"]), (&entry["id"], &entry["url"], &entry["tag"]));
        let saved = console.api.call("POST", "/threat-feeds", Some(feed)).await;
        assert_eq!(saved.status.as_u16(), 201, "{}", saved.text);
    }
    let status = console.get(&login, "/reputation/_status").await;
    let feeds = status.body["feeds"].as_array().unwrap();
    assert_eq!((feeds.len(), &status.body["svc_bouncers"]), (14, &json!([])), "{}", status.text);
    for feed in feeds {
        let snapshot = &feed["snapshot"];
        assert_eq!(
            (&snapshot["entries"], &snapshot["ranges"], &snapshot["rejected"]),
            (&json!(0), &json!(0), &json!(0))
        );
        assert_eq!((&snapshot["error"], &feed["previous"]), (&Value::Null, &Value::Null), "{feed}");
    }
}

#[tokio::test]
async fn a_call_that_cannot_be_carried_out_is_answered_with_done_false() {
    let console = ConsoleApi::new().await;
    let login = console.login("alice").await;
    let feed = json!({ "id": "off", "url": "https://feeds.test/list", "enabled": false });
    assert_eq!(console.api.call("POST", "/threat-feeds", Some(feed)).await.status, 201);
    for (path, body, says) in [
        ("_template", json!({ "entry": "spamhaus" }), "unknown entry"),
        ("_template", json!({}), "/entry: the field `entry` is required"),
        ("_template", json!([]), "the body is not a JSON object"),
        ("_refresh", json!({ "feed": "gone" }), "there is no feed `gone`"),
        ("_refresh", json!({ "feed": "off" }), "the feed `off` is disabled"),
        ("_refresh", json!({ "asn": true }), "not active yet"),
        ("_refresh", json!({ "geo": true }), "not active yet"),
        ("_refresh", json!({ "force": true }), "`force` is for one feed"),
        ("_refresh", json!({ "fed": "off" }), "did you mean `feed`"),
        ("_rollback", json!({ "feed": "gone" }), "there is no feed `gone`"),
        ("_rollback", json!({ "feed": "off" }), "gathers no feeds"),
        ("_lookup", json!({ "ip": "here" }), "`here` is not an address"),
    ] {
        let answer = console.post(&login, &format!("/reputation/{path}"), &body).await;
        assert_eq!((answer.status.as_u16(), &answer.body["done"]), (200, &json!(false)), "{path} {}", answer.text);
        assert!(answer.body["error"].as_str().unwrap().contains(says), "{path}: {}", answer.text);
    }
    for (text, says) in [("", "no body"), ("{", "invalid json body")] {
        let request = Request::builder().method("POST").uri(format!("{NAMESPACE}/reputation/_lookup"));
        let request = request.header("host", "127.0.0.1:8900").header("content-type", "application/json");
        let request = request.header("cookie", &login.cookie).header("x-csrf-token", &login.csrf);
        let answer = console.api.send_as_it_is(request.body(Body::from(text)).unwrap()).await;
        assert_eq!((answer.status.as_u16(), &answer.body), (200, &json!({ "done": false, "error": says })));
    }
    let answer = console.post(&login, "/reputation/_lookup", &json!({ "ip": "::ffff:192.0.2.7" })).await;
    let verdict = json!({ "ip": "192.0.2.7", "score": 0, "blocking": false, "tags": [], "hits": [] });
    assert_eq!(answer.body, json!({ "done": true, "verdict": verdict }));
}

#[tokio::test]
async fn what_reads_is_a_get_and_wants_a_session() {
    let console = ConsoleApi::new().await;
    let login = console.login("alice").await;
    for path in ["/reputation/_catalog", "/reputation/_status"] {
        assert_eq!(console.send("GET", path, &[], None).await.status, 401);
        assert_eq!(
            console.send("GET", path, &[("cookie", &login.cookie)], None).await.status,
            200,
            "it changes nothing"
        );
        assert_eq!(console.post(&login, path, &json!({})).await.status, 405);
    }
    let request = Request::builder().uri("/openapi.json").header("host", "127.0.0.1:8900").body(Body::empty()).unwrap();
    let document = console.api.send_as_it_is(request).await.body;
    let read = &document["paths"][format!("{NAMESPACE}/reputation/_status")]["get"];
    assert_eq!((&read["operationId"], &read["requestBody"]), (&json!("console.reputationStatus"), &Value::Null));
    let refresh = &document["paths"][format!("{NAMESPACE}/reputation/_refresh")]["post"];
    assert_eq!(
        refresh["responses"]["400"]["content"]["application/json"]["schema"]["properties"]["error"]["enum"],
        json!(["invalid_query"])
    );
}
