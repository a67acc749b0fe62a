//! Login links, and the sessions that logins begin.

use crate::console_support::{ConsoleApi, Login, PASSWORD};
use crate::entities_support::Answer;
use accounts::{LOGIN_LINK_MILLIS, MAX_AGENT_CHARS};
use serde_json::{Value, json};

/// Makes a login link for an operator, as an admin does.
async fn link(console: &ConsoleApi, admin: &Login, name: &str) -> String {
    let made = console.post(admin, "/operators/_login_link", &json!({ "name": name })).await;
    assert_eq!(made.status, 200, "{}", made.text);
    let token = made.body["link"]["token"].as_str().unwrap();
    assert_eq!(made.body["link"]["path"], format!("/console/#login={token}"));
    token.to_owned()
}

async fn redeem(console: &ConsoleApi, host: u8, token: &str) -> Answer {
    console.send_from(host, "POST", "/session/_redeem", &[], Some(&json!({ "token": token }))).await
}

fn session_of(answer: &Answer) -> Login {
    assert_eq!(answer.status, 200, "{}", answer.text);
    let cookie = answer.header("set-cookie").split(';').next().unwrap().to_owned();
    Login { cookie, csrf: answer.body["csrf_token"].as_str().unwrap().to_owned() }
}

#[tokio::test]
async fn a_login_link_works_once() {
    let console = ConsoleApi::new().await;
    let alice = console.login("alice").await;
    let token = link(&console, &alice, "anna").await;
    let entered = redeem(&console, 2, &token).await;
    let anna = session_of(&entered);
    assert_eq!((&entered.body["done"], &entered.body["operator"]["name"]), (&json!(true), &json!("anna")));
    assert_eq!(entered.header("cache-control"), "no-store");
    assert_eq!(console.get(&anna, "/session/_me").await.status, 200);
    let again = redeem(&console, 2, &token).await;
    assert_eq!((again.status.as_u16(), again.header("set-cookie")), (401, ""), "{}", again.text);
    let events = console.events().await;
    let of = |action: &str| events.iter().filter(|event| event["action"] == action).cloned().collect::<Vec<Value>>();
    let (made, logins) = (of("operator-login-link"), of("login"));
    assert_eq!((&made[0]["user"]["name"], &made[0]["ref"]), (&json!("alice"), &json!("operators/anna")));
    let last = logins.last().unwrap();
    assert_eq!((&last["user"]["name"], &last["detail"]), (&json!("anna"), &json!("by a login link")));
    assert_eq!(of("login-refused")[0]["user"]["name"], Value::Null);
    assert!(!json!(events).to_string().contains(&token));
}

#[tokio::test]
async fn of_two_at_once_one_gets_in() {
    let console = ConsoleApi::new().await;
    let alice = console.login("alice").await;
    for _ in 0..8 {
        let token = link(&console, &alice, "anna").await;
        let (one, two, three) =
            tokio::join!(redeem(&console, 2, &token), redeem(&console, 3, &token), redeem(&console, 4, &token));
        let entered = [one, two, three].iter().filter(|answer| answer.status == 200).count();
        assert_eq!(entered, 1);
    }
}

#[tokio::test]
async fn every_refusal_of_a_link_has_the_same_answer() {
    let console = ConsoleApi::new().await;
    let alice = console.login("alice").await;
    let used = link(&console, &alice, "anna").await;
    session_of(&redeem(&console, 2, &used).await);
    let replaced = link(&console, &alice, "anna").await;
    let expired = link(&console, &alice, "anna").await;
    console.advance(LOGIN_LINK_MILLIS - 1);
    let lasting = link(&console, &alice, "bob").await;
    console.advance(1);
    let removed = link(&console, &alice, "victor").await;
    assert_eq!(console.post(&alice, "/operators/_remove", &json!({ "name": "victor" })).await.status, 200);
    let unknown = "A".repeat(43);
    let mut answers = Vec::new();
    for token in [used.as_str(), &replaced, &expired, &removed, &unknown, "", "x", &format!("{lasting}x")] {
        let answer = redeem(&console, 2, token).await;
        assert_eq!(answer.status, 401, "{token}");
        answers.push(answer.body);
    }
    assert!(answers.iter().all(|answer| *answer == answers[0]), "{answers:?}");
    session_of(&redeem(&console, 2, &lasting).await);
}

#[tokio::test]
async fn a_link_ends_with_a_new_password_or_role() {
    let console = ConsoleApi::new().await;
    let alice = console.login("alice").await;
    let token = link(&console, &alice, "anna").await;
    let change = json!({ "name": "anna", "role": "viewer" });
    assert_eq!(console.post(&alice, "/operators/_role", &change).await.status, 200);
    assert_eq!(redeem(&console, 2, &token).await.status, 401);
    let token = link(&console, &alice, "anna").await;
    let anna = console.login("anna").await;
    let change = json!({ "password": PASSWORD, "new_password": "another horse battery" });
    assert_eq!(console.post(&anna, "/session/_password", &change).await.status, 200);
    assert_eq!(redeem(&console, 2, &token).await.status, 401);
}

#[tokio::test]
async fn guesses_at_links_are_throttled_by_address() {
    let console = ConsoleApi::new().await;
    let alice = console.login("alice").await;
    let token = link(&console, &alice, "anna").await;
    for _ in 0..30 {
        assert_eq!(redeem(&console, 7, &"B".repeat(43)).await.status, 401);
    }
    let waits = redeem(&console, 7, &token).await;
    assert_eq!((waits.status.as_u16(), waits.header("retry-after")), (429, "60"), "{}", waits.text);
    session_of(&redeem(&console, 8, &token).await);
}

#[tokio::test]
async fn a_session_id_given_beforehand_is_not_taken() {
    let console = ConsoleApi::new().await;
    let alice = console.login("alice").await;
    let planted = format!("palisade_session={}", "C".repeat(43));
    let token = link(&console, &alice, "anna").await;
    let body = json!({ "token": token });
    let entered = console.send("POST", "/session/_redeem", &[("cookie", &planted)], Some(&body)).await;
    let anna = session_of(&entered);
    assert_ne!(anna.cookie, planted);
    let body = json!({ "name": "anna", "password": PASSWORD });
    let again = session_of(&console.send("POST", "/session/_login", &[("cookie", &anna.cookie)], Some(&body)).await);
    assert_ne!(again.cookie, anna.cookie, "a new one at each login");
    let planted = Login { cookie: planted, csrf: String::new() };
    assert_eq!(console.get(&planted, "/session/_me").await.status, 401);
}

#[tokio::test]
async fn an_operator_without_a_password_sets_one_by_a_link() {
    let console = ConsoleApi::new().await;
    let alice = console.login("alice").await;
    let new = json!({ "name": "Zoe", "email": "zoe@example.com", "role": "analyst" });
    let added = console.post(&alice, "/operators/_add", &new).await;
    assert_eq!(added.status, 200, "{}", added.text);
    assert_eq!(
        (&added.body["operator"]["name"], &added.body["operator"]["has_password"]),
        (&json!("zoe"), &json!(false))
    );
    assert_eq!(console.post(&alice, "/operators/_add", &new).await.status, 409);
    let odd = json!({ "name": "a b", "email": "zoe@example.com", "role": "analyst" });
    assert_eq!(console.post(&alice, "/operators/_add", &odd).await.body["error"], "invalid_operator");
    for password in ["", PASSWORD] {
        assert_eq!(console.try_login(3, "zoe", password).await.status, 401);
    }
    let entered = redeem(&console, 3, added.body["link"]["token"].as_str().unwrap()).await;
    let zoe = session_of(&entered);
    assert_eq!(entered.body["operator"]["has_password"], false);
    let short = console.post(&zoe, "/session/_password", &json!({ "new_password": "short" })).await;
    assert_eq!((short.status.as_u16(), &short.body["error"]), (400, &json!("invalid_password")));
    let set = console.post(&zoe, "/session/_password", &json!({ "new_password": "zoes own battery" })).await;
    let renewed = session_of(&set);
    assert_eq!(console.get(&zoe, "/session/_me").await.status, 401, "a new password ends sessions");
    assert_eq!(console.get(&renewed, "/session/_me").await.body["operator"]["has_password"], true);
    assert_eq!(console.try_login(3, "zoe", "zoes own battery").await.status, 200);
    // From now on a session alone is not enough.
    for body in [
        json!({ "new_password": "stolen horse battery" }),
        json!({ "password": "x", "new_password": "stolen horse battery" }),
    ] {
        let refused = console.post(&renewed, "/session/_password", &body).await;
        assert_eq!(
            (refused.status.as_u16(), &refused.body["error"]),
            (403, &json!("wrong_password")),
            "{}",
            refused.text
        );
    }
    // An admin takes the password away: sessions end, and a link takes its place.
    let reset = console.post(&alice, "/operators/_reset_password", &json!({ "name": "zoe" })).await;
    assert_eq!(console.get(&renewed, "/session/_me").await.status, 401);
    assert_eq!(console.try_login(3, "zoe", "zoes own battery").await.status, 401);
    session_of(&redeem(&console, 3, reset.body["link"]["token"].as_str().unwrap()).await);
}

#[tokio::test]
async fn sessions_are_listed_and_revoked() {
    let console = ConsoleApi::new().await;
    let login = async |name: &str, agent: &str| {
        let body = json!({ "name": name, "password": PASSWORD });
        session_of(&console.send("POST", "/session/_login", &[("user-agent", agent)], Some(&body)).await)
    };
    let odd = format!("<script>alert(1)</script>\"{}", "x".repeat(1000));
    let (first, second) = (login("victor", &odd).await, login("victor", "Firefox").await);
    let (anna, alice) = (login("anna", "curl").await, login("alice", "").await);
    let ids = async |login: &Login, path: &str| {
        let listed = console.get(login, path).await;
        assert_eq!(listed.status, 200, "{}", listed.text);
        listed.body["sessions"].as_array().unwrap().clone()
    };
    let own = ids(&first, "/session/_sessions").await;
    assert_eq!(own.len(), 2);
    assert_eq!(
        (&own[0]["user_agent"], &own[0]["current"], &own[0]["via"]),
        (&json!("Firefox"), &json!(false), &json!("password"))
    );
    assert_eq!((&own[1]["address"], &own[1]["current"]), (&json!("192.0.2.1"), &json!(true)));
    let agent = own[1]["user_agent"].as_str().unwrap();
    assert!(agent.starts_with("<script>") && agent.chars().count() == MAX_AGENT_CHARS, "{agent}");
    for part in [&first.cookie, &first.csrf] {
        let secret = part.split_once('=').map_or(part.as_str(), |(_, token)| token);
        assert!(!json!(own).to_string().contains(secret));
    }

    // Others' sessions are for admins.
    let of_anna = ids(&anna, "/session/_sessions").await[0]["id"].clone();
    let foreign = console.post(&first, "/session/_revoke", &json!({ "id": of_anna })).await;
    assert_eq!((foreign.status.as_u16(), &foreign.body["error"]), (404, &json!("unknown_session")));
    assert_eq!(console.get(&first, "/operators/_sessions").await.status, 403);
    assert_eq!(ids(&alice, "/operators/_sessions").await.len(), 4);

    assert_eq!(console.post(&first, "/session/_revoke", &json!({ "id": own[0]["id"] })).await.status, 200);
    assert_eq!(console.get(&second, "/session/_me").await.status, 401);
    assert_eq!(console.post(&first, "/session/_revoke", &json!({ "id": own[0]["id"] })).await.status, 404);
    let third = login("victor", "").await;
    let ended = console.post(&third, "/session/_revoke_others", &json!({})).await;
    assert_eq!(ended.body, json!({ "done": true, "ended": 1 }));
    assert_eq!(
        (
            console.get(&first, "/session/_me").await.status.as_u16(),
            console.get(&third, "/session/_me").await.status.as_u16()
        ),
        (401, 200)
    );
    assert_eq!(console.post(&alice, "/operators/_revoke_session", &json!({ "id": of_anna })).await.status, 200);
    assert_eq!(console.get(&anna, "/session/_me").await.status, 401);
    let all = console.post(&alice, "/operators/_revoke_sessions", &json!({ "name": "victor" })).await;
    assert_eq!(all.body["ended"], 1);
    assert_eq!(console.get(&third, "/session/_me").await.status, 401);
    let operators = console.get(&alice, "/operators/_list").await;
    let victor = &operators.body["operators"][3];
    assert_eq!((&victor["name"], &victor["sessions"], &victor["seen_at"]), (&json!("victor"), &json!(0), &Value::Null));
    assert_eq!(operators.body["operators"][0]["you"], true);
    let events = console.events().await;
    assert_eq!(events.iter().filter(|event| event["action"] == "session-revoke").count(), 4);
}
