//! The time and the memory of a contract, natively and in a VM (wasm32-wasip1): `make bench-contract`.
//!
//! `bench-contract make DOCUMENT.json >WORKLOAD` compiles a document and makes requests and bodies for it, all of them different;
//! `bench-contract run <WORKLOAD` measures. The first needs the feature `compile`, which no VM has.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::disallowed_methods,
    clippy::indexing_slicing,
    reason = "a benchmark"
)]

#[cfg(feature = "compile")]
mod make;
mod run;
mod workload;

use std::io::Read as _;
#[cfg(feature = "compile")]
use std::io::Write as _;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        #[cfg(feature = "compile")]
        ["make", document] => {
            let text = std::fs::read_to_string(document).unwrap();
            std::io::stdout().write_all(&make::workload(&text).to_bytes()).unwrap();
        }
        ["run"] => {
            let mut bytes = Vec::new();
            std::io::stdin().read_to_end(&mut bytes).unwrap();
            run::measure(&workload::Workload::of(&bytes));
        }
        _ => {
            eprintln!("bench-contract make DOCUMENT.json >WORKLOAD, bench-contract run <WORKLOAD");
            std::process::exit(2);
        }
    }
}
