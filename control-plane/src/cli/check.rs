//! `palisade check`: are the entities of a folder in order? And what is in OpenAPI documents?

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Instant;

use super::error::CliError;
use super::output::{say, warn, warn_of_files};
use compiler::{Compiler, Settings};
use contract::compile::{Options, compile};
use entities::registry::KINDS;
use entities::{EntitySet, FileEntity};
use kit::ChallengeRoot;
use serde_json::{Value, json};

/// `palisade check`.
#[derive(Debug, clap::Args)]
pub(super) struct CheckCommand {
    /// The folder: one entity in each .yaml, .yml or .json file.
    #[arg(required_unless_present = "contract")]
    folder: Option<PathBuf>,
    /// OpenAPI documents in place of a folder: prints a line of JSON for each (file, ok, version, operations, warnings, millis).
    ///
    /// Exits with 1 if one does not compile.
    #[arg(long, value_name = "FILE", num_args = 1.., conflicts_with = "folder")]
    contract: Vec<PathBuf>,
}

impl CheckCommand {
    pub(super) fn run(self) -> Result<(), CliError> {
        match self.folder {
            Some(folder) => check_folder(&folder),
            None => check_contracts(&self.contract),
        }
    }
}

fn check_folder(folder: &Path) -> Result<(), CliError> {
    match EntitySet::from_dir(folder) {
        Ok(set) => {
            let compiler =
                Compiler::new(Settings { challenge_root: ChallengeRoot::for_checks(), ..Settings::default() });
            match compiler.compile(&set) {
                Ok(compiled) => {
                    let files = FileEntity::read_dir(folder).unwrap_or_default();
                    let name = |file: &FileEntity| format!("{}/{}", file.kind.collection, file.entity.head().id);
                    let files: BTreeMap<String, PathBuf> =
                        files.into_iter().map(|file| (name(&file), file.file)).collect();
                    warn_of_files(folder, !files.is_empty())?;
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

/// Compiles documents as a gateway would use them, responses included.
fn check_contracts(files: &[PathBuf]) -> Result<(), CliError> {
    let mut right = true;
    for file in files {
        #[allow(clippy::disallowed_methods, reason = "a person is told how long it took, in no filter")]
        let began = Instant::now();
        let mut line = match std::fs::read_to_string(file) {
            Ok(text) => described(&text),
            Err(error) => json!({ "ok": false, "error": format!("cannot read it: {error}") }),
        };
        right &= line.get("ok") == Some(&Value::Bool(true));
        if let Value::Object(line) = &mut line {
            line.insert("file".to_owned(), file.display().to_string().into());
            line.insert("millis".to_owned(), u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX).into());
        }
        say(format_args!("{line}"))?;
    }
    if right { Ok(()) } else { Err(CliError::Reported) }
}

fn described(text: &str) -> Value {
    match compile(text, "", Options { responses: true }) {
        Ok(compiled) => json!({
            "ok": true,
            "version": compiled.version,
            "operations": compiled.operations.len(),
            "warnings": compiled.warnings,
        }),
        Err(error) => json!({ "ok": false, "error": error.to_string() }),
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
