//! Passkeys of operators: alone, as a second factor, and what is refused.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use accounts::{Operator, RelyingParty, Role};
use api::console::LoginRules;
use serde_json::{Value, json};

use crate::console_second_factor::App;
use crate::console_support::{BEGINNING, ConsoleApi, Login, PASSWORD};
use crate::entities_support::Answer;
use crate::passkey_support::{Authenticator, ORIGIN, PRESENT};

async fn console(requires_second_factor: bool) -> ConsoleApi {
    let rules = LoginRules { requires_second_factor, site: RelyingParty::of(ORIGIN), ..LoginRules::default() };
    ConsoleApi::with_rules(rules, Arc::new(AtomicU64::new(BEGINNING))).await
}

/// Adds a passkey, with these proofs.
async fn add(console: &ConsoleApi, login: &Login, with: &mut Authenticator, proofs: &Value) -> Answer {
    let begun = console.post(login, "/session/_passkey_begin", proofs).await;
    if begun.status != 200 {
        return begun;
    }
    let body = json!({ "name": "key ring", "credential": with.create(&begun.body["options"]) });
    console.post(login, "/session/_passkey_add", &body).await
}

/// An operator with one passkey.
async fn anna(console: &ConsoleApi) -> (Login, Authenticator) {
    let (login, mut key) = (console.login("anna").await, Authenticator::p256(1));
    let added = add(console, &login, &mut key, &json!({ "password": PASSWORD })).await;
    assert_eq!(added.status, 200, "{}", added.text);
    (login, key)
}

async fn challenge(console: &ConsoleApi, body: &Value) -> Value {
    let begun = console.send("POST", "/session/_passkey_login_begin", &[], Some(body)).await;
    assert_eq!(begun.status, 200, "{}", begun.text);
    begun.body["options"].clone()
}

async fn answer(console: &ConsoleApi, credential: &Value) -> Answer {
    let body = json!({ "credential": credential });
    console.send("POST", "/session/_passkey_login", &[], Some(&body)).await
}

/// A login by the passkey alone.
async fn enter(console: &ConsoleApi, with: &mut Authenticator) -> Answer {
    let options = challenge(console, &json!({})).await;
    answer(console, &with.get(&options)).await
}

#[tokio::test]
async fn a_passkey_logs_in_alone_whatever_kind_of_key_it_has() {
    let console = console(true).await;
    for (name, mut key, count) in
        [("anna", Authenticator::p256(1), Some(0)), ("victor", Authenticator::ed25519(2), None)]
    {
        // Some do not count signatures.
        key.count = count;
        let login = console.login(name).await;
        let added = add(&console, &login, &mut key, &json!({ "password": PASSWORD })).await;
        assert_eq!(added.status, 200, "{}", added.text);
        let entered = enter(&console, &mut key).await;
        assert_eq!(
            (entered.status.as_u16(), &entered.body["operator"]["name"]),
            (200, &json!(name)),
            "{}",
            entered.text
        );
        assert_eq!(entered.body["second_factor_required"], false, "it counts as both");
        let cookie = entered.header("set-cookie").split(';').next().unwrap().to_owned();
        let sessions = console.send("GET", "/session/_sessions", &[("cookie", &cookie)], None).await.body;
        assert_eq!(sessions["sessions"][0]["via"], "passkey");
        let listed = console.send("GET", "/session/_passkeys", &[("cookie", &cookie)], None).await.body;
        assert_eq!(
            (&listed["passkeys"][0]["name"], listed["passkeys"][0]["used_at"].is_string()),
            (&json!("key ring"), true)
        );
    }
    let events = console.events().await;
    let last = events.iter().rfind(|event| event["action"] == "login" && event["user"]["name"] == "anna").unwrap();
    assert_eq!(last["detail"], "via: passkey");
    assert!(events.iter().any(|event| event["action"] == "passkey-add" && event["ref"] == "operators/anna"));
}

#[tokio::test]
async fn an_answer_that_does_not_fit_is_refused() {
    let console = console(false).await;
    let (login, mut key) = anna(&console).await;
    let mut refused = async |change: &dyn Fn(&mut Authenticator), why: &str| {
        console.advance(61_000);
        let (origin, site, flags, handle) = (key.origin.clone(), key.site.clone(), key.flags, key.user_handle.clone());
        let id = key.id.clone();
        change(&mut key);
        let answer = enter(&console, &mut key).await;
        assert_eq!((answer.status.as_u16(), answer.header("set-cookie")), (401, ""), "{why}: {}", answer.text);
        assert_eq!(answer.body["error"], "passkey_refused");
        let events = console.events().await;
        let last = events.iter().rfind(|event| event["action"] == "passkey-refused").unwrap();
        assert!(last["detail"].as_str().unwrap().contains(why), "{last}");
        (key.origin, key.site, key.flags, key.user_handle, key.id) = (origin, site, flags, handle, id);
        (key.kind, key.cross_origin) = (None, false);
    };
    refused(&|key| key.origin = "https://evil.example".to_owned(), "another site").await;
    refused(&|key| key.origin = "http://palisade.example".to_owned(), "another site").await;
    refused(&|key| key.cross_origin = true, "in a frame").await;
    refused(&|key| key.site = "evil.example".to_owned(), "of another site").await;
    refused(&|key| key.kind = Some("webauthn.create".to_owned()), "another kind").await;
    refused(&|key| key.flags = PRESENT, "has not verified").await;
    refused(&|key| key.flags = 0x04, "was not touched").await;
    refused(&|key| key.flags |= 0x10, "contradict").await;
    refused(&|key| key.user_handle = Some("AAAA".to_owned()), "another operator").await;
    refused(&|key| key.id = vec![9; 32], "not known").await;
    // The id of the one and the key of another.
    let mut other = Authenticator::p256(1);
    let answer = enter(&console, &mut other).await;
    assert_eq!(answer.body["error"], "passkey_refused");
    let entered = enter(&console, &mut key).await;
    assert_eq!(entered.status, 200, "{}", entered.text);
    assert_eq!(console.get(&login, "/session/_me").await.status, 200);
}

#[tokio::test]
async fn a_challenge_is_answered_once_and_soon() {
    let console = console(false).await;
    let (_, mut key) = anna(&console).await;
    let options = challenge(&console, &json!({})).await;
    let first = key.get(&options);
    assert_eq!(answer(&console, &first).await.status, 200);
    assert_eq!(answer(&console, &first).await.status, 401, "replayed");
    let again = key.get(&options);
    assert_eq!(answer(&console, &again).await.status, 401, "the challenge was used");
    let options = challenge(&console, &json!({})).await;
    console.advance(300_000);
    assert_eq!(answer(&console, &key.get(&options)).await.status, 401, "too late");
    let made_up = json!({ "challenge": "A".repeat(43), "rpId": "palisade.example" });
    assert_eq!(answer(&console, &key.get(&made_up)).await.status, 401, "never given");
    let none = json!({ "challenge": "x", "rpId": "palisade.example" });
    assert_eq!(answer(&console, &key.get(&none)).await.status, 401, "what cannot be one");
    // A challenge for something else.
    let login = console.login("bob").await;
    let begun = console.post(&login, "/session/_passkey_begin", &json!({ "password": PASSWORD })).await;
    let mut options = begun.body["options"].clone();
    options["rpId"] = "palisade.example".into();
    assert_eq!(answer(&console, &key.get(&options)).await.status, 401, "for a new passkey");
    let entered = enter(&console, &mut key).await;
    assert_eq!(entered.status, 200, "{}", entered.text);
}

#[tokio::test]
async fn a_counter_that_goes_back_is_refused_and_reported() {
    let console = console(false).await;
    let (_, mut key) = anna(&console).await;
    for _ in 0..3 {
        assert_eq!(enter(&console, &mut key).await.status, 200);
    }
    key.count = Some(1);
    assert_eq!(enter(&console, &mut key).await.status, 401, "a copy of an earlier state");
    let events = console.events().await;
    let told = events.iter().rfind(|event| event["action"] == "passkey-refused").unwrap();
    assert_eq!(told["user"]["name"], "anna");
    assert!(told["detail"].as_str().unwrap().contains("went back (2 after 3)"), "{told}");
    key.count = None;
    assert_eq!(enter(&console, &mut key).await.status, 401, "nor does it stop counting");
    key.count = Some(3);
    assert_eq!(enter(&console, &mut key).await.status, 200);
}

#[tokio::test]
async fn a_password_needs_the_passkey_as_a_second_step() {
    let console = console(true).await;
    let (login, mut key) = anna(&console).await;
    assert_eq!(console.get(&login, "/security/_status").await.status, 200, "it is the second factor that is required");
    let first = console.try_login(1, "anna", PASSWORD).await;
    assert_eq!((first.status.as_u16(), first.header("set-cookie")), (200, ""), "{}", first.text);
    assert_eq!(
        (&first.body["done"], &first.body["passkey"], &first.body["code"]),
        (&json!(false), &json!(true), &json!(false))
    );
    let ticket = first.body["ticket"].as_str().unwrap();
    let second = async |credential: Value| {
        let body = json!({ "ticket": ticket, "credential": credential });
        console.send("POST", "/session/_passkey_login", &[], Some(&body)).await
    };
    // Of another operator, and one that was asked for without the ticket.
    let bob = console.login("bob").await;
    let mut other = Authenticator::p256(7);
    assert_eq!(add(&console, &bob, &mut other, &json!({ "password": PASSWORD })).await.status, 200);
    let options = challenge(&console, &json!({ "ticket": ticket })).await;
    assert_eq!(options["allowCredentials"].as_array().unwrap().len(), 1);
    assert_eq!(second(other.get(&options)).await.status, 401);
    let free = challenge(&console, &json!({})).await;
    assert_eq!(second(key.get(&free)).await.status, 401);
    // One that the same operator was given for something else.
    let begun = console.post(&login, "/session/_passkey_confirm_begin", &json!({})).await;
    assert_eq!(second(key.get(&begun.body["options"])).await.status, 401);
    // Without verification: the password was shown.
    let options = challenge(&console, &json!({ "ticket": ticket })).await;
    key.flags = PRESENT;
    let entered = second(key.get(&options)).await;
    assert_eq!((entered.status.as_u16(), &entered.body["done"]), (200, &json!(true)), "{}", entered.text);
    let options = console.send("POST", "/session/_passkey_login_begin", &[], Some(&json!({ "ticket": ticket }))).await;
    assert_eq!(options.body["error"], "ticket_ended");
    let events = console.events().await;
    let last = events.iter().rfind(|event| event["action"] == "login" && event["user"]["name"] == "anna").unwrap();
    assert_eq!(last["detail"], "via: password, with a passkey");
}

#[tokio::test]
async fn passkeys_are_added_and_removed_with_proofs() {
    let console = console(true).await;
    let (login, mut key) = anna(&console).await;
    let mut second = Authenticator::ed25519(2);
    let without = add(&console, &login, &mut second, &json!({})).await;
    assert_eq!(without.body["error"], "wrong_password");
    let half = add(&console, &login, &mut second, &json!({ "password": PASSWORD })).await;
    assert_eq!(half.body["error"], "second_factor_needed", "a password and a session add no passkey");
    let confirm = async |key: &mut Authenticator| {
        let begun = console.post(&login, "/session/_passkey_confirm_begin", &json!({})).await;
        key.get(&begun.body["options"])
    };
    // The one that logs in is no confirmation.
    let options = challenge(&console, &json!({})).await;
    let wrong = json!({ "password": PASSWORD, "credential": key.get(&options) });
    assert_eq!(add(&console, &login, &mut second, &wrong).await.body["error"], "passkey_refused");
    let right = json!({ "password": PASSWORD, "credential": confirm(&mut key).await });
    assert_eq!(add(&console, &login, &mut second, &right).await.status, 200);
    let proof = json!({ "password": PASSWORD, "credential": confirm(&mut key).await });
    assert_eq!(add(&console, &login, &mut second, &proof).await.status, 409, "each one once");
    let listed = console.get(&login, "/session/_passkeys").await.body;
    let ids: Vec<&str> = listed["passkeys"].as_array().unwrap().iter().map(|key| key["id"].as_str().unwrap()).collect();
    assert_eq!(ids.len(), 2);
    let remove = async |id: &str, credential: Value| {
        let body = json!({ "id": id, "password": PASSWORD, "credential": credential });
        console.post(&login, "/session/_passkey_remove", &body).await
    };
    assert_eq!(remove("AAAA", json!(null)).await.body["error"], "unknown_passkey");
    assert_eq!(remove(ids[1], json!(null)).await.body["error"], "second_factor_needed");
    assert_eq!(remove(ids[1], confirm(&mut key).await).await.status, 200);
    assert_eq!(enter(&console, &mut second).await.status, 401, "a removed one");
    assert_eq!(remove(ids[0], confirm(&mut key).await).await.body["error"], "required");
    // An admin removes all; the sessions end.
    let alice = console.login("alice").await;
    let mut hers = Authenticator::p256(5);
    assert_eq!(add(&console, &alice, &mut hers, &json!({ "password": PASSWORD })).await.status, 200);
    let body = json!({ "name": "anna" });
    assert_eq!(console.post(&alice, "/operators/_remove_passkeys", &body).await.status, 200);
    assert_eq!(console.post(&alice, "/operators/_remove_passkeys", &body).await.body["error"], "no_passkey");
    assert_eq!(console.get(&login, "/session/_me").await.status, 401);
    assert_eq!(enter(&console, &mut key).await.status, 401);
    assert_eq!(console.try_login(1, "anna", PASSWORD).await.body["done"], true);
}

#[tokio::test]
async fn a_session_gets_past_a_passkey_neither_by_an_app_nor_by_a_password() {
    let console = console(false).await;
    let (login, mut key) = anna(&console).await;
    let confirm = async |key: &mut Authenticator| {
        let begun = console.post(&login, "/session/_passkey_confirm_begin", &json!({})).await;
        key.get(&begun.body["options"])
    };
    let (enrol, renew) = ("/session/_second_factor_enrol", "/session/_password");
    let with = |mut body: Value, credential: Value| {
        body["credential"] = credential;
        body
    };
    let (app, password) =
        (json!({ "password": PASSWORD }), json!({ "password": PASSWORD, "new_password": "another horse battery" }));
    for (path, body) in [(enrol, &app), (renew, &password)] {
        let refused = console.post(&login, path, body).await;
        assert_eq!((refused.status.as_u16(), &refused.body["error"]), (403, &json!("second_factor_needed")), "{path}");
    }
    let begun = console.post(&login, enrol, &with(app, confirm(&mut key).await)).await;
    assert_eq!(begun.status, 200, "{}", begun.text);
    // A passkey that is added meanwhile ends what was begun without it.
    let proof = with(json!({ "password": PASSWORD }), confirm(&mut key).await);
    assert_eq!(add(&console, &login, &mut Authenticator::ed25519(2), &proof).await.status, 200);
    let code = App(begun.body["secret"].as_str().unwrap().to_owned()).code(&console, 0);
    let late = console.post(&login, "/session/_second_factor_confirm", &json!({ "code": code })).await;
    assert_eq!((late.status.as_u16(), &late.body["error"]), (409, &json!("not_begun")));
    let renewed = console.post(&login, renew, &with(password, confirm(&mut key).await)).await;
    assert_eq!(renewed.status, 200, "{}", renewed.text);
    // An operator without a password has the passkey as the only proof.
    let alice = console.login("alice").await;
    let reset = console.post(&alice, "/operators/_reset_password", &json!({ "name": "anna" })).await;
    assert_eq!(reset.status, 200, "{}", reset.text);
    let entered = enter(&console, &mut key).await;
    let login = Login {
        cookie: entered.header("set-cookie").split(';').next().unwrap().to_owned(),
        csrf: entered.body["csrf_token"].as_str().unwrap().to_owned(),
    };
    for (path, body) in [(enrol, json!({})), (renew, json!({ "new_password": "stolen horse battery" }))] {
        let refused = console.post(&login, path, &body).await;
        assert_eq!(refused.body["error"], "second_factor_needed", "{path}");
    }
}

#[tokio::test]
async fn an_operator_has_ten_and_other_sessions_end() {
    let console = console(false).await;
    let (login, other) = (console.login("anna").await, console.login("anna").await);
    let mut first = Authenticator::p256(0);
    assert_eq!(add(&console, &login, &mut first, &json!({ "password": PASSWORD })).await.status, 200);
    assert_eq!(console.get(&other, "/session/_me").await.status, 401, "a session without it");
    for id in 1..11 {
        let begun = console.post(&login, "/session/_passkey_confirm_begin", &json!({})).await;
        let proof = json!({ "password": PASSWORD, "credential": first.get(&begun.body["options"]) });
        if id == 10 {
            let refused = console.post(&login, "/session/_passkey_begin", &proof).await;
            assert_eq!((refused.status.as_u16(), &refused.body["error"]), (409, &json!("too_many_passkeys")));
            break;
        }
        let added = add(&console, &login, &mut Authenticator::p256(id), &proof).await;
        assert_eq!(added.status, 200, "{id}: {}", added.text);
        console.advance(61_000);
    }
    let without = ConsoleApi::new().await;
    let login = without.login("anna").await;
    let refused = without.post(&login, "/session/_passkey_begin", &json!({ "password": PASSWORD })).await;
    assert_eq!((refused.status.as_u16(), &refused.body["error"]), (409, &json!("no_passkeys")));
}

#[tokio::test]
async fn answers_that_are_wrong_or_never_come_are_throttled() {
    let console = console(false).await;
    let (login, mut key) = anna(&console).await;
    let wrong = key.get(&json!({ "challenge": "A".repeat(43), "rpId": "palisade.example" }));
    let from = async |host: u8, path: &str, body: &Value| {
        let answer = console.send_from(host, "POST", path, &[], Some(body)).await;
        (answer.status.as_u16(), answer.body["error"].as_str().unwrap_or_default().to_owned())
    };
    let is = |status: u16, error: &str| (status, error.to_owned());
    // Challenges that are not answered, and answers without one.
    for _ in 0..30 {
        assert_eq!(from(8, "/session/_passkey_login_begin", &json!({})).await.0, 200);
        let answered = from(9, "/session/_passkey_login", &json!({ "credential": wrong })).await;
        assert_eq!(answered, is(401, "passkey_refused"));
    }
    let throttled = is(429, "too_many_failures");
    assert_eq!(from(8, "/session/_passkey_login_begin", &json!({})).await, throttled);
    assert_eq!(from(9, "/session/_passkey_login", &json!({ "credential": wrong })).await, throttled);
    // A second step ends after five, and an operator has ten in a minute, from wherever they come.
    for host in 10..12 {
        let ticket = console.try_login(host, "anna", PASSWORD).await.body["ticket"].clone();
        let body = json!({ "ticket": ticket, "credential": wrong });
        for _ in 0..5 {
            assert_eq!(from(host, "/session/_passkey_login", &body).await, is(401, "passkey_refused"));
        }
        assert_eq!(from(host, "/session/_passkey_login", &body).await, is(401, "ticket_ended"));
    }
    let ticket = console.try_login(12, "anna", PASSWORD).await.body["ticket"].clone();
    let body = json!({ "ticket": ticket, "credential": wrong });
    assert_eq!(from(12, "/session/_passkey_login", &body).await, throttled);
    // So are proofs, each of which counts for the operator.
    console.advance(120_000);
    let proof = json!({ "password": PASSWORD, "credential": wrong });
    let mut answers = Vec::new();
    for _ in 0..11 {
        let refused = console.post(&login, "/session/_passkey_begin", &proof).await;
        answers.push((refused.status.as_u16(), refused.body["error"].as_str().unwrap_or_default().to_owned()));
    }
    assert_eq!(answers.pop(), Some(throttled));
    assert_eq!(answers, vec![is(403, "passkey_refused"); 10]);
}

#[tokio::test]
async fn a_passkey_and_the_app_end_with_their_operator() {
    let console = console(false).await;
    let (_, mut key) = anna(&console).await;
    key.user_handle = None;
    let alice = console.login("alice").await;
    let store = &console.api.state.store;
    assert!(store.second_factor_begin("anna", vec![7; 20]).await.unwrap());
    assert_eq!(console.post(&alice, "/operators/_remove", &json!({ "name": "anna" })).await.status, 200);
    // A later operator of the same name is another one.
    let anna = Operator::new("anna", "anna@example.com", Role::Admin, String::new(), BEGINNING).unwrap();
    assert!(store.operator_add(anna).await.unwrap());
    assert_eq!((store.passkeys("anna").await, store.second_factor("anna").await), (Ok(Vec::new()), Ok(None)));
    assert_eq!(enter(&console, &mut key).await.status, 401);
}

#[tokio::test]
async fn a_new_passkey_is_the_answer_to_its_own_challenge() {
    let console = console(false).await;
    let (login, mut first) = anna(&console).await;
    let confirmed = async |first: &mut Authenticator| {
        let begun = console.post(&login, "/session/_passkey_confirm_begin", &json!({})).await;
        let proof = json!({ "password": PASSWORD, "credential": first.get(&begun.body["options"]) });
        console.post(&login, "/session/_passkey_begin", &proof).await.body["options"].clone()
    };
    let with = |options: &Value, challenge: &Value| {
        let mut options = options.clone();
        options["challenge"] = challenge.clone();
        json!({ "name": "key ring", "credential": Authenticator::p256(2).create(&options) })
    };
    let options = confirmed(&mut first).await;
    let (of_confirm, of_bob) = (
        console.post(&login, "/session/_passkey_confirm_begin", &json!({})).await,
        console.post(&console.login("bob").await, "/session/_passkey_begin", &json!({ "password": PASSWORD })).await,
    );
    let challenges = [&of_confirm, &of_bob].map(|begun| begun.body["options"]["challenge"].clone());
    for challenge in challenges.into_iter().chain([json!("A".repeat(43)), json!("x")]) {
        let refused = console.post(&login, "/session/_passkey_add", &with(&options, &challenge)).await;
        assert_eq!((refused.status.as_u16(), &refused.body["error"]), (403, &json!("passkey_refused")), "{challenge}");
    }
    let mut elsewhere = Authenticator::p256(2);
    elsewhere.origin = "https://evil.example".to_owned();
    let body = json!({ "name": "key ring", "credential": elsewhere.create(&options) });
    assert_eq!(console.post(&login, "/session/_passkey_add", &body).await.status, 403);
    let body = with(&options, &options["challenge"]);
    assert_eq!(console.post(&login, "/session/_passkey_add", &body).await.status, 403, "it was used up");
    let options = confirmed(&mut first).await;
    let body = with(&options, &options["challenge"]);
    assert_eq!(console.post(&login, "/session/_passkey_add", &body).await.status, 200);
    assert_eq!(console.get(&login, "/session/_passkeys").await.body["passkeys"].as_array().unwrap().len(), 2);
}
