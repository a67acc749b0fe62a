//! Operators, as a person adds them and logs in, beside a server that is killed in between.

use std::fs;

use crate::cli_support::{Server, exchange, run, run_with, text};
use serde_json::Value;

const NS: &str = "/extensions/svc/extensions/waf";
const PASSWORD: &str = "correct horse battery";

fn login(server: &Server, name: &str, password: &str) -> (u16, String, Value) {
    let body = format!(r#"{{"name": "{name}", "password": "{password}"}}"#);
    let (status, head, body) = exchange(&server.rest, &[], "POST", &format!("{NS}/session/_login"), &body).unwrap();
    let cookie = head.lines().find_map(|line| line.strip_prefix("set-cookie: ")).unwrap_or_default();
    (status, cookie.split(';').next().unwrap().to_owned(), serde_json::from_str(&body).unwrap())
}

fn me(server: &Server, cookie: &str) -> u16 {
    exchange(&server.rest, &[("cookie", cookie)], "GET", &format!("{NS}/session/_me"), "").unwrap().0
}

#[test]
fn operators_and_their_sessions_outlive_a_kill() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let path = data.to_str().unwrap();
    assert_eq!(run(&["operator", "list", "--data", path]).status.code(), Some(1));
    assert!(!data.exists(), "listing must not make a store");

    let mut server = Server::start(&data);
    let add = |name: &str, password: &str| {
        run_with(&["operator", "add", name, "--email", "alice@example.com", "--data", path], password)
    };
    let added = add("alice", &format!("{PASSWORD}\n"));
    assert!(added.status.success(), "{added:?}");
    assert_eq!(text(&added.stdout), "added alice\n");
    let again = add("Alice", PASSWORD);
    assert!(text(&again.stderr).contains("there is an operator `alice` already"), "{again:?}");
    let short = add("bob", "short\n");
    assert!(text(&short.stderr).contains("the password has 5 characters; 12 are the least"), "{short:?}");
    assert_eq!(run_with(&["operator", "add", "c", "--email", "none", "--data", path], PASSWORD).status.code(), Some(1));

    assert_eq!(login(&server, "alice", "wrong").0, 401);
    let (status, cookie, answer) = login(&server, "alice", PASSWORD);
    assert_eq!((status, &answer["operator"]["email"]), (200, &"alice@example.com".into()));
    assert_eq!(me(&server, &cookie), 200);

    server.signal("KILL");
    server.child.wait().unwrap();
    let server = Server::start(&data);
    assert_eq!(me(&server, &cookie), 200, "the session goes on");
    assert_eq!(login(&server, "alice", PASSWORD).0, 200);

    let other = "another horse battery";
    assert!(run_with(&["operator", "passwd", "alice", "--data", path], other).status.success());
    assert_eq!(me(&server, &cookie), 401);
    assert_eq!(login(&server, "alice", PASSWORD).0, 401);
    let (status, cookie, _) = login(&server, "alice", other);
    assert_eq!(status, 200);
    let list = run(&["operator", "list", "--data", path, "--json"]);
    let listed: Value = serde_json::from_slice(&list.stdout).unwrap();
    assert_eq!((listed.as_array().unwrap().len(), &listed[0]["name"]), (1, &"alice".into()));
    assert!(!text(&list.stdout).contains("argon2"));

    assert!(run(&["operator", "remove", "alice", "--data", path]).status.success());
    assert_eq!(me(&server, &cookie), 401);
    assert_eq!(login(&server, "alice", other).0, 401);
    assert_eq!(run(&["operator", "remove", "alice", "--data", path]).status.code(), Some(1));
    assert_eq!(run_with(&["operator", "passwd", "alice", "--data", path], other).status.code(), Some(1));

    let mut server = server;
    server.signal("TERM");
    assert!(server.child.wait().unwrap().success());
    let log = fs::read_to_string(&server.log).unwrap();
    // Of the server that was stopped; what the killed one had to say may not all have been written.
    let events = fs::read_to_string(&server.events).unwrap();
    let audited: Vec<Value> = events.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    // What the command line did comes from the store, at a time of its own.
    let last = audited.iter().rfind(|event| event["action"] == "login-refused").expect("a refused login");
    assert_eq!(last["@type"], "SvcWafSecurityAudit", "{events}");
    assert_eq!((&last["user"]["name"], &last["source"]["ip"]), (&Value::Null, &"127.0.0.1".into()), "{events}");
    assert!(audited.iter().any(|event| event["action"] == "login" && event["user"]["name"] == "alice"), "{events}");
    let token = cookie.split_once('=').unwrap().1;
    for secret in [PASSWORD, other, token, "argon2id"] {
        assert!(!log.contains(secret), "{log}");
        assert!(!events.contains(secret), "{events}");
    }
    assert!(log.contains("an operator has logged in"), "{log}");
}

#[test]
fn a_login_link_of_the_command_line_logs_in_once() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let path = data.to_str().unwrap();
    let mut server = Server::start(&data);
    let operator = |arguments: &[&str]| {
        let done = run(&[&["operator"], arguments, &["--data", path]].concat());
        (done.status.success(), text(&done.stdout), text(&done.stderr))
    };
    let add = ["add", "bob", "--email", "bob@example.com", "--role", "analyst", "--no-password"];
    assert_eq!(operator(&add).1, "added bob\n");
    assert!(operator(&["list"]).1.contains("no password"));
    let odd = operator(&["add", "eve", "--email", "eve@example.com", "--role", "root"]);
    assert!(odd.2.contains("`root` is not a role: use viewer, analyst or admin"), "{}", odd.2);
    assert!(operator(&["login-link", "eve"]).2.contains("there is no operator `eve`"));
    let base = format!("http://{}/", server.rest);
    let (made, url, _) = operator(&["login-link", "bob", "--base", &base]);
    let token = url.trim().strip_prefix(&format!("http://{}/console/#login=", server.rest)).unwrap().to_owned();
    assert!(made && token.len() == 43, "{url}");
    let redeem = || {
        let body = format!(r#"{{"token": "{token}"}}"#);
        let (status, head, body) =
            exchange(&server.rest, &[], "POST", &format!("{NS}/session/_redeem"), &body).unwrap();
        let cookie = head.lines().find_map(|line| line.strip_prefix("set-cookie: ")).unwrap_or_default();
        (status, cookie.split(';').next().unwrap().to_owned(), serde_json::from_str::<Value>(&body).unwrap())
    };
    let (status, cookie, answer) = redeem();
    assert_eq!((status, &answer["operator"]["role"], me(&server, &cookie)), (200, &"analyst".into(), 200), "{answer}");
    assert_eq!(redeem().0, 401);
    assert_eq!(operator(&["role", "bob", "viewer"]).1, "bob is viewer; their sessions have ended\n");
    assert_eq!(me(&server, &cookie), 401);
    assert_eq!(operator(&["role", "bob", "viewer"]).1, "bob is viewer already\n");
    assert!(operator(&["reset-second-factor", "bob"]).2.contains("bob has no second factor"));
    server.signal("TERM");
    assert!(server.child.wait().unwrap().success());
    for file in [&server.log, &server.events] {
        assert!(!fs::read_to_string(file).unwrap().contains(&token), "{}", file.display());
    }
}

#[test]
fn a_provider_that_is_wrong_ends_the_start_and_one_that_is_silent_does_not() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let path = data.to_str().unwrap();
    let console = ["--console-url", "https://palisade.example"];
    let start = |options: &[&str]| {
        let all =
            [&["serve", "--listen", "127.0.0.1:0", "--xds-listen", "127.0.0.1:0", "--data", path], options].concat();
        let output = run(&all);
        assert!(!output.status.success(), "{options:?}");
        text(&output.stderr)
    };
    let client = ["--oidc-client-id", "palisade"];
    let with = |more: &[&str]| start(&[&console[..], &client[..], more].concat());
    for (options, what) in [
        (vec!["--oidc-issuer", "http://id.example"], "--oidc-issuer `http://id.example`: plain http://"),
        (vec!["--oidc-issuer", "https://id.example", "--oidc-roles", "a=root"], "--oidc-roles"),
        (
            vec!["--oidc-issuer", "https://id.example", "--oidc-role-claim", "groups"],
            "--oidc-role-claim needs --oidc-roles",
        ),
        (
            vec!["--oidc-issuer", "https://id.example", "--oidc-client-secret-file", "/no/such"],
            "--oidc-client-secret-file /no/such",
        ),
    ] {
        let told = with(&options);
        assert!(told.contains(what), "{options:?}: {told}");
    }
    let told = start(&["--console-url", "https://palisade.example/console"]);
    assert!(told.contains("--console-url"), "{told}");
    assert!(start(&["--oidc-issuer", "https://id.example"]).contains("--console-url"), "both are named");
    assert!(!data.exists(), "nothing is made before the options are right");

    let options =
        ["--oidc-issuer", "http://127.0.0.1:1", "--oidc-client-id", "palisade", "--console-url", "http://localhost:1"];
    let server = Server::start_with(&data, &options);
    assert!(
        run_with(&["operator", "add", "alice", "--email", "a@example.com", "--data", path], PASSWORD).status.success()
    );
    assert_eq!(login(&server, "alice", PASSWORD).0, 200);
    let (status, _, body) = exchange(&server.rest, &[], "POST", &format!("{NS}/session/_oidc_begin"), "{}").unwrap();
    assert_eq!((status, body.contains("provider_failed")), (503, true), "{body}");
    let log = fs::read_to_string(&server.log).unwrap();
    assert!(log.contains("http://127.0.0.1:1"), "{log}");
}
