//! `palisade compile`: a snapshot from a folder of entities, for gateways without a control plane.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use super::error::CliError;
use super::output::say;
use base::atomic_file::{self, Readers};
use compiler::{Compiler, Settings, discovery_response, fill};
use entities::{DEFAULT_GROUP, EntitySet};
use xds::resources::{FilterInput, Gateway};

/// Tells those who called something.
type Note = fn(std::fmt::Arguments<'_>) -> Result<(), CliError>;

/// What can be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    /// An xDS discovery response in JSON: what Envoy reads by `path_config_source`, one filter from each file.
    Xds,
    /// The snapshot of one filter as it is: what goes into a `google.protobuf.BytesValue`.
    Snapshot,
    /// The same as a JSON object, compressed: for gateways whose own configuration can only carry JSON.
    Json,
}

/// `palisade compile`.
#[derive(Debug, clap::Args)]
pub(super) struct CompileCommand {
    /// The folder: one entity in each .yaml, .yml or .json file.
    #[arg(long, value_name = "DIR")]
    entities: PathBuf,

    /// The file of the result; `-` means standard output.
    #[arg(long, value_name = "FILE")]
    out: PathBuf,

    /// The format of the result. By default `xds` if its name ends in .json, otherwise `snapshot`.
    #[arg(long, value_enum, value_name = "FORMAT")]
    format: Option<Format>,

    /// A template, such as an Istio WasmPlugin; the word SNAPSHOT in it is replaced by the filter's snapshot.
    #[arg(long, value_name = "FILE", conflicts_with = "format")]
    template: Option<PathBuf>,

    /// The filter whose snapshot is written; not needed if the gateway has only one. Without it `xds` contains all of them.
    #[arg(long, value_name = "NAME")]
    filter: Option<String>,

    /// The group of gateways, one of `groups` in global-config.
    #[arg(long, value_name = "NAME", default_value = DEFAULT_GROUP)]
    group: String,

    /// The folder of the .wasm modules, as the gateway sees it.
    #[arg(long, env = "PALISADE_FILTERS_DIR", value_name = "DIR", default_value = "target/filters")]
    filters_dir: PathBuf,

    /// Filters send their events to a control plane through the cluster `palisade-control-plane`.
    #[arg(long)]
    link: bool,
}

impl CompileCommand {
    pub(super) fn run(self) -> Result<(), CliError> {
        let note: Note = if self.to_output() { note } else { say };
        let set = match EntitySet::from_dir(&self.entities) {
            Ok(set) => set,
            Err(problems) => return Err(report(&problems, note)?),
        };
        let compiler =
            Compiler::new(Settings { filters_dir: self.filters_dir.clone(), link: self.link, ..Settings::default() });
        let compiled = match compiler.compile(&set) {
            Ok(compiled) => compiled,
            Err(problems) => return Err(report(&problems, note)?),
        };
        for warning in &compiled.warnings {
            note(format_args!("warning: {warning}"))?;
        }
        let gateway = compiled.group(&self.group).ok_or_else(|| {
            let names: Vec<&str> = compiled.groups.keys().map(String::as_str).chain([DEFAULT_GROUP]).collect();
            CliError::Other(format!("global-config has no group `{}`; it has {}", self.group, names.join(", ")))
        })?;
        let filters = &gateway.filters;
        if self.is_xds() && self.filter.is_none() && filters.len() > 1 {
            note(format_args!("warning: Envoy reads one filter from each file: write a file for each, with --filter"))?;
        }
        let bytes = self.result(gateway)?;
        if self.to_output() {
            std::io::stdout().write_all(&bytes).map_err(|error| CliError::Io("write the result".to_owned(), error))?;
        } else {
            write(&self.out, &bytes)?;
        }
        let versions = filters.iter().filter_map(|filter| {
            let (version, _) = snapshot::open(&filter.snapshot).ok()?;
            Some(format!("{} {}", filter.name, version.get(..16).unwrap_or_default()))
        });
        note(format_args!("{}: {} bytes; {}", self.out.display(), bytes.len(), versions.collect::<Vec<_>>().join(", ")))
    }

    fn to_output(&self) -> bool {
        self.out.as_os_str() == "-"
    }

    fn is_xds(&self) -> bool {
        self.template.is_none() && self.format() == Format::Xds
    }

    fn format(&self) -> Format {
        let by_name = match self.out.extension().is_some_and(|extension| extension == "json") {
            true => Format::Xds,
            false => Format::Snapshot,
        };
        self.format.unwrap_or(by_name)
    }

    fn result(&self, gateway: &Gateway) -> Result<Vec<u8>, CliError> {
        if let Some(template) = &self.template {
            let text = std::fs::read_to_string(template)
                .map_err(|error| CliError::Io(format!("read {}", template.display()), error))?;
            let filled = fill(&text, &self.chosen(gateway)?.snapshot)
                .map_err(|why| CliError::Other(format!("{}: {why}", template.display())))?;
            return Ok(filled.into_bytes());
        }
        let document = match self.format() {
            Format::Snapshot => return Ok(self.chosen(gateway)?.snapshot.clone()),
            Format::Json => serde_json::to_vec(&snapshot::configuration_json(&self.chosen(gateway)?.snapshot)),
            Format::Xds if self.filter.is_some() => {
                serde_json::to_vec_pretty(&discovery_response([self.chosen(gateway)?]))
            }
            Format::Xds => serde_json::to_vec_pretty(&discovery_response(&gateway.filters)),
        };
        document.map_err(|error| CliError::Other(error.to_string()))
    }

    /// The one filter that is meant.
    fn chosen<'a>(&self, gateway: &'a Gateway) -> Result<&'a FilterInput, CliError> {
        let names: Vec<&str> = gateway.filters.iter().map(|filter| filter.name.as_str()).collect();
        let wanted = match (self.filter.as_deref(), names.as_slice()) {
            (Some(name), _) => name,
            (None, [only]) => only,
            (None, _) => {
                let message =
                    format!("the gateway has several filters: choose one with --filter ({})", names.join(", "));
                return Err(CliError::Other(message));
            }
        };
        let found = gateway.filters.iter().find(|filter| filter.name == wanted);
        found.ok_or_else(|| {
            CliError::Other(format!("the gateway has no filter `{wanted}`; it has {}", names.join(", ")))
        })
    }
}

/// As [`say`], where standard output is for the result alone.
fn note(message: std::fmt::Arguments<'_>) -> Result<(), CliError> {
    writeln!(std::io::stderr(), "{message}").map_err(|error| CliError::Io("write to standard error".to_owned(), error))
}

/// A gateway that watches the file never reads half of it.
fn write(path: &Path, bytes: &[u8]) -> Result<(), CliError> {
    let written = atomic_file::replace(path, bytes, Readers::Umask);
    written.map_err(|error| CliError::Io(format!("write {}", path.display()), error))
}

fn report(problems: &[impl std::fmt::Display], note: Note) -> Result<CliError, CliError> {
    for problem in problems {
        note(format_args!("{problem}"))?;
    }
    note(format_args!(
        "{} problem{}; nothing was written",
        problems.len(),
        if problems.len() == 1 { "" } else { "s" }
    ))?;
    Ok(CliError::Reported)
}
