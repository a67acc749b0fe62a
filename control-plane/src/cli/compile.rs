//! `palisade compile`: a snapshot from a folder of entities, for gateways without a control plane.

use std::path::PathBuf;

use super::{CliError, say};
use crate::compile::{Compiler, Settings, discovery_response};
use crate::entities::{DEFAULT_GROUP, EntitySet};

/// `palisade compile`.
#[derive(Debug, clap::Args)]
pub(super) struct CompileCommand {
    /// The folder: one entity in each .yaml, .yml or .json file.
    #[arg(long, value_name = "DIR")]
    entities: PathBuf,

    /// Where the result goes. A name that ends in .json gets an xDS discovery response with every filter, which Envoy
    /// reads by `path_config_source`; any other name gets the snapshot of one filter as it is.
    #[arg(long, value_name = "FILE")]
    out: PathBuf,

    /// The filter whose snapshot is written; not needed where the gateway has only one, nor for .json.
    #[arg(long, value_name = "NAME")]
    filter: Option<String>,

    /// The group of gateways that it is for, of `groups` in global-config.
    #[arg(long, value_name = "NAME", default_value = DEFAULT_GROUP)]
    group: String,

    /// The folder of the .wasm modules, as the gateway sees it.
    #[arg(long, env = "PALISADE_FILTERS_DIR", value_name = "DIR", default_value = "target/filters")]
    filters_dir: PathBuf,

    /// The gateway reaches a control plane through the cluster `palisade-control-plane`: filters send it their events.
    #[arg(long)]
    link: bool,
}

impl CompileCommand {
    pub(super) fn run(self) -> Result<(), CliError> {
        let set = match EntitySet::from_dir(&self.entities) {
            Ok(set) => set,
            Err(problems) => return Err(report(&problems)?),
        };
        let compiler = Compiler::new(Settings { filters_dir: self.filters_dir, link: self.link });
        let compiled = match compiler.compile(&set) {
            Ok(compiled) => compiled,
            Err(problems) => return Err(report(&problems)?),
        };
        for warning in &compiled.warnings {
            say(format_args!("warning: {warning}"))?;
        }
        let gateway = compiled.group(&self.group).ok_or_else(|| {
            let names: Vec<&str> = compiled.groups.keys().map(String::as_str).chain([DEFAULT_GROUP]).collect();
            CliError::Other(format!("global-config has no group `{}`; there is {}", self.group, names.join(", ")))
        })?;
        let filters = &gateway.filters;
        let bytes = if self.out.extension().is_some_and(|extension| extension == "json") {
            let document = serde_json::to_vec_pretty(&discovery_response(gateway));
            document.map_err(|error| CliError::Other(error.to_string()))?
        } else {
            let names: Vec<&str> = filters.iter().map(|filter| filter.name.as_str()).collect();
            let wanted = match (self.filter.as_deref(), names.as_slice()) {
                (Some(name), _) => name,
                (None, [only]) => only,
                (None, _) => {
                    let message =
                        format!("the gateway has several filters: choose one with --filter ({})", names.join(", "));
                    return Err(CliError::Other(message));
                }
            };
            let found = filters.iter().find(|filter| filter.name == wanted).ok_or_else(|| {
                CliError::Other(format!("the gateway has no filter `{wanted}`; it has {}", names.join(", ")))
            })?;
            found.snapshot.clone()
        };
        write(&self.out, &bytes)?;
        let versions = filters.iter().filter_map(|filter| {
            let (version, _) = snapshot::open(&filter.snapshot).ok()?;
            Some(format!("{} {}", filter.name, version.get(..16).unwrap_or_default()))
        });
        say(format_args!("{}: {} bytes; {}", self.out.display(), bytes.len(), versions.collect::<Vec<_>>().join(", ")))
    }
}

/// Written beside its place and moved there, so that a gateway that watches the file never reads half of it.
fn write(path: &PathBuf, bytes: &[u8]) -> Result<(), CliError> {
    let fail = |error| CliError::Io(format!("write {}", path.display()), error);
    let mut beside = path.clone().into_os_string();
    beside.push(".new");
    std::fs::write(&beside, bytes).map_err(fail)?;
    std::fs::rename(&beside, path).map_err(fail)
}

fn report(problems: &[impl std::fmt::Display]) -> Result<CliError, CliError> {
    for problem in problems {
        say(format_args!("{problem}"))?;
    }
    say(format_args!("{} problem{}; nothing was written", problems.len(), if problems.len() == 1 { "" } else { "s" }))?;
    Ok(CliError::Reported)
}
