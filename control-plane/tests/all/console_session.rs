//! Who gets into the console, and who does not.

use crate::console_support::{BEGINNING, ConsoleApi, PASSWORD};
use crate::entities_support::BASE;
use accounts::{SessionLimits, hash_password};
use axum::body::Body;
use axum::http::Request;
use base::clock;
use serde_json::json;

const MINUTE: u64 = 60_000;

#[tokio::test]
async fn an_operator_logs_in_and_out() {
    let console = ConsoleApi::new().await;
    let answer = console.try_login(1, " Alice", PASSWORD).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    assert_eq!(answer.body["done"], true);
    let operator = json!({
        "name": "alice", "email": "alice@example.com", "role": "admin", "has_password": true, "second_factor": false,
        "passkeys": 0,
    });
    assert_eq!(answer.body["operator"], operator);
    assert_eq!(answer.body["expires_at"], clock::rfc3339(BEGINNING + 12 * 60 * MINUTE));
    assert_eq!(answer.header("cache-control"), "no-store");
    let cookie = answer.header("set-cookie");
    assert!(cookie.starts_with("palisade_session="), "{cookie}");
    let rest = cookie.split_once("; ").unwrap().1;
    assert_eq!(rest, "Path=/extensions/svc/extensions/waf; Max-Age=43200; HttpOnly; SameSite=Strict");

    let login = console.login("alice").await;
    let me = console.get(&login, "/session/_me").await;
    assert_eq!(me.status, 200, "{}", me.text);
    assert_eq!((&me.body["operator"]["name"], &me.body["csrf_token"]), (&json!("alice"), &json!(login.csrf)));
    let out = console.post(&login, "/session/_logout", &json!({})).await;
    assert_eq!(out.body, json!({"done": true, "url": null}));
    assert!(out.header("set-cookie").contains("palisade_session=; ") && out.header("set-cookie").contains("Max-Age=0"));
    assert_eq!(console.get(&login, "/session/_me").await.status, 401);
}

#[tokio::test]
async fn the_cookie_is_secure_where_the_console_is_not_called_on_loopback() {
    let console = ConsoleApi::new().await;
    let body = json!({ "name": "alice", "password": PASSWORD });
    let headers = [("x-forwarded-proto", "https")];
    let answer = console.send("POST", "/session/_login", &headers, Some(&body)).await;
    assert!(answer.header("set-cookie").ends_with("; Secure"), "{}", answer.header("set-cookie"));
}

#[tokio::test]
async fn nothing_of_a_token_or_password_is_kept() {
    let console = ConsoleApi::new().await;
    let login = console.login("alice").await;
    let token = login.cookie.split_once('=').unwrap().1;
    let operator = console.api.state.store.operator("alice").await.unwrap().unwrap();
    assert!(operator.password_hash.starts_with("$argon2id$"));
    assert!(!format!("{operator:?}").contains("argon2id"));
    console.api.state.store.close().await.unwrap();
    let files = std::fs::read_dir(console.api.folder()).unwrap().map(|entry| entry.unwrap().path());
    for file in files.filter(|path| path.is_file()) {
        let bytes = std::fs::read(file).unwrap();
        for secret in [token, PASSWORD, &login.csrf] {
            assert!(!bytes.windows(secret.len()).any(|window| window == secret.as_bytes()));
        }
    }
}

#[tokio::test]
async fn without_a_session_there_is_nothing() {
    let console = ConsoleApi::new().await;
    let login = console.login("alice").await;
    let forged = format!("{}x", &login.cookie[..login.cookie.len() - 1]);
    let key = console.api.authorization.clone();
    let cases: [&[(&str, &str)]; 4] =
        [&[], &[("cookie", "palisade_session=")], &[("cookie", &forged)], &[("authorization", &key)]];
    for headers in cases {
        for (method, path) in [
            ("GET", "/session/_me"),
            ("POST", "/session/_logout"),
            ("POST", "/utils/_compile"),
            ("POST", "/utils/_test"),
        ] {
            let body = json!({});
            let body = (method == "POST").then_some(&body);
            let answer = console.send(method, path, headers, body).await;
            assert_eq!((answer.status.as_u16(), &answer.body["error"]), (401, &json!("unauthorized")), "{headers:?}");
            let description = answer.body["error_description"].as_str().unwrap();
            assert!(description.contains("/extensions/svc/extensions/waf/session/_login"), "{description}");
            assert!(answer.header("www-authenticate").starts_with("Session "));
            assert_eq!(description.contains("admin key"), headers.iter().any(|(name, _)| *name == "authorization"));
        }
    }
    assert_eq!(console.get(&login, "/session/_me").await.status, 200);
}

#[tokio::test]
async fn the_entity_api_takes_no_session() {
    let console = ConsoleApi::new().await;
    let login = console.login("alice").await;
    let request = Request::builder().uri(format!("{BASE}/waf-configs")).header("cookie", &login.cookie);
    let answer = console.api.send(request.body(Body::empty()).unwrap()).await;
    assert_eq!(answer.status, 401);
    assert!(answer.text.contains("a console session is not accepted here"), "{}", answer.text);
}

#[tokio::test]
async fn a_mutating_call_needs_the_token_of_its_session() {
    let console = ConsoleApi::new().await;
    let (alice, bob) = (console.login("alice").await, console.login("bob").await);
    for token in [None, Some(""), Some("wrong"), Some(bob.csrf.as_str())] {
        let mut headers = vec![("cookie", alice.cookie.as_str())];
        headers.extend(token.map(|token| ("x-csrf-token", token)));
        let answer = console.send("POST", "/session/_logout", &headers, Some(&json!({}))).await;
        assert_eq!((answer.status.as_u16(), &answer.body["error"]), (403, &json!("csrf")), "{token:?}");
    }
    assert_eq!(console.get(&alice, "/session/_me").await.status, 200, "it goes on");
    assert_eq!(console.post(&alice, "/session/_logout", &json!({})).await.status, 200);
}

#[tokio::test]
async fn a_session_ends_when_it_is_idle_and_at_last_whatever_it_does() {
    let console = ConsoleApi::new().await;
    let limits = SessionLimits::default();
    let idle = console.login("alice").await;
    console.advance(limits.idle_millis);
    let ended = console.get(&idle, "/session/_me").await;
    assert_eq!(ended.status, 401);
    assert!(ended.text.contains("has ended"), "{}", ended.text);

    let used = console.login("alice").await;
    for _ in 0..limits.absolute_millis / (20 * MINUTE) - 1 {
        console.advance(20 * MINUTE);
        assert_eq!(console.get(&used, "/session/_me").await.status, 200);
    }
    console.advance(20 * MINUTE);
    assert_eq!(console.get(&used, "/session/_me").await.status, 401);
}

#[tokio::test]
async fn removal_and_another_password_end_sessions() {
    let console = ConsoleApi::new().await;
    let store = &console.api.state.store;
    let (alice, bob) = (console.login("alice").await, console.login("bob").await);
    let hash = hash_password("another horse battery").unwrap();
    assert!(store.operator_set_password("alice", &hash, BEGINNING).await.unwrap());
    assert_eq!(console.get(&alice, "/session/_me").await.status, 401);
    assert_eq!(console.try_login(1, "alice", PASSWORD).await.status, 401);
    assert_eq!(console.try_login(1, "alice", "another horse battery").await.status, 200);

    assert!(store.operator_remove("bob").await.unwrap());
    assert_eq!(console.get(&bob, "/session/_me").await.status, 401);
    assert_eq!(console.try_login(1, "bob", PASSWORD).await.status, 401);
    assert!(!store.operator_remove("bob").await.unwrap());
}

#[tokio::test]
async fn an_operator_keeps_the_sessions_last_used() {
    let console = ConsoleApi::new().await;
    let first = console.login("alice").await;
    for _ in 0..SessionLimits::default().per_operator {
        console.advance(1);
        console.login("alice").await;
    }
    assert_eq!(console.get(&first, "/session/_me").await.status, 401);
}

#[tokio::test]
async fn an_address_waits_after_thirty_failed_logins_whatever_the_names() {
    let console = ConsoleApi::new().await;
    let mut statuses = Vec::new();
    for guess in 0..31 {
        statuses.push(console.try_login(7, &format!("name{guess}"), "guess").await.status.as_u16());
    }
    assert_eq!(statuses, [vec![401; 30], vec![429]].concat());
    console.advance(MINUTE / 2);
    let right = console.try_login(7, "alice", PASSWORD).await;
    assert_eq!(right.status, 429, "not even the right password, or guessing would go on");
    assert_eq!(right.header("retry-after"), "30");
    assert_eq!(right.header("cache-control"), "no-store");
    let error = json!({
        "error": "too_many_failures",
        "error_description": "too many failed logins from this address; try again in 30 s",
    });
    assert_eq!(right.body, error);
    assert_eq!(console.try_login(8, "alice", PASSWORD).await.status, 200, "other addresses are not concerned");

    console.advance(MINUTE / 2);
    assert_eq!(console.try_login(7, "alice", PASSWORD).await.status, 200);
}

#[tokio::test]
async fn a_name_waits_after_ten_failed_logins_wherever_they_come_from() {
    let console = ConsoleApi::new().await;
    for host in 20..30 {
        assert_eq!(console.try_login(host, "bob", "guess").await.status, 401);
    }
    let right = console.try_login(30, " Bob", PASSWORD).await;
    assert_eq!((right.status.as_u16(), right.header("retry-after")), (429, "60"), "{}", right.text);
    assert!(right.text.contains("too many failed logins for this name"), "{}", right.text);
    assert_eq!(console.try_login(30, "alice", PASSWORD).await.status, 200, "other names are not concerned");
    // A name that nobody has is told the same: who waits learns nothing about who exists.
    for host in 20..30 {
        assert_eq!(console.try_login(host, "nobody", "guess").await.status, 401);
    }
    assert_eq!(console.try_login(30, "nobody", "guess").await.body, right.body);

    console.advance(MINUTE);
    assert_eq!(console.try_login(30, "bob", PASSWORD).await.status, 200);
}

#[tokio::test]
async fn what_is_told_to_wait_counts_on_one_side_alone() {
    let console = ConsoleApi::new().await;
    // Somebody insists on a name that waits: those behind the same address still get in.
    for _ in 0..10 {
        assert_eq!(console.try_login(7, "bob", "guess").await.status, 401);
    }
    for _ in 0..40 {
        assert!(console.try_login(7, "bob", "guess").await.text.contains("for this name"));
    }
    assert_eq!(console.try_login(7, "alice", PASSWORD).await.status, 200);
    // An address that waits cannot make further names wait.
    for guess in 0..20 {
        assert_eq!(console.try_login(7, &format!("name{guess}"), "guess").await.status, 401);
    }
    for _ in 0..20 {
        assert!(console.try_login(7, "alice", "guess").await.text.contains("from this address"));
    }
    assert_eq!(console.try_login(8, "alice", PASSWORD).await.status, 200);
}

#[tokio::test]
async fn logins_that_succeed_do_not_count() {
    let console = ConsoleApi::new().await;
    for _ in 0..35 {
        assert_eq!(console.try_login(7, "alice", PASSWORD).await.status, 200);
    }
}

#[tokio::test]
async fn a_login_is_json_and_says_what_is_wrong_with_it() {
    let console = ConsoleApi::new().await;
    let request = |kind: &'static str, body: &'static str| {
        let request = Request::builder().method("POST").uri("/extensions/svc/extensions/waf/session/_login");
        request.header("content-type", kind).body(Body::from(body)).unwrap()
    };
    let send = async |kind, body| {
        let answer = console.api.send(request(kind, body)).await;
        (answer.status.as_u16(), answer.body["error_description"].as_str().unwrap_or_default().to_owned())
    };
    assert_eq!(send("application/x-www-form-urlencoded", "name=alice").await.0, 415);
    assert_eq!(send("text/plain", "{}").await.0, 415);
    assert_eq!(send("application/json", "").await, (400, "the body is empty".to_owned()));
    let (status, missing) = send("application/json", r#"{"name": "alice"}"#).await;
    assert!(status == 400 && missing.contains("/password"), "{missing}");
    let (status, wrong) = send("application/json", r#"{"name": 1, "password": "x"}"#).await;
    assert!(status == 400 && wrong.contains("/name"), "{wrong}");
}

#[tokio::test]
async fn sessions_that_have_ended_are_forgotten() {
    let console = ConsoleApi::new().await;
    console.login("alice").await;
    console.advance(SessionLimits::default().idle_millis);
    let kept = console.login("alice").await;
    let now = BEGINNING + SessionLimits::default().idle_millis;
    assert_eq!(console.api.state.store.sessions_sweep(now - SessionLimits::default().idle_millis, 0).await, Ok(1));
    assert_eq!(console.get(&kept, "/session/_me").await.status, 200);
}
