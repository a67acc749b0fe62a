//! `palisade-adversary`: attacks a gateway and says what passes.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::net::ToSocketAddrs as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use adversary::case::{self, Case, Kind, Needs};
use adversary::known::Known;
use adversary::peer::{self, Judge};
use adversary::report::{Report, Row};
use adversary::run::{self, Target, Verdict};
use adversary::{demo, stall};
use clap::{Parser, ValueEnum};
use palisade_tests::parts;

/// Attacks a gateway: evasions, stalls, and harmless requests that must pass.
///
/// Exit code 0: everything came as expected. 1: something passed or stalled that must not, or a harmless request was
/// refused, and the list of known misses does not have it. 2: the program could not do its work.
#[derive(Debug, Parser)]
struct Options {
    /// The gateway, as http://ADDRESS:PORT. Without it one is started, with the demo's policy.
    #[arg(long, value_name = "URL")]
    target: Option<String>,
    /// The host that requests name
    #[arg(long, default_value = "demo.test")]
    host: String,
    /// What the target has beside a WAF: the demo's backend, hosts with policies of their own. A started gateway has all.
    #[arg(long, value_delimiter = ',', value_enum)]
    has: Vec<Has>,
    /// Only cases whose id or family contains this
    #[arg(long, value_name = "TEXT")]
    filter: Option<String>,
    /// Only one part; harmless requests belong to the evasions
    #[arg(long, value_enum)]
    only: Option<Only>,
    /// Leave out cases that take seconds or megabytes
    #[arg(long)]
    quick: bool,
    /// A clean request beside a stall takes no longer than this
    #[arg(long, value_name = "MILLISECONDS", default_value_t = 1000)]
    stall_millis: u64,
    /// Ask libmodsecurity the same (see `make adversary`)
    #[arg(long)]
    peer: bool,
    /// Cases of one's own: a folder of YAML files
    #[arg(long, value_name = "DIR")]
    cases: Option<PathBuf>,
    /// The misses that are known, instead of the list that is built in
    #[arg(long, value_name = "FILE")]
    known: Option<PathBuf>,
    /// Print a JSON document instead of a table
    #[arg(long)]
    json: bool,
    /// List the cases, and send nothing
    #[arg(long)]
    list: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Only {
    Evasions,
    Stalls,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Has {
    Echo,
    Scoped,
    Compressed,
    Prefix,
    Untyped,
}

fn main() -> ExitCode {
    match attack(&Options::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(why) => {
            eprintln!("palisade-adversary: {why}");
            ExitCode::from(2)
        }
    }
}

fn attack(options: &Options) -> Result<bool, String> {
    let all = case::all(options.cases.as_deref())?;
    let ids: BTreeSet<&str> = all.iter().map(|case| case.id.as_str()).collect();
    let known = match (&options.cases, &options.known) {
        // Cases of one's own have nothing to do with the list.
        (Some(_), None) => Known::default(),
        (_, file) => Known::read(file.as_deref(), &ids)?,
    };
    let cases: Vec<&Case> = all.iter().filter(|case| wanted(options, case)).collect();
    if options.list {
        let text: String =
            cases.iter().map(|case| format!("{:<16} {:<44} {}\n", case.family, case.id, case.shows)).collect();
        return print(&format!("{text}{} cases\n", cases.len())).map(|()| true);
    }
    let mut gateway = None;
    let address = match &options.target {
        Some(url) => resolve(url)?,
        None => gateway.insert(demo::start()).address,
    };
    let has = |needs: Needs| {
        gateway.is_some()
            || options.has.contains(match needs {
                Needs::Echo => &Has::Echo,
                Needs::Scoped => &Has::Scoped,
                Needs::Compressed => &Has::Compressed,
                Needs::Prefix => &Has::Prefix,
                Needs::Untyped => &Has::Untyped,
            })
    };
    let (cases, without): (Vec<&Case>, Vec<&Case>) = cases.into_iter().partition(|case| case.needs.is_none_or(&has));
    let target = Target { address, host: options.host.clone() };
    stall::clean_request(address, &target.host).map_err(|error| format!("{address} does not answer: {error}"))?;
    let report = send(options, &target, &cases, without.len(), &known)?;
    let failures = gateway.as_ref().map(|gateway| gateway.envoy.vm_failures()).unwrap_or_default();
    let mut text = if options.json { format!("{:#}\n", report.json()) } else { report.text() };
    if !options.json {
        text.extend(failures.iter().map(|failure| format!("of the gateway: {failure}\n")));
    }
    print(&text)?;
    Ok(report.unexpected().next().is_none() && report.stale().next().is_none())
}

fn send<'a>(
    options: &Options,
    target: &Target,
    cases: &[&'a Case],
    skipped: usize,
    known: &'a Known,
) -> Result<Report<'a>, String> {
    let (stalls, others): (Vec<&Case>, Vec<&Case>) = cases.iter().partition(|case| case.kind == Kind::Stall);
    let mut rows: Vec<Row<'a>> = run::run(target, &others)?
        .into_iter()
        .zip(&others)
        .map(|(outcome, case)| Row { case, outcome, stall: None, peer: None })
        .collect();
    if rows.iter().any(|row| row.outcome.verdict == Verdict::Gone) {
        return Err(format!("nobody listens at {} any more", target.address));
    }
    let limit = Duration::from_millis(options.stall_millis);
    for (number, case) in stalls.iter().enumerate() {
        eprintln!("stall {} of {}: {}", number + 1, stalls.len(), case.id);
        let stall = stall::one(target, case, limit)?;
        rows.push(Row { case, outcome: stall.outcome.clone(), stall: Some(stall), peer: None });
    }
    let mut judge = None;
    if options.peer {
        let judge = judge.insert(Judge::start(&peer::parts(&parts::root(), &parts::crs()))?);
        for (number, row) in rows.iter_mut().filter(|row| row.case.kind != Kind::Stall).enumerate() {
            if number % 100 == 0 {
                eprintln!("libmodsecurity: {number} requests so far");
            }
            row.peer = judge.refuses(row.case, &target.host)?;
        }
    }
    Ok(Report { rows, skipped, known, peer: judge.map(|judge| judge.name) })
}

fn wanted(options: &Options, case: &Case) -> bool {
    let part = match options.only {
        None => true,
        Some(Only::Evasions) => case.kind != Kind::Stall,
        Some(Only::Stalls) => case.kind == Kind::Stall,
    };
    let named = options.filter.as_ref().is_none_or(|text| case.id.contains(text) || case.family.contains(text));
    part && named && !(options.quick && case.heavy)
}

fn resolve(url: &str) -> Result<std::net::SocketAddr, String> {
    let authority = url.strip_prefix("http://").unwrap_or(url).trim_end_matches('/');
    let mut found = authority.to_socket_addrs().map_err(|error| format!("{url}: {error}; give http://HOST:PORT"))?;
    found.next().ok_or_else(|| format!("{url} has no address"))
}

fn print(text: &str) -> Result<(), String> {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes()).map_err(|error| format!("standard output: {error}"))
}
