//! Why a command failed.

use std::fmt;

use store::StoreError;

/// Why a command failed.
#[derive(Debug)]
#[non_exhaustive]
pub enum CliError {
    /// The store.
    Store(StoreError),
    /// A file, a socket, the terminal: what was to be done, and what the operating system said.
    Io(String, std::io::Error),
    /// The command has said what is wrong; only the exit code is left.
    Reported,
    /// Anything else, in a sentence.
    Other(String),
}

impl fmt::Display for CliError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CliError::Store(error) => error.fmt(f),
            CliError::Io(what, error) => write!(f, "cannot {what}: {error}"),
            CliError::Reported => Ok(()),
            CliError::Other(text) => f.write_str(text),
        }
    }
}

impl std::error::Error for CliError {}

impl From<StoreError> for CliError {
    fn from(error: StoreError) -> CliError {
        CliError::Store(error)
    }
}
