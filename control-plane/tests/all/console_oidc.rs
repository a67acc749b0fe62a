//! Logins at an OpenID Connect provider: the flow, the browser it is bound to, and failures of the provider.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use api::console::LoginRules;
use oidc::SecondFactorAt;
use serde_json::{Value, json};

use crate::console_support::{ConsoleApi, PASSWORD};
use crate::oidc_support::{Browser, Double, Instead, Signer, begin, enter, finish, finish_with};

#[tokio::test]
async fn a_person_is_added_at_the_first_login_and_is_the_same_operator_at_the_next() {
    let double = Double::start().await;
    let console = double.console(|_| {}).await;
    let methods = console.send("GET", "/session/_methods", &[], None).await.body;
    assert_eq!(methods["provider"], json!({ "name": "Example", "available": true }));
    double.person("248289761001", "Grace", &["soc", "other"]);
    let entered = enter(&double, &console).await;
    assert_eq!(entered.status, 200, "{}", entered.text);
    assert_eq!(entered.body["operator"]["name"], "grace");
    assert_eq!((&entered.body["operator"]["role"], &entered.body["done"]), (&json!("analyst"), &json!(true)));
    let cookies: Vec<&str> =
        entered.headers.get_all("set-cookie").iter().map(|value| value.to_str().unwrap()).collect();
    assert!(cookies[0].starts_with("palisade_session=") && cookies[0].contains("SameSite=Strict"), "{cookies:?}");
    assert!(cookies[1].starts_with("palisade_oidc=;") && cookies[1].contains("Max-Age=0"), "{cookies:?}");
    let cookie = cookies[0].split(';').next().unwrap();
    let sessions = console.send("GET", "/session/_sessions", &[("cookie", cookie)], None).await.body;
    assert_eq!(sessions["sessions"][0]["via"], "oidc");

    let again = enter(&double, &console).await;
    assert_eq!((&again.body["operator"]["name"], again.status.as_u16()), (&json!("grace"), 200));
    assert_ne!(again.header("set-cookie").split(';').next().unwrap(), cookie, "each login has a session of its own");
    assert_eq!(console.api.state.store.operators().await.unwrap().len(), 5, "added once");
    let events = console.events().await;
    let of = |action: &str| events.iter().rfind(|event| event["action"] == action).unwrap();
    assert_eq!((&of("login")["user"]["name"], &of("login")["detail"]), (&json!("grace"), &json!("via: oidc")));
    let added = of("operator-add")["detail"].as_str().unwrap();
    assert_eq!(added, "via: oidc: Grace@example.com; role analyst; subject 248289761001");
}

#[tokio::test]
async fn a_state_and_a_code_are_used_once_by_the_browser_that_has_begun() {
    let double = Double::start().await;
    let console = double.console(|_| {}).await;
    double.person("1", "grace", &["soc"]);
    let refused = async |browser: &Browser, body: Value| {
        let answer = finish_with(&console, browser, &body).await;
        assert_eq!((answer.status.as_u16(), answer.header("set-cookie")), (401, ""), "{}", answer.text);
        assert_eq!(answer.body["error"], "login_refused");
    };
    let (mine, other) = (begin(&console, 1).await, begin(&console, 1).await);
    let code = double.authorize(&mine);
    // The code and state of one browser in another one: a forged login.
    refused(&other, json!({ "state": mine.state, "code": code })).await;
    refused(&mine, json!({ "state": mine.state, "code": code })).await;
    for without in ["", "palisade_oidc=", "other=1"] {
        let mut browser = begin(&console, 2).await;
        let code = double.authorize(&browser);
        without.clone_into(&mut browser.cookie);
        refused(&browser, json!({ "state": browser.state, "code": code })).await;
    }
    // Of two answers at once one counts.
    let browser = begin(&console, 1).await;
    let code = double.authorize(&browser);
    let (one, two) = tokio::join!(finish(&console, &browser, &code), finish(&console, &browser, &code));
    assert_eq!([&one, &two].iter().filter(|answer| answer.status == 200).count(), 1, "{} {}", one.text, two.text);
    // A code that was used, with a new state.
    let next = begin(&console, 1).await;
    refused(&next, json!({ "state": next.state, "code": code })).await;
    // The code of another login: the verifier is not its own.
    let (one, two) = (begin(&console, 3).await, begin(&console, 3).await);
    refused(&two, json!({ "state": two.state, "code": double.authorize(&one) })).await;
    for state in ["", "x", &"A".repeat(43)] {
        refused(&one, json!({ "state": state, "code": "x" })).await;
    }
    console.advance(60_000);
    let slow = begin(&console, 1).await;
    let code = double.authorize(&slow);
    console.advance(600_000);
    refused(&slow, json!({ "state": slow.state, "code": code })).await;
    let open = begin(&console, 1).await;
    refused(&open, json!({ "state": open.state })).await;
}

#[tokio::test]
async fn an_answer_of_another_issuer_and_a_refusal_of_the_provider_are_no_logins() {
    let double = Double::start().await;
    let console = double.console(|_| {}).await;
    double.person("1", "grace", &["soc"]);
    let browser = begin(&console, 1).await;
    let code = double.authorize(&browser);
    let body = json!({ "state": browser.state, "code": code, "iss": "https://evil.example" });
    assert_eq!(finish_with(&console, &browser, &body).await.body["error"], "login_refused");
    let browser = begin(&console, 1).await;
    let body = json!({ "state": browser.state, "code": double.authorize(&browser), "iss": double.url });
    assert_eq!(finish_with(&console, &browser, &body).await.status, 200);
    let browser = begin(&console, 1).await;
    let body = json!({ "state": browser.state, "error": "access_denied\r\n<script>" });
    let denied = finish_with(&console, &browser, &body).await;
    assert_eq!((denied.status.as_u16(), &denied.body["error"]), (401, &json!("provider_denied")));
    assert!(!denied.text.contains("<script"), "{}", denied.text);
    let events = console.events().await;
    let last = events.iter().rfind(|event| event["action"] == "login-refused").unwrap();
    assert_eq!(last["detail"], "via: oidc: the provider has answered `access_denied<script>`");
    // A provider that says that its answers name the issuer: one without is of another.
    double.change(|behaviour| behaviour.metadata = json!({ "authorization_response_iss_parameter_supported": true }));
    let console = double.console(|_| {}).await;
    let browser = begin(&console, 1).await;
    let answer = finish(&console, &browser, &double.authorize(&browser)).await;
    assert_eq!((answer.status.as_u16(), &answer.body["error"]), (401, &json!("login_refused")), "{}", answer.text);
    let browser = begin(&console, 1).await;
    let body = json!({ "state": browser.state, "code": double.authorize(&browser), "iss": double.url });
    assert_eq!(finish_with(&console, &browser, &body).await.status, 200);
}

#[tokio::test]
async fn any_control_plane_of_a_store_ends_a_login() {
    let double = Double::start().await;
    let rules = LoginRules { provider: Some(double.provider(|_| {})), ..LoginRules::default() };
    let console = ConsoleApi::with_rules(rules, Arc::clone(&double.clock)).await;
    // Its keys and metadata are its own.
    let rules = LoginRules { provider: Some(double.provider(|_| {})), ..LoginRules::default() };
    let other = console.beside(rules);
    double.person("1", "grace", &["soc"]);
    let browser = begin(&console, 1).await;
    let code = double.authorize(&browser);
    let body = json!({ "state": browser.state, "code": code });
    let request =
        crate::console_support::request("POST", "/session/_oidc_finish", &[("cookie", &browser.cookie)], &body);
    let answer = tower::ServiceExt::oneshot(other, request).await.unwrap();
    assert_eq!(answer.status(), 200);
}

#[tokio::test]
async fn a_second_factor_is_asked_for_unless_the_provider_is_trusted_with_it() {
    let double = Double::start().await;
    for (trusted, status) in [(false, 403), (true, 200)] {
        let second_factor = if trusted { SecondFactorAt::Provider } else { SecondFactorAt::ControlPlane };
        let provider = double.provider(|settings| settings.second_factor = second_factor);
        let rules = LoginRules { provider: Some(provider), requires_second_factor: true, ..LoginRules::default() };
        let console = ConsoleApi::with_rules(rules, Arc::clone(&double.clock)).await;
        double.person("1", "grace", &["root"]);
        let entered = enter(&double, &console).await;
        assert_eq!(entered.body["second_factor_required"], !trusted, "{}", entered.text);
        let cookie = entered.header("set-cookie").split(';').next().unwrap().to_owned();
        let listed = console.send("GET", "/operators/_list", &[("cookie", &cookie)], None).await;
        assert_eq!(listed.status, status, "{}", listed.text);
        // A password is no login at the provider.
        assert_eq!(console.try_login(1, "alice", PASSWORD).await.body["second_factor_required"], true);

        let store = &console.api.state.store;
        assert!(store.second_factor_begin("grace", vec![7; 20]).await.unwrap());
        let confirm = store::AccessChange::SecondFactorConfirm {
            name: "grace".to_owned(),
            step: 1,
            at_millis: 1,
            recovery_codes: Vec::new(),
            keep_session: [0; 32],
        };
        assert!(store.access_change(confirm, "{}".to_owned()).await.unwrap());
        let entered = enter(&double, &console).await;
        assert_eq!((&entered.body["done"], entered.status.as_u16()), (&json!(trusted), 200), "{}", entered.text);
        assert_eq!(entered.header("set-cookie").starts_with("palisade_session="), trusted);
    }
}

#[tokio::test]
async fn a_code_that_no_provider_has_given_is_no_trouble_of_the_provider() {
    let double = Double::start().await;
    let console = double.console(|_| {}).await;
    let asked = || double.change(|behaviour| behaviour.asked.get("/token").copied().unwrap_or_default());
    let long = "c".repeat(8193);
    for (host, code) in ["", "a\nb", "é", &long].into_iter().enumerate() {
        let browser = begin(&console, 10 + host as u8).await;
        let answer = finish(&console, &browser, code).await;
        assert_eq!((answer.status.as_u16(), &answer.body["error"]), (401, &json!("login_refused")), "{}", answer.text);
    }
    assert_eq!(asked(), 0, "the provider is not asked");
    // One that answers a code that it has not given with a status alone.
    double.change(|behaviour| behaviour.instead = [("/token", Instead::Status(400))].into());
    let browser = begin(&console, 20).await;
    assert_eq!(finish(&console, &browser, "made-up").await.status, 401);
    assert_eq!(asked(), 1);
    assert!(console.api.state.events.troubles().iter().all(|trouble| trouble.part != "login"));
}

#[tokio::test]
async fn a_person_whom_the_userinfo_endpoint_refuses_is_no_trouble_of_the_provider() {
    let double = Double::start().await;
    let console = double.console(|_| {}).await;
    // The ID token lacks the groups: the endpoint is asked for them.
    let claims = json!({ "sub": "1", "preferred_username": "grace", "email": "g@example.com" });
    double.change(|behaviour| behaviour.claims = claims);
    for (status, answered, error) in
        [(401, 401, "token_refused"), (403, 401, "token_refused"), (500, 503, "provider_failed")]
    {
        double.change(|behaviour| behaviour.instead = [("/userinfo", Instead::Status(status))].into());
        let entered = enter(&double, &console).await;
        assert_eq!((entered.status.as_u16(), &entered.body["error"]), (answered, &json!(error)), "{}", entered.text);
        let is_reported = console.api.state.events.troubles().iter().any(|trouble| trouble.part == "login");
        assert_eq!(is_reported, status == 500, "{status}");
    }
}

#[tokio::test]
async fn a_provider_that_fails_is_reported_and_passwords_go_on() {
    let double = Double::start().await;
    let console = double.console(|_| {}).await;
    let hurried = double.console(|settings| settings.timeout = Duration::from_secs(2)).await;
    double.person("1", "grace", &["soc"]);
    let fails_at = async |console: &ConsoleApi, path: &'static str, instead: Instead, what: &str| {
        double.change(|behaviour| behaviour.instead = [(path, instead)].into());
        let browser = begin(console, 1).await;
        let answer = finish(console, &browser, &double.authorize(&browser)).await;
        assert_eq!(
            (answer.status.as_u16(), &answer.body["error"]),
            (503, &json!("provider_failed")),
            "{}",
            answer.text
        );
        assert!(!answer.text.contains(&double.url), "the client is not told: {}", answer.text);
        let trouble = console.api.state.events.troubles().into_iter().find(|trouble| trouble.part == "login").unwrap();
        assert!(trouble.reason.contains(what), "{}", trouble.reason);
        double.change(|behaviour| behaviour.instead.clear());
    };
    fails_at(&console, "/token", Instead::Bytes(1 << 20), "longer than 256 KiB").await;
    fails_at(&console, "/token", Instead::Bytes(10), "no ID token").await;
    fails_at(&hurried, "/token", Instead::Never, "no answer within").await;
    fails_at(&console, "/token", Instead::Status(500), "500").await;
    fails_at(&console, "/jwks", Instead::Bytes(1 << 20), "longer than 256 KiB").await;
    fails_at(&hurried, "/jwks", Instead::Never, "no answer within").await;
    console.advance(5_000);
    assert_eq!(enter(&double, &console).await.status, 200);

    let silent = double.console(|settings| settings.issuer = "http://127.0.0.1:1".to_owned()).await;
    let begun = silent.send("POST", "/session/_oidc_begin", &[], Some(&json!({}))).await;
    assert_eq!((begun.status.as_u16(), &begun.body["error"]), (503, &json!("provider_failed")));
    let methods = silent.send("GET", "/session/_methods", &[], None).await.body;
    assert_eq!(methods["provider"]["available"], false);
    assert_eq!(silent.try_login(1, "alice", PASSWORD).await.status, 200);
    // One of another name: the issuer is compared with what was configured.
    let other = double.console(|settings| settings.issuer = settings.issuer.replace("127.0.0.1", "localhost")).await;
    assert_eq!(other.send("POST", "/session/_oidc_begin", &[], Some(&json!({}))).await.status, 503);
    let without = ConsoleApi::new().await;
    assert_eq!(without.send("POST", "/session/_oidc_begin", &[], Some(&json!({}))).await.body["error"], "no_provider");
    assert_eq!(without.send("GET", "/session/_methods", &[], None).await.body["provider"], Value::Null);
}

#[tokio::test]
async fn keys_that_fail_are_asked_for_again_after_a_pause_that_doubles() {
    let double = Double::start().await;
    let console = double.console(|_| {}).await;
    double.person("1", "grace", &["soc"]);
    let asked = || double.change(|behaviour| behaviour.asked.get("/jwks").copied().unwrap_or_default());
    let fails = async || {
        let answer = enter(&double, &console).await;
        assert_eq!(
            (answer.status.as_u16(), &answer.body["error"]),
            (503, &json!("provider_failed")),
            "{}",
            answer.text
        );
        asked()
    };
    double.change(|behaviour| behaviour.instead = [("/jwks", Instead::Status(500))].into());
    for (times, seconds) in [5, 10, 20, 40, 60, 60].into_iter().enumerate() {
        assert_eq!(fails().await, times + 1);
        let trouble = console.api.state.events.troubles().into_iter().find(|trouble| trouble.part == "login").unwrap();
        assert!(trouble.reason.contains("/jwks has answered 500"), "{}", trouble.reason);
        let methods = console.send("GET", "/session/_methods", &[], None).await.body;
        assert_eq!(methods["provider"]["available"], false);
        console.advance(seconds * 1000 - 1);
        assert_eq!(fails().await, times + 1, "not within {seconds} s");
        console.advance(1);
    }
    double.change(|behaviour| behaviour.instead.clear());
    assert_eq!((enter(&double, &console).await.status.as_u16(), asked()), (200, 7));
    let methods = console.send("GET", "/session/_methods", &[], None).await.body;
    assert_eq!(methods["provider"]["available"], true);
    // An unknown id of a key: they are asked for, and that is a failure as well.
    console.advance(60_000);
    double.change(|behaviour| {
        behaviour.keys = Some(json!({ "keys": [Signer::rsa("one").jwk()] }));
        behaviour.instead = [("/jwks", Instead::Status(500))].into();
        behaviour.signer = Signer::p256("made up");
    });
    assert_eq!((fails().await, fails().await), (8, 8));
    // The keys that were read are not lost.
    double.change(|behaviour| behaviour.signer = Signer::rsa("one"));
    assert_eq!((enter(&double, &console).await.status.as_u16(), asked()), (200, 8));
}

#[tokio::test]
async fn the_probe_asks_for_metadata_and_for_keys_that_are_missing() {
    let double = Double::start().await;
    let provider = double.provider(|_| {});
    let asked = |path: &str| double.change(|behaviour| behaviour.asked.get(path).copied().unwrap_or_default());
    double.change(|behaviour| behaviour.instead = [("/jwks", Instead::Status(500))].into());
    for times in 1..3 {
        let told = provider.probe().await.unwrap_err().to_string();
        assert!(told.contains("/jwks has answered 500"), "{told}");
        assert_eq!((provider.problem(), asked("/jwks")), (Some(told), times), "no pause for the probe");
    }
    double.change(|behaviour| behaviour.instead.clear());
    for _ in 0..2 {
        assert_eq!((provider.probe().await, provider.problem(), asked("/jwks")), (Ok(()), None, 3), "known keys stay");
    }
    double.change(|behaviour| {
        behaviour.instead = [("/.well-known/openid-configuration", Instead::Status(500))].into();
    });
    let told = provider.probe().await.unwrap_err().to_string();
    assert_eq!((provider.problem(), asked("/.well-known/openid-configuration")), (Some(told), 5));
}

#[tokio::test]
async fn metadata_that_fail_are_asked_for_again_after_a_pause() {
    const METADATA: &str = "/.well-known/openid-configuration";
    let double = Double::start().await;
    let provider = double.provider(|_| {});
    let asked = || double.change(|behaviour| behaviour.asked[METADATA]);
    double.change(|behaviour| behaviour.instead = [(METADATA, Instead::Status(500))].into());
    for (times, seconds) in [5, 10].into_iter().enumerate() {
        assert!(provider.begin("x").await.is_err());
        double.clock.fetch_add(seconds * 1000 - 1, Ordering::Relaxed);
        let told = provider.begin("x").await.unwrap_err().to_string();
        assert!(told.contains("has answered 500"), "{told}");
        assert_eq!(asked(), times + 1, "not within {seconds} s");
        double.clock.fetch_add(1, Ordering::Relaxed);
    }
    double.change(|behaviour| behaviour.instead.clear());
    assert!(provider.begin("x").await.is_ok());
    // Kept for an hour; older ones go on where the provider does not answer.
    double.clock.fetch_add(3_599_999, Ordering::Relaxed);
    assert!(provider.begin("x").await.is_ok());
    assert_eq!((asked(), provider.problem()), (3, None));
    double.clock.fetch_add(1, Ordering::Relaxed);
    double.change(|behaviour| behaviour.instead = [(METADATA, Instead::Status(500))].into());
    assert!(provider.begin("x").await.is_ok());
    assert_eq!((asked(), provider.problem().is_some()), (4, true));
}

#[tokio::test]
async fn logins_that_are_begun_and_never_end_are_throttled() {
    let double = Double::start().await;
    let console = double.console(|_| {}).await;
    double.person("1", "grace", &["soc"]);
    for _ in 0..40 {
        assert_eq!(enter(&double, &console).await.status, 200, "those that end well count for nothing");
    }
    for _ in 0..30 {
        begin(&console, 9).await;
    }
    let waits = console.send_from(9, "POST", "/session/_oidc_begin", &[], Some(&json!({}))).await;
    assert_eq!((waits.status.as_u16(), &waits.body["error"]), (429, &json!("too_many_failures")), "{}", waits.text);
    // A page of another site cannot begin logins for its visitors: browsers ask first before they send this media type.
    for _ in 0..40 {
        let foreign =
            console.send_from(7, "POST", "/session/_oidc_begin", &[("content-type", "text/plain")], None).await;
        assert_eq!(foreign.status, 415, "{}", foreign.text);
    }
    assert_eq!(console.try_login(7, "alice", PASSWORD).await.status, 200);
    // So are guesses at states.
    let guess = json!({ "state": "A".repeat(43), "code": "x" });
    for _ in 0..30 {
        let refused = console.send_from(8, "POST", "/session/_oidc_finish", &[], Some(&guess)).await;
        assert_eq!(refused.status, 401, "{}", refused.text);
    }
    let waits = console.send_from(8, "POST", "/session/_oidc_finish", &[], Some(&guess)).await;
    assert_eq!((waits.status.as_u16(), &waits.body["error"]), (429, &json!("too_many_failures")), "{}", waits.text);
}
