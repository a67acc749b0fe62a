//! `palisade-replay diff`

use std::io::{BufReader, Read as _, Seek as _};
use std::path::{Path, PathBuf};

use report::diff::{Diff, Options, Reader};
use report::sink::{FailOn, Json};

use super::gate::Gate;
use super::gateway::{Parts, Setup};
use super::output::{Format, Output};
use super::run::{about, configuration, replay};
use super::traffic::Traffic;

/// Its arguments.
#[derive(Debug, clap::Args)]
pub(crate) struct Compare {
    /// The one before: what `run --format json` wrote; with --traffic a snapshot or a folder of entities
    a: PathBuf,
    /// The one after
    b: PathBuf,
    #[command(flatten)]
    traffic: Traffic,
    #[command(flatten)]
    parts: Parts,
    /// The route of requests whose recording names none in the second run, where it is not the one of --route; empty for the
    /// global chain
    #[arg(long, value_name = "NAME")]
    route_b: Option<String>,
    #[command(flatten)]
    gate: Gate,
    #[command(flatten)]
    output: Output,
    /// A score that differs by this or less has not changed
    #[arg(long, default_value_t = 0.0, value_name = "POINTS")]
    score: f64,
    /// How many requests of each kind are listed; all are counted
    #[arg(long, default_value_t = Options::default().listed, value_name = "N")]
    listed: usize,
}

/// Whether the two do not differ, in anything that could be read.
pub(crate) fn diff(arguments: &Compare) -> Result<bool, String> {
    if arguments.output.format() == Format::Junit {
        return Err("a comparison is written as table, json or html".to_owned());
    }
    let options = Options { score: arguments.score, listed: arguments.listed };
    let [a, b] = arguments.documents()?;
    let compared = report::diff::diff(a, b, &options).map_err(|error| error.to_string())?;
    arguments.write(&compared).map_err(|error| match arguments.output.path() {
        Some(path) => format!("{}: {error}", path.display()),
        None => format!("standard output: {error}"),
    })?;
    // Both sides of a replay read the same recording.
    let sides = match arguments.traffic.paths().is_empty() {
        true => vec![(compared.a.name.as_str(), &compared.a), (compared.b.name.as_str(), &compared.b)],
        false => vec![("the recording", &compared.a)],
    };
    let unreadable: Vec<_> = sides.into_iter().map(|(name, side)| (name, side.totals.bad_entries.count)).collect();
    let passes = arguments.gate.passes(compared.counts.compared, "compared", &unreadable)?;
    Ok(passes && !compared.differs())
}

/// A document of a replay.
type Document = Reader<BufReader<std::fs::File>>;

impl Compare {
    /// The documents that were named, or those of a replay with what was named.
    fn documents(&self) -> Result<[Document; 2], String> {
        if self.traffic.paths().is_empty() {
            return Ok([named(&self.a)?, named(&self.b)?]);
        }
        let configurations = [configuration(&self.a, &self.parts)?, configuration(&self.b, &self.parts)?];
        let [a, b] = self.parts.setup_both(configurations, self.route_b.as_deref())?;
        Ok([self.replayed(a, &self.a, 1)?, self.replayed(b, &self.b, 2)?])
    }

    fn replayed(&self, setup: Setup<'_>, path: &Path, part: u8) -> Result<Document, String> {
        let about = about(&setup, path, &self.traffic);
        let failed = |error: std::io::Error| format!("a temporary file: {error}");
        let mut file = tempfile::tempfile().map_err(failed)?;
        let sink = Json::new(file.try_clone().map_err(failed)?, &about).map_err(failed)?;
        eprintln!("replaying with {}", path.display());
        replay(setup, &self.traffic, Box::new(sink), &about, FailOn::default(), (part, 2))?;
        file.rewind().map_err(failed)?;
        Reader::new(path.display().to_string(), BufReader::new(file)).map_err(|error| error.to_string())
    }

    fn write(&self, compared: &Diff) -> std::io::Result<()> {
        let out = self.output.writer().map_err(std::io::Error::other)?;
        match self.output.format() {
            Format::Json => compared.json(out),
            Format::Html => compared.html(out),
            Format::Table | Format::Junit => compared.table(out, &self.output.screen()),
        }
    }
}

fn named(path: &Path) -> Result<Document, String> {
    match is_document(path) {
        Ok(true) => Reader::open(path).map_err(|error| error.to_string()),
        Ok(false) => Err(format!(
            "{}: this is no document of `run --format json`; to compare snapshots or entities give --traffic",
            path.display()
        )),
        Err(error) => Err(format!("{}: {error}", path.display())),
    }
}

/// Whether a file begins as a JSON object does.
fn is_document(path: &Path) -> std::io::Result<bool> {
    let mut first = [0; 64];
    let read = std::fs::File::open(path)?.read(&mut first)?;
    Ok(first[..read].trim_ascii_start().starts_with(b"{"))
}
