//! The logout of operators who have logged in at an OpenID Connect provider: here first, then there.

use api::console::LoginRules;
use oidc::LogoutAt;
use serde_json::{Value, json};

use crate::console_support::{ConsoleApi, Login};
use crate::entities_support::Answer;
use crate::oidc_support::{CONSOLE, Double, Instead, enter, parameters};

const METADATA: &str = "/.well-known/openid-configuration";

/// A provider with an end of sessions, and a person who logs in there.
async fn double() -> Double {
    let double = Double::start().await;
    let end = json!({ "end_session_endpoint": format!("{}/end?tenant=staff", double.url) });
    double.change(|behaviour| behaviour.metadata = end);
    double.person("1", "grace", &["soc"]);
    double
}

/// What the browser holds after a login, with the value of the cookie for the logout; empty where it was removed.
fn held(entered: &Answer) -> (Login, String) {
    assert_eq!(entered.status, 200, "{}", entered.text);
    let cookies: Vec<&str> =
        entered.headers.get_all("set-cookie").iter().map(|value| value.to_str().unwrap()).collect();
    let of =
        |name: &str| cookies.iter().find(|cookie| cookie.starts_with(&format!("{name}="))).copied().unwrap_or_default();
    let first = |cookie: &str| cookie.split(';').next().unwrap().to_owned();
    let hint = of("palisade_id_token");
    let (value, rest) = hint.split_once("; ").unwrap();
    let value = value.trim_start_matches("palisade_id_token=").to_owned();
    let seconds = if value.is_empty() { 0 } else { 43_200 };
    let path = "Path=/extensions/svc/extensions/waf/session/_logout";
    assert_eq!(rest, format!("{path}; Max-Age={seconds}; HttpOnly; SameSite=Strict"));
    let csrf = entered.body["csrf_token"].as_str().unwrap().to_owned();
    (Login { cookie: first(of("palisade_session")), csrf }, value)
}

/// Logs out, with the cookie of the ID token if there is one.
async fn logout(console: &ConsoleApi, login: &Login, id_token: &str) -> Answer {
    let cookie = match id_token {
        "" => login.cookie.clone(),
        token => format!("{}; palisade_id_token={token}", login.cookie),
    };
    let out = console.post(&Login { cookie, csrf: login.csrf.clone() }, "/session/_logout", &json!({})).await;
    assert_eq!(out.status, 200, "{}", out.text);
    assert_eq!(console.get(login, "/session/_me").await.status, 401, "the session here has ended in any case");
    out
}

#[tokio::test]
async fn a_logout_ends_the_session_here_and_leads_to_the_provider() {
    let double = double().await;
    let console = double.console(|_| {}).await;
    let (login, token) = held(&enter(&double, &console).await);
    let out = logout(&console, &login, &token).await;
    let url = out.body["url"].as_str().unwrap();
    let (place, query) = url.split_once('?').unwrap();
    assert_eq!(place, format!("{}/end", double.url));
    let mut query = parameters(query);
    let state = query.remove("state").unwrap();
    assert_eq!(state.len(), 43, "{state}");
    let back = format!("{CONSOLE}/console/login");
    let expected =
        json!({ "tenant": "staff", "client_id": "palisade", "post_logout_redirect_uri": back, "id_token_hint": token });
    assert_eq!(json!(query), expected);
    let cookies: Vec<&str> = out.headers.get_all("set-cookie").iter().map(|value| value.to_str().unwrap()).collect();
    assert!(cookies.iter().all(|cookie| cookie.contains("=; ") && cookie.contains("; Max-Age=0;")), "{cookies:?}");
    assert_eq!(cookies.len(), 2, "{cookies:?}");
    // Without the cookie the provider asks whom it is about. Each state is another one.
    let (login, _) = held(&enter(&double, &console).await);
    let out = logout(&console, &login, "").await;
    let query = parameters(out.body["url"].as_str().unwrap().split_once('?').unwrap().1);
    assert!(!query.contains_key("id_token_hint") && query["state"] != state, "{query:?}");
    assert_eq!(out.headers.get_all("set-cookie").iter().count(), 1);
    // What is no ID token of this provider does not reach it.
    let (login, _) = held(&enter(&double, &console).await);
    let out = logout(&console, &login, "e30.e30.x").await;
    assert!(!out.body["url"].as_str().unwrap().contains("id_token_hint"), "{}", out.text);
}

#[tokio::test]
async fn a_logout_ends_here_where_that_is_configured_or_the_provider_has_no_end_of_sessions() {
    let double = double().await;
    let local = double.console(|settings| settings.logout = LogoutAt::ControlPlane).await;
    let (login, token) = held(&enter(&double, &local).await);
    assert_eq!((logout(&local, &login, &token).await.body, token.as_str()), (json!({ "done": true, "url": null }), ""));
    for end in [Value::Null, json!("http://id.example/"), json!("javascript:alert(1)"), json!(["https://id.example/"])]
    {
        double.change(|behaviour| behaviour.metadata = json!({ "end_session_endpoint": end }));
        let console = double.console(|_| {}).await;
        let (login, token) = held(&enter(&double, &console).await);
        let out = logout(&console, &login, &token).await;
        assert_eq!((&out.body["url"], token.as_str()), (&Value::Null, ""), "{end}");
    }
}

#[tokio::test]
async fn the_provider_has_no_part_in_the_logout_of_other_logins() {
    let double = double().await;
    let console = double.console(|_| {}).await;
    // The cookie of a login at the provider before.
    let (_, token) = held(&enter(&double, &console).await);
    let alice = console.login("alice").await;
    let out = logout(&console, &alice, &token).await;
    assert_eq!(out.body["url"], Value::Null);
    assert_eq!(out.headers.get_all("set-cookie").iter().count(), 2, "the cookie goes");
    // A token that no cookie has room for is not kept, and takes the one before away.
    double.change(|behaviour| behaviour.claims["more"] = "x".repeat(4000).into());
    let (login, token) = held(&enter(&double, &console).await);
    assert_eq!(token, "");
    assert!(logout(&console, &login, "").await.body["url"].is_string());
}

#[tokio::test]
async fn a_provider_that_does_not_answer_keeps_no_operator_from_logging_out() {
    let double = double().await;
    let console = double.console(|_| {}).await;
    let (login, token) = held(&enter(&double, &console).await);
    // Another control plane of the store, which has never reached the provider.
    double.change(|behaviour| behaviour.instead = [(METADATA, Instead::Never)].into());
    let rules = LoginRules { provider: Some(double.provider(|_| {})), ..LoginRules::default() };
    let other = console.beside(rules);
    let cookie = format!("{}; palisade_id_token={token}", login.cookie);
    let headers = [("cookie", cookie.as_str()), ("x-csrf-token", login.csrf.as_str())];
    let request = crate::console_support::request("POST", "/session/_logout", &headers, &json!({}));
    let asked = tower::ServiceExt::oneshot(other, request);
    let answer = tokio::time::timeout(std::time::Duration::from_secs(10), asked).await.unwrap().unwrap();
    assert_eq!(answer.status(), 200);
    let body = axum::body::to_bytes(answer.into_body(), 1 << 16).await.unwrap();
    assert_eq!(serde_json::from_slice::<Value>(&body).unwrap(), json!({ "done": true, "url": null }));
    assert_eq!(console.get(&login, "/session/_me").await.status, 401);
}
