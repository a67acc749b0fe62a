//! `palisade-bench-ask`: requests that wait for the control plane with their bodies in hand.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use double::AskLoad;
use serde_json::json;

/// Sends requests with bodies through a gateway whose filter asks the control plane about each, and prints requests per second,
/// latency and memory. Fails if a request or an answer is lost; no time decides the exit code.
#[derive(Parser)]
#[command(name = "palisade-bench-ask", version)]
struct Arguments {
    /// The module of probe plugins
    #[arg(long, default_value = "target/filters/probe.wasm", value_name = "FILE.wasm")]
    module: PathBuf,
    /// How long it takes
    #[arg(long, default_value_t = 30)]
    seconds: u64,
    /// Requests per second to aim at
    #[arg(long, default_value_t = 1000)]
    rate: u64,
    /// How long the control plane takes for an answer, in milliseconds
    #[arg(long, default_value_t = 20)]
    answer_millis: u64,
    /// The length of each body, in bytes
    #[arg(long, default_value_t = 10_000)]
    body: usize,
    /// Where the JSON document goes
    #[arg(long, default_value = "target/bench/ask.json", value_name = "FILE")]
    out: PathBuf,
}

/// How much of a client's turn is its pause.
const PAUSE: Duration = Duration::from_millis(20);

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("palisade-bench-ask: {why}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &Arguments) -> Result<(), String> {
    // As many as have that rate if an answer takes no longer than the control plane does, and a tenth more.
    let turn = arguments.answer_millis + u64::try_from(PAUSE.as_millis()).unwrap_or(0);
    let clients = (arguments.rate * turn * 11 / 10_000).max(1);
    let load = AskLoad {
        module: arguments.module.canonicalize().map_err(|error| format!("{}: {error}", arguments.module.display()))?,
        time: Duration::from_secs(arguments.seconds),
        clients: usize::try_from(clients).unwrap_or(usize::MAX),
        pause: PAUSE,
        answer_millis: arguments.answer_millis,
        body: arguments.body,
    };
    let report = load.run()?;
    let millis = |share| f64::from(report.clients.quantile(share)) / 1000.0;
    let document = json!({
        "clients": clients, "body_bytes": arguments.body, "answer_millis": arguments.answer_millis,
        "requests": report.clients.answers(), "per_second": report.clients.per_second().round(),
        "latency_millis": { "p50": millis(0.5), "p99": millis(0.99), "p999": millis(0.999), "max": millis(1.0) },
        "questions": report.questions, "unanswered": report.unanswered, "dropped": report.clients.dropped,
        "allocated_bytes": { "before": report.memory.0, "after": report.memory.1 },
    });
    println!("{document:#}");
    if let Some(folder) = arguments.out.parent() {
        std::fs::create_dir_all(folder).map_err(|error| error.to_string())?;
    }
    std::fs::write(&arguments.out, format!("{document:#}\n")).map_err(|error| error.to_string())?;
    let lost = report.clients.dropped
        + report.clients.statuses.iter().filter(|(code, _)| **code != 200).map(|(_, count)| count).sum::<u64>();
    match (lost, report.unanswered, report.questions == report.clients.answers(), report.failures.is_empty()) {
        (0, 0, true, true) => Ok(()),
        _ => Err(format!("{lost} requests were lost: {:?} {:?}", report.clients.reasons, report.failures)),
    }
}
