//! `palisade-replay run`

use std::fs::File;
use std::io::{BufRead as _, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::ValueEnum;
use harness::replay::{self, Summary};
use recording::traffic::{Exchange, Request};
use recording::{BadEntry, Entry, Place};
use report::{Effect, Row};

use super::entities;
use super::gateway::Parts;
use super::progress::Progress;

/// Its arguments.
#[derive(Debug, clap::Args)]
pub(crate) struct Run {
    /// Recorded traffic
    #[arg(long, required = true, num_args = 1.., value_name = "FILE")]
    traffic: Vec<PathBuf>,
    /// The filter's configuration: a snapshot as `palisade compile` writes it
    #[arg(long, value_name = "FILE", required_unless_present = "entities", conflicts_with = "entities")]
    snapshot: Option<PathBuf>,
    /// Entities to compile a snapshot from, with `palisade` (PALISADE_BIN, beside this program, or on the PATH)
    #[arg(long, value_name = "DIR")]
    entities: Option<PathBuf>,
    #[command(flatten)]
    parts: Parts,
    /// What is written
    #[arg(long, default_value = "table")]
    format: Format,
    /// Where it is written; standard output without
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// The exit code is 1 if any request is blocked, or comes out differently than it was recorded
    #[arg(long, value_name = "WHAT")]
    fail_on: Option<FailOn>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// Columns for people
    Table,
    /// A row for each request
    Json,
    /// For pipelines
    Junit,
    /// A page
    Html,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum FailOn {
    /// A request was blocked, or its filter died
    Blocked,
    /// A request got another status than it was recorded with, or came later; without a recorded status: was blocked
    Changed,
}

/// Whether nothing was found that it is to fail on.
pub(crate) fn run(arguments: &Run) -> Result<bool, String> {
    let compiled;
    let snapshot = match (&arguments.snapshot, &arguments.entities) {
        (Some(snapshot), _) => snapshot,
        (None, Some(folder)) => {
            compiled = entities::compile(folder, arguments.parts.filter_name().as_deref())?;
            compiled.path()
        }
        (None, None) => return Err("give --snapshot or --entities".to_owned()),
    };
    let configuration = std::fs::read(snapshot).map_err(|error| format!("{}: {error}", snapshot.display()))?;
    let setup = arguments.parts.setup(configuration)?;
    let mut entries = replay::ordered(entries(&arguments.traffic)?);
    let mut sink = Sink::open(arguments.format, arguments.out.as_deref())?;
    let mut progress = Progress::start(setup.engine());
    let mut holds = false;
    let summary = setup.run(&mut entries, &mut |row| {
        holds |= arguments.fail_on.is_some_and(|what| what.holds(&row));
        progress.count();
        sink.row(&row);
    })?;
    progress.end();
    sink.finish(&summary)?;
    Ok(!holds)
}

impl FailOn {
    fn holds(self, row: &Row) -> bool {
        let stopped = matches!(row.effect, Effect::Blocked | Effect::Failed);
        match (self, row.recorded_status) {
            (Self::Blocked, _) | (Self::Changed, None) => stopped || self == Self::Changed && row.held_millis > 0,
            (Self::Changed, Some(then)) => row.status != then || row.held_millis > 0 || row.effect == Effect::Failed,
        }
    }
}

/// Entries as they are read.
type Entries = Box<dyn Iterator<Item = Result<Entry, BadEntry>>>;

/// Opens recorded traffic, each file for itself. Until the formats are here, a line each: `[MILLIS] [PEER] METHOD TARGET`.
fn entries(paths: &[PathBuf]) -> Result<Vec<Entries>, String> {
    let open = |path: &PathBuf| -> Result<Entries, String> {
        let file = File::open(path).map_err(|error| format!("{}: {error}", path.display()))?;
        let name: Arc<str> = path.display().to_string().into();
        let lines = BufReader::new(file).lines().zip(1..);
        Ok(Box::new(lines.map(move |(line, number)| entry(line, Place { file: name.clone(), number }))))
    };
    paths.iter().map(open).collect()
}

fn entry(line: std::io::Result<String>, place: Place) -> Result<Entry, BadEntry> {
    let line = line.map_err(|error| BadEntry { place: place.clone(), why: error.to_string() })?;
    let words: Vec<&str> = line.split_whitespace().collect();
    let (before, [method, target]) = words.split_at(words.len().saturating_sub(2)) else {
        return Err(BadEntry { place, why: "write METHOD TARGET".to_owned() });
    };
    let mut request = Request::get(target);
    request.headers[0].1 = method.as_bytes().to_vec();
    let at_millis = before.iter().find_map(|word| word.parse().ok());
    if let Some(peer) = before.iter().find(|word| word.parse::<u64>().is_err()) {
        request.peer = (*peer).to_owned();
    }
    let exchange = Exchange { request, ..Exchange::default() };
    Ok(Entry { place, at_millis, status: None, notes: Vec::new(), exchange })
}

/// Where rows go. Until the formats are here: JSON lines, or a few words a line.
struct Sink {
    out: Box<dyn Write>,
    format: Format,
    failed: Option<std::io::Error>,
}

impl Sink {
    fn open(format: Format, out: Option<&Path>) -> Result<Self, String> {
        let out: Box<dyn Write> = match out {
            None => Box::new(std::io::stdout()),
            Some(path) => Box::new(File::create(path).map_err(|error| format!("{}: {error}", path.display()))?),
        };
        Ok(Self { out: Box::new(BufWriter::new(out)), format, failed: None })
    }

    fn row(&mut self, row: &Row) {
        let text = match self.format {
            Format::Json => serde_json::to_string(row).unwrap_or_default(),
            _ => format!("{} {:?} {} {} {} {}", row.id, row.effect, row.status, row.action, row.path, row.reason),
        };
        if let Err(error) = writeln!(self.out, "{text}") {
            self.failed.get_or_insert(error);
        }
    }

    fn finish(mut self, summary: &Summary) -> Result<(), String> {
        let flushed = self.out.flush();
        let replay::Summary { ran, bad, skipped_ticks, control, .. } = summary;
        eprintln!(
            "{ran} requests ran, {bad} entries could not be read; {} events and {} bans went to the control plane; \
             {skipped_ticks} idle ticks were left out",
            control.events, control.bans
        );
        if let Some(fault) = summary.timer_faults.first() {
            let count = summary.timer_faults.len();
            eprintln!("a filter died outside of requests, at least {count} times; first in {}", fault.callback);
            fault.message.lines().for_each(|line| eprintln!("  {}", replay::printable(line.as_bytes(), 2048)));
        }
        match self.failed {
            Some(error) => Err(format!("the report: {error}")),
            None => flushed.map_err(|error| format!("the report: {error}")),
        }
    }
}
