//! `palisade tune`: what recorded traffic says about the rules of a config, and the exclusions that it needs.

mod files;
mod traffic;

use std::io::{IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};

use base::clock;
use entities::plugins;
use entities::{EntitySet, FileProblem};
use kit::{Tuner, TuningInput};

use super::error::CliError;
use super::output::say;
use files::{Outcome, Written};
use traffic::Exchanges;

/// `palisade tune`.
#[derive(Debug, clap::Args)]
pub(super) struct TuneCommand {
    /// The folder: one entity in each .yaml, .yml or .json file.
    #[arg(long, value_name = "DIR")]
    entities: PathBuf,

    /// The WAF config, by its id. It runs as if it had `block: false`.
    #[arg(long, value_name = "ID")]
    config: String,

    /// Files and folders with recorded traffic: HAR, traces of Envoy's tap filter, JSON lines.
    #[arg(long, value_name = "RECORDING", num_args = 1.., required = true)]
    traffic: Vec<PathBuf>,

    /// Recorded traffic that nothing is learned from: how many of its requests pass without the verified exclusions, and with them.
    #[arg(long, value_name = "RECORDING", num_args = 1..)]
    measure: Vec<PathBuf>,

    /// The folder that gets the verified exclusions, and the rules of the profile that are named, as files for review: a ruleset, the config
    /// that names it, and what else that names.
    #[arg(long, value_name = "DIR")]
    write: Option<PathBuf>,

    /// An input that needs what attacks look like: its exclusions are taken though known attacks pass there, as the report says under
    /// trade-offs. `ARGS:text on /preview`, `ARGS:text` for all its paths, or `all`; may be given several times.
    #[arg(long, value_name = "INPUT")]
    accept: Vec<String>,

    /// An input for which a rule is proposed that reports values that are not what they usually are, as the report lists them.
    /// `ARGS:page on /list`, `ARGS:page` for all its paths, or `all`; may be given several times.
    #[arg(long, value_name = "INPUT")]
    profile: Vec<String>,

    /// Why the exclusions are needed, in at most 500 bytes; it is kept beside each of them.
    #[arg(long, value_name = "TEXT", default_value = "learned from recorded traffic")]
    reason: String,

    /// Write the report as JSON.
    #[arg(long)]
    json: bool,
}

impl TuneCommand {
    pub(super) fn run(self) -> Result<(), CliError> {
        if self.reason.trim().is_empty() {
            return Err(CliError::Other("--reason is empty: say why the exclusions are needed".to_owned()));
        }
        if let Some(folder) = &self.write {
            files::outside(folder, &self.entities)?;
        }
        let set = EntitySet::from_dir(&self.entities).map_err(|problems| refuse(&problems))?;
        let (collection, mut tuner) = tuner(&self.config, &set)?;
        tuner.notes().iter().for_each(|text| note(text));
        replay(Exchanges::open(&self.traffic)?, |exchanges| tuner.learn(exchanges))?;
        tuner.accept(&self.accept);
        tuner.profile(&self.profile);
        propose(&mut *tuner)?;
        if tuner.has_proposals() {
            replay(Exchanges::open(&self.traffic)?.again(), |exchanges| tuner.confirm(exchanges))?;
        }
        if !self.measure.is_empty() {
            replay(Exchanges::open(&self.measure)?, |exchanges| tuner.measure(exchanges))?;
        }
        let report = tuner.report().map_err(CliError::Other)?;
        match self.json {
            true => say(format_args!("{:#}", report.document))?,
            false => say(format_args!("{}", report.text))?,
        }
        match &self.write {
            Some(folder) => self.write(folder, (collection, &set), &*tuner),
            None => Ok(()),
        }
    }

    fn write(
        &self,
        folder: &Path,
        (collection, set): (&'static str, &EntitySet),
        tuner: &dyn Tuner,
    ) -> Result<(), CliError> {
        let earlier = |collection: &str, id: &str| files::earlier(folder, collection, id);
        let edits = tuner.edits(&self.reason, &earlier).map_err(CliError::Other)?;
        if edits.is_empty() {
            note("no exclusion is verified, and no rule of the profile is named: no file was written");
            return Ok(());
        }
        for Written { file, outcome } in files::write(folder, set, edits, (collection, &self.config))? {
            let done = match outcome {
                Outcome::Written => "written",
                Outcome::Unchanged => "unchanged",
                Outcome::Given => "has it already, and is left as it is",
            };
            note(&format!("{}: {done}", file.display()));
        }
        Ok(())
    }
}

/// Begins to tune the entity with an id, in whichever collection that can be tuned it is.
fn tuner<'a>(id: &str, set: &'a EntitySet) -> Result<(&'static str, Box<dyn Tuner + 'a>), CliError> {
    let tunings = || plugins::ALL.iter().filter_map(|plugin| plugin.tuning.as_ref());
    let Some(tuning) = tunings().find(|tuning| set.slot(tuning.collection, id).is_some()) else {
        let known = tunings().map(|tuning| {
            let ids: Vec<String> =
                set.slots(tuning.collection).map(|slot| format!("`{}`", slot.entity.head().id)).collect();
            match ids.is_empty() {
                true => format!("{} is empty", tuning.collection),
                false => format!("{} has {}", tuning.collection, ids.join(", ")),
            }
        });
        let known: Vec<String> = known.collect();
        return Err(CliError::Other(format!("there is no config `{}`: {}", id.escape_debug(), known.join("; "))));
    };
    let identity = compiler::identity(set.global());
    let input = TuningInput { entities: set, identity, now_millis: clock::now_millis() };
    Ok((tuning.collection, (tuning.open)(id, input).map_err(CliError::Other)?))
}

/// Sends recordings where they go, and says how many requests they have and how long it took.
fn replay(
    mut exchanges: Exchanges,
    send: impl FnOnce(&mut dyn Iterator<Item = kit::RecordedExchange>) -> Result<(), String>,
) -> Result<(), CliError> {
    let stopwatch = clock::Stopwatch::start();
    let sent = send(&mut exchanges);
    let (read, unreadable, seconds) = (exchanges.read(), exchanges.unreadable(), stopwatch.seconds());
    let names = exchanges.names();
    let left_out = if unreadable > 0 { format!(", {unreadable} entries could not be read") } else { String::new() };
    sent.map_err(|why| CliError::Other(format!("{names}: {why}{left_out}")))?;
    // Fractions of a request do not matter.
    let rate = (read as f64 / seconds.max(0.001)) as u64;
    note(&format!("{names}: {read} requests in {seconds:.1} s, {rate} per second{left_out}"));
    Ok(())
}

fn propose(tuner: &mut dyn Tuner) -> Result<(), CliError> {
    let stopwatch = clock::Stopwatch::start();
    let shown = std::io::stderr().is_terminal();
    let progress = |done: usize, all: usize| {
        if shown {
            note(&format!("exclusions: {done} of {all} are tried"));
        }
    };
    tuner.propose(&progress).map_err(CliError::Other)?;
    note(&format!("exclusions tried in {:.1} s", stopwatch.seconds()));
    Ok(())
}

/// Says what is wrong with the entities.
fn refuse(problems: &[FileProblem]) -> CliError {
    problems.iter().for_each(|problem| note(&problem.to_string()));
    CliError::Other(format!(
        "{} problem{} in the entities; nothing was done",
        problems.len(),
        if problems.len() == 1 { "" } else { "s" }
    ))
}

fn note(text: &str) {
    // A closed standard error leaves no one to tell.
    let _ = writeln!(std::io::stderr(), "palisade: {text}");
}
