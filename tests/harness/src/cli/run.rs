//! `palisade-replay run`

use std::path::{Path, PathBuf};

use harness::replay::Summary;
use report::sink::{FailOn, Sink};
use report::{About, BadEntryText, Totals};

use super::entities;
use super::gate::Gate;
use super::gateway::{Parts, Setup};
use super::output::{Format, Output};
use super::progress::Progress;
use super::traffic::Traffic;

/// Its arguments.
#[derive(Debug, clap::Args)]
#[command(group = clap::ArgGroup::new("recorded").required(true).args(["traffic"]))]
pub(crate) struct Run {
    #[command(flatten)]
    traffic: Traffic,
    /// The filter's configuration: a snapshot as `palisade compile` writes it
    #[arg(long, value_name = "FILE", required_unless_present = "entities")]
    snapshot: Option<PathBuf>,
    /// Entities to compile a snapshot from, with `palisade` (PALISADE_BIN, beside this program, or on the PATH); beside
    /// --snapshot, whether that is of these entities is checked
    #[arg(long, value_name = "DIR")]
    entities: Option<PathBuf>,
    #[command(flatten)]
    parts: Parts,
    #[command(flatten)]
    output: Output,
    /// The exit code is 1 if any request is blocked, or comes out differently than it was recorded, or a filter died, or an entry
    /// cannot be read; 2 if there is no request
    #[arg(long, value_name = "WHAT")]
    fail_on: Option<What>,
    #[command(flatten)]
    gate: Gate,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum What {
    /// A request was blocked
    Blocked,
    /// A request got another status than was recorded, or was held; without a recorded status: was blocked
    Changed,
}

/// Whether nothing was found that it is to fail on.
pub(crate) fn run(arguments: &Run) -> Result<bool, String> {
    let Run { traffic, parts, output, .. } = arguments;
    let source = match (&arguments.snapshot, &arguments.entities) {
        (Some(path), _) | (None, Some(path)) => path,
        (None, None) => return Err("give --snapshot or --entities".to_owned()),
    };
    let setup = parts.setup(configuration(source, parts)?)?;
    if let (Some(snapshot), Some(entities)) = (&arguments.snapshot, &arguments.entities) {
        let theirs = parts.setup(configuration(entities, parts)?)?;
        if theirs.version() != setup.version() {
            eprintln!(
                "palisade-replay: {} is not what {} compiles to ({}, not {}); the snapshot is replayed",
                snapshot.display(),
                entities.display(),
                setup.version(),
                theirs.version()
            );
        }
    }
    let about = about(&setup, source, traffic);
    let fail_on =
        FailOn { blocked: arguments.fail_on == Some(What::Blocked), changed: arguments.fail_on == Some(What::Changed) };
    let sink = output.sink(&about, fail_on)?;
    let Replayed { summary, failed } =
        replay(setup, traffic, sink, &about, fail_on, (1, 1)).map_err(|why| match output.path() {
            Some(path) => format!("{}: {why}", path.display()),
            None => why,
        })?;
    if output.format() == Format::Table {
        tell(&summary);
    }
    if arguments.fail_on.is_none() {
        return Ok(true);
    }
    let passes = arguments.gate.passes(summary.ran, "replayed", &[("the recording", summary.bad)])?;
    Ok(passes && failed == 0)
}

/// A snapshot's file, or a folder of entities.
pub(super) fn configuration(source: &Path, parts: &Parts) -> Result<Vec<u8>, String> {
    let read = |path: &Path| std::fs::read(path).map_err(|error| format!("{}: {error}", path.display()));
    if source.is_dir() {
        return read(entities::compile(source, parts.filter_name().as_deref())?.path());
    }
    read(source)
}

/// The head of a report.
pub(super) fn about(setup: &Setup<'_>, source: &Path, traffic: &Traffic) -> About {
    let mut about = About {
        title: format!("Replay with {}", source.display()),
        recordings: traffic.paths().iter().map(|path| path.display().to_string()).collect(),
        ..About::default()
    };
    setup.facts(&mut about);
    about
}

/// What a replay came to.
pub(super) struct Replayed {
    summary: Summary,
    /// Requests that the pipeline does not let through, and timers that died.
    failed: u64,
}

/// Runs traffic into a sink. `part` says which of how many runs over the traffic this is.
pub(super) fn replay(
    setup: Setup<'_>,
    traffic: &Traffic,
    mut sink: Box<dyn Sink + '_>,
    about: &About,
    fail_on: FailOn,
    part: (u8, u8),
) -> Result<Replayed, String> {
    let recording = traffic.open()?;
    let mut progress = Progress::start(setup.engine(), recording.meter(), part);
    let mut entries = harness::replay::ordered(vec![Box::new(recording)]);
    let mut totals = Totals::new();
    let mut failed = 0;
    let mut broken: Option<std::io::Error> = None;
    let summary = setup.run(&mut entries, &mut |row| {
        progress.count();
        let written = match row {
            Ok(row) => {
                totals.add(&row);
                failed += u64::from(fail_on.failure(&row).is_some());
                sink.row(&row)
            }
            Err(bad) => {
                let bad = BadEntryText { id: bad.place.to_string(), why: bad.why };
                totals.bad(&bad);
                sink.bad(&bad)
            }
        };
        // The first fault is the one that tells why; the run has no other way to end than at its end.
        if let Err(error) = written {
            broken.get_or_insert(error);
        }
    })?;
    progress.end();
    for fault in &summary.timer_faults {
        totals.timer_fault(&fault.callback, &fault.message);
        failed += 1;
    }
    totals.took(progress.elapsed());
    let ended = broken.map_or_else(|| sink.end(&totals, about), Err);
    ended.map_err(|error| format!("the report cannot be written: {error}"))?;
    Ok(Replayed { summary, failed })
}

/// What people want to know beside the report.
fn tell(summary: &Summary) {
    let Summary { control, skipped_ticks, .. } = summary;
    eprintln!(
        "{} events and {} bans went to the control plane; {skipped_ticks} idle ticks were left out",
        control.events, control.bans
    );
}
