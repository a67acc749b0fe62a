//! `palisade check`: are the entities of a folder in order?

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::error::CliError;
use super::output::{say, warn};
use compiler::{Compiler, Settings};
use entities::registry::KINDS;
use entities::{EntitySet, FileEntity};
use kit::ChallengeRoot;

/// `palisade check`.
#[derive(Debug, clap::Args)]
pub(super) struct CheckCommand {
    /// The folder: one entity in each .yaml, .yml or .json file.
    folder: PathBuf,
}

impl CheckCommand {
    pub(super) fn run(self) -> Result<(), CliError> {
        match EntitySet::from_dir(&self.folder) {
            Ok(set) => {
                let compiler =
                    Compiler::new(Settings { challenge_root: ChallengeRoot::for_checks(), ..Settings::default() });
                match compiler.compile(&set) {
                    Ok(compiled) => {
                        let files = FileEntity::read_dir(&self.folder).unwrap_or_default();
                        let name = |file: &FileEntity| format!("{}/{}", file.kind.collection, file.entity.head().id);
                        let files: BTreeMap<String, PathBuf> =
                            files.into_iter().map(|file| (name(&file), file.file)).collect();
                        warn(&compiled.warnings, |name| files.get(name).map(PathBuf::as_path))?;
                    }
                    Err(problems) => return refuse(&problems),
                }
                let counts = KINDS.iter().map(|kind| (kind.collection, set.slots(kind.collection).count()));
                let counts: Vec<String> = counts.map(|(name, count)| format!("{count} {name}")).collect();
                say(format_args!("no problems: {}", counts.join(", ")))
            }
            Err(problems) => refuse(&problems),
        }
    }
}

fn refuse(problems: &[impl std::fmt::Display]) -> Result<(), CliError> {
    for problem in problems {
        say(format_args!("{problem}"))?;
    }
    let plural = if problems.len() == 1 { "problem" } else { "problems" };
    say(format_args!("{} {plural}", problems.len()))?;
    Err(CliError::Reported)
}
