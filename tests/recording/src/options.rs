//! How to read a recording, and formats from elsewhere.

use std::fmt;
use std::io::BufRead;
use std::path::Path;
use std::sync::Arc;

use crate::{BadEntry, Entry, Format, Meter, Place};

/// How to read a recording.
#[derive(Debug, Clone)]
pub struct Options {
    /// The format of every file; `None` finds it file by file.
    pub format: Option<Format>,
    /// The bytes that an entry may have in its file, decompressed. A longer one is a [`BadEntry`].
    pub entry_limit: usize,
    /// The client's address and port where a recording does not tell.
    pub peer: String,
    /// How many files are read at a time, at least 1. Where more of them overlap in time, order is by file.
    pub files_at_once: usize,
    /// Formats from elsewhere. They are asked first, in their order, unless [`Options::format`] is set.
    pub other: Vec<Arc<dyn Reader>>,
}

/// A format from elsewhere.
pub trait Reader: fmt::Debug + Send + Sync {
    /// Its name, for people.
    fn name(&self) -> &str;

    /// Whether a file is of this format, by its path and its first bytes (up to 8 KiB, decompressed).
    fn knows(&self, path: &Path, head: &[u8]) -> bool;

    /// The entries of a file, in its order. A file may be read twice, the first time for its times.
    fn read(&self, input: Input) -> Entries;
}

/// The entries of one file. The iterator ends after a fault that nothing can be read behind.
pub type Entries = Box<dyn Iterator<Item = Result<Entry, BadEntry>> + Send>;

/// A file that is read.
pub struct Input {
    /// Its name in [`Place::file`].
    pub name: Arc<str>,
    /// What is in it, decompressed.
    pub bytes: Box<dyn BufRead + Send>,
    /// [`Options::entry_limit`].
    pub limit: usize,
    /// [`Options::peer`].
    pub peer: String,
    /// Counts what is left out.
    pub meter: Meter,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            format: None,
            entry_limit: 32 << 20,
            peer: crate::traffic::Request::default().peer,
            files_at_once: 64,
            other: Vec::new(),
        }
    }
}

impl Input {
    /// The place of an entry in this file.
    #[must_use]
    pub fn place(&self, number: u64) -> Place {
        Place { file: Arc::clone(&self.name), number }
    }

    /// An entry that cannot be read.
    pub fn bad(&self, number: u64, why: impl Into<String>) -> BadEntry {
        BadEntry { place: self.place(number), why: why.into() }
    }
}

impl fmt::Debug for Input {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Input").field("name", &self.name).finish_non_exhaustive()
    }
}
