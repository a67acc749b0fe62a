//! `palisade-replay run` as people and pipelines start it.

use crate::kit;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use ftw::rules::compile_text;
use serde_json::{Value, json};
use snapshot::{Message as _, RouteChain, open, seal};
use waf::WafStep;

/// A folder with a snapshot that denies `?q=evil` with 403, and traffic.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let rules = r#"SecRule ARGS:q "@streq evil" "id:7,phase:2,deny,status:403,log,msg:'evil'""#;
    let (_, mut snapshot) = open(&compile_text("rules", rules).unwrap().snapshot).unwrap();
    let mut step = WafStep::decode(snapshot.global[0].config.as_slice()).unwrap();
    step.block = true;
    snapshot.global[0].config = step.encode_to_vec();
    std::fs::write(folder.path().join("snapshot"), seal(&snapshot).encode_to_vec()).unwrap();
    let line = |at, peer, path| {
        json!({"at": at, "peer": peer, "request": {"path": path, "host": "shop.test"}, "status": 200}).to_string()
            + "\n"
    };
    let good = line(1000, "192.0.2.1:1", "/") + &line(2000, "192.0.2.2:1", "/?q=good");
    std::fs::write(folder.path().join("good.jsonl"), good).unwrap();
    let bad = line(3000, "192.0.2.1:1", "/?q=evil") + "nothing\n";
    std::fs::write(folder.path().join("bad.jsonl"), bad).unwrap();
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

fn document(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
}

fn effects(document: &Value) -> Vec<&str> {
    document["requests"].as_array().unwrap().iter().map(|row| row["effect"].as_str().unwrap()).collect()
}

#[test]
fn the_exit_code_says_what_was_found() {
    let folder = folder();
    let run = |arguments: &[&str]| {
        let with = [&["--snapshot", "snapshot", "--format", "json"], arguments].concat();
        replay(folder.path(), "waf", &with).output().unwrap()
    };
    let fine = run(&["--traffic", "good.jsonl", "--fail-on", "blocked"]);
    assert_eq!(code(&fine), 0, "{fine:?}");
    assert_eq!(effects(&document(&fine)), ["passed", "passed"]);
    let found = run(&["--traffic", "good.jsonl", "bad.jsonl", "--fail-on", "changed", "--workers", "2"]);
    assert_eq!(code(&found), 1, "{found:?}");
    let document = document(&found);
    assert_eq!(effects(&document), ["passed", "passed", "blocked"]);
    let row = &document["requests"][2];
    assert_eq!((&row["id"], &row["rules"][0]["id"]), (&"bad.jsonl#1".into(), &7.into()));
    assert_eq!((&row["status"], &row["recorded_status"], &row["at"]), (&403.into(), &200.into(), &3000.into()));
    assert_eq!(document["bad_entries"][0]["id"], "bad.jsonl#2");
    assert_eq!(document["totals"]["changed"]["newly_refused"], 1);
    // Without being asked to, it does not fail.
    assert_eq!(code(&run(&["--traffic", "bad.jsonl"])), 0);
    let native = run(&["--traffic", "bad.jsonl", "--engine", "native", "--fail-on", "blocked", "--out", "report"]);
    assert_eq!((code(&native), native.stdout.len()), (1, 0));
    let written = std::fs::read(folder.path().join("report")).unwrap();
    assert_eq!(effects(&serde_json::from_slice(&written).unwrap()), ["blocked"]);
}

#[test]
fn every_form_tells_the_same() {
    let folder = folder();
    let run = |format| {
        let arguments = [
            &["--engine", "native", "--snapshot", "snapshot", "--traffic", ".", "--format", format][..],
            &["--fail-on", "blocked"],
        ]
        .concat();
        // The snapshot is no recording: it is told, and the rest goes on.
        let output = replay(folder.path(), "waf", &arguments).output().unwrap();
        assert_eq!(code(&output), 1, "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let table = run("table");
    assert!(table.contains("bad.jsonl#1") && table.contains("snapshot#0"), "{table}");
    let junit = run("junit");
    assert!(junit.contains("tests=\"5\"") && junit.contains("failures=\"1\""), "{junit}");
    let page = run("html");
    assert!(page.starts_with("<!DOCTYPE html>") && page.contains("/?q=evil"), "{page}");
}

#[test]
fn two_runs_and_two_snapshots_are_compared() {
    let folder = folder();
    let run = |name: &str, traffic: &str| {
        let arguments =
            ["--snapshot", "snapshot", "--traffic", traffic, "--format", "json", "--engine", "native", "--out", name];
        assert_eq!(code(&replay(folder.path(), "waf", &arguments).output().unwrap()), 0);
    };
    run("a.json", "bad.jsonl");
    run("b.json", "bad.jsonl");
    let diff = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_palisade-replay"));
        command.current_dir(folder.path()).arg("diff").args(arguments).output().unwrap()
    };
    // What could not be read is not known to be the same.
    let same = diff(&["a.json", "b.json", "--format", "json"]);
    assert_eq!((code(&same), &document(&same)["result"]), (1, &"same".into()), "{same:?}");
    assert_eq!(document(&same)["bad_entries"], json!({ "a": 1, "b": 1 }));
    let said = String::from_utf8_lossy(&same.stderr).into_owned();
    assert!(said.contains("1 entry of a.json, 1 entry of b.json could not be read"), "{said}");
    let same = diff(&["a.json", "b.json", "--allow-unreadable"]);
    assert_eq!(code(&same), 0, "{same:?}");
    // Rules that deny nothing.
    let rules = r#"SecRule ARGS:q "@streq good" "id:8,phase:2,deny,status:403,log""#;
    let (_, mut snapshot) = open(&compile_text("rules", rules).unwrap().snapshot).unwrap();
    let mut step = WafStep::decode(snapshot.global[0].config.as_slice()).unwrap();
    step.block = true;
    snapshot.global[0].config = step.encode_to_vec();
    std::fs::write(folder.path().join("other"), seal(&snapshot).encode_to_vec()).unwrap();
    let traffic = ["--traffic", "good.jsonl", "bad.jsonl", "--engine", "native", "--format", "json"];
    let differs = diff(&[&["snapshot", "other"], &traffic[..]].concat());
    assert_eq!(code(&differs), 1, "{differs:?}");
    let document = document(&differs);
    assert_eq!((&document["counts"]["blocked"], &document["counts"]["unblocked"]), (&1.into(), &1.into()));
    let ids: Vec<_> = document["changed"].as_array().unwrap().iter().map(|one| one["id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["good.jsonl#2", "bad.jsonl#1"]);
    // Of what differs, an entry that cannot be read takes nothing away.
    assert_eq!(code(&diff(&[&["snapshot", "other", "--allow-unreadable"], &traffic[..]].concat())), 1);
    let refused = diff(&["snapshot", "other"]);
    assert!(code(&refused) == 2 && String::from_utf8_lossy(&refused.stderr).contains("give --traffic"), "{refused:?}");
}

#[test]
fn a_gate_stays_shut_where_nothing_or_not_all_was_read() {
    let folder = folder();
    for (name, content) in [("empty.jsonl", ""), ("broken.jsonl", "nothing\nat all\n")] {
        std::fs::write(folder.path().join(name), content).unwrap();
    }
    let good = std::fs::read_to_string(folder.path().join("good.jsonl")).unwrap();
    std::fs::write(folder.path().join("half.jsonl"), good + "nothing\n").unwrap();
    let run = |traffic: &str, more: &[&str]| {
        let arguments = ["--snapshot", "snapshot", "--engine", "native", "--format", "json", "--traffic", traffic];
        let output = replay(folder.path(), "waf", &[&arguments[..], more].concat()).output().unwrap();
        (code(&output), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let gate = ["--fail-on", "blocked"];
    for (traffic, why) in [("empty.jsonl", "no request was replayed"), ("broken.jsonl", "no request was replayed")] {
        let (code, said) = run(traffic, &gate);
        assert!(code == 2 && said.contains(why), "{traffic}: {code} {said}");
        assert_eq!(run(traffic, &[&gate[..], &["--allow-unreadable"]].concat()).0, 2);
        assert_eq!(run(traffic, &[]).0, 0, "without a gate it tells what it has found");
    }
    let (code_of_half, said) = run("half.jsonl", &gate);
    assert!(code_of_half == 1 && said.contains("1 entry of the recording could not be read"), "{said}");
    assert_eq!(run("half.jsonl", &[&gate[..], &["--allow-unreadable"]].concat()).0, 0);

    let diff = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_palisade-replay"));
        let output = command.current_dir(folder.path()).arg("diff").args(arguments).output().unwrap();
        (code(&output), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    for traffic in ["empty.jsonl", "broken.jsonl"] {
        let (code, said) = diff(&["snapshot", "snapshot", "--engine", "native", "--traffic", traffic]);
        assert!(code == 2 && said.contains("no request was compared"), "{traffic}: {code} {said}");
    }
    assert_eq!(diff(&["snapshot", "snapshot", "--engine", "native", "--traffic", "half.jsonl"]).0, 1);
    assert_eq!(diff(&["snapshot", "snapshot", "--engine", "native", "--traffic", "good.jsonl"]).0, 0);
}

/// A filter that lets everything pass and dies in its timer, which runs every 100 ms.
const DIES: &str = r#"(module
  (import "env" "proxy_set_tick_period_milliseconds" (func $tick_period (param i32) (result i32)))
  (memory (export "memory") 1)
  (func (export "proxy_on_memory_allocate") (param i32) (result i32) (i32.const 1024))
  (func (export "proxy_on_context_create") (param i32 i32))
  (func (export "proxy_on_configure") (param i32 i32) (result i32)
    (drop (call $tick_period (i32.const 100)))
    (i32.const 1))
  (func (export "proxy_on_request_headers") (param i32 i32 i32) (result i32) (i32.const 0))
  (func (export "proxy_on_request_body") (param i32 i32 i32) (result i32) (i32.const 0))
  (func (export "proxy_on_response_headers") (param i32 i32 i32) (result i32) (i32.const 0))
  (func (export "proxy_on_response_body") (param i32 i32 i32) (result i32) (i32.const 0))
  (func (export "proxy_on_tick") (param i32) unreachable))"#;

#[test]
fn a_timer_that_dies_shuts_the_gate() {
    let folder = folder();
    std::fs::write(folder.path().join("dies.wasm"), wat::parse_str(DIES).unwrap()).unwrap();
    let run = |format: &str, more: &[&str]| {
        let arguments = ["--snapshot", "snapshot", "--traffic", "good.jsonl", "--format", format];
        let mut command = Command::new(env!("CARGO_BIN_EXE_palisade-replay"));
        command.current_dir(folder.path()).args(["run", "--filter", "dies.wasm"]).args(arguments).args(more);
        command.output().unwrap()
    };
    let found = run("json", &["--fail-on", "blocked"]);
    assert_eq!(code(&found), 1, "{found:?}");
    let document = document(&found);
    assert_eq!(effects(&document), ["passed", "passed"]);
    let faults = &document["totals"]["timer_faults"];
    assert!(faults["count"].as_u64() >= Some(1) && faults["first"][0]["id"] == "on_tick", "{faults}");
    assert_eq!(code(&run("json", &[])), 0);
    let junit = String::from_utf8(run("junit", &["--fail-on", "blocked"]).stdout).unwrap();
    assert!(junit.contains("<error ") && junit.contains("classname=\"timers\""), "{junit}");
}

/// The snapshot of [`folder`] with routes that have the same chain, and a global chain without any plugin.
fn routed(folder: &Path, name: &str, routes: &[&str]) {
    let (_, mut snapshot) = open(&std::fs::read(folder.join("snapshot")).unwrap()).unwrap();
    let chain = std::mem::take(&mut snapshot.global);
    snapshot.routes = routes
        .iter()
        .map(|name| RouteChain { name: (*name).to_owned(), steps: chain.clone(), ..RouteChain::default() })
        .collect();
    std::fs::write(folder.join(name), seal(&snapshot).encode_to_vec()).unwrap();
}

#[test]
fn two_sides_put_requests_without_a_route_in_the_same_place() {
    let folder = folder();
    for (name, routes) in [("one", &["shop"][..]), ("two", &["shop", "blog"]), ("other", &["store"])] {
        routed(folder.path(), name, routes);
    }
    let diff = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_palisade-replay"));
        command.current_dir(folder.path()).arg("diff").args(arguments);
        command.args(["--engine", "native", "--format", "json", "--allow-unreadable", "--traffic", "bad.jsonl"]);
        command.output().unwrap()
    };
    let routes = |document: &Value| {
        ["a", "b"].map(|side| {
            let facts = document[side]["about"]["facts"].as_array().unwrap().clone();
            let route = facts.into_iter().find(|fact| fact["name"] == "route");
            route.map_or_else(String::new, |route| route["value"].as_str().unwrap().to_owned())
        })
    };
    const NONE: &str = "none: the global chain";
    for (arguments, unblocked, expected) in [
        // A second route is no change of what requests without one meet.
        (&["one", "two"][..], 0, [NONE, NONE]),
        (&["two", "one"], 0, [NONE, NONE]),
        (&["one", "other"], 0, [NONE, NONE]),
        (&["one", "one"], 0, ["shop", "shop"]),
        // A route of one side alone: the other runs the global chain, and says so.
        (&["one", "two", "--route", "shop"], 0, ["shop", "shop"]),
        (&["two", "one", "--route", "blog"], 1, ["blog", NONE]),
        // A route that has another name.
        (&["one", "other", "--route", "shop", "--route-b", "store"], 0, ["shop", "store"]),
        (&["one", "one", "--route", "shop", "--route-b", ""], 1, ["shop", NONE]),
    ] {
        let output = diff(arguments);
        assert_eq!(code(&output), i32::from(unblocked > 0), "{arguments:?}: {output:?}");
        let document = document(&output);
        assert_eq!(document["counts"]["unblocked"], unblocked, "{arguments:?}: {document}");
        assert_eq!(routes(&document), expected, "{arguments:?}");
    }
    let output = diff(&["one", "two", "--route", "wiki"]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(code(&output) == 2 && said.contains("neither snapshot has the route `wiki`"), "{said}");
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
    let snapshot = ["--snapshot", "snapshot", "--traffic", "good.jsonl"];
    refused(&["--traffic", "good.jsonl"], "--snapshot");
    refused(&["--snapshot", "good.jsonl", "--traffic", "good.jsonl"], "`palisade compile");
    refused(&["--snapshot", "snapshot", "--traffic", "gone"], "gone: ");
    refused(&["--entities", ".", "--traffic", "good.jsonl"], "PALISADE_BIN names /no/palisade");
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
    std::fs::write(entities.join("waf.yaml"), &waf).unwrap();
    let policy =
        "kind: threat-policy\nid: p\nname: P\ndry_run: false\ntiers: [{ min_score: 90, action: deny, status: 418 }]\n";
    std::fs::write(entities.join("policy.yaml"), policy).unwrap();
    let plugins = "[{ plugin: SecuritySuitePreset, config: { threat_policy: p, waf_config: w } }]";
    let route = format!("kind: route\nid: r\nname: R\nenvoy_route: only\nplugins: {plugins}\n");
    std::fs::write(entities.join("route.yaml"), route).unwrap();
    let palisade =
        std::env::var_os("PALISADE_BIN").map_or_else(|| kit::own("../../target/debug/palisade"), PathBuf::from);
    let run = |filter| {
        let arguments = ["--entities", "entities", "--traffic", "bad.jsonl", "--format", "json"];
        replay(folder.path(), filter, &arguments).env("PALISADE_BIN", &palisade).output().unwrap()
    };
    let output = run("preset");
    assert_eq!(code(&output), 0, "{output:?}");
    // The only route of the snapshot is the one of every request.
    assert_eq!(document(&output)["requests"][0]["effect"], "blocked", "{output:?}");
    // A snapshot that is of other entities is replayed all the same, and it is told.
    let arguments =
        ["--snapshot", "snapshot", "--entities", "entities", "--traffic", "good.jsonl", "--engine", "native"];
    let both = replay(folder.path(), "preset", &arguments).env("PALISADE_BIN", &palisade).output().unwrap();
    let said = String::from_utf8_lossy(&both.stderr).into_owned();
    assert!(code(&both) == 0 && said.contains("snapshot is not what entities compiles to"), "{said}");
    // What is wrong with the entities is told with its file and its place.
    std::fs::write(entities.join("more.yaml"), "kind: waf-config\nid: m\nname: M\nenabled: maybe\n").unwrap();
    let wrong = run("preset");
    let said = String::from_utf8_lossy(&wrong.stderr).into_owned();
    assert!(code(&wrong) == 2 && said.contains("more.yaml: ") && said.contains("/enabled"), "{said}");
    // And what is only odd, where it is replayed all the same.
    std::fs::remove_file(entities.join("more.yaml")).unwrap();
    std::fs::write(entities.join("waf.yaml"), format!("{waf}crs: {{ paranoia_level: 2 }}\n")).unwrap();
    let odd = run("preset");
    let said = String::from_utf8_lossy(&odd.stderr).into_owned();
    assert!(code(&odd) == 0 && said.contains("warning: ") && said.contains("crs options have no effect"), "{said}");
    std::fs::write(entities.join("waf.yaml"), &waf).unwrap();
    // The entities have nothing for a filter of this name.
    let refused = run("noop");
    assert_eq!(code(&refused), 2);
    assert!(String::from_utf8_lossy(&refused.stderr).contains("`palisade compile` failed"), "{refused:?}");
}
