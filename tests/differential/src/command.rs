//! `palisade-replay differential`.

use std::io::{IsTerminal as _, Write as _};
use std::path::PathBuf;
use std::time::Instant;

use clap::builder::{OsStringValueParser, TypedValueParser as _};

use super::case::Case;
use super::compare::Comparison;
use super::explained::{Explained, Run};
use super::golden::Golden;
use super::ours::Ours;
use super::peer::Peer;
use super::rules::Rules;
use super::{STANDARD_COUNT, STANDARD_SEED, generate};

/// What to compare.
#[derive(Debug, clap::Args)]
pub struct Differential {
    /// The rule set: a folder with rules/ and crs-setup.conf (or crs-setup.conf.example)
    #[arg(long, env = "PALISADE_CRS_DIR", value_name = "DIR")]
    crs: PathBuf,
    /// Half of the exchanges begin as tests of the rule set's suite in this folder
    #[arg(long, env = "PALISADE_CRS_TESTS", value_name = "DIR", value_parser = OsStringValueParser::new().map(PathBuf::from))]
    tests: Option<PathBuf>,
    /// A Python interpreter with the package libmodsecurity
    #[arg(long, default_value = ".cache/libmodsecurity/bin/python", value_name = "FILE")]
    python: PathBuf,
    /// The program that asks libmodsecurity
    #[arg(long, default_value = "tests/differential/peer.py", value_name = "FILE")]
    peer: PathBuf,
    /// The disagreements that are understood
    #[arg(long, default_value = "tests/differential/explained.yaml", value_name = "FILE")]
    explained: PathBuf,
    /// How many exchanges
    #[arg(long, default_value_t = STANDARD_COUNT, value_name = "N")]
    count: usize,
    /// What they are generated from
    #[arg(long, default_value_t = STANDARD_SEED, value_name = "N")]
    seed: u64,
    /// Only the case with this number
    #[arg(long, value_name = "N")]
    only: Option<usize>,
    /// Print every exchange on which the engines differ without an explanation
    #[arg(long)]
    show: bool,
    /// Keep libmodsecurity's answers in this file
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
    /// Print the exchanges as JSON lines, and compare nothing
    #[arg(long)]
    dump: bool,
    /// Print one JSON document instead of text
    #[arg(long)]
    json: bool,
}

/// Runs the comparison. Returns whether every difference is explained, and every explanation needed.
///
/// # Errors
///
/// What keeps the comparison from running.
pub fn run(arguments: &Differential) -> Result<bool, String> {
    let tests = arguments.tests.as_deref().filter(|folder| !folder.as_os_str().is_empty());
    let suite = tests.map(generate::suite).transpose()?.unwrap_or_default();
    let mut cases = generate::cases(arguments.seed, arguments.count, &suite);
    if let Some(only) = arguments.only {
        let case = cases.get(only).ok_or_else(|| format!("there are {} cases, from 0", cases.len()))?;
        cases = vec![case.clone()];
    }
    if arguments.dump {
        return dump(&cases);
    }
    let explained = Explained::read(&arguments.explained)?;
    let rules = Rules::find(&arguments.crs)?;
    let folder = PathBuf::from("target/differential");
    let mut peer = Peer::start(&arguments.python, &arguments.peer, &rules.write(&folder)?)?;
    let ours = Ours::new(rules.compile()?)?;
    let (engine, release) = (peer.engine.clone(), rules.release.clone());
    let mut golden = Golden { engine, release, seed: arguments.seed, answers: Vec::new() };
    let mut comparison = Comparison::default();
    let mut shown = String::new();
    let terminal = std::io::stderr().is_terminal();
    let began = Instant::now();
    for (number, case) in cases.iter().enumerate() {
        if terminal && number % 10 == 0 {
            eprint!("\r{number} of {} exchanges, {} s ", cases.len(), began.elapsed().as_secs());
        }
        let theirs = peer.answer(case)?;
        let before = comparison.disagreements.len();
        comparison.add(case, &theirs, &explained, |case| ours.answer(case));
        golden.add(case, &theirs);
        let new = comparison.disagreements.get(before..).unwrap_or_default();
        if arguments.show && new.iter().any(|one| one.entry.is_none()) {
            shown.push_str(&format!("--- {} ours {:?}\n    peer {theirs:?}\n", case.name, ours.answer(case)));
            for one in new {
                shown.push_str(&format!("    {} {:?} {:?}\n", one.rule, one.side, one.entry));
            }
            shown.push_str(&case.text());
        }
    }
    if terminal {
        eprint!("\r\x1b[K");
    }
    if let Some(path) = &arguments.record {
        std::fs::write(path, golden.text()).map_err(|error| format!("{}: {error}", path.display()))?;
    }
    // Other cases than those of the run an entry is from need not show what it explains.
    let run = Run::of(arguments.seed, !suite.is_empty(), comparison.cases);
    let stale = run.map(|run| comparison.stale(&explained, run)).unwrap_or_default();
    let mut out = std::io::stdout().lock();
    let text = if arguments.json {
        format!("{:#}\n", comparison.json(&explained, &stale))
    } else {
        let stale: String = stale.iter().map(|cause| format!("STALE: nothing needs `{cause}` any more\n")).collect();
        format!(
            "{shown}{}{stale}{} exchanges in {} s, {} with {}: {} rules reported by both, {} by one of them ({} exchanges), \
             {} of these not explained\n",
            comparison.table(&explained),
            comparison.cases,
            began.elapsed().as_secs(),
            golden.engine,
            golden.release,
            comparison.agreements,
            comparison.disagreements.len(),
            comparison.differing_cases(),
            comparison.unexplained().count(),
        )
    };
    out.write_all(text.as_bytes()).map_err(|error| format!("standard output: {error}"))?;
    Ok(comparison.unexplained().next().is_none() && stale.is_empty())
}

fn dump(cases: &[Case]) -> Result<bool, String> {
    let mut out = std::io::stdout().lock();
    for case in cases {
        writeln!(out, "{}", case.json()).map_err(|error| format!("standard output: {error}"))?;
    }
    Ok(true)
}
