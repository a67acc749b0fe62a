//! What a control plane with many incidents and many stored events costs, on a file and on Redis: memory, bytes, start, searches.
//!
//! Figures have goals; they are printed and written to a file, and decide nothing. An answer that is not the expected one is an error.

mod events;
mod incidents;
mod subject;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use palisade_tests::figures::{Figures, ended, wanted};

const PARTS: [&str; 2] = ["incidents", "events"];

/// Measures incidents and stored events. Each part starts what it needs on ports that the system chooses, and stops it.
#[derive(Debug, Parser)]
#[command(name = "palisade-bench-records", version)]
struct Options {
    /// The file that the figures go to.
    #[arg(long, default_value = "target/bench/records.json", value_name = "FILE")]
    out: PathBuf,
    /// Only these parts: incidents, events.
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// The stores: file, redis.
    #[arg(long, value_delimiter = ',', default_value = "file,redis")]
    stores: Vec<String>,
    /// Incidents.
    #[arg(long, default_value_t = 50_000)]
    incidents: u64,
    /// Events of each incident.
    #[arg(long, default_value_t = 20)]
    each: u64,
    /// Stored events.
    #[arg(long, default_value_t = 1_000_000)]
    events: u64,
    /// Calls of each kind.
    #[arg(long, default_value_t = 50)]
    calls: u64,
}

fn main() -> ExitCode {
    ended("palisade-bench-records", run(&Options::parse()))
}

fn run(options: &Options) -> Result<(), String> {
    if let Some(unknown) = options.only.iter().find(|part| !PARTS.contains(&part.as_str())) {
        return Err(format!("--only {unknown}: there are {}", PARTS.join(", ")));
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(|error| error.to_string())?;
    let mut figures = Figures::default();
    for store in &options.stores {
        if wanted(&options.only, "incidents") {
            incidents::measure(&runtime, store, (options.incidents, options.each), options.calls, &mut figures)?;
        }
        if wanted(&options.only, "events") {
            events::measure(&runtime, store, options.events, options.calls, &mut figures)?;
        }
    }
    figures.write(&options.out)
}
