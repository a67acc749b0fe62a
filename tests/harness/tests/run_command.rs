//! `palisade-replay run` as people and pipelines start it.

mod kit;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use harness::ftw::rules::compile_text;
use serde_json::Value;
use snapshot::{Message as _, WafStep, open, seal};

/// A folder with a snapshot that denies `?q=evil` with 403, and traffic.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let rules = r#"SecRule ARGS:q "@streq evil" "id:7,phase:2,deny,status:403,log,msg:'evil'""#;
    let (_, mut snapshot) = open(&compile_text("rules", rules).unwrap().snapshot).unwrap();
    let mut step = WafStep::decode(snapshot.global[0].config.as_slice()).unwrap();
    step.block = true;
    snapshot.global[0].config = step.encode_to_vec();
    std::fs::write(folder.path().join("snapshot"), seal(&snapshot).encode_to_vec()).unwrap();
    std::fs::write(folder.path().join("good"), "1000 192.0.2.1:1 GET /\n2000 192.0.2.2:1 GET /?q=good\n").unwrap();
    std::fs::write(folder.path().join("bad"), "3000 192.0.2.1:1 GET /?q=evil\nnothing\n").unwrap();
    folder
}

fn filter(name: &str) -> PathBuf {
    let folder = std::env::var_os("PALISADE_FILTERS").map_or_else(|| kit::own("../../target/filters"), PathBuf::from);
    folder.join(format!("{name}.wasm"))
}

fn replay(folder: &Path, filter_name: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_palisade-replay"));
    command.current_dir(folder).arg("run").arg("--filter").arg(filter(filter_name)).args(arguments);
    command
}

fn code(output: &Output) -> i32 {
    output.status.code().unwrap()
}

fn rows(output: &Output) -> Vec<Value> {
    let text = String::from_utf8(output.stdout.clone()).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn the_exit_code_says_what_was_found() {
    let folder = folder();
    let run = |arguments: &[&str]| {
        let with = [&["--snapshot", "snapshot", "--format", "json"], arguments].concat();
        replay(folder.path(), "waf", &with).output().unwrap()
    };
    let fine = run(&["--traffic", "good", "--fail-on", "blocked"]);
    assert_eq!(code(&fine), 0, "{fine:?}");
    assert_eq!(rows(&fine).iter().map(|row| row["effect"].clone()).collect::<Vec<_>>(), ["passed", "passed"]);
    let found = run(&["--traffic", "good", "bad", "--fail-on", "changed", "--workers", "2"]);
    assert_eq!(code(&found), 1, "{found:?}");
    let rows = rows(&found);
    let told: Vec<_> = rows.iter().map(|row| (row["id"].clone(), row["effect"].clone())).collect();
    assert_eq!(told[2], ("bad#1".into(), "blocked".into()));
    assert_eq!(told[3], ("bad#2".into(), "failed".into()));
    assert_eq!(
        (&rows[2]["rules"][0]["id"], &rows[2]["status"], &rows[2]["at"]),
        (&7.into(), &403.into(), &3000.into())
    );
    // Without being asked to, it does not fail.
    assert_eq!(code(&run(&["--traffic", "bad"])), 0);
    let native = run(&["--traffic", "bad", "--engine", "native", "--fail-on", "blocked", "--out", "rows"]);
    assert_eq!((code(&native), native.stdout.len()), (1, 0));
    assert_eq!(std::fs::read_to_string(folder.path().join("rows")).unwrap().lines().count(), 2);
}

#[test]
fn what_cannot_begin_says_why() {
    let folder = folder();
    let refused = |arguments: &[&str], why: &str| {
        let output = replay(folder.path(), "waf", arguments).env("PALISADE_BIN", "/no/palisade").output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(code(&output), 2, "{said}");
        assert!(said.contains(why), "{arguments:?}: {said}");
    };
    let snapshot = ["--snapshot", "snapshot", "--traffic", "good"];
    refused(&["--traffic", "good"], "--snapshot");
    refused(&["--snapshot", "snapshot", "--entities", ".", "--traffic", "good"], "cannot be used with");
    refused(&["--snapshot", "good", "--traffic", "good"], "this is no snapshot");
    refused(&["--snapshot", "snapshot", "--traffic", "gone"], "gone: ");
    refused(&["--entities", ".", "--traffic", "good"], "PALISADE_BIN names /no/palisade");
    refused(&[&snapshot[..], &["--script", "gone"]].concat(), "gone: ");
    refused(&[&snapshot[..], &["--engine", "native", "--workers", "2"]].concat(), "belong to the engine wasm");
    refused(&[&snapshot[..], &["--engine", "envoy", "--envoy", "gone"]].concat(), "there is no Envoy");
    refused(&[&snapshot[..], &["--out", "gone/rows"]].concat(), "gone/rows: ");
}

#[test]
fn entities_are_compiled_on_the_way() {
    let folder = folder();
    let entities = folder.path().join("entities");
    std::fs::create_dir(&entities).unwrap();
    let rule = r#"SecRule ARGS:q \"@streq evil\" \"id:7,phase:2,deny,status:403,log\""#;
    let waf = format!("kind: waf-config\nid: w\nname: W\nrules: [\"SecRuleEngine On\", \"{rule}\"]\n");
    std::fs::write(entities.join("waf.yaml"), waf).unwrap();
    let policy =
        "kind: threat-policy\nid: p\nname: P\ndry_run: false\ntiers: [{ min_score: 90, action: deny, status: 418 }]\n";
    std::fs::write(entities.join("policy.yaml"), policy).unwrap();
    let plugins = "[{ plugin: SecuritySuitePreset, config: { threat_policy: p, waf_config: w } }]";
    let route = format!("kind: route\nid: r\nname: R\nenvoy_route: only\nplugins: {plugins}\n");
    std::fs::write(entities.join("route.yaml"), route).unwrap();
    let palisade =
        std::env::var_os("PALISADE_BIN").map_or_else(|| kit::own("../../target/debug/palisade"), PathBuf::from);
    let run = |filter| {
        let arguments = ["--entities", "entities", "--traffic", "bad", "--format", "json"];
        replay(folder.path(), filter, &arguments).env("PALISADE_BIN", &palisade).output().unwrap()
    };
    let output = run("preset");
    assert_eq!(code(&output), 0, "{output:?}");
    // The only route of the snapshot is the one of every request.
    assert_eq!(rows(&output)[0]["effect"], "blocked", "{output:?}");
    // The entities have nothing for a filter of this name.
    let refused = run("noop");
    assert_eq!(code(&refused), 2);
    assert!(String::from_utf8_lossy(&refused.stderr).contains("`palisade compile` failed"), "{refused:?}");
}
