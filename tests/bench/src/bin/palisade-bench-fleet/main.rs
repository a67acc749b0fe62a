//! What a fleet on a shared store costs: two control planes on one Redis, with real Envoys and with simulated nodes.
//!
//! Figures have goals; they are printed and written to a file, and decide nothing. Sums that do not add up are an error.

mod bans;
mod costs;
mod events;
mod events_count;
mod nodes;
mod pair;
mod sender;
mod usage;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use palisade_tests::figures::{Figures, ended, wanted};

const PARTS: [&str; 4] = ["bans", "events", "nodes", "costs"];

/// Measures two control planes on one Redis (`appendfsync always`). Each part starts what it needs on ports that the system
/// chooses, and stops it.
#[derive(Debug, Parser)]
#[command(name = "palisade-bench-fleet", version)]
struct Options {
    /// The file that the figures go to.
    #[arg(long, alias = "json", default_value = "target/bench/fleet.json", value_name = "FILE")]
    out: PathBuf,
    /// Only these parts: bans, events, nodes, costs.
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// Bans of each kind that are followed to every worker of the other Envoy.
    #[arg(long, default_value_t = 200)]
    bans: u32,
    /// How long events are sent at one rate, and new bans are made, in seconds.
    #[arg(long, default_value_t = 60)]
    seconds: u64,
    /// Events each second that must get through without a loss.
    #[arg(long, default_value_t = 2000)]
    rate: u64,
    /// Nodes that send events.
    #[arg(long, default_value_t = 40)]
    senders: usize,
    /// Stores of the control planes that events are sent to: redis (two control planes) or file (one).
    #[arg(long, value_delimiter = ',', default_value = "redis,file")]
    stores: Vec<String>,
    /// Simulated nodes that learn of bans.
    #[arg(long, default_value_t = 200)]
    nodes: usize,
    /// New bans each second of all nodes together.
    #[arg(long, default_value_t = 50)]
    ban_rate: u64,
    /// Decisions of each kind and store.
    #[arg(long, default_value_t = 1000)]
    decisions: usize,
    /// Links for the figure of memory.
    #[arg(long, default_value_t = 1000)]
    links: usize,
}

fn main() -> ExitCode {
    ended("palisade-bench-fleet", run(&Options::parse()))
}

fn run(options: &Options) -> Result<(), String> {
    if let Some(unknown) = options.only.iter().find(|part| !PARTS.contains(&part.as_str())) {
        return Err(format!("--only {unknown}: there are {}", PARTS.join(", ")));
    }
    let wanted = |part| wanted(&options.only, part);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(|error| error.to_string())?;
    let mut figures = Figures::default();
    if wanted("bans") {
        bans::measure(options.bans, &mut figures)?;
    }
    if wanted("events") {
        let plan = events::Plan { rate: options.rate, seconds: options.seconds, senders: options.senders.max(1) };
        for store in &options.stores {
            events::measure(&runtime, store, &plan, &mut figures)?;
        }
    }
    if wanted("nodes") {
        let plan = nodes::Plan { nodes: options.nodes.max(2), rate: options.ban_rate.max(1), seconds: options.seconds };
        nodes::measure(&runtime, &plan, &mut figures)?;
    }
    if wanted("costs") {
        costs::measure(&runtime, options.decisions.max(100), options.links, &mut figures)?;
    }
    figures.write(&options.out)
}
