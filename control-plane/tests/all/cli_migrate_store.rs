//! `palisade migrate-store`: from a file to Redis, and back.

use std::path::Path;

use crate::cli_support::{Server, palisade, request, run, text};
use palisade_tests::redis::Redis;
use serde_json::Value;

const RULESETS: &str = "/apis/palisade.svc/v1/waf-rulesets";

fn migrate(from: &str, to: &str, data: &Path) -> (i32, String, String) {
    let arguments = ["migrate-store", "--from", from, "--to", to, "--data", data.to_str().unwrap()];
    let out = run(&arguments);
    (out.status.code().unwrap(), text(&out.stdout), text(&out.stderr))
}

fn ids(server: &Server) -> Vec<String> {
    let (status, body) = request(&server.rest, &server.authorization, "GET", RULESETS, "").unwrap();
    assert_eq!(status, 200, "the key of the old store still opens the door: {body}");
    let list: Vec<Value> = serde_json::from_str(&body).unwrap();
    list.iter().map(|entity| entity["id"].as_str().unwrap().to_owned()).collect()
}

/// The actions of what was done to the ruleset `a`, and its documents, newest first.
fn history(server: &Server) -> Vec<(String, Value)> {
    let get = |path: &str| {
        let (status, body) = request(&server.rest, &server.authorization, "GET", path, "").unwrap();
        assert_eq!(status, 200, "{path}: {body}");
        serde_json::from_str::<Value>(&body).unwrap()
    };
    let list = get(&format!("{RULESETS}/a/_history"));
    let versions = list.as_array().unwrap().iter().map(|version| {
        let read = get(&format!("{RULESETS}/a/_history/{}", version["version"]));
        (version["action"].as_str().unwrap().to_owned(), read["document"]["description"].clone())
    });
    versions.collect()
}

fn stop(mut server: Server) {
    server.signal("TERM");
    assert!(server.child.wait().unwrap().success());
}

#[test]
fn a_store_moves_to_a_server_and_back() {
    let folder = tempfile::tempdir().unwrap();
    let redis = Redis::start();
    let name = |name: &str| folder.path().join(name);
    let (first, second, third, scratch) = (name("first"), name("second"), name("third"), name("scratch"));
    let server = Server::start(&first);
    for id in ["a", "b"] {
        let (status, body) =
            request(&server.rest, &server.authorization, "POST", RULESETS, &format!(r#"{{"id": "{id}"}}"#)).unwrap();
        assert_eq!(status, 201, "{body}");
    }
    let one = format!("{RULESETS}/a");
    let changed = request(&server.rest, &server.authorization, "PUT", &one, r#"{"description": "second"}"#).unwrap();
    assert_eq!(changed.0, 200, "{}", changed.1);
    let versions = [("replace".to_owned(), Value::from("second")), ("create".to_owned(), Value::from(""))];
    assert_eq!(history(&server), versions);
    let (code, _, error) = migrate(first.to_str().unwrap(), &redis.url(), &scratch);
    assert!(code == 1 && error.contains("another palisade process"), "{error}");
    stop(server);

    let (code, out, error) = migrate(first.to_str().unwrap(), &redis.url(), &scratch);
    assert_eq!(code, 0, "{error}");
    assert!(out.contains("entity: 2\n") && out.trim_end().ends_with("and read them back"), "{out}");
    let (code, _, error) = migrate(first.to_str().unwrap(), &redis.url(), &scratch);
    assert!(code == 1 && error.contains("not empty"), "{error}");

    // A control plane on the server has it all, and goes on.
    std::fs::create_dir(&second).unwrap();
    std::fs::copy(first.join("admin-key.json"), second.join("admin-key.json")).unwrap();
    let server = Server::start_with(&second, &["--store", &redis.url()]);
    assert_eq!(ids(&server), ["a", "b"]);
    assert_eq!(history(&server), versions);
    assert_eq!(request(&server.rest, &server.authorization, "POST", RULESETS, r#"{"id": "c"}"#).unwrap().0, 201);
    stop(server);

    let (code, out, error) = migrate(&redis.url(), third.to_str().unwrap(), &scratch);
    assert!(code == 0 && out.contains("entity: 3\n"), "{out}{error}");
    std::fs::copy(first.join("admin-key.json"), third.join("admin-key.json")).unwrap();
    let server = Server::start(&third);
    assert_eq!(ids(&server), ["a", "b", "c"]);
    assert_eq!(history(&server), versions);
    stop(server);
}

#[test]
fn what_cannot_be_copied_says_why() {
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("missing");
    let new = folder.path().join("new");
    for (from, to, expected) in [
        (missing.to_str().unwrap(), new.to_str().unwrap(), "missing"),
        ("redis://127.0.0.1:1", new.to_str().unwrap(), "127.0.0.1:1"),
        ("redis://127.0.0.1?colour=red", new.to_str().unwrap(), "colour"),
    ] {
        let (code, _, error) = migrate(from, to, folder.path());
        assert!(code != 0 && error.contains(expected), "{from}: {code} {error}");
        assert!(!new.exists(), "{from}");
    }
    let help = palisade(&["migrate-store", "--help"]).output().unwrap();
    assert!(text(&help.stdout).contains("--from"));
}
