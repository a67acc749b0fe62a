//! Recordings as exchanges. What cannot be read is named and counted.

use std::io::IsTerminal as _;
use std::path::PathBuf;

use api::console::recorded_exchange;
use kit::RecordedExchange;
use recording::Recording;

use super::note;
use crate::cli::error::CliError;

/// After so many exchanges the progress is shown.
const SHOWN_EACH: u64 = 10_000;
/// The entries that cannot be read and are named.
const NAMED_PROBLEMS: u64 = 10;

/// The exchanges of recordings, in the order of time; one entry is in memory at a time.
pub(super) struct Exchanges {
    /// The paths that were named.
    names: String,
    recording: Recording,
    read: u64,
    unreadable: u64,
    /// How many of these are named.
    named: u64,
    /// There is a person who looks at the progress.
    shown: bool,
}

impl Exchanges {
    pub(super) fn open(paths: &[PathBuf]) -> Result<Self, CliError> {
        let opened = recording::open(paths, &recording::Options::default());
        let recording = opened.map_err(|error| CliError::Other(error.to_string()))?;
        let names: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
        let (names, shown) = (names.join(", "), std::io::stderr().is_terminal());
        Ok(Self { names, recording, read: 0, unreadable: 0, named: NAMED_PROBLEMS, shown })
    }

    /// What cannot be read was named before.
    pub(super) fn again(self) -> Self {
        Self { named: 0, ..self }
    }

    /// The paths that were named.
    pub(super) fn names(&self) -> &str {
        &self.names
    }

    /// How many were read.
    pub(super) fn read(&self) -> u64 {
        self.read
    }

    /// How many entries could not be read.
    pub(super) fn unreadable(&self) -> u64 {
        self.unreadable
    }

    fn show(&self) {
        if !self.shown || !self.read.is_multiple_of(SHOWN_EACH) {
            return;
        }
        let progress = self.recording.progress();
        let share = progress.bytes_read.saturating_mul(100).checked_div(progress.bytes_total);
        note(&format!("{} requests, {} % read", self.read, share.unwrap_or_default().min(100)));
    }
}

impl Iterator for Exchanges {
    type Item = RecordedExchange;

    fn next(&mut self) -> Option<RecordedExchange> {
        loop {
            match self.recording.next()? {
                Ok(entry) => {
                    self.read += 1;
                    self.show();
                    return Some(recorded_exchange(entry));
                }
                Err(problem) => {
                    self.unreadable += 1;
                    if self.unreadable <= self.named {
                        note(&format!("not read: {problem}"));
                    }
                }
            }
        }
    }
}
