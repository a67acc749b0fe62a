//! What the core rule set's own suite leaves open, because it runs with detection only: whether the rules deny what their
//! scores say, and nothing else.

use crate::kit;

use std::path::PathBuf;

use ftw::Ignore;
use ftw::blocking::{Counts, Verdicts};
use ftw::case::Log;
use ftw::rules::{Setup, compile_crs};
use ftw::scoring::Scoring;
use ftw::suite::{Results, Selection, Suite};
use harness::engine::{Engine, Native};
use proxy_host::traffic::{Exchange, LocalReply, Outcome};
use proxy_host::{Node, Vm};
use serde_json::json;

/// Rule set and tests, where there are any: `PALISADE_CRS_TESTS` names the tests' folder, and beside it or in
/// `PALISADE_CRS_DIR` is the rule set.
struct Crs {
    rules: PathBuf,
    suite: Suite,
    scoring: Scoring,
}

impl Crs {
    fn find() -> Option<Self> {
        let Some(tests) = std::env::var_os("PALISADE_CRS_TESTS").map(PathBuf::from) else {
            println!("PALISADE_CRS_TESTS is not set: nothing was tested");
            return None;
        };
        let beside = tests.join("..");
        let rules = match std::env::var_os("PALISADE_CRS_DIR") {
            Some(folder) if !beside.join("rules").is_dir() => PathBuf::from(folder),
            _ => beside,
        };
        let suite = Suite::read(&tests, &Selection::default()).unwrap();
        let scoring = Scoring::read(&rules).unwrap();
        Some(Self { rules, suite, scoring })
    }

    fn snapshot(&self, paranoia: u8) -> Vec<u8> {
        compile_crs(&self.rules, Setup::Blocking(paranoia)).unwrap().snapshot
    }

    fn run(&self, engine: &mut dyn Engine, paranoia: u8) -> Results {
        let verdicts = Verdicts::new(&self.scoring, paranoia);
        let judge = |log: &Log, outcome: &Outcome| verdicts.judge(log, outcome);
        let results = self.suite.run_judged(engine, &Ignore::default(), |_| {}, &judge);
        let counts = Counts::of(results.found.values());
        println!("{} at paranoia {paranoia}: ran {}, {counts:?}", results.engine, results.ran);
        results
    }

    fn native(&self, paranoia: u8) -> Counts {
        let mut native = Native::load(&self.snapshot(paranoia), "node-1", kit::NOW_MILLIS, 7).unwrap();
        let results = self.run(&mut native, paranoia);
        assert_eq!(results.failures, []);
        let counts = Counts::of(results.found.values());
        // A run in which everything or nothing is denied says nothing.
        assert!(counts.inbound > 500 && counts.clean + counts.below > 50, "{counts:?}");
        counts
    }
}

#[test]
fn at_paranoia_1() {
    let Some(crs) = Crs::find() else { return };
    let counts = crs.native(1);
    // Many of the suite's requests are odd only to higher levels, which leave few responses to judge.
    assert!(counts.clean > 500 && counts.outbound > 20, "{counts:?}");
}

#[test]
fn at_paranoia_2() {
    Crs::find().map(|crs| crs.native(2));
}

#[test]
fn at_paranoia_3() {
    Crs::find().map(|crs| crs.native(3));
}

#[test]
fn at_paranoia_4() {
    Crs::find().map(|crs| crs.native(4));
}

#[test]
fn the_shipped_filter_at_paranoia_1() {
    let Some(crs) = Crs::find() else { return };
    let node = Node::new("node-1", kit::NOW_MILLIS, 7);
    let mut vm = Vm::load(kit::waf(), &crs.snapshot(1), &node).unwrap();
    let results = crs.run(&mut vm, 1);
    assert_eq!(results.failures, []);
    let counts = Counts::of(results.found.values());
    assert!(counts.inbound > 500 && counts.outbound > 20 && counts.clean > 500, "{counts:?}");
}

/// An engine that spoils what another one says.
struct Spoilt<'a> {
    engine: &'a mut dyn Engine,
    spoil: fn(&mut Outcome),
}

impl Engine for Spoilt<'_> {
    fn name(&self) -> &'static str {
        "spoilt"
    }

    fn exchange(&mut self, exchange: &Exchange) -> Outcome {
        let mut outcome = self.engine.exchange(exchange);
        (self.spoil)(&mut outcome);
        outcome
    }
}

fn deny(outcome: &mut Outcome) {
    outcome.status = 403;
    outcome.local_reply =
        Some(LocalReply { status: 403, details: String::new(), headers: Vec::new(), body: Vec::new() });
    outcome.reached_backend = false;
    if outcome.events.is_empty() {
        outcome.events.push(json!({ "@type": "SvcWafTrailEvent", "rule_ids": [], "scores": {} }));
    }
    outcome.events[0]["block"] = json!({ "rule_id": 949_110 });
}

fn pass(outcome: &mut Outcome) {
    outcome.status = 200;
    outcome.local_reply = None;
    outcome.reached_backend = true;
    outcome.events.iter_mut().for_each(|event| event["block"] = json!(null));
}

fn forget_the_scores(outcome: &mut Outcome) {
    pass(outcome);
    outcome.events.iter_mut().for_each(|event| event["scores"] = json!({ "inbound": 0, "outbound": 0 }));
}

#[test]
fn an_engine_that_denies_everything_or_nothing_is_found_out() {
    let Some(mut crs) = Crs::find() else { return };
    crs.suite.tests.retain(|test| test.name.starts_with("9421") || test.name.starts_with("9201"));
    let mut native = Native::load(&crs.snapshot(1), "node-1", kit::NOW_MILLIS, 7).unwrap();
    let counts = Counts::of(crs.run(&mut native, 1).found.values());
    let (denied, passed) = (counts.inbound + counts.unreadable, counts.below + counts.clean);
    let failures = |native: &mut Native, spoil| crs.run(&mut Spoilt { engine: native, spoil }, 1).failures.len();
    // What was denied for another reason than the scores is wrong as a denial by them as well.
    assert!(failures(&mut native, deny) >= passed);
    assert_eq!(failures(&mut native, pass), denied);
    assert!(failures(&mut native, forget_the_scores) >= counts.inbound + counts.below);
    assert!(denied > 20 && passed > 20, "{counts:?}");
}
