//! Widgets as challenge providers, from the console.

use crate::console_support::ConsoleApi;
use serde_json::json;

#[tokio::test]
async fn a_preset_becomes_a_provider_that_can_be_saved() {
    let console = ConsoleApi::new().await;
    let login = console.login("alice").await;
    let presets = console.get(&login, "/security/_challenge_presets").await;
    assert_eq!(presets.status, 200, "{}", presets.text);
    let entries = presets.body["entries"].as_array().unwrap();
    let ids: Vec<_> = entries.iter().map(|entry| entry["id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["friendly-captcha", "captcha-eu", "turnstile", "hcaptcha"]);
    for entry in entries {
        let body = json!({ "preset": entry["id"] });
        let made = console.post(&login, "/security/_challenge_from_preset", &body).await;
        assert_eq!(made.status, 200, "{}", made.text);
        assert_eq!(made.body["done"], true, "{}", made.text);
        let provider = &made.body["provider"];
        assert_eq!((&provider["enabled"], &provider["kind"]), (&json!(false), &json!("vendor")));
        assert_eq!((&provider["preset_ref"], &provider["verify_url"]), (&entry["id"], &entry["verify_url"]));
        let id = provider["id"].as_str().unwrap();
        assert!(id.starts_with("challenge-provider_"), "{id}");
        assert_eq!(console.api.call("GET", &format!("/challenge-providers/{id}"), None).await.status, 404, "not saved");
        let saved = console.api.call("POST", "/challenge-providers", Some(provider.clone())).await;
        assert_eq!(saved.status, 201, "{}", saved.text);
    }
}

#[tokio::test]
async fn what_cannot_be_done_is_said_with_200() {
    let console = ConsoleApi::new().await;
    let login = console.login("alice").await;
    for (body, error) in [
        (json!({ "preset": "recaptcha" }), "unknown preset"),
        (json!([]), "the body is not a JSON object"),
        (json!({ "preset": 1 }), "preset"),
    ] {
        let answer = console.post(&login, "/security/_challenge_from_preset", &body).await;
        assert_eq!(answer.status, 200, "{}", answer.text);
        assert_eq!(answer.body["done"], false, "{}", answer.text);
        assert!(answer.body["error"].as_str().unwrap().contains(error), "{}", answer.text);
    }
}
