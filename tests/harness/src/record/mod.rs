//! Recordings from what gateways write: files that are there, and streams while they come.
//!
//! A [`Recorder`] masks entries and writes them as our own JSON lines; [`listen`] takes connections, on each of which a
//! stream of traces or of access log lines comes.

mod listen;

use std::io;
use std::path::Path;

use recording::mask::Mask;
use recording::write::Writer;
use recording::{BadEntry, Entry};

pub use listen::{Listener, Message, listen};

/// How many of the entries that cannot be read are told one by one.
const TOLD: u64 = 20;

/// Writes a recording.
pub struct Recorder {
    writer: Writer,
    mask: Option<Mask>,
    counts: Counts,
}

/// What became of the entries.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Those that were written.
    pub recorded: u64,
    /// Those that could not be read.
    pub bad: u64,
}

impl Recorder {
    /// A new file, compressed if its name ends in `.gz`. Without a mask all secrets stay in it.
    ///
    /// # Errors
    ///
    /// There is such a file and it is not to be replaced, or it cannot be made.
    pub fn create(path: &Path, replace: bool, mask: Option<Mask>) -> Result<Self, String> {
        if path.exists() && !replace {
            return Err(format!("{}: there is such a file; --force replaces it", path.display()));
        }
        let writer = Writer::create(path).map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(Self { writer, mask, counts: Counts::default() })
    }

    /// Takes an entry. One that cannot be read is counted; the first of them are given back for people to see.
    ///
    /// # Errors
    ///
    /// Writing fails.
    pub fn take(&mut self, entry: Result<Entry, BadEntry>) -> io::Result<Option<BadEntry>> {
        match entry {
            Ok(mut entry) => {
                if let Some(mask) = &self.mask {
                    mask.apply(&mut entry);
                }
                self.writer.write(&entry)?;
                self.counts.recorded += 1;
                Ok(None)
            }
            Err(bad) => {
                self.counts.bad += 1;
                Ok((self.counts.bad <= TOLD).then_some(bad))
            }
        }
    }

    /// What became of the entries so far.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Writes what is held back.
    ///
    /// # Errors
    ///
    /// Writing fails.
    pub fn flush(&mut self) -> io::Result<()> {
        self.writer.flush()
    }

    /// Ends the file.
    ///
    /// # Errors
    ///
    /// Writing fails.
    pub fn finish(self) -> io::Result<Counts> {
        self.writer.finish()?;
        Ok(self.counts)
    }
}
