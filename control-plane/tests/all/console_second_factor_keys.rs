//! Secrets of second factors in the store: encrypted with a key of the configuration.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use accounts::FactorKeys;
use api::console::LoginRules;
use axum::body::to_bytes;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use tower::ServiceExt as _;

use crate::console_second_factor::{App, enrol, second, ticket};
use crate::console_support::{BEGINNING, ConsoleApi, request};

/// Rules with these keys, the first of which encrypts.
fn rules(keys: &[u8]) -> LoginRules {
    let lines: Vec<String> = keys.iter().map(|byte| STANDARD.encode([*byte; 32])).collect();
    let factor_keys =
        if keys.is_empty() { FactorKeys::default() } else { FactorKeys::read(&lines.join("\n")).unwrap() };
    LoginRules { factor_keys, ..LoginRules::default() }
}

async fn console(keys: &[u8]) -> ConsoleApi {
    ConsoleApi::with_rules(rules(keys), Arc::new(AtomicU64::new(BEGINNING))).await
}

/// The secret of anna's app as the store has it.
async fn stored(console: &ConsoleApi) -> Vec<u8> {
    console.api.state.store.second_factor("anna").await.unwrap().unwrap().secret
}

fn secret(app: &App) -> Vec<u8> {
    totp_rs::Secret::try_from_base32(&app.0).unwrap().as_bytes().to_vec()
}

/// The second step at a control plane beside this one, with other keys.
async fn second_beside(console: &ConsoleApi, keys: &[u8], code: &str) -> (u16, Value) {
    let body = json!({ "ticket": ticket(console, "anna").await, "code": code });
    let asked = request("POST", "/session/_login_code", &[], &body);
    let answer = console.beside(rules(keys)).oneshot(asked).await.unwrap();
    let status = answer.status().as_u16();
    (status, serde_json::from_slice(&to_bytes(answer.into_body(), 1 << 16).await.unwrap()).unwrap())
}

#[tokio::test]
async fn with_a_key_the_store_has_no_secret_that_codes_are_made_of() {
    let console = console(&[1]).await;
    let login = console.login("anna").await;
    let (app, _) = enrol(&console, &login).await;
    let kept = stored(&console).await;
    assert!(kept.len() > 40 && !kept.windows(20).any(|part| part == secret(&app)), "{} bytes", kept.len());
    let entered = second(&console, &ticket(&console, "anna").await, &app.code(&console, 0)).await;
    assert_eq!(entered.status, 200, "{}", entered.text);
    assert_eq!(stored(&console).await, kept, "it is stored as a new one would be already");
    let plain = ConsoleApi::new().await;
    let (app, _) = enrol(&plain, &plain.login("anna").await).await;
    assert_eq!(stored(&plain).await, secret(&app), "without a key as it is");
}

#[tokio::test]
async fn secrets_of_before_and_of_older_keys_are_encrypted_at_their_next_use() {
    let console = ConsoleApi::new().await;
    let (app, codes) = enrol(&console, &console.login("anna").await).await;
    let before = stored(&console).await;
    // A wrong code is no use.
    assert_eq!(second_beside(&console, &[1], "000000").await.0, 401);
    assert_eq!(stored(&console).await, before);
    assert_eq!(second_beside(&console, &[1], &app.code(&console, 0)).await.0, 200);
    let first = stored(&console).await;
    assert_ne!(first, before);
    // Another key in front, first with the older one behind it.
    assert_eq!(second_beside(&console, &[2, 1], &codes[0]).await.0, 200);
    assert_ne!(stored(&console).await, first, "a recovery code is a use as well");
    console.advance(30_000);
    assert_eq!(second_beside(&console, &[2], &app.code(&console, 0)).await.0, 200);
}

#[tokio::test]
async fn a_key_that_is_missing_is_no_wrong_code() {
    let console = console(&[1]).await;
    let (app, codes) = enrol(&console, &console.login("anna").await).await;
    let kept = stored(&console).await;
    for keys in [&[][..], &[2]] {
        let (status, body) = second_beside(&console, keys, &app.code(&console, 0)).await;
        assert_eq!((status, &body["error"]), (503, &json!("second_factor_locked")), "{body}");
    }
    let factor = console.api.state.store.second_factor("anna").await.unwrap().unwrap();
    assert_eq!((factor.failures, factor.secret), (0, kept.clone()));
    assert_eq!(second_beside(&console, &[2], &codes[0]).await.0, 200, "recovery codes need no key");
    assert_eq!(stored(&console).await, kept);
    assert_eq!(second_beside(&console, &[1], &app.code(&console, 0)).await.0, 200);
}
