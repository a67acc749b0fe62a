//! The commands, as a person or a script runs them.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use crate::cli_support::{Server, palisade, request, run, run_with, text};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

const RULESETS: &str = "/apis/palisade.svc/v1/waf-rulesets";

#[test]
fn check_prints_each_problem_with_file_and_field() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_str().unwrap();
    fs::create_dir(folder.path().join("routes")).unwrap();
    fs::write(folder.path().join("routes/shop.yaml"), "hosts: [shop.example]\n").unwrap();
    let fine = run(&["check", path]);
    assert!(fine.status.success());
    assert!(text(&fine.stdout).contains("no problems: ") && text(&fine.stdout).contains("1 routes"), "{fine:?}");

    fs::write(folder.path().join("routes/bad.yaml"), "host: [shop.example]\n").unwrap();
    fs::write(folder.path().join("routes/worse.json"), "{").unwrap();
    let bad = run(&["check", path]);
    assert_eq!(bad.status.code(), Some(1));
    let out = text(&bad.stdout);
    assert!(
        out.contains(&format!("{path}/routes/bad.yaml: /host: unknown field `host`, did you mean `hosts`?")),
        "{out}"
    );
    assert!(out.contains(&format!("{path}/routes/worse.json: not JSON: EOF")), "{out}");
    assert!(out.ends_with("2 problems\n"), "{out}");
    assert_eq!(run(&["check", "/nowhere"]).status.code(), Some(1));
}

#[test]
fn check_and_compile_take_a_folder_with_one_of_each_kind() {
    let folder = [env!("CARGO_MANIFEST_DIR"), "tests", "data", "entities"].join("/");
    let checked = run(&["check", &folder]);
    let out = text(&checked.stdout);
    assert!(checked.status.success(), "{out}");
    let warnings: Vec<&str> = out.lines().filter(|line| line.contains("warning")).collect();
    let idle = "(`trusted_header`) verifies no client on the gateways of the group `default`";
    let of_listeners = |line: &str| {
        line.contains("must take the header `x-auth-user` from clients")
            || line.contains("verifies no client on the gateways")
    };
    let of_later = |line: &str| line.contains("not active yet");
    assert!(!warnings.iter().any(|line| of_later(line) && line.contains("SvcApiContract")), "{out}");
    let others: Vec<_> = warnings.iter().filter(|line| !of_listeners(line) && !of_later(line)).collect();
    let [no_crs, no_key] = others[..] else { panic!("{out}") };
    assert!(no_crs.contains("the `crs` options of the WAF config `main` have no effect"), "{out}");
    assert!(no_key.contains("`widget` is a widget, and its `site_key` is empty"), "{out}");
    assert!(warnings.iter().any(|line| line.contains("must take the header `x-auth-user`")), "{out}");
    assert!(warnings.iter().any(|line| line.contains(idle)), "{out}");
    assert!(out.contains("3 threat-feeds") && out.contains("1 malware-scanners"), "{out}");

    let place = tempfile::tempdir().unwrap();
    let compile = |entities: &str, out: &str| {
        let out = place.path().join(out).to_str().unwrap().to_owned();
        let compiled = run(&["compile", "--entities", entities, "--out", &out]);
        let out_lines = text(&compiled.stdout);
        let warned =
            out_lines.lines().filter(|line| line.contains("warning") && !of_listeners(line) && !of_later(line));
        let warnings = warned.count();
        // That the tier has nothing to present, and the options no rules.
        assert!(compiled.status.success() && warnings == 2, "{compiled:?}");
        fs::read(out).unwrap()
    };
    let with = compile(&folder, "with.pb");
    // What no filter runs yet changes no snapshot, and no secret gets into one.
    let alone = place.path().join("alone");
    for file in [
        "waf-rulesets/base",
        "waf-configs/main",
        "threat-policies/main",
        "honeypot-policies/traps",
        "bot-policies/bots",
        "svc-bouncers/crowd",
        "asn-databases/table",
        "geo-databases/places",
        "threat-feeds/array",
        "threat-feeds/list",
        "threat-feeds/path",
        "routes/shop",
        "global-config/global-config",
    ] {
        let (from, to) = (format!("{folder}/{file}.yaml"), alone.join(format!("{file}.yaml")));
        fs::create_dir_all(to.parent().unwrap()).unwrap();
        let document = fs::read_to_string(from).unwrap();
        let lines =
            document.lines().filter(|line| !line.contains("challenge_provider:") && !line.contains("svc-api-contract"));
        let lines: Vec<_> = lines.map(|line| line.split(", api_contract_id").next().unwrap()).collect();
        let closed = lines
            .iter()
            .map(|line| if line.contains("{ threat_policy") { format!("{line} }}") } else { (*line).to_owned() });
        fs::write(to, closed.collect::<Vec<_>>().join("\n")).unwrap();
    }
    assert!(with == compile(alone.to_str().unwrap(), "alone.pb"));
    assert!(!with.windows(7).any(|window| window == b"hunter2"));
}

#[test]
fn neither_log_nor_events_nor_answers_show_secrets_of_entities() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(&folder.path().join("data"));
    let bouncers = RULESETS.replace("waf-rulesets", "svc-bouncers");
    let one = format!("{bouncers}/crowd");
    let mut answers = Vec::new();
    for (method, path, body, status) in [
        ("POST", &bouncers, r#"{"id": "crowd", "api_key": "hunter2"}"#, 201),
        ("POST", &bouncers, r#"{"id": "crowd", "api_key": "hunter2"}"#, 409),
        ("POST", &bouncers, r#"{"api_key": "hunter2", "tag": 1}"#, 400),
        ("POST", &bouncers, r#"{"api_key": ["hunter2"]}"#, 400),
        ("POST", &bouncers, r#"{"api_key": "hunter2""#, 400),
        ("PUT", &one, r#"{"api_key": "hunter2", "name": "x"}"#, 200),
        ("PATCH", &one, r#"[{"op": "test", "path": "/api_key", "value": "hunter2"}]"#, 409),
        ("GET", &bouncers, "", 200),
        ("DELETE", &one, "", 200),
    ] {
        let answer = request(&server.rest, &server.authorization, method, path, body).unwrap();
        assert_eq!(answer.0, status, "{method} {body}: {}", answer.1);
        answers.push(answer.1);
    }
    server.signal("TERM");
    let mut server = server;
    assert!(server.child.wait().unwrap().success());
    let told = fs::read_to_string(&server.events).unwrap();
    assert!(told.contains("svc-bouncers/crowd"), "{told}");
    for text in answers.iter().chain([&told, &fs::read_to_string(&server.log).unwrap()]) {
        assert!(!text.contains("hunter2"), "{text}");
    }
}

#[test]
fn keys_are_made_listed_and_revoked_beside_a_running_server() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let path = data.to_str().unwrap();
    assert_eq!(run(&["admin-key", "list", "--data", path]).status.code(), Some(1));
    assert!(!data.exists(), "listing must not make a store");

    let server = Server::start(&data);
    let made =
        run(&["admin-key", "create", "--data", path, "--name", "ci", "--scope", "read", "--expires", "90d", "--json"]);
    let made: Value = serde_json::from_slice(&made.stdout).unwrap();
    let (id, secret) = (made["id"].as_str().unwrap(), made["secret"].as_str().unwrap());
    let header = format!("Basic {}", STANDARD.encode(format!("{id}:{secret}")));
    let call = |method: &str| request(&server.rest, &header, method, RULESETS, "{}").unwrap().0;
    assert_eq!((call("GET"), call("POST")), (200, 403));

    assert!(run(&["admin-key", "expire", "--data", path, id]).status.success());
    assert_eq!(call("GET"), 401, "refused by the server that runs");
    let state = || {
        let list = run(&["admin-key", "list", "--data", path, "--json"]);
        let list: Value = serde_json::from_slice(&list.stdout).unwrap();
        let key = list.as_array().unwrap().iter().find(|key| key["id"] == id).unwrap();
        (key["state"].as_str().unwrap().to_owned(), key["expires_at"].is_string())
    };
    assert_eq!(state(), ("expired".to_owned(), true));
    assert!(run(&["admin-key", "expire", "--data", path, id, "--never"]).status.success());
    assert_eq!((call("GET"), state()), (200, ("active".to_owned(), false)));
    assert!(run(&["admin-key", "expire", "--data", path, id, "--in", "90d"]).status.success());
    assert_eq!((call("GET"), state()), (200, ("active".to_owned(), true)));
    assert_eq!(run(&["admin-key", "expire", "--data", path, "admin-key_x"]).status.code(), Some(1));
    assert_eq!(run(&["admin-key", "expire", "--data", path, id, "--never", "--in", "1d"]).status.code(), Some(2));

    let list = run(&["admin-key", "list", "--data", path, "--json"]);
    assert!(!text(&list.stdout).contains(secret));
    let list: Value = serde_json::from_slice(&list.stdout).unwrap();
    let listed = list.as_array().unwrap().iter().find(|key| key["id"] == id).unwrap();
    assert_eq!(
        (&listed["name"], &listed["state"], &listed["scopes"][0]),
        (&"ci".into(), &"active".into(), &"read".into())
    );
    assert!(listed["expires_at"].is_string());

    assert!(run(&["admin-key", "revoke", "--data", path, id]).status.success());
    assert_eq!(call("GET"), 401);
    assert_eq!(run(&["admin-key", "revoke", "--data", path, "admin-key_x"]).status.code(), Some(1));
    let log = fs::read_to_string(&server.log).unwrap();
    assert!(!log.contains(secret), "{log}");
}

#[test]
fn what_commands_change_of_the_access_is_told_by_the_control_plane() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let path = data.to_str().unwrap();
    // Before there is a control plane: it is told once there is one.
    let made = run(&[
        "admin-key",
        "create",
        "--data",
        path,
        "--name",
        "ci",
        "--scopes",
        "read",
        "--expires-in",
        "1d",
        "--json",
    ]);
    let made: Value = serde_json::from_slice(&made.stdout).unwrap();
    let (id, secret) = (made["id"].as_str().unwrap(), made["secret"].as_str().unwrap());
    let operator = |arguments: &[&str]| {
        let all = [&["operator"], arguments, &["--data", path]].concat();
        assert!(run_with(&all, "correct horse battery\n").status.success(), "{arguments:?}");
    };
    operator(&["add", "alice", "--email", "alice@example.com"]);
    // The store has a key already, so that the start makes none and leaves no file of it.
    let first = serde_json::json!({ "id": id, "secret": secret });
    fs::write(data.join("admin-key.json"), first.to_string()).unwrap();
    let server = Server::start(&data);
    operator(&["passwd", "alice"]);
    operator(&["remove", "alice"]);
    assert!(run(&["admin-key", "expire", "--data", path, id]).status.success());
    assert!(run(&["admin-key", "revoke", "--data", path, id]).status.success());
    assert_eq!(run(&["admin-key", "revoke", "--data", path, "admin-key_x"]).status.code(), Some(1));

    let expected = [
        format!("key-create admin-keys/{id}"),
        "operator-add operators/alice".to_owned(),
        "operator-password operators/alice".to_owned(),
        "operator-remove operators/alice".to_owned(),
        format!("key-expire admin-keys/{id}"),
        format!("key-revoke admin-keys/{id}"),
    ];
    let mut told = String::new();
    // The bound only keeps a control plane that tells nothing from hanging the test.
    for _ in 0..3000 {
        told = fs::read_to_string(&server.events).unwrap_or_default();
        if told.lines().count() >= expected.len() {
            break;
        }
        #[allow(clippy::disallowed_methods, reason = "another process is waited for, in no filter")]
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let events: Vec<Value> = told.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let brief: Vec<String> = events
        .iter()
        .map(|event| format!("{} {}", event["action"].as_str().unwrap(), event["ref"].as_str().unwrap()))
        .collect();
    assert_eq!(brief, expected);
    assert!(events[0]["detail"].as_str().unwrap().starts_with("scopes read; expires 20"), "{}", events[0]);
    assert!(events[0]["detail"].as_str().unwrap().contains("on the command line, by user "), "{}", events[0]);
    assert!(!told.contains(secret) && !told.contains("argon2") && !told.contains("battery"), "{told}");
}

#[test]
fn the_first_start_makes_one_key_and_the_second_none() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let mut server = Server::start(&data);
    let file = data.join("admin-key.json");
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    let first = fs::read(&file).unwrap();
    assert_eq!(request(&server.rest, &server.authorization, "POST", RULESETS, r#"{"id": "a"}"#).unwrap().0, 201);
    let again = palisade(&["serve", "--listen", "127.0.0.1:0", "--xds-listen", "127.0.0.1:0", "--data"])
        .arg(&data)
        .output()
        .unwrap();
    assert_eq!(again.status.code(), Some(1));
    assert!(text(&again.stderr).contains("another palisade process"), "{again:?}");

    server.signal("TERM");
    assert!(server.child.wait().unwrap().success());
    let log = fs::read_to_string(&server.log).unwrap();
    assert!(log.contains("stopped"), "{log}");
    assert!(!data.join("palisade.db-wal").exists(), "a clean stop leaves one file");

    let server = Server::start(&data);
    assert_eq!(fs::read(&file).unwrap(), first);
    let (status, body) = request(&server.rest, &server.authorization, "GET", RULESETS, "").unwrap();
    assert!(status == 200 && body.contains(r#""id":"a""#), "{body}");
}

#[test]
fn a_damaged_store_stops_the_start_and_says_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    fs::create_dir(&data).unwrap();
    fs::write(data.join("palisade.db"), "rubbish").unwrap();
    let failed = palisade(&["serve", "--listen", "127.0.0.1:0", "--xds-listen", "127.0.0.1:0", "--data"])
        .arg(&data)
        .output()
        .unwrap();
    assert_eq!(failed.status.code(), Some(1));
    let said = text(&failed.stderr);
    assert!(said.contains("palisade.db is damaged") && said.contains("Restore it from a backup"), "{said}");
    assert_eq!(fs::read_to_string(data.join("palisade.db")).unwrap(), "rubbish");
}
