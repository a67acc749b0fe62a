//! What the control plane stands: many entities and routes, many readers and writers, and changes under load.
//!
//! Figures come with the limits that they are held against; they are printed and written to a file, and decide nothing.

mod churn;
mod population;
mod scale;
mod throughput;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use palisade_tests::figures::{Figures, ended, wanted};

/// Measures `palisade serve`, with a real Envoy where one is concerned.
#[derive(Debug, Parser)]
struct Options {
    /// The file that the figures go to.
    #[arg(long, default_value = "target/bench/control.json")]
    out: PathBuf,
    /// Entities in all.
    #[arg(long, default_value_t = 10_000)]
    entities: usize,
    /// Routes among them.
    #[arg(long, default_value_t = 1000)]
    routes: usize,
    /// Changes that are followed until Envoy has acknowledged them.
    #[arg(long, default_value_t = 30)]
    changes: usize,
    /// Seconds of reads, and of writes.
    #[arg(long, default_value_t = 5.0)]
    seconds: f64,
    /// Seconds of 20 changes a second under load.
    #[arg(long, default_value_t = 60.0)]
    churn_seconds: f64,
    /// Only these parts: scale, throughput, churn.
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
}

fn main() -> ExitCode {
    ended("palisade-bench-control", run(&Options::parse()))
}

fn run(options: &Options) -> Result<(), String> {
    let wanted = |part| wanted(&options.only, part);
    let seconds = Duration::from_secs_f64(options.seconds);
    let mut figures = Figures::default();
    if wanted("throughput") {
        throughput::measure(seconds, &mut figures)?;
    }
    if wanted("scale") {
        scale::measure(options.entities, options.routes, options.changes, seconds, &mut figures)?;
    }
    if wanted("churn") {
        churn::measure(Duration::from_secs_f64(options.churn_seconds), &mut figures)?;
    }
    figures.write(&options.out)
}
