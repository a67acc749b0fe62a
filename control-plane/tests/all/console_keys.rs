//! Admin keys, as admins of the console make and end them.

use crate::console_support::{BEGINNING, ConsoleApi};
use crate::entities_support::BASE;
use accounts::{AdminKey, Refusal};
use axum::body::Body;
use axum::http::Request;
use base::clock;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

/// Whether a key is accepted, at the time of the console.
async fn verify(console: &ConsoleApi, id: &str, secret: &str, now: u64) -> Result<(), Refusal> {
    let stored = console.api.state.store.admin_key(id).await.unwrap();
    AdminKey::verify(stored, secret.as_bytes(), now).map(|_| ())
}

#[tokio::test]
async fn a_key_is_made_shown_once_and_revoked() {
    let console = ConsoleApi::new().await;
    let alice = console.login("alice").await;
    let new = json!({ "name": "ci", "scopes": ["read", "read"], "expires_in_seconds": null });
    let made = console.post(&alice, "/keys/_create", &new).await;
    assert_eq!(made.status, 200, "{}", made.text);
    let (id, secret) = (made.body["key"]["id"].as_str().unwrap(), made.body["secret"].as_str().unwrap());
    assert_eq!(made.body["key"]["scopes"], json!(["read"]));
    let status = async || {
        let authorization = format!("Basic {}", STANDARD.encode(format!("{id}:{secret}")));
        let request = Request::builder().uri(format!("{BASE}/waf-configs")).header("authorization", authorization);
        console.api.send(request.body(Body::empty()).unwrap()).await.status.as_u16()
    };
    assert_eq!(status().await, 200);
    let listed = console.get(&alice, "/keys/_list").await;
    let key = listed.body["keys"].as_array().unwrap().iter().find(|key| key["id"] == id).unwrap();
    assert_eq!((&key["name"], &key["state"]), (&json!("ci"), &json!("active")));
    assert!(!listed.text.contains(secret) && !listed.text.contains("sha256"));
    let revoked = console.post(&alice, "/keys/_revoke", &json!({ "id": id })).await;
    assert_eq!(revoked.body["key"]["state"], "revoked");
    assert_eq!(status().await, 401);
    for path in ["/keys/_expire", "/keys/_rotate"] {
        let body = if path == "/keys/_expire" { json!({ "id": id, "in_seconds": null }) } else { json!({ "id": id }) };
        let ended = console.post(&alice, path, &body).await;
        assert_eq!((ended.status.as_u16(), &ended.body["error"]), (409, &json!("ended")), "{path}: {}", ended.text);
    }
    let events = console.events().await;
    let actions: Vec<&Value> = events.iter().filter(|event| event["ref"] == format!("admin-keys/{id}")).collect();
    assert_eq!((&actions[0]["action"], &actions[1]["action"]), (&json!("key-create"), &json!("key-revoke")));
    assert_eq!(
        (&actions[0]["user"]["name"], &actions[0]["detail"]),
        (&json!("alice"), &json!("scopes read; never expires"))
    );
    assert!(!json!(events).to_string().contains(secret));
}

#[tokio::test]
async fn a_key_that_is_replaced_goes_on_for_a_while() {
    let console = ConsoleApi::new().await;
    let alice = console.login("alice").await;
    let new = json!({ "name": "ci", "scopes": ["write"] });
    let made = console.post(&alice, "/keys/_create", &new).await.body;
    let (id, secret) = (made["key"]["id"].as_str().unwrap(), made["secret"].as_str().unwrap());
    let rotated = console.post(&alice, "/keys/_rotate", &json!({ "id": id, "grace_seconds": 60 })).await.body;
    let (fresh, fresh_secret) = (rotated["key"]["id"].as_str().unwrap(), rotated["secret"].as_str().unwrap());
    assert_eq!((&rotated["key"]["name"], &rotated["key"]["scopes"]), (&json!("ci"), &json!(["write"])));
    assert_eq!(rotated["old"]["expires_at"], clock::rfc3339(BEGINNING + 60_000));
    assert!(fresh != id && fresh_secret != secret);
    let at = async |id: &str, secret: &str, now| verify(&console, id, secret, now).await;
    assert_eq!(at(id, secret, BEGINNING + 59_999).await, Ok(()));
    assert_eq!(at(id, secret, BEGINNING + 60_000).await, Err(Refusal::Expired));
    assert_eq!(at(fresh, fresh_secret, BEGINNING + 60_000).await, Ok(()));
    // Its own end stays where it is earlier.
    let again = console.post(&alice, "/keys/_rotate", &json!({ "id": id, "grace_seconds": 3600 })).await.body;
    assert_eq!(again["old"]["expires_at"], clock::rfc3339(BEGINNING + 60_000));
    console.advance(60_000);
    let ended = console.post(&alice, "/keys/_rotate", &json!({ "id": id })).await;
    assert_eq!((ended.status.as_u16(), &ended.body["error"]), (409, &json!("ended")), "{}", ended.text);
    // And a key can be given another end.
    let never = console.post(&alice, "/keys/_expire", &json!({ "id": id, "in_seconds": null })).await;
    assert_eq!((&never.body["key"]["state"], &never.body["key"]["expires_at"]), (&json!("active"), &Value::Null));
    let now = console.post(&alice, "/keys/_expire", &json!({ "id": id, "in_seconds": 0 })).await;
    assert_eq!(now.body["key"]["state"], "expired");
}

#[tokio::test]
async fn what_a_key_cannot_be_is_refused() {
    let console = ConsoleApi::new().await;
    let alice = console.login("alice").await;
    for body in [
        json!({ "name": "a", "scopes": [] }),
        json!({ "name": "a".repeat(201), "scopes": ["read"] }),
        json!({ "name": "a\nb", "scopes": ["read"] }),
        json!({ "name": "a", "scopes": ["read"], "expires_in_seconds": 315_360_001 }),
    ] {
        let refused = console.post(&alice, "/keys/_create", &body).await;
        assert_eq!((refused.status.as_u16(), &refused.body["error"]), (400, &json!("invalid_key")), "{body}");
    }
    for body in [json!({ "name": "a", "scopes": ["all"] }), json!({ "name": "a", "scopes": ["read"], "id": "x" })] {
        assert_eq!(console.post(&alice, "/keys/_create", &body).await.body["error"], "invalid_body", "{body}");
    }
    for (path, body) in [
        ("/keys/_revoke", json!({ "id": "x" })),
        ("/keys/_rotate", json!({ "id": "x" })),
        ("/keys/_expire", json!({ "id": "x", "in_seconds": 1 })),
    ] {
        assert_eq!(console.post(&alice, path, &body).await.body["error"], "unknown_key", "{path}");
    }
    let long = console.post(&alice, "/keys/_rotate", &json!({ "id": "x", "grace_seconds": 2_592_001 })).await;
    assert_eq!(long.status, 404, "what does not exist comes first");
    for name in ["anna", "victor"] {
        let login = console.login(name).await;
        assert_eq!(console.get(&login, "/keys/_list").await.status, 403);
        assert_eq!(
            console.post(&login, "/keys/_create", &json!({ "name": "a", "scopes": ["read"] })).await.status,
            403
        );
    }
}
