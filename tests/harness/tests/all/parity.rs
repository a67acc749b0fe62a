//! The plugins linked in and the shipped module say the same.

use crate::kit;

use std::path::PathBuf;

use ftw::rules::{Compiled, Setup, compile_crs, compile_text};
use ftw::suite::{Selection, Suite};
use ftw::{Ignore, report};
use harness::engine::Native;
use proxy_host::{Node, Vm};

#[test]
fn on_a_small_suite_of_our_own() {
    let rules = std::fs::read_to_string(kit::own("corpus/rules.conf")).unwrap();
    let suite = Suite::read(&kit::own("corpus/tests"), &Selection::default()).unwrap();
    let results = agree(&suite, &compile_text("rules.conf", &rules).unwrap(), &Ignore::default());
    assert_eq!((results.0, results.1), (15, 1));
}

/// A quarter of the core rule set's own suite, where there is one: `PALISADE_CRS_TESTS` names its folder, and beside it
/// or in `PALISADE_CRS_DIR` is the rule set.
#[test]
fn on_the_suite_of_the_core_rule_set() {
    let Some(tests) = std::env::var_os("PALISADE_CRS_TESTS").map(PathBuf::from) else {
        println!("PALISADE_CRS_TESTS is not set: only the small suite of our own ran");
        return;
    };
    let beside = tests.join("..");
    let crs = match std::env::var_os("PALISADE_CRS_DIR") {
        Some(folder) if !beside.join("rules").is_dir() => PathBuf::from(folder),
        _ => beside,
    };
    let suite = Suite::read(&tests, &Selection { shard: Some((1, 4)), ..Selection::default() }).unwrap();
    let ignore = Ignore::read(&kit::own("crs-4.28.0.ignore")).unwrap();
    agree(&suite, &compile_crs(&crs, Setup::Suite).unwrap(), &ignore);
}

/// How many tests ran, and how many were left out.
fn agree(suite: &Suite, compiled: &Compiled, ignore: &Ignore) -> (usize, usize) {
    let (mut native, mut wasm) = engines(compiled);
    let native = suite.run(&mut native, ignore, |_| {});
    let wasm = suite.run(&mut wasm, ignore, |_| {});
    println!("{}{}", report::text(&native), report::text(&wasm));
    assert!(native.ran > 0 && native.found.values().any(|found| !found.ids.is_empty()));
    assert_eq!(native.differences(&wasm), []);
    assert_eq!((native.failures, native.stale), (Vec::new(), Vec::new()));
    assert_eq!(wasm.failures, []);
    (native.ran, native.skipped)
}

#[test]
fn what_goes_wrong_shows() {
    let suite = Suite::read(&kit::own("corpus/tests"), &Selection { only: Some(2000), shard: None }).unwrap();
    let (mut native, mut wasm) = engines(&compile_text("rules.conf", "SecRuleEngine Off").unwrap());
    let off = suite.run(&mut native, &Ignore::default(), |_| {});
    assert_eq!((off.ran, off.passed, off.failures.len()), (4, 2, 2));
    assert!(off.failures[0].reason.contains("1007 did not match"), "{:?}", off.failures);
    // The list forgives a failure, and tells what it forgives in vain.
    let ignore = Ignore::parse("2000-2: for a test\n2000-1: passes").unwrap();
    let forgiven = suite.run(&mut wasm, &ignore, |_| {});
    assert_eq!((forgiven.failures.len(), forgiven.ignored.len(), forgiven.stale), (1, 1, vec!["2000-1".to_owned()]));
    let report = report::json(&off);
    assert_eq!((&report["ran"], &report["failed"], &report["failures"][0]["stage"]), (&4.into(), &2.into(), &1.into()));
}

#[test]
fn shards_are_all_tests_once() {
    let read = |shard| Suite::read(&kit::own("corpus/tests"), &Selection { only: None, shard }).unwrap().tests;
    let names = |shard| read(shard).into_iter().map(|test| test.name).collect::<Vec<_>>();
    let mut parts: Vec<String> = (1..=3).flat_map(|part| names(Some((part, 3)))).collect();
    let mut all = names(None);
    parts.sort();
    all.sort();
    assert_eq!(parts, all);
}

/// Both engines on one configuration.
fn engines(compiled: &Compiled) -> (Native, Vm) {
    let native = Native::load(&compiled.snapshot, "node-1", kit::NOW_MILLIS, 7).unwrap();
    let vm = Vm::load(kit::waf(), &compiled.snapshot, &Node::new("node-1", kit::NOW_MILLIS, 7)).unwrap();
    (native, vm)
}
