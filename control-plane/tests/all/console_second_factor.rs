//! The second factor of operators, and logins in two steps.

use crate::console_support::{ConsoleApi, Login, PASSWORD};
use crate::entities_support::Answer;
use serde_json::{Value, json};
use totp_rs::{Builder, Secret};

const STEP: u64 = 30_000;

/// An authenticator app.
pub(crate) struct App(pub(crate) String);

impl App {
    /// The code that it shows, so many steps from now.
    pub(crate) fn code(&self, console: &ConsoleApi, steps: i64) -> String {
        let secret = Secret::try_from_base32(&self.0).unwrap();
        let totp = Builder::new().with_secret(secret).build().unwrap();
        let now = console.clock.load(std::sync::atomic::Ordering::Relaxed) / 1000;
        totp.generate(now.saturating_add_signed(steps * 30)).to_string()
    }
}

/// Adds a second factor to an operator with a session; the app and the recovery codes.
pub(crate) async fn enrol(console: &ConsoleApi, login: &Login) -> (App, Vec<String>) {
    let begun = console.post(login, "/session/_second_factor_enrol", &json!({ "password": PASSWORD })).await;
    assert_eq!(begun.status, 200, "{}", begun.text);
    let app = App(begun.body["secret"].as_str().unwrap().to_owned());
    assert!(begun.body["uri"].as_str().unwrap().contains(&format!("?secret={}&", app.0)));
    let body = json!({ "code": app.code(console, 0) });
    let confirmed = console.post(login, "/session/_second_factor_confirm", &body).await;
    assert_eq!(confirmed.status, 200, "{}", confirmed.text);
    let codes = confirmed.body["recovery_codes"].as_array().unwrap();
    console.advance(STEP);
    (app, codes.iter().map(|code| code.as_str().unwrap().to_owned()).collect())
}

/// The ticket of a first step.
pub(crate) async fn ticket(console: &ConsoleApi, name: &str) -> String {
    let first = console.try_login(1, name, PASSWORD).await;
    assert_eq!((first.status.as_u16(), first.header("set-cookie")), (200, ""), "{}", first.text);
    assert_eq!((&first.body["done"], &first.body["second_factor"]), (&json!(false), &json!(true)));
    assert_eq!(first.body["csrf_token"], Value::Null);
    first.body["ticket"].as_str().unwrap().to_owned()
}

pub(crate) async fn second(console: &ConsoleApi, ticket: &str, code: &str) -> Answer {
    second_from(console, 1, ticket, code).await
}

async fn second_from(console: &ConsoleApi, host: u8, ticket: &str, code: &str) -> Answer {
    let body = json!({ "ticket": ticket, "code": code });
    console.send_from(host, "POST", "/session/_login_code", &[], Some(&body)).await
}

#[tokio::test]
async fn a_login_with_a_second_factor_has_two_steps() {
    let console = ConsoleApi::new().await;
    let (login, other) = (console.login("anna").await, console.login("anna").await);
    let (app, codes) = enrol(&console, &login).await;
    assert_eq!(codes.len(), 10);
    assert_eq!(console.get(&login, "/session/_me").await.body["operator"]["second_factor"], true);
    assert_eq!(console.get(&other, "/session/_me").await.status, 401, "sessions without it have ended");

    let first = ticket(&console, "anna").await;
    let entered = second(&console, &first, &app.code(&console, 0)).await;
    assert_eq!((entered.status.as_u16(), &entered.body["done"]), (200, &json!(true)), "{}", entered.text);
    assert!(entered.header("set-cookie").starts_with("palisade_session="));
    assert_eq!(second(&console, &first, &app.code(&console, 1)).await.body["error"], "ticket_ended", "it is used up");
    // Those without one log in as before.
    assert_eq!(console.try_login(1, "bob", PASSWORD).await.body["done"], true);
    let events = console.events().await;
    let last = events.iter().rfind(|event| event["action"] == "login" && event["user"]["name"] == "anna").unwrap();
    assert_eq!(last["detail"], "with a second factor");
    assert!(events.iter().any(|event| event["action"] == "second-factor-add" && event["ref"] == "operators/anna"));
    for secret in codes.iter().chain([&app.0]) {
        assert!(!json!(events).to_string().contains(secret.as_str()));
    }
}

#[tokio::test]
async fn a_code_is_accepted_once_and_for_a_step_around() {
    let console = ConsoleApi::new().await;
    let login = console.login("anna").await;
    let (app, _) = enrol(&console, &login).await;
    console.advance(10 * STEP);
    let try_code = async |code: String| {
        let answer = second(&console, &ticket(&console, "anna").await, &code).await;
        answer.status.as_u16()
    };
    assert_eq!((try_code(app.code(&console, -2)).await, try_code(app.code(&console, 2)).await), (401, 401));
    let code = app.code(&console, 0);
    assert_eq!((try_code(code.clone()).await, try_code(code).await), (200, 401), "a code is used once");
    assert_eq!(try_code(app.code(&console, -1)).await, 401, "nor is an earlier one accepted after it");
    assert_eq!(try_code(app.code(&console, 1)).await, 200);
    console.advance(60_000);
    // Two at once with the same code and tickets of their own.
    let (one, two) = (ticket(&console, "anna").await, ticket(&console, "anna").await);
    let code = app.code(&console, 0);
    let (first, other) = tokio::join!(second(&console, &one, &code), second(&console, &two, &code));
    assert_eq!([first, other].iter().filter(|answer| answer.status == 200).count(), 1);
}

#[tokio::test]
async fn a_ticket_ends_with_wrong_codes_and_with_time() {
    let console = ConsoleApi::new().await;
    let login = console.login("anna").await;
    let (app, _) = enrol(&console, &login).await;
    let guessed = ticket(&console, "anna").await;
    for _ in 0..5 {
        assert_eq!(second(&console, &guessed, "000000").await.body["error"], "unauthorized");
    }
    assert_eq!(second(&console, &guessed, &app.code(&console, 0)).await.body["error"], "ticket_ended");
    let slow = ticket(&console, "anna").await;
    console.advance(300_000);
    assert_eq!(second(&console, &slow, &app.code(&console, 0)).await.body["error"], "ticket_ended");
    let right = ticket(&console, "anna").await;
    assert_eq!(second(&console, &right, &app.code(&console, 0)).await.status, 200);
    // What is no ticket of a second step is none.
    let alice = console.login("alice").await;
    let made = console.post(&alice, "/operators/_login_link", &json!({ "name": "anna" })).await;
    let link = made.body["link"]["token"].as_str().unwrap();
    assert_eq!(second(&console, link, &app.code(&console, 1)).await.body["error"], "ticket_ended");
    let mine = ticket(&console, "anna").await;
    let redeemed = console.send("POST", "/session/_redeem", &[], Some(&json!({ "token": mine }))).await;
    assert_eq!(redeemed.status, 401, "nor is it a login link");
}

#[tokio::test]
async fn guesses_at_codes_are_throttled_and_then_pause() {
    let console = ConsoleApi::new().await;
    let login = console.login("anna").await;
    let (app, _) = enrol(&console, &login).await;
    // One code each minute, so that the throttle of a minute does not answer.
    for guess in 0..10 {
        let ticket = ticket(&console, "anna").await;
        assert_eq!(second_from(&console, 10 + guess, &ticket, "000000").await.status, 401);
        console.advance(60_000);
    }
    let waiting = ticket(&console, "anna").await;
    let paused = second(&console, &waiting, &app.code(&console, 0)).await;
    assert_eq!((paused.status.as_u16(), paused.header("retry-after")), (429, "840"), "{}", paused.text);
    console.advance(840_000);
    let right = ticket(&console, "anna").await;
    assert_eq!(second(&console, &right, &app.code(&console, 0)).await.status, 200);
    let again = ticket(&console, "anna").await;
    assert_eq!(second(&console, &again, &app.code(&console, 1)).await.status, 200, "a right code ends the pause");
    // Within a minute, the name is throttled as it is for passwords.
    let mut statuses = Vec::new();
    for host in 40..51 {
        console.advance(1);
        let ticket = ticket(&console, "anna").await;
        statuses.push(second_from(&console, host, &ticket, "000000").await.status.as_u16());
    }
    assert_eq!(statuses[10], 429, "{statuses:?}");
}

#[tokio::test]
async fn a_recovery_code_works_once() {
    let console = ConsoleApi::new().await;
    let login = console.login("anna").await;
    let (_, codes) = enrol(&console, &login).await;
    let typed = codes[0].to_uppercase();
    assert_eq!(second(&console, &ticket(&console, "anna").await, &typed).await.status, 200);
    assert_eq!(second(&console, &ticket(&console, "anna").await, &codes[0]).await.status, 401);
    let status = console.get(&login, "/session/_second_factor").await;
    assert_eq!((&status.body["enrolled"], &status.body["recovery_codes"]), (&json!(true), &json!(9)));
    console.api.state.store.close().await.unwrap();
    let files = std::fs::read_dir(console.api.folder()).unwrap().map(|entry| entry.unwrap().path());
    for file in files.filter(|path| path.is_file()) {
        let bytes = std::fs::read(file).unwrap();
        for code in &codes {
            let plain = code.replace('-', "");
            assert!(!bytes.windows(plain.len()).any(|window| window == plain.as_bytes() || window == code.as_bytes()));
        }
    }
}

#[tokio::test]
async fn a_second_factor_is_confirmed_before_it_counts_and_removed_with_password_and_code() {
    let console = ConsoleApi::new().await;
    let login = console.login("anna").await;
    let call =
        async |path: &str, body: Value| console.post(&login, &format!("/session/_second_factor_{path}"), &body).await;
    let word = |answer: &Answer| answer.body["error"].as_str().unwrap_or_default().to_owned();
    assert_eq!(word(&call("confirm", json!({ "code": "000000" })).await), "not_begun");
    assert_eq!(word(&call("enrol", json!({})).await), "wrong_password");
    assert_eq!(word(&call("enrol", json!({ "password": "wrong" })).await), "wrong_password");
    assert_eq!(call("enrol", json!({ "password": PASSWORD })).await.status, 200);
    assert_eq!(console.try_login(1, "anna", PASSWORD).await.body["done"], true, "it is not in force yet");
    assert_eq!(word(&call("confirm", json!({ "code": "000000" })).await), "wrong_code");
    let (app, _) = enrol(&console, &login).await;
    assert_eq!(word(&call("enrol", json!({ "password": PASSWORD })).await), "enrolled");
    assert_eq!(word(&call("confirm", json!({ "code": app.code(&console, 0) })).await), "enrolled");
    assert_eq!(word(&call("remove", json!({ "code": app.code(&console, 0) })).await), "wrong_password");
    assert_eq!(word(&call("remove", json!({ "password": PASSWORD, "code": "000000" })).await), "wrong_code");
    let removed = call("remove", json!({ "password": PASSWORD, "code": app.code(&console, 0) })).await;
    assert_eq!(removed.status, 200, "{}", removed.text);
    assert_eq!(word(&call("remove", json!({ "password": PASSWORD, "code": "000000" })).await), "not_enrolled");
    assert_eq!(console.try_login(1, "anna", PASSWORD).await.body["done"], true);
}

#[tokio::test]
async fn an_admin_resets_the_second_factor_of_another() {
    let console = ConsoleApi::new().await;
    let (alice, anna) = (console.login("alice").await, console.login("anna").await);
    let (app, _) = enrol(&console, &anna).await;
    // A login link takes the place of the password alone.
    let made = console.post(&alice, "/operators/_login_link", &json!({ "name": "anna" })).await;
    let body = json!({ "token": made.body["link"]["token"] });
    let first = console.send("POST", "/session/_redeem", &[], Some(&body)).await;
    assert_eq!((&first.body["done"], first.header("set-cookie")), (&json!(false), ""));
    let entered = second(&console, first.body["ticket"].as_str().unwrap(), &app.code(&console, 0)).await;
    assert_eq!(entered.status, 200, "{}", entered.text);
    let reset = json!({ "name": "anna" });
    assert_eq!(console.post(&alice, "/operators/_reset_second_factor", &reset).await.status, 200);
    assert_eq!(console.get(&anna, "/session/_me").await.status, 401);
    assert_eq!(console.post(&alice, "/operators/_reset_second_factor", &reset).await.body["error"], "not_enrolled");
    assert_eq!(console.try_login(1, "anna", PASSWORD).await.body["done"], true);
}

#[tokio::test]
async fn where_it_is_required_there_is_nothing_else_before_it() {
    let console = ConsoleApi::with(true).await;
    let login = console.login("alice").await;
    assert_eq!(console.get(&login, "/session/_me").await.body["second_factor_required"], true);
    for path in ["/security/_bans", "/operators/_list", "/entities/routes"] {
        let refused = console.get(&login, path).await;
        assert_eq!(
            (refused.status.as_u16(), &refused.body["error"]),
            (403, &json!("second_factor_required")),
            "{path}"
        );
    }
    let (app, _) = enrol(&console, &login).await;
    assert_eq!(console.get(&login, "/security/_bans").await.status, 200);
    assert_eq!(console.get(&login, "/session/_me").await.body["second_factor_required"], false);
    let body = json!({ "password": PASSWORD, "code": app.code(&console, 0) });
    assert_eq!(console.post(&login, "/session/_second_factor_remove", &body).await.body["error"], "required");
}
