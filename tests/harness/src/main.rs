//! `palisade-replay`: traffic and rule tests through the filters, without a gateway.

use std::io::{IsTerminal as _, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use clap::{Parser, Subcommand, ValueEnum};
use harness::engine::{Engine, Native};
use harness::ftw::suite::{Results, Selection, Suite};
use harness::ftw::{Ignore, report, rules};
use harness::host::{Module, Node, Options, Vm};
use serde_json::json;

/// Where the clock stands: any time will do, as long as it is always the same.
const NOW_MILLIS: u64 = 1_750_000_000_000;
/// What the random numbers begin with.
const SEED: u64 = 7;
/// The node's id.
const NODE: &str = "replay";

#[derive(Parser)]
#[command(name = "palisade-replay", version, about = "Traffic and rule tests through the filters, without a gateway")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run the regression suite of the OWASP Core Rule Set
    Ftw(Ftw),
}

#[derive(clap::Args)]
struct Ftw {
    /// The rule set: a folder with rules/ and crs-setup.conf (or crs-setup.conf.example)
    #[arg(long, env = "PALISADE_CRS_DIR", value_name = "DIR")]
    crs: PathBuf,
    /// The suite: a folder of YAML files
    #[arg(long, env = "PALISADE_CRS_TESTS", value_name = "DIR")]
    tests: PathBuf,
    /// What runs the plugins; `both` also compares
    #[arg(long, default_value = "wasm")]
    engine: EngineName,
    /// The module of engine `wasm`
    #[arg(long, default_value = "target/filters/waf.wasm", value_name = "FILE.wasm")]
    filter: PathBuf,
    /// Only the tests of this rule
    #[arg(long, value_name = "RULE")]
    only: Option<u64>,
    /// Only the i-th of n parts of the tests
    #[arg(long, value_name = "i/n", value_parser = shard)]
    shard: Option<(usize, usize)>,
    /// Known failures, each with its reason: lines of `RULE-NUMBER: reason`
    #[arg(long, value_name = "FILE")]
    ignore: Option<PathBuf>,
    /// The pieces that bodies reach the module in, in bytes
    #[arg(long, default_value_t = Options::default().chunk, value_name = "BYTES")]
    chunk: usize,
    /// Print one JSON document instead of text
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum EngineName {
    /// The plugins linked in
    Native,
    /// The shipped module in a VM
    Wasm,
    /// One after the other
    Both,
}

fn main() -> ExitCode {
    let Command::Ftw(arguments) = Arguments::parse().command;
    match ftw(&arguments) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("palisade-replay: {error}");
            ExitCode::from(2)
        }
    }
}

/// Whether everything passed.
fn ftw(arguments: &Ftw) -> Result<bool, String> {
    let ignore = arguments.ignore.as_deref().map(Ignore::read).transpose()?.unwrap_or_default();
    let selection = Selection { only: arguments.only, shard: arguments.shard };
    let suite = Suite::read(&arguments.tests, &selection)?;
    let compiled = rules::compile_crs(&arguments.crs)?;
    let mut results = Vec::new();
    if arguments.engine != EngineName::Wasm {
        let mut engine = Native::load(&compiled.snapshot, NODE, NOW_MILLIS, SEED)?;
        results.push(run(&suite, &mut engine, &ignore));
    }
    if arguments.engine != EngineName::Native {
        let filter = &arguments.filter;
        let bytes = std::fs::read(filter).map_err(|error| {
            format!("{}: {error}; `make filters` builds the modules, --filter names another one", filter.display())
        })?;
        let failed = |error: harness::host::LoadError| format!("{}: {error}", filter.display());
        let module = Module::compile(&bytes).map_err(failed)?;
        let options = Options { chunk: arguments.chunk, ..Options::default() };
        let node = Node::new(NODE, NOW_MILLIS, SEED);
        let mut vm = Vm::with_options(&module, &compiled.snapshot, &node, options).map_err(failed)?;
        results.push(run(&suite, &mut vm, &ignore));
    }
    let differences = match results.as_slice() {
        [one, other] => one.differences(other),
        _ => Vec::new(),
    };
    let mut out = std::io::stdout().lock();
    let written = if arguments.json {
        let mut documents: Vec<_> = results.iter().map(report::json).collect();
        let document = match (documents.pop(), documents.is_empty()) {
            (Some(document), true) => document,
            (last, _) => {
                documents.extend(last);
                let differing = differences.iter();
                let differing =
                    differing.map(|one| json!({ "test": one.test, "stage": one.stage, "reason": one.reason }));
                json!({ "engines": documents, "differences": differing.collect::<Vec<_>>() })
            }
        };
        writeln!(out, "{document:#}")
    } else {
        let mut text: String = results.iter().map(report::text).collect();
        for difference in &differences {
            text.push_str(&format!("DIFFERS {} stage {}: {}\n", difference.test, difference.stage, difference.reason));
        }
        if results.len() == 2 {
            let stages = results.first().map_or(0, |results| results.found.len());
            text.push_str(&format!("both: {stages} stages, {} differ\n", differences.len()));
        }
        out.write_all(text.as_bytes())
    };
    written.map_err(|error| format!("standard output: {error}"))?;
    Ok(differences.is_empty() && results.iter().all(Results::all_passed))
}

/// Runs the suite; on a terminal, a line says how far it is.
fn run(suite: &Suite, engine: &mut dyn Engine, ignore: &Ignore) -> Results {
    let terminal = std::io::stderr().is_terminal();
    let began = Instant::now();
    let mut shown = 0;
    let (name, total) = (engine.name(), suite.tests.len());
    let results = suite.run(engine, ignore, |done| {
        let tenths = began.elapsed().as_millis() / 100;
        if terminal && tenths > shown {
            shown = tenths;
            let rate = done as f64 / began.elapsed().as_secs_f64();
            eprint!("\r{name}: {done} of {total} tests, {rate:.0} per second ");
        }
    });
    if terminal {
        eprint!("\r\x1b[K");
    }
    results
}

fn shard(text: &str) -> Result<(usize, usize), String> {
    let parse = || {
        let (part, parts) = text.split_once('/')?;
        Some((part.parse().ok()?, parts.parse().ok()?))
    };
    parse()
        .filter(|(part, parts)| (1..=*parts).contains(part))
        .ok_or_else(|| "write i/n, with i from 1 to n".to_owned())
}
