//! Requests that schemathesis made for documents of ours, right ones and wrong ones, recorded with what they are:
//! `make contract-requests RECORD=1` makes them again.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::Contract;
use crate::compile::{Options, compile};

#[path = "../../examples/judge-contract/judge.rs"]
mod judge;

const DOCUMENTS: [(&str, &str); 2] = [
    ("orders-3.0.json", include_str!("requests/orders-3.0.json")),
    ("library-3.1.json", include_str!("requests/library-3.1.json")),
];
/// A line for each request: `document`, `expected` (`taken` or `refused`), `cause`, `request`.
const RECORDED: &str = include_str!("requests/recorded.jsonl");

#[test]
fn recorded_requests_are_judged_as_they_are_meant() {
    let contracts: BTreeMap<&str, Contract> = DOCUMENTS
        .iter()
        .map(|(name, text)| {
            let compiled = compile(text, "/", Options::default()).unwrap();
            assert!(compiled.warnings.is_empty(), "{name}: {:?}", compiled.warnings);
            (*name, Contract::open(&compiled.image).unwrap())
        })
        .collect();
    let (mut counts, mut wrong) = (BTreeMap::new(), Vec::new());
    for line in RECORDED.lines() {
        let record: Value = serde_json::from_str(line).unwrap();
        let contract = &contracts[record["document"].as_str().unwrap()];
        let found = judge::judge(contract, &record["request"]);
        let said = if found.is_empty() { "taken" } else { "refused" };
        *counts.entry(said).or_insert(0) += 1;
        if record["expected"] != said {
            wrong.push(format!("{line}: {found:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(counts.len() == 2 && counts.values().all(|count| *count >= 100), "{counts:?}");
}
