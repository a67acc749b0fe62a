//! `palisade-replay ftw`

use std::io::{IsTerminal as _, Write as _};
use std::path::PathBuf;
use std::time::Instant;

use ftw::blocking::{Counts, Verdicts};
use ftw::rules::Setup;
use ftw::scoring::Scoring;
use ftw::suite::{Judge, Results, Selection, Suite};
use ftw::{Ignore, judge, report, rules};
use harness::engine::Engine;
use serde_json::{Value, json};

use super::engines::Engines;

/// Its arguments.
#[derive(Debug, clap::Args)]
pub(crate) struct Ftw {
    /// The rule set: a folder with rules/ and crs-setup.conf (or crs-setup.conf.example)
    #[arg(long, env = "PALISADE_CRS_DIR", value_name = "DIR")]
    crs: PathBuf,
    /// The suite: a folder of YAML files
    #[arg(long, env = "PALISADE_CRS_TESTS", value_name = "DIR")]
    tests: PathBuf,
    #[command(flatten)]
    engines: Engines,
    /// Only the tests of this rule
    #[arg(long, value_name = "RULE")]
    only: Option<u64>,
    /// Only the i-th of n parts of the tests
    #[arg(long, value_name = "i/n", value_parser = shard)]
    shard: Option<(usize, usize)>,
    /// Known failures, each with its reason: lines of `RULE-NUMBER: reason`
    #[arg(long, value_name = "FILE")]
    ignore: Option<PathBuf>,
    /// Block, and judge every verdict by the scores instead of the matches by the tests
    #[arg(long)]
    blocking: bool,
    /// The paranoia level at which it blocks
    #[arg(long, default_value_t = 1, requires = "blocking", value_parser = clap::value_parser!(u8).range(1..=4))]
    paranoia: u8,
    /// Print one JSON document instead of text
    #[arg(long)]
    json: bool,
}

/// Whether everything passed.
pub(crate) fn ftw(arguments: &Ftw) -> Result<bool, String> {
    let ignore = arguments.ignore.as_deref().map(Ignore::read).transpose()?.unwrap_or_default();
    let selection = Selection { only: arguments.only, shard: arguments.shard };
    let suite = Suite::read(&arguments.tests, &selection)?;
    let results = match arguments.blocking {
        true => {
            let scoring = Scoring::read(&arguments.crs)?;
            let verdicts = Verdicts::new(&scoring, arguments.paranoia);
            let setup = Setup::Blocking(arguments.paranoia);
            run_all(arguments, &suite, &ignore, setup, &|log, outcome| verdicts.judge(log, outcome))?
        }
        false => run_all(arguments, &suite, &ignore, Setup::Suite, &judge::judge)?,
    };
    let differences = match results.as_slice() {
        [one, other] => one.differences(other),
        _ => Vec::new(),
    };
    let mut out = std::io::stdout().lock();
    let written = if arguments.json {
        let mut documents: Vec<_> = results.iter().map(|results| document(arguments, results)).collect();
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
        let mut text = String::new();
        for results in &results {
            text.push_str(&report::text(results));
            if arguments.blocking {
                let Counts { inbound, outbound, unreadable, below, clean } = Counts::of(results.found.values());
                text.push_str(&format!(
                    "{} at paranoia {}: {inbound} denied by the request, {outbound} by the response, \
                     {unreadable} because of an unreadable body, {below} passed \
                     below the threshold, {clean} passed without a score\n",
                    results.engine, arguments.paranoia
                ));
            }
        }
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

fn document(arguments: &Ftw, results: &Results) -> Value {
    let mut document = report::json(results);
    if arguments.blocking {
        let Counts { inbound, outbound, unreadable, below, clean } = Counts::of(results.found.values());
        document["blocking"] = json!({
            "paranoia": arguments.paranoia,
            "denied_by_request": inbound,
            "denied_by_response": outbound,
            "denied_as_unreadable": unreadable,
            "passed_below_threshold": below,
            "passed_without_score": clean,
        });
    }
    document
}

fn run_all(
    arguments: &Ftw,
    suite: &Suite,
    ignore: &Ignore,
    setup: Setup,
    judge: &Judge<'_>,
) -> Result<Vec<Results>, String> {
    let compiled = rules::compile_crs(&arguments.crs, setup)?;
    arguments.engines.each(&compiled.snapshot, |engine| run(suite, engine, ignore, judge))
}

/// Runs the suite; on a terminal, a line says how far it is.
fn run(suite: &Suite, engine: &mut dyn Engine, ignore: &Ignore, judge: &Judge<'_>) -> Results {
    let terminal = std::io::stderr().is_terminal();
    let began = Instant::now();
    let mut shown = 0;
    let (name, total) = (engine.name(), suite.tests.len());
    let progress = |done: usize| {
        let tenths = began.elapsed().as_millis() / 100;
        if terminal && tenths > shown {
            shown = tenths;
            let rate = done as f64 / began.elapsed().as_secs_f64();
            eprint!("\r{name}: {done} of {total} tests, {rate:.0} per second ");
        }
    };
    let results = suite.run_judged(engine, ignore, progress, judge);
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
