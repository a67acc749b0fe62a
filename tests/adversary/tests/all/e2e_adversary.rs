//! The attacks against a real Envoy with the demo policy: all that take milliseconds. `make adversary` has the rest.

use std::collections::BTreeSet;
use std::time::Duration;

use adversary::case::{self, Case, Kind};
use adversary::known::Known;
use adversary::run::{self, Target};
use adversary::{demo, stall};

/// Stalls that are quick to send. How long a clean client waits is for `make adversary`: here it has to be answered.
const STALLS: &[&str] = &[
    "stall-json-long-key-900",
    "stall-multipart-hyphens-70",
    "stall-brotli-bomb",
    "stall-xml-entities",
    "stall-cookies",
    "stall-h2-rapid-reset-cookies",
    "stall-h2-continuation",
];

#[test]
fn attacks_are_refused_and_harmless_requests_pass() {
    let all = case::all(None).expect("the cases are good");
    let ids: BTreeSet<&str> = all.iter().map(|case| case.id.as_str()).collect();
    let known = Known::read(None, &ids).expect("the list of known misses is good");
    let gateway = demo::start();
    let target = Target { address: gateway.address, host: "demo.test".to_owned() };
    let quick: Vec<&Case> = all.iter().filter(|case| case.kind != Kind::Stall && !case.heavy).collect();
    let outcomes = run::run(&target, &quick).expect("the cases can be sent");
    let wrong: Vec<String> = outcomes
        .iter()
        .filter(|outcome| !outcome.expected && known.reason(&outcome.id).is_none())
        .map(|outcome| format!("{}: {} ({})", outcome.id, outcome.verdict.word(), outcome.seen))
        .collect();
    assert!(wrong.is_empty(), "of {} cases {} came otherwise than expected: {wrong:#?}", outcomes.len(), wrong.len());
    for id in STALLS {
        let case = all.iter().find(|case| case.id == *id).unwrap_or_else(|| panic!("there is no case {id}"));
        let stall = stall::one(&target, case, Duration::MAX).expect("the case can be sent");
        assert!(stall.outcome.expected, "{id}: {} clean requests were lost, {}", stall.lost, stall.outcome.seen);
    }
    let failures: Vec<String> =
        gateway.envoy.vm_failures().into_iter().filter(|failure| !failure.contains("plugin_failures")).collect();
    assert!(failures.is_empty(), "a filter's VM failed: {failures:?}");
}

#[test]
fn there_are_as_many_cases_as_promised() {
    let all = case::all(None).expect("the cases are good");
    let count = |kind: Kind| all.iter().filter(|case| case.kind == kind).count();
    let counts = (count(Kind::Evasion), count(Kind::Stall), count(Kind::Control));
    assert!(counts.0 >= 150 && counts.1 >= 30 && counts.2 >= 30, "{counts:?}");
    for case in &all {
        case.sending("demo.test").unwrap_or_else(|why| panic!("{}: {why}", case.id));
    }
}
