//! What challenges cost people, and whether many submissions of one solution are worth one clearance.
//!
//! Figures come with the limits that they are held against; they are printed and written to a file, and decide nothing.

mod browser;
mod flood;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use palisade_tests::figures::{Figures, ended, wanted};
use palisade_tests::gateway::{Gateway, preset, route, threat_policy, waf_config};
use palisade_tests::http::Request;
use serde_json::json;

/// Until a gateway serves.
const PATIENCE: Duration = Duration::from_secs(30);
/// What a match weighs, and the tier asks for.
const SUSPECT: &str = r#"SecRule ARGS:probe "@streq 1" "id:10001,phase:1,pass,log,msg:'suspect'""#;

/// Measures challenges with real Envoys, the control plane and a headless Chromium.
#[derive(Debug, Parser)]
struct Options {
    /// The file that the figures go to.
    #[arg(long, default_value = "target/bench/challenge.json")]
    out: PathBuf,
    /// Visits of the browser.
    #[arg(long, default_value_t = 20)]
    runs: usize,
    /// Bits of the browser's work: what providers ask for at score 0 by default.
    #[arg(long, default_value_t = 18)]
    bits: u32,
    /// Submissions of one solution at once.
    #[arg(long, default_value_t = 1000)]
    submissions: usize,
    /// Solutions that are submitted so.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Only these parts: browser, flood.
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
}

fn main() -> ExitCode {
    ended("palisade-bench-challenge", run(&Options::parse()))
}

fn run(options: &Options) -> Result<(), String> {
    let wanted = |part| wanted(&options.only, part);
    let mut figures = Figures::default();
    if wanted("browser") {
        browser::measure(options.runs, options.bits, &mut figures)?;
    }
    if wanted("flood") {
        flood::measure(options.submissions, options.rounds, &mut figures)?;
    }
    figures.write(&options.out)
}

/// A gateway in front of a backend, or of its own, that asks whoever comes with `?probe=1` for so many bits.
fn gateway(bits: u32, backend: Option<SocketAddr>) -> Gateway {
    let mut gateway = Gateway::start(|control, own| {
        let provider = json!({"id": "work", "difficulty_floor": bits, "difficulty_ceiling": bits});
        control.create("challenge-providers", &provider);
        control.create("waf-configs", &waf_config("demo", json!({"rules": [SUSPECT]})));
        let tiers = json!([{"min_score": 20, "action": "challenge", "status": 403}]);
        let policy = threat_policy("demo", json!({"tiers": tiers, "challenge_provider": "work"}));
        control.create("threat-policies", &policy);
        control.create("routes", &route("demo", backend.unwrap_or(own), preset("demo", "demo")));
    });
    gateway.until(&Request::get("/"), 200, PATIENCE);
    gateway
}
