//! `palisade-replay diff`

use std::io::{BufReader, Read as _, Seek as _};
use std::path::{Path, PathBuf};

use report::diff::{Diff, Options, Reader};
use report::sink::{FailOn, Json};

use super::gateway::Parts;
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
    #[command(flatten)]
    output: Output,
    /// A score that differs by this or less has not changed
    #[arg(long, default_value_t = 0.0, value_name = "POINTS")]
    score: f64,
    /// How many requests of each kind are listed; all are counted
    #[arg(long, default_value_t = Options::default().listed, value_name = "N")]
    listed: usize,
}

/// Whether the two do not differ.
pub(crate) fn diff(arguments: &Compare) -> Result<bool, String> {
    if arguments.output.format() == Format::Junit {
        return Err("a comparison is written as table, json or html".to_owned());
    }
    let options = Options { score: arguments.score, listed: arguments.listed };
    let (a, b) = (arguments.document(&arguments.a, 1)?, arguments.document(&arguments.b, 2)?);
    let compared = report::diff::diff(a, b, &options).map_err(|error| error.to_string())?;
    arguments.write(&compared).map_err(|error| match arguments.output.path() {
        Some(path) => format!("{}: {error}", path.display()),
        None => format!("standard output: {error}"),
    })?;
    Ok(!compared.differs())
}

impl Compare {
    /// The document that was named, or that comes of a replay with what was named.
    fn document(&self, path: &Path, part: u8) -> Result<Reader<BufReader<std::fs::File>>, String> {
        if self.traffic.paths().is_empty() {
            return match is_document(path) {
                Ok(true) => Reader::open(path).map_err(|error| error.to_string()),
                Ok(false) => Err(format!(
                    "{}: this is no document of `run --format json`; to compare snapshots or entities give --traffic",
                    path.display()
                )),
                Err(error) => Err(format!("{}: {error}", path.display())),
            };
        }
        let setup = self.parts.setup(configuration(path, &self.parts)?)?;
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

/// Whether a file begins as a JSON object does.
fn is_document(path: &Path) -> std::io::Result<bool> {
    let mut first = [0; 64];
    let read = std::fs::File::open(path)?.read(&mut first)?;
    Ok(first[..read].trim_ascii_start().starts_with(b"{"))
}
