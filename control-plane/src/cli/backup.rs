//! `palisade backup` and `palisade restore`: the store as one file.

use std::path::PathBuf;

use super::error::CliError;
use super::output::say;
use base::clock;
use store::{self, SqliteStore};

/// `palisade backup`.
#[derive(Debug, clap::Args)]
pub(super) struct BackupCommand {
    /// The file to write; it must not exist yet. It contains all data of the store, including hashes of secrets.
    file: PathBuf,

    /// The directory of the store.
    #[arg(long, env = "PALISADE_DATA", value_name = "DIR", default_value = "palisade-data")]
    data: PathBuf,
}

/// `palisade restore`.
#[derive(Debug, clap::Args)]
pub(super) struct RestoreCommand {
    /// The file written by `palisade backup`.
    file: PathBuf,

    /// The directory of the store.
    #[arg(long, env = "PALISADE_DATA", value_name = "DIR", default_value = "palisade-data")]
    data: PathBuf,
}

impl BackupCommand {
    pub(super) fn run(self) -> Result<(), CliError> {
        if !SqliteStore::exists(&self.data) {
            return Err(CliError::Other(format!("there is no store in {}; is --data right?", self.data.display())));
        }
        if self.file.exists() {
            let file = self.file.display();
            return Err(CliError::Other(format!("{file} exists already; give the backup another name")));
        }
        store::backup(&self.data, &self.file)?;
        let bytes = std::fs::metadata(&self.file).map_or(0, |file| file.len());
        say(format_args!("{}: {bytes} bytes", self.file.display()))
    }
}

impl RestoreCommand {
    pub(super) fn run(self) -> Result<(), CliError> {
        let restored = store::restore(&self.data, &self.file, clock::now_millis())?;
        if let Some(kept) = &restored.kept {
            say(format_args!("the old store is kept as {}", kept.display()))?;
        }
        say(format_args!("restored {} to {}, revision {}", self.file.display(), self.data.display(), restored.revision))
    }
}
