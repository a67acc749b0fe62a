//! Recorded traffic: the formats that it comes in, and one shape for all of them.
//!
//! [`traffic`] is an exchange as filters see it; [`Entry`] is one that was recorded, with its place and its time.
//! [`open`] reads files and folders in any of the formats ([`Format`]), in the order of time, [`live`] what still comes in; [`write::Writer`] writes the
//! one that is our own, JSON lines, and [`mask::Mask`] keeps secrets out of it. The crate's `README.md` describes the
//! formats.

mod format;
mod formats;
mod json;
pub mod mask;
mod options;
pub mod random;
mod recording;
mod shape;
mod source;
mod time;
pub mod traffic;
pub mod varied;
pub mod write;

use std::fmt;
use std::sync::Arc;

use traffic::Exchange;

pub use format::{Format, UnknownFormat};
pub use options::{Entries, Input, Options, Reader};
pub use recording::{Meter, OpenError, Progress, Recording, live, open};

/// One recorded exchange.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Where it stands.
    pub place: Place,
    /// When the request came, in milliseconds since the Unix epoch; `None` where the recording does not say.
    pub at_millis: Option<u64>,
    /// The status that the client got then; `None` where the recording has none. The exchange's response is what the
    /// backend is taken to answer: the recorded one where there is one.
    pub status: Option<u16>,
    /// What is known to be missing or was guessed, a sentence each: a body that the recorder cut, a masked header.
    pub notes: Vec<String>,
    /// The exchange.
    pub exchange: Exchange,
}

impl Entry {
    /// About how many bytes it takes in memory.
    #[must_use]
    pub fn weight(&self) -> usize {
        self.exchange.weight().saturating_add(self.notes.iter().map(|note| note.len() + 24).sum())
    }
}

/// Where an entry stands in its recording. Shown as `FILE#NUMBER`; stable from run to run.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Place {
    /// The file, as it was named or found below the folder that was named.
    pub file: Arc<str>,
    /// The entry in its file, from 1; 0 for the file as a whole.
    pub number: u64,
}

/// An entry that cannot be read; the others can.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadEntry {
    /// Where it stands.
    pub place: Place,
    /// What is wrong with it, where in it (a line, a field's path, an offset), and what to do.
    pub why: String,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}#{}", self.file, self.number)
    }
}

impl fmt::Display for BadEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.why)
    }
}

impl std::error::Error for BadEntry {}
