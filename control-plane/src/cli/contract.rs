//! `palisade contract learn`: an OpenAPI document from recorded traffic.

use std::io::{IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};

use learn::{Learned, Learner, Observation, Options, Statuses, add_inventory};
use recording::traffic::Response;
use recording::{Entry, Meter};
use serde_json::Value;

use super::error::CliError;
use super::output::say;

/// After so many exchanges the progress is shown.
const SHOWN_EACH: u64 = 50_000;
/// The entries that cannot be read and are named.
const NAMED_PROBLEMS: u64 = 10;

/// `palisade contract`.
#[derive(Debug, clap::Subcommand)]
pub(super) enum ContractCommand {
    /// Write an OpenAPI 3.1 document of what recorded traffic shows: paths, parameters, bodies, responses, with their evidence.
    ///
    /// Only requests that the backend accepted teach. Values are not written, except for ranges and for words that recur.
    Learn(LearnCommand),
}

/// `palisade contract learn`.
#[derive(Debug, clap::Args)]
pub(super) struct LearnCommand {
    /// Files and folders with recorded traffic: HAR, traces of Envoy's tap filter, JSON lines.
    #[arg(long, value_name = "RECORDING", num_args = 1.., required_unless_present = "inventory")]
    traffic: Vec<PathBuf>,

    /// An API report as JSON: what it has beyond the traffic is added, with paths, methods and statuses alone.
    #[arg(long, value_name = "FILE")]
    inventory: Option<PathBuf>,

    /// The file to write; without it standard output.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,

    /// How many observations each claim needs (required, a range, a list of values, a closed object).
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u64).range(3..=1_000_000))]
    min_evidence: u64,

    /// The statuses of answers that teach: classes such as 2xx, or single ones.
    #[arg(long, value_name = "STATUS", value_delimiter = ',', default_value = "2xx,3xx")]
    accept: Vec<Statuses>,

    /// The title of the document.
    #[arg(long, value_name = "TITLE", default_value = "Learned API")]
    title: String,

    /// Write JSON instead of YAML.
    #[arg(long)]
    json: bool,
}

impl ContractCommand {
    pub(super) fn run(self) -> Result<(), CliError> {
        let Self::Learn(command) = self;
        command.run()
    }
}

impl LearnCommand {
    fn run(self) -> Result<(), CliError> {
        let options =
            Options { title: self.title, min_evidence: self.min_evidence, accept: self.accept, ..Options::default() };
        let (mut learned, unreadable) = learn(&self.traffic, options)?;
        if let Some(file) = &self.inventory {
            let report =
                std::fs::read(file).map_err(|error| CliError::Io(format!("read {}", file.display()), error))?;
            let wrong = |why: String| CliError::Other(format!("{}: {why}", file.display()));
            let report = serde_json::from_slice(&report).map_err(|error| wrong(error.to_string()))?;
            let found = add_inventory(&mut learned, &report).map_err(wrong)?;
            note(&format!(
                "of the inventory {} operations were added, {} are known from the traffic, {} left out",
                found.added, found.known, found.left_out
            ));
        }
        for line in summary(&learned, unreadable) {
            note(&line);
        }
        if learned.operations == 0 {
            return Err(CliError::Other(
                "nothing was learned: no operation has three requests that the backend accepted".to_owned(),
            ));
        }
        let text = written(&learned.document, self.json)?;
        match &self.out {
            Some(file) => write(file, &text),
            None => say(format_args!("{}", text.trim_end())),
        }
    }
}

/// Learns from recordings: what was learned, and how many entries could not be read.
fn learn(paths: &[PathBuf], options: Options) -> Result<(Learned, u64), CliError> {
    let mut learner = Learner::new(options);
    let mut unreadable = 0_u64;
    if !paths.is_empty() {
        let opened = recording::open(paths, &recording::Options::default());
        let mut recording = opened.map_err(|error| CliError::Other(error.to_string()))?;
        let meter = recording.meter();
        for entry in &mut recording {
            match entry {
                Ok(entry) => observe(&mut learner, &entry),
                Err(problem) => {
                    unreadable += 1;
                    if unreadable <= NAMED_PROBLEMS {
                        note(&format!("not read: {problem}"));
                    }
                }
            }
            show(&meter, learner.counts().observed);
        }
    }
    Ok((learner.finish(), unreadable))
}

/// Learns from an entry. A recorded status of the client counts besides the backend's: what a gateway refused is no example. An entry
/// without any answer says nothing.
fn observe(learner: &mut Learner, entry: &Entry) {
    let (request, response) = (&entry.exchange.request, &entry.exchange.response);
    let unanswered = entry.status.is_none() && *response == Response::default();
    let status = match entry.status {
        Some(status) if status >= 400 => Some(status),
        _ if unanswered => None,
        _ => Some(response.status),
    };
    learner.observe(&Observation {
        method: request.header(":method").unwrap_or_default(),
        path: request.header(":path").unwrap_or_default(),
        headers: &request.headers,
        body: &request.body,
        status,
        response_headers: &response.headers,
        response_body: &response.body,
    });
}

/// Shows how far it is, where someone looks at it.
fn show(meter: &Meter, observed: u64) {
    if observed == 0 || !observed.is_multiple_of(SHOWN_EACH) || !std::io::stderr().is_terminal() {
        return;
    }
    let progress = meter.progress();
    let share = progress.bytes_read.saturating_mul(100).checked_div(progress.bytes_total).unwrap_or_default().min(100);
    note(&format!("{observed} exchanges, {share} % read"));
}

fn summary(learned: &Learned, unreadable: u64) -> Vec<String> {
    let counts = &learned.counts;
    let mut lines = vec![format!(
        "{} operations of {} paths, learned from {} of {} exchanges",
        learned.operations, learned.paths, counts.learned, counts.observed
    )];
    let others = [
        (counts.refused, "were not accepted by the backend"),
        (counts.unanswered, "have no answer in the recording"),
        (counts.attacks, "look like attacks"),
        (counts.foreign, "have a method or a path that cannot be described, or are preflights"),
        (unreadable, "entries could not be read"),
    ];
    lines.extend(others.iter().filter(|(count, _)| *count > 0).map(|(count, why)| format!("{count} {why}")));
    if learned.left_out > 0 {
        lines.push(format!("{} operations have less than three requests and are left out", learned.left_out));
    }
    if learned.full {
        lines.push("the traffic has more parts than are kept; some of it is not described".to_owned());
    }
    lines
}

/// The text of the document. YAML that would be read back differently is an error: `--json` has no such cases.
fn written(document: &Value, json: bool) -> Result<String, CliError> {
    if json {
        let text = serde_json::to_string_pretty(document).map_err(|error| CliError::Other(error.to_string()))?;
        return Ok(format!("{text}\n"));
    }
    let text = serde_saphyr::to_string(document).map_err(|error| CliError::Other(error.to_string()))?;
    if serde_saphyr::from_str::<Value>(&text).is_ok_and(|back| back == *document) {
        return Ok(text);
    }
    Err(CliError::Other("the document cannot be written as YAML; add --json".to_owned()))
}

fn write(file: &Path, text: &str) -> Result<(), CliError> {
    std::fs::write(file, text).map_err(|error| CliError::Io(format!("write {}", file.display()), error))
}

fn note(text: &str) {
    // A closed standard error leaves no one to tell.
    let _ = writeln!(std::io::stderr(), "palisade: {text}");
}
