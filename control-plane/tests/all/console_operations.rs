//! The endpoints that plugins have in the console, by the plugin of the documentation.

use crate::console_support::ConsoleApi;
use api::names::NAMESPACE;
use axum::body::Body;
use axum::http::Request;
use serde_json::{Value, json};

const PATH: &str = "/geo-block/_lookup";

#[tokio::test]
async fn an_operation_works_on_the_entities_as_they_are() {
    let console = ConsoleApi::new().await;
    let login = console.login("alice").await;
    let ask = async |address: &str| console.post(&login, PATH, &json!({ "address": address })).await;
    let before = ask("192.0.2.7").await;
    assert_eq!((before.status.as_u16(), &before.body), (200, &json!({ "country": null, "error": null })));
    let ranges = json!({ "id": "nl", "ranges": { "NL": ["192.0.2.0/24"] } });
    assert_eq!(console.api.call("POST", "/country-ranges", Some(ranges)).await.status, 201);
    let after = ask("192.0.2.7").await;
    assert_eq!((after.status.as_u16(), &after.body["country"]), (200, &json!("NL")), "{}", after.text);
    assert_eq!(after.header("cache-control"), "no-store");
}

#[tokio::test]
async fn a_body_that_does_not_fit_is_an_error_of_the_api() {
    let console = ConsoleApi::new().await;
    let login = console.login("alice").await;
    for (body, says) in [
        (json!({ "address": 7 }), "/address: invalid type: integer `7`"),
        (json!({ "adress": "192.0.2.7" }), "did you mean `address`"),
        (json!({ "address": "here" }), "/address: `here` is not an address (expected such as `192.0.2.7`)"),
        (json!([]), "the body is not a JSON object"),
    ] {
        let answer = console.post(&login, PATH, &body).await;
        assert_eq!((answer.status.as_u16(), &answer.body["error"]), (400, &json!("invalid_body")), "{}", answer.text);
        assert!(answer.body["error_description"].as_str().unwrap().contains(says), "{says}: {}", answer.text);
    }
    let long = console.post(&login, PATH, &json!({ "address": "1".repeat(1024) })).await;
    assert_eq!((long.status.as_u16(), &long.body["error"]), (413, &json!("payload_too_large")), "{}", long.text);
    let plain = Request::builder().method("POST").uri(format!("{NAMESPACE}{PATH}")).header("host", "127.0.0.1:8900");
    let plain = plain.header("cookie", &login.cookie).header("x-csrf-token", &login.csrf);
    let plain = console.api.send_as_it_is(plain.body(Body::from("{}")).unwrap()).await;
    assert_eq!((plain.status.as_u16(), &plain.body["error"]), (415, &json!("unsupported_media_type")));
    let asked = console.post(&login, &format!("{PATH}?adress=1"), &json!({ "address": "::1" })).await;
    assert_eq!((asked.status.as_u16(), &asked.body["error"]), (400, &json!("invalid_query")), "{}", asked.text);
}

#[tokio::test]
async fn an_operation_wants_a_session_and_its_token() {
    let console = ConsoleApi::new().await;
    let login = console.login("alice").await;
    let body = json!({ "address": "192.0.2.7" });
    assert_eq!(console.send("POST", PATH, &[], Some(&body)).await.status, 401);
    let answer = console.send("POST", PATH, &[("cookie", &login.cookie)], Some(&body)).await;
    assert_eq!((answer.status.as_u16(), &answer.body["error"]), (403, &json!("csrf")));
    assert_eq!(console.get(&login, PATH).await.status, 405);
}

#[tokio::test]
async fn an_operation_is_described_as_its_plugin_says() {
    let console = ConsoleApi::new().await;
    let request = Request::builder().uri("/openapi.json").header("host", "127.0.0.1:8900").body(Body::empty()).unwrap();
    let document = console.api.send_as_it_is(request).await.body;
    let operation = &document["paths"][format!("{NAMESPACE}{PATH}")]["post"];
    assert_eq!(
        (&operation["operationId"], &operation["tags"]),
        (&json!("console.geoLookup"), &json!(["console: geo block"]))
    );
    let body = &operation["requestBody"]["content"]["application/json"];
    assert_eq!(body["schema"], json!({ "$ref": "#/components/schemas/GeoLookup" }));
    let schema = &document["components"]["schemas"]["GeoLookup"];
    assert_eq!(schema["properties"]["address"]["description"], "IPv4 or IPv6.");
    let statuses: Vec<&String> = operation["responses"].as_object().map(|all| all.keys().collect()).unwrap_or_default();
    assert_eq!(statuses, ["200", "400", "401", "403", "408", "413", "415", "500", "503", "507"]);
    let words = |status: &str| {
        let content = &operation["responses"][status]["content"]["application/json"]["schema"];
        content.pointer("/properties/error/enum").cloned().unwrap_or(Value::Null)
    };
    assert_eq!(words("400"), json!(["invalid_json", "invalid_body", "invalid_query"]));
    assert_eq!(words("503"), json!(["busy", "too_slow", "failed", "shutting_down"]));
    // A named part of an answer is a component.
    let answer = &document["paths"][format!("{NAMESPACE}/utils/_test")]["post"]["responses"]["200"];
    assert!(answer.to_string().contains("\"#/components/schemas/TrialResult\""), "{answer}");
}
