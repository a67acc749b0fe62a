//! `palisade apply` and `palisade export`: entities as files.

use std::fs;
use std::path::Path;

use crate::cli_support::{Server, palisade, request, text};
use serde_json::{Value, json};

const BASE: &str = "/apis/palisade.svc/v1";

/// Runs a command against a running server: its exit code, what it says, what it complains of.
fn beside(server: &Server, data: &Path, arguments: &[&str]) -> (i32, String, String) {
    let out = palisade(arguments)
        .env("PALISADE_URL", format!("http://{}", server.rest))
        .env("PALISADE_ADMIN_KEY_FILE", data.join("admin-key.json"))
        .output()
        .unwrap();
    (out.status.code().unwrap(), text(&out.stdout), text(&out.stderr))
}

fn call(server: &Server, method: &str, path: &str, body: Value) -> (u16, Value) {
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let (status, text) = request(&server.rest, &server.authorization, method, &format!("{BASE}{path}"), &body).unwrap();
    (status, serde_json::from_str(&text).unwrap())
}

fn put(folder: &Path, files: &[(&str, &str)]) {
    for (name, text) in files {
        let file = folder.join(name);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    }
}

#[test]
fn a_folder_is_applied_as_a_whole_and_the_second_time_there_is_nothing_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let (data, wanted) = (folder.path().join("data"), folder.path().join("wanted"));
    let dir = wanted.to_str().unwrap();
    put(
        &wanted,
        &[
            ("waf-configs/shop.yaml", "name: Shop\nrulesets: [base]\ncrs: {paranoia_level: 2}\n"),
            ("waf-rulesets/base.json", r#"{"rules": ["SecRuleEngine On"], "metadata": {"team": "red"}}"#),
            ("global-config/global.yaml", "gateway: {port: 8080}\n"),
        ],
    );
    let server = Server::start(&data);
    let run = |arguments: &[&str]| beside(&server, &data, arguments);
    let (code, out, err) = run(&["apply", dir, "--dry-run"]);
    assert_eq!(code, 1, "{out}{err}");
    let expected = format!(
        "+ waf-configs/shop\n+ waf-rulesets/base\n~ global-config/global-config\n    /gateway/port: 10000 -> 8080\n\
         warning: {dir}/waf-configs/shop.yaml: /crs: the crs options have no effect: nothing imports the core rule set with \
         `@import_preset crs`\nwarning: {dir}/waf-configs/shop.yaml: /rules: no rule that runs looks at requests: there are \
         none, or others remove or skip them\nwould create 2, change 1, delete 0\n"
    );
    assert_eq!(out, expected);
    assert_eq!(call(&server, "GET", "/waf-configs/_count", Value::Null).1["count"], 0);

    let (code, out, err) = run(&["apply", dir]);
    assert_eq!(code, 0, "{out}{err}");
    assert!(out.ends_with("created 2, changed 1, deleted 0\n"), "{out}");
    let shop = call(&server, "GET", "/waf-configs/shop", Value::Null).1;
    assert_eq!((&shop["name"], &shop["crs"]["paranoia_level"]), (&json!("Shop"), &json!(2)));
    for arguments in [&["apply", dir][..], &["apply", dir, "--dry-run"], &["apply", dir, "--prune"]] {
        assert_eq!(run(arguments), (0, "nothing to do\n".to_owned(), String::new()), "{arguments:?}");
    }

    // One field, shown and coloured; what others have changed is put right.
    assert_eq!(call(&server, "PATCH", "/waf-configs/shop", json!({"name": "Other", "tags": ["x"]})).0, 200);
    let (code, out, _) = run(&["apply", dir, "--dry-run", "--color", "always"]);
    assert_eq!(code, 1);
    assert!(out.contains("\u{1b}[33m~ waf-configs/shop\u{1b}[0m\n"), "{out:?}");
    assert!(out.contains("/name: \u{1b}[31m\"Other\"\u{1b}[0m -> \u{1b}[32m\"Shop\"\u{1b}[0m\n"), "{out:?}");
    assert!(out.contains("/tags/0: \u{1b}[31m\"x\"\u{1b}[0m is taken away\n"), "{out:?}");
    assert_eq!(run(&["apply", dir]).0, 0);
    let put_right = call(&server, "GET", "/waf-configs/shop", Value::Null).1;
    assert_eq!((&put_right["name"], &put_right["tags"]), (&json!("Shop"), &json!([])));
    assert_eq!(put_right["metadata"]["created_at"], shop["metadata"]["created_at"]);

    // Pruned is what the folder has entities of, and everything with --all.
    call(&server, "POST", "/waf-rulesets", json!({"id": "stray"}));
    call(&server, "POST", "/threat-policies", json!({"id": "stray"}));
    assert_eq!(run(&["apply", dir]).1, "nothing to do\n");
    let (code, out, _) = run(&["apply", dir, "--prune"]);
    assert_eq!((code, out.as_str()), (0, "- waf-rulesets/stray\ncreated 0, changed 0, deleted 1\n"));
    let (code, out, _) = run(&["apply", dir, "--prune", "--all"]);
    assert_eq!((code, out.as_str()), (0, "- threat-policies/stray\ncreated 0, changed 0, deleted 1\n"));
    assert_eq!(run(&["apply", dir, "--all"]).0, 2);

    // All or nothing: the fault is named by its file.
    put(
        &wanted,
        &[
            ("waf-rulesets/fine.yaml", "name: Fine\n"),
            ("waf-rulesets/worse.yaml", "rules: ['SecRul ARGS']\n"),
            ("routes/shop.yaml", "hosts: [shop.example]\nplugins: [{plugin: SvcWaf, config: {ref: gone}}]\n"),
        ],
    );
    let (code, out, err) = run(&["apply", dir]);
    assert_eq!(code, 2, "{out}{err}");
    let missing = format!("{dir}/routes/shop.yaml: /plugins/0/config/ref: there is no entity `gone` in waf-configs");
    assert!(out.contains(&missing), "{out}");
    assert!(err.contains("nothing was changed"), "{err}");
    fs::remove_file(wanted.join("routes/shop.yaml")).unwrap();
    // What a rule says is only known once everything names what exists.
    let (code, out, err) = run(&["apply", dir]);
    assert_eq!(code, 2, "{out}{err}");
    assert!(out.contains(&format!("{dir}/waf-rulesets/worse.yaml: /rules/0: ")), "{out}");
    assert_eq!(call(&server, "GET", "/waf-rulesets/_count", Value::Null).1["count"], 1);
    put(&wanted, &[("waf-rulesets/worse.yaml", "rulez: []\n")]);
    let (code, out, _) = run(&["apply", dir]);
    assert!(code == 2 && out.contains("worse.yaml: /rulez: unknown field `rulez`"), "{out}");
}

#[test]
fn a_folder_without_entities_deletes_nothing_unless_it_is_said_so() {
    let folder = tempfile::tempdir().unwrap();
    let (data, wanted) = (folder.path().join("data"), folder.path().join("wanted"));
    let dir = wanted.to_str().unwrap();
    let server = Server::start(&data);
    let run = |arguments: &[&str]| beside(&server, &data, arguments);
    assert_eq!(call(&server, "POST", "/waf-rulesets", json!({"id": "base"})).0, 201);
    // Named as other systems do it, so that it is no entity here.
    put(&wanted, &[("waf-rulesets/base.YAML", "name: Base\n")]);
    let passed_over = format!("warning: {dir}/waf-rulesets/base.YAML: not read");
    for arguments in [&["apply", dir, "--prune", "--all"][..], &["apply", dir, "--prune"]] {
        let (code, out, err) = run(arguments);
        assert!(code == 2 && err.contains("--allow-empty") && out.contains(&passed_over), "{code}: {out}{err}");
    }
    for arguments in [&["apply", dir][..], &["check", dir]] {
        let (code, out, err) = run(arguments);
        assert!(code == 0 && out.contains(&passed_over) && out.contains("has no entities"), "{out}{err}");
    }
    assert_eq!(call(&server, "GET", "/waf-rulesets/_count", Value::Null).1["count"], 1);
    assert_eq!(run(&["apply", dir, "--allow-empty"]).0, 2, "it belongs to --prune");
    let (code, out, err) = run(&["apply", dir, "--prune", "--all", "--allow-empty"]);
    assert!(code == 0 && out.contains("deleted 1"), "{out}{err}");
}

#[test]
fn what_is_exported_is_what_is_applied() {
    let folder = tempfile::tempdir().unwrap();
    let (data, other, files) = (folder.path().join("data"), folder.path().join("other"), folder.path().join("files"));
    let mut server = Server::start(&data);
    let rules = "SecRule ARGS \"@rx ^(?:a|b: #c)$\" \\\n  \"id:1,phase:2,deny\"\n\n# é\u{1f600} \ttab\n";
    let odd =
        json!(["", " ", "- x", "yes", "1e3", "~", "a: b", "\u{7f}\r\n\t\u{0}", "'\"", "# no comment", "\u{2028}"]);
    let document = json!({"id": "base", "rules": [rules], "tags": odd, "metadata": {"n": [1.0, -3, 1e300, null, {}]}});
    assert_eq!(call(&server, "POST", "/waf-rulesets", document).0, 201);
    call(&server, "POST", "/waf-configs", json!({"id": ".dotted", "rulesets": ["base"], "name": "no"}));
    call(&server, "POST", "/threat-policies", json!({"id": "p", "tiers": [{"min_score": 12.5}, {"min_score": 90}]}));
    let dir = files.to_str().unwrap();
    let (code, out, err) = beside(&server, &data, &["export", dir]);
    assert_eq!((code, out), (0, format!("{dir}: 4 entities\n")), "{err}");
    for file in ["waf-configs/_.dotted.yaml", "threat-policies/p.yaml"] {
        assert!(files.join(file).exists(), "{file}");
    }
    // Whatever YAML could not carry would have become JSON.
    let base = ["yaml", "json"].map(|extension| files.join(format!("waf-rulesets/base.{extension}")));
    let base = base.into_iter().find(|file| file.exists()).unwrap();
    assert!(!fs::read_to_string(base).unwrap().contains("created_at"));
    assert_eq!(beside(&server, &data, &["apply", dir, "--prune", "--all"]).1, "nothing to do\n");
    let (code, _, err) = beside(&server, &data, &["export", dir]);
    assert!(code == 1 && err.contains("--force"), "{err}");
    assert_eq!(beside(&server, &data, &["export", dir, "--force"]).0, 0);

    // The same from the store's folder, once nobody serves from it.
    let stopped = |arguments: &[&str]| {
        // The store counts, whatever the environment names.
        let out =
            palisade(arguments).arg("--data").arg(&data).env("PALISADE_URL", "http://127.0.0.1:1").output().unwrap();
        (out.status.code().unwrap(), text(&out.stdout), text(&out.stderr))
    };
    let again = folder.path().join("again");
    let (code, _, err) = stopped(&["export", again.to_str().unwrap()]);
    assert!(code == 1 && err.contains("another palisade process"), "{err}");
    server.signal("TERM");
    server.child.wait().unwrap();
    assert_eq!(stopped(&["export", again.to_str().unwrap(), "--format", "json"]).0, 0);
    assert!(again.join("waf-rulesets/base.json").exists());
    assert_eq!(stopped(&["apply", dir]), (0, "nothing to do\n".to_owned(), String::new()));
    fs::write(files.join("waf-rulesets/new.yaml"), "name: New\n").unwrap();
    let (code, out, err) = stopped(&["apply", dir]);
    assert_eq!((code, out.as_str()), (0, "+ waf-rulesets/new\ncreated 1, changed 0, deleted 0\n"), "{err}");
    fs::write(files.join("waf-rulesets/new.yaml"), "rules: ['SecRul']\n").unwrap();
    assert_eq!(stopped(&["apply", dir]).0, 2);
    let server = Server::start(&data);
    let history = call(&server, "GET", "/waf-rulesets/new/_history", Value::Null).1;
    assert_eq!(history[0]["author"], json!({ "kind": "command_line", "id": null, "name": null }), "{history}");
    assert!(history[0]["detail"].as_str().unwrap().starts_with("by user "), "{history}");
    drop(server);

    // Into another control plane.
    fs::write(files.join("waf-rulesets/new.yaml"), "name: New\n").unwrap();
    let server = Server::start(&other);
    let (code, out, err) = beside(&server, &other, &["apply", dir]);
    assert_eq!(code, 0, "{out}{err}");
    assert_eq!(call(&server, "GET", "/waf-rulesets/base", Value::Null).1["rules"][0], rules);
    let history = call(&server, "GET", "/waf-rulesets/base/_history", Value::Null).1;
    assert_eq!((&history[0]["author"]["kind"], &history[0]["detail"]), (&json!("api_key"), &json!("_bulk")));
    assert_eq!(beside(&server, &other, &["apply", dir]).1, "nothing to do\n");
}

#[test]
fn who_may_not_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let (data, wanted) = (folder.path().join("data"), folder.path().join("wanted"));
    put(&wanted, &[("waf-rulesets/a.yaml", "name: A\n")]);
    let server = Server::start(&data);
    let dir = wanted.to_str().unwrap();
    let url = format!("http://{}", server.rest);
    for (arguments, part) in [
        (vec!["apply", dir, "--url", &url], "PALISADE_ADMIN_KEY"),
        (vec!["apply", dir, "--url", &url, "--key", "x"], "ID:SECRET"),
        (vec!["apply", dir, "--url", &url, "--key", "x:y"], "401"),
        (vec!["apply", dir, "--url", "ftp://localhost", "--key", "x:y"], "https://HOST:PORT"),
        (
            vec!["apply", dir, "--url", "https://127.0.0.1:1", "--key", "x:y", "--ca", "/nowhere"],
            "cannot read /nowhere",
        ),
        (vec!["apply", dir, "--url", "http://127.0.0.1:1", "--key", "x:y"], "cannot call 127.0.0.1:1"),
        (vec!["apply", dir, "--data", "/nowhere"], "there is no store"),
        (vec!["apply", "/nowhere", "--url", &url, "--key", "x:y"], "not in order"),
    ] {
        let out = palisade(&arguments).output().unwrap();
        assert_eq!(out.status.code(), Some(2), "{arguments:?}");
        assert!(text(&out.stderr).contains(part), "{arguments:?}: {}", text(&out.stderr));
    }
}

#[test]
fn secrets_are_set_by_files_that_have_them_and_kept_by_those_that_have_masks() {
    let folder = tempfile::tempdir().unwrap();
    let (data, wanted, export) = (folder.path().join("data"), folder.path().join("wanted"), folder.path().join("out"));
    let bouncer = |key: &str| format!("name: Crowd\nlapi_url: http://crowd.test:8080\napi_key: {key}\n");
    put(&wanted, &[("svc-bouncers/crowd.yaml", &bouncer("first-secret-of-mine"))]);
    let server = Server::start(&data);
    let run = |arguments: &[&str]| beside(&server, &data, arguments);
    let stored = || {
        let all = fs::read_dir(&data).unwrap().map(|entry| fs::read(entry.unwrap().path()).unwrap_or_default());
        String::from_utf8_lossy(&all.flatten().collect::<Vec<u8>>()).into_owned()
    };
    let dir = wanted.to_str().unwrap();
    let (code, said, err) = run(&["apply", dir]);
    assert_eq!(code, 0, "{said}{err}");
    assert!(!said.contains("first-secret") && stored().contains("first-secret-of-mine"), "{said}");

    // What was exported has masks, and changes nothing.
    let out = export.to_str().unwrap();
    assert_eq!(run(&["export", out]).0, 0);
    let file = fs::read_to_string(export.join("svc-bouncers/crowd.yaml")).unwrap();
    assert!(file.contains("********") && !file.contains("first-secret"), "{file}");
    assert_eq!(run(&["apply", out]).1, "nothing to do\n");
    put(&export, &[("svc-bouncers/crowd.yaml", &file.replace("Crowd", "Crowds"))]);
    let (code, said, err) = run(&["apply", out]);
    assert_eq!((code, said.contains("/name: \"Crowd\" -> \"Crowds\"")), (0, true), "{said}{err}");
    assert!(stored().contains("first-secret-of-mine"));

    // A new secret is set, and not shown.
    put(&wanted, &[("svc-bouncers/crowd.yaml", &bouncer("second-secret-of-mine"))]);
    let (code, said, err) = run(&["apply", dir]);
    assert_eq!((code, said.contains("secrets: what the file has is added")), (0, true), "{said}{err}");
    assert!(!said.contains("second-secret") && stored().contains("second-secret-of-mine"), "{said}");
}
