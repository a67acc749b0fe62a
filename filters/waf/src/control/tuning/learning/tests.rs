//! Reports over windows of many gateways.

use std::any::Any;
use std::sync::Arc;
use std::time::Instant;

use kit::{AnyEntity, Collection, EntitySource, Head, Item, Slot, Tools};
use snapshot::Message as _;

use super::*;
use crate::control::config::WafConfig;
use crate::samples::messages::{MatchReport, Matched, SampledHeader, SampledRequest, ScoreCount, Totals};

const NODES: u64 = 20;
const INPUTS: u64 = 400;
/// Of each node.
const REPORTS: u64 = 2;
const RULES: &str = "SecRule ARGS \"@contains zebra crossing\" \"id:10050,phase:2,deny,status:403,log,msg:'a zebra'\"";

/// One WAF config.
struct One(Slot);

impl One {
    fn new(rules: Vec<String>) -> Self {
        let head = Head { id: "shop".to_owned(), ..Head::default() };
        let config: Item<WafConfig> = Item { head, body: WafConfig { rules, block: false, ..WafConfig::default() } };
        let entity: Arc<dyn AnyEntity> = Arc::new(config);
        Self(Slot { revision: 1, entity })
    }
}

impl EntitySource for One {
    fn slot(&self, collection: &str, id: &str) -> Option<&Slot> {
        (collection == "waf-configs" && id == "shop").then_some(&self.0)
    }

    fn collection(&self, _collection: &str) -> Option<&Arc<Collection>> {
        None
    }
}

fn sample(path: &str, argument: &str) -> SampledRequest {
    let header = |name: &str, value: &str| SampledHeader { name: name.into(), value: value.into() };
    SampledRequest {
        method: "GET".to_owned(),
        uri: format!("{path}?{argument}=the+zebra+crossing").into_bytes(),
        protocol: "HTTP/1.1".to_owned(),
        headers: vec![header("host", "shop.example"), header("user-agent", "Mozilla/5.0"), header("accept", "*/*")],
        ..SampledRequest::default()
    }
}

/// What a node reports: `count` matches of each of some inputs, from three callers.
fn report(node: u64, sequence: u64, inputs: std::ops::Range<u64>, count: u64) -> Vec<u8> {
    let path = |input: u64| format!("/p{}", char::from(b'a' + u8::try_from(input % 26).unwrap()));
    let matches = inputs.map(|input| {
        let (path, argument) = (path(input), format!("q{input}"));
        Matched {
            config: "shop".to_owned(),
            rule_id: 10_050,
            phase: 2,
            target: format!("ARGS:{argument}"),
            request: (sequence == 1).then(|| sample(&path, &argument)),
            path,
            count,
            would_block: count,
            paranoia: 1,
            callers: (0..3).map(|caller| ((node * 3 + caller) << 32) | (node % 5)).collect(),
            ..Matched::default()
        }
    });
    let scores = vec![ScoreCount { score: 5, requests: count }];
    let totals =
        vec![Totals { config: "shop".to_owned(), requests: 100_000, matched: count, would_block: count, scores }];
    let matches = matches.collect();
    MatchReport { worker: node + 1, sequence, matches, totals, ..MatchReport::default() }.encode_to_vec()
}

fn with_window<T>(work: impl FnOnce(&OperationContext<'_>) -> T) -> T {
    let at_work = AtWork::default();
    at_work.reported.put(Known::default());
    at_work.reported.with(|known| {
        known.windows.start("shop", 1);
        for node in 0..NODES {
            for sequence in 1..=REPORTS {
                let bytes = report(node, sequence, 0..INPUTS, 250 / REPORTS);
                known.take(&format!("node-{node}"), &bytes, |config| config == "shop", 1_700_000_000_000);
                known.take(&format!("node-{node}"), &bytes, |config| config == "shop", 1_700_000_000_000);
            }
        }
    });
    let runtime: Arc<dyn Any + Send + Sync> = Arc::new(at_work);
    let entities = One::new(vec![RULES.to_owned()]);
    work(&OperationContext {
        entities: &entities,
        tools: &Tools::default(),
        at_work: Some(&runtime),
        now_millis: 1_700_000_100_000,
        writing: None,
        traffic: None,
    })
}

fn reported(context: &OperationContext<'_>) -> Value {
    match (ReportBody { config_ref: "shop".to_owned() }).run(context) {
        OperationAnswer::Done(report) => report,
        other => panic!("{other:?}"),
    }
}

#[test]
fn two_million_matches_of_twenty_nodes() {
    with_window(|context| {
        let mut times = Vec::new();
        let report = loop {
            #[expect(clippy::disallowed_methods, reason = "it prints times")]
            let start = Instant::now();
            let report = reported(context);
            times.push(start.elapsed().as_millis());
            let pending = |one: &Value| one["note"].as_str().unwrap().starts_with("not verified yet");
            if !report["exclusions"].as_array().unwrap().iter().any(pending) {
                break report;
            }
        };
        println!("reports until all is verified, in milliseconds: {times:?}");
        let count = |name: &str| report["run"][name].as_u64().unwrap();
        assert_eq!((count("requests"), report["nodes"].as_u64()), (4_000_000, Some(NODES)));
        let entries = report["entries"].as_array().unwrap();
        let sum: u64 = entries.iter().map(|entry| entry["count"].as_u64().unwrap()).sum();
        assert_eq!((entries.len(), sum), (400, 2_000_000), "a report that comes twice counts once");
        assert_eq!((&entries[0]["callers"], &entries[0]["networks"]), (&json!(60), &json!(5)));
        let accepted = report["exclusions"].as_array().unwrap().iter().filter(|one| one["accepted"] == true).count();
        assert_eq!(accepted, 25, "{}", report["exclusions"]);
    });
}
