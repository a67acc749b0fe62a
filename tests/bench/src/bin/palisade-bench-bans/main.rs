//! What bans cost: the gate's share of a request with many of them, how fast a ban is everywhere, and how a gateway that
//! joins comes to have them all.
//!
//! Figures come with the limits that they are held against; they are printed and written to a file, and decide nothing.

mod crowd;
mod gate;
mod join;
mod link;
mod nodes;
mod spread;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use palisade_tests::figures::{Figures, ended, wanted};

/// Measures bans: the gate's share of a request (the shipped module in a VM), their way from one Envoy to every worker of
/// another, and a gateway that joins. Each part starts what it needs on ports that the system chooses, and stops it.
#[derive(Debug, Parser)]
#[command(name = "palisade-bench-bans", version)]
struct Options {
    /// The file that the figures go to.
    #[arg(long, default_value = "target/bench/bans.json", value_name = "FILE")]
    out: PathBuf,
    /// The module whose gate is measured.
    #[arg(long, default_value = "target/filters/threat-gate.wasm", value_name = "FILE.wasm")]
    filter: PathBuf,
    /// Live bans, at most: 100000, which is what a control plane keeps.
    #[arg(long, default_value_t = 100_000, value_parser = clap::value_parser!(u32).range(1000..=100_000))]
    bans: u32,
    /// Rounds of the gate; each measures every number of bans.
    #[arg(long, default_value_t = 15)]
    rounds: usize,
    /// Bans by a tier, and as many by hand, that are followed to every worker.
    #[arg(long, default_value_t = 200)]
    spread: u32,
    /// Gateways that join, one after the other.
    #[arg(long, default_value_t = 3)]
    joins: usize,
    /// Only these parts: gate, spread, join.
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
}

fn main() -> ExitCode {
    ended("palisade-bench-bans", run(&Options::parse()))
}

fn run(options: &Options) -> Result<(), String> {
    if let Some(unknown) = options.only.iter().find(|part| !["gate", "spread", "join"].contains(&part.as_str())) {
        return Err(format!("--only {unknown}: there are gate, spread and join"));
    }
    let wanted = |part| wanted(&options.only, part);
    let mut figures = Figures::default();
    if wanted("gate") {
        gate::measure(&options.filter, options.bans, options.rounds, &mut figures)?;
    }
    if wanted("spread") {
        spread::measure(options.spread, &mut figures)?;
    }
    if wanted("join") {
        join::measure(options.bans, options.joins, &mut figures)?;
    }
    figures.write(&options.out)
}
