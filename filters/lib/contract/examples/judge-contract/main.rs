//! Judges requests: a line of JSON with a `document`, and behind it one for each request (`method`, `target`, `headers`, `body` in
//! hexadecimal digits), answered by a line with its `violations`. `make contract-requests` compares them with others' judgement.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a tool for tests")]

mod judge;

use std::io::{BufRead as _, Write as _};

use contract::Contract;
use contract::compile::{Options, compile};
use serde_json::{Value, json};

fn main() {
    let mut contract = None;
    let mut out = std::io::stdout().lock();
    for line in std::io::stdin().lock().lines() {
        let line: Value = serde_json::from_str(&line.unwrap()).unwrap();
        if let Some(document) = line["document"].as_str() {
            let compiled = compile(document, "/", Options::default()).unwrap();
            contract = Some(Contract::open(&compiled.image).unwrap());
            continue;
        }
        let found = contract.as_ref().map(|contract| judge::judge(contract, &line)).unwrap();
        let shown: Vec<String> =
            found.iter().map(|one| format!("{} {}: {}", one.kind.word(), one.place, one.detail)).collect();
        writeln!(out, "{}", json!({ "violations": shown })).unwrap();
        out.flush().unwrap();
    }
}
