//! `palisade tune`: recordings in, a report and files for review out.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::cli_support::{run, text};

/// A rule that is too eager, and one that catches some of the known attacks. With the core rule set, all that is tried here takes a minute in
/// a test build.
const EAGER: &str = "SecRule ARGS \"@rx (?i)how do i select\" \"id:10050,phase:2,deny,status:403,log,msg:'SQL'\"";
const SQL: &str = "SecRule ARGS \"@rx (?i)union.{1,40}select\" \"id:10051,phase:2,deny,status:403,log,msg:'SQL'\"";

fn entities(folder: &Path) -> String {
    let entities = folder.join("entities");
    for (name, document) in [
        ("waf-rulesets/base.json", json!({ "name": "Base", "rules": [EAGER] })),
        ("waf-configs/shop.json", json!({ "rulesets": ["base"], "rules": [SQL] })),
        ("waf-configs/blog.json", json!({ "rules": [SQL] })),
    ] {
        let file = entities.join(name);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, document.to_string()).unwrap();
    }
    entities.to_str().unwrap().to_owned()
}

/// People who write about databases, from twenty addresses; every fifth entry of `broken` cannot be read.
fn recording(folder: &Path, name: &str, requests: usize, broken: bool) -> String {
    let mut lines = String::new();
    for number in 0..requests {
        let content = if number % 2 == 0 { "how+do+I+select+a+name+from+users" } else { "a+fine+day" };
        let body = format!("content={content}&page={number}");
        let entry = json!({
            "peer": format!("198.51.100.{}:4000", number % 20),
            "request": {
                "method": "POST", "path": format!("/posts/{number}"), "host": "shop.example", "body": body,
                "headers": [["content-type", "application/x-www-form-urlencoded"], ["content-length", body.len().to_string()]],
            },
        });
        let _ = writeln!(lines, "{entry}");
        if broken && number % 5 == 0 {
            lines.push_str("no entry\n");
        }
    }
    let file = folder.join(name);
    fs::write(&file, lines).unwrap();
    file.to_str().unwrap().to_owned()
}

fn said(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn files(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let mut all = Vec::new();
    for collection in ["waf-configs", "waf-rulesets"] {
        for file in fs::read_dir(folder.join(collection)).unwrap() {
            let path = file.unwrap().path();
            all.push((path.display().to_string(), fs::read(path).unwrap()));
        }
    }
    all.sort();
    all
}

#[test]
fn exclusions_are_learned_measured_and_written_for_review() {
    let folder = tempfile::tempdir().unwrap();
    let (entities, out) = (entities(folder.path()), folder.path().join("out"));
    let (traffic, apart) =
        (recording(folder.path(), "a.jsonl", 1200, true), recording(folder.path(), "b.jsonl", 100, false));
    let out = out.to_str().unwrap();
    let arguments = ["tune", "--entities", &entities, "--config", "shop", "--traffic", &traffic];
    let written =
        [&arguments[..], &["--measure", &apart, "--write", out, "--reason", "people write about SQL"]].concat();
    let tuned = run(&written);
    let (shown, told) = (said(&tuned.stdout), said(&tuned.stderr));
    assert!(tuned.status.success(), "{told}");
    for part in [
        "Apply the 1 verified exclusions, then blocking is safe: about 0 of 1200 requests would be refused, 600 without them.\n",
        "Requests: 1200, 600 with a match.",
        "Would be refused: 600 (50.00 %)",
        "of 100 requests 50 pass before, 100 after",
        "ARGS:content on /posts/{id}",
        "Verified exclusions: 1",
        "at   5: ",
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    for part in [
        "block: false",
        "1200 requests in",
        "240 entries could not be read",
        "waf-rulesets/exclusions-shop.yaml: written",
    ] {
        assert!(told.contains(part), "{part}: {told}");
    }
    assert_eq!(told.matches("not read: ").count(), 10, "{told}");

    // The files are in order by themselves, name who, when and why, and are the same each time.
    let checked = run(&["check", out]);
    assert!(checked.status.success(), "{}", said(&checked.stdout));
    let first = files(Path::new(out));
    let ruleset = fs::read_to_string(Path::new(out).join("waf-rulesets/exclusions-shop.yaml")).unwrap();
    for part in
        ["# Written by `palisade tune`", "by palisade tune at 20", "people write about SQL", "# Evidence: 600 of 1200"]
    {
        assert!(ruleset.contains(part), "{part}: {ruleset}");
    }
    let config = fs::read_to_string(Path::new(out).join("waf-configs/shop.yaml")).unwrap();
    let config: Value = serde_saphyr::from_str(&config).unwrap();
    assert_eq!((&config["rulesets"], &config["block"]), (&json!(["exclusions-shop", "base"]), &json!(true)));
    let again = run(&written);
    assert!(said(&again.stderr).contains("exclusions-shop.yaml: unchanged"), "{}", said(&again.stderr));
    assert_eq!(files(Path::new(out)), first);

    // With the exclusions in place nothing is refused.
    let tuned = run(&["tune", "--entities", out, "--config", "shop", "--traffic", &traffic, "--json"]);
    let report: Value = serde_json::from_slice(&tuned.stdout).unwrap();
    assert_eq!((&report["run"]["requests"], &report["run"]["would_block"]), (&json!(1200), &json!(0)));
    assert!(report["verdict"].as_str().unwrap().starts_with("Blocking is safe"), "{report:#}");
}

#[test]
fn a_file_of_others_is_never_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let (entities, out) = (entities(folder.path()), folder.path().join("out"));
    let traffic = recording(folder.path(), "a.jsonl", 30, false);
    let config = out.join("waf-configs/shop.yaml");
    fs::create_dir_all(config.parent().unwrap()).unwrap();
    fs::write(&config, "name: mine\n").unwrap();
    let arguments = ["tune", "--entities", &entities, "--config", "shop", "--traffic", &traffic, "--write"];
    let refused = run(&[&arguments[..], &[out.to_str().unwrap()]].concat());
    let told = said(&refused.stderr);
    assert!(!refused.status.success() && told.contains("was not written by `palisade tune`"), "{told}");
    assert_eq!(fs::read_to_string(&config).unwrap(), "name: mine\n");
    assert!(!out.join("waf-rulesets").exists(), "nothing else is written");
    let within = run(&[&arguments[..], &[&format!("{entities}/new")]].concat());
    assert!(!within.status.success() && said(&within.stderr).contains("within the entities"));
}

#[test]
fn what_is_wrong_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let entities = entities(folder.path());
    let traffic = recording(folder.path(), "a.jsonl", 0, false);
    let empty = folder.path().join("empty.jsonl");
    fs::write(&empty, "no entry\n").unwrap();
    let tune = |config: &str, traffic: &str| {
        let tuned = run(&["tune", "--entities", &entities, "--config", config, "--traffic", traffic]);
        assert!(!tuned.status.success() && text(&tuned.stdout).is_empty());
        said(&tuned.stderr)
    };
    let unknown = tune("stop", &traffic);
    assert!(unknown.contains("there is no config `stop`: waf-configs has `blog`, `shop`"), "{unknown}");
    let nothing = tune("shop", empty.to_str().unwrap());
    assert!(nothing.contains("there are no requests in it, 1 entries could not be read"), "{nothing}");
    let gone = tune("shop", "/nowhere/at.all");
    assert!(gone.contains("/nowhere/at.all"), "{gone}");
}
