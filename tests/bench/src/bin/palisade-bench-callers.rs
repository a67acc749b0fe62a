//! What is known of callers in the VM of a worker: the memory of all tables, and the time that a fingerprint takes.
//!
//! Figures come with the limits that they are held against; they are printed and written to a file, and decide nothing.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use palisade_bench::callers::{fingerprint_nanos, tables_memory};
use palisade_tests::figures::{Figures, Target, ended};
use proxy_host::Module;

/// Measures what is known of callers in a VM with the shipped module.
#[derive(Debug, Parser)]
#[command(name = "palisade-bench-callers", version)]
struct Options {
    /// The file that the figures go to.
    #[arg(long, default_value = "target/bench/callers.json", value_name = "FILE")]
    out: PathBuf,
    /// The module: that of the preset.
    #[arg(long, default_value = "target/filters/preset.wasm", value_name = "FILE.wasm")]
    filter: PathBuf,
    /// Rounds of 1,000 requests.
    #[arg(long, default_value_t = 15)]
    rounds: usize,
}

fn main() -> ExitCode {
    ended("palisade-bench-callers", run(&Options::parse()))
}

#[allow(clippy::cast_precision_loss, reason = "what one run measures is small")]
fn run(options: &Options) -> Result<(), String> {
    let bytes = std::fs::read(&options.filter)
        .map_err(|error| format!("{}: {error}; `make filters` builds the modules", options.filter.display()))?;
    let module = Module::compile(&bytes).map_err(|error| error.to_string())?;
    let mut figures = Figures::default();
    let mib = |bytes: usize| bytes as f64 / f64::from(1 << 20);
    let memory = tables_memory(&module)?;
    figures.add("all tables of callers", mib(memory.tables), "MiB", Target::None);
    figures.add("memory of a VM for them", mib(memory.first), "MiB", Target::AtMost(32.0));
    figures.add("once each was replaced as a whole", mib(memory.replaced), "MiB", Target::AtMost(32.0));
    let [without, with] = fingerprint_nanos(&module, options.rounds.max(1))?;
    figures.add("a request with the bot guard, no fingerprints", without as f64 / 1e3, "us", Target::None);
    figures.add("more with a fingerprint", (with as f64 - without as f64) / 1e3, "us", Target::None);
    figures.write(&options.out)
}
