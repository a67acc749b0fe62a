//! What the reputation and bot chain costs: processor time and memory of a gateway with all lists beside one without, and how fast a
//! large list is in force.
//!
//! Figures come with the limits that they are held against; they are printed and written to a file, and decide nothing.

mod chain;
mod feed;
mod lists;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use palisade_tests::figures::{Figures, ended, wanted};

/// Measures the reputation of callers in real Envoys with control planes of their own. The lists are generated, of the sizes of those
/// of the catalogue, and served on the loopback.
#[derive(Debug, Parser)]
#[command(name = "palisade-bench-reputation", version)]
struct Options {
    /// The file that the figures go to.
    #[arg(long, default_value = "target/bench/reputation.json", value_name = "FILE")]
    out: PathBuf,
    /// Networks as lines of `first,last,number,name`; without it as many are generated.
    #[arg(long, value_name = "FILE.csv")]
    networks: Option<PathBuf>,
    /// Rounds; each measures both gateways once.
    #[arg(long, default_value_t = 7)]
    rounds: usize,
    /// Seconds of one measurement.
    #[arg(long, default_value_t = 3.0)]
    seconds: f64,
    /// Lines of the large feed.
    #[arg(long, default_value_t = 500_000)]
    lines: u32,
    /// Only these parts: chain, feed.
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
}

fn main() -> ExitCode {
    ended("palisade-bench-reputation", run(&Options::parse()))
}

fn run(options: &Options) -> Result<(), String> {
    if let Some(unknown) = options.only.iter().find(|part| !["chain", "feed"].contains(&part.as_str())) {
        return Err(format!("--only {unknown}: there are chain and feed"));
    }
    let mut figures = Figures::default();
    if wanted(&options.only, "chain") {
        chain::measure(options.networks.as_deref(), options.rounds, options.seconds, &mut figures)?;
    }
    if wanted(&options.only, "feed") {
        feed::measure(options.lines, options.rounds, &mut figures)?;
    }
    figures.write(&options.out)
}
