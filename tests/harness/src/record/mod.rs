//! Recordings from what gateways write: files that are there, and streams while they come.
//!
//! A [`Recorder`] masks entries and writes them as our own JSON lines; [`listen`] takes connections, on each of which a
//! stream of traces or of access log lines comes.

mod listen;

use std::io;
use std::os::unix::fs::{MetadataExt as _, fchown};
use std::path::{Path, PathBuf};

use recording::mask::Mask;
use recording::write::Writer;
use recording::{BadEntry, Entry};
use tempfile::{NamedTempFile, TempPath};

pub use listen::{Listener, Message, listen};

/// How many of the entries that cannot be read are told one by one.
const TOLD: u64 = 20;

/// Writes a recording.
pub struct Recorder {
    writer: Writer,
    mask: Option<Mask>,
    counts: Counts,
    place: Option<Place>,
}

/// Where a recording goes that has its name at its end alone.
struct Place {
    written: TempPath,
    /// The file that is written, for what is left to do with it.
    file: std::fs::File,
    target: PathBuf,
    replace: bool,
}

/// When a recording has its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Appears {
    /// From the beginning: what was written can be read while it goes on.
    AtOnce,
    /// At its end, whole: until then a file of that name stays as it was, which may be one of those that are read. What is no
    /// regular file, such as a pipe, is written at once.
    Whole,
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
    /// A new file, for its owner alone, compressed if its name ends in `.gz`. Without a mask all secrets stay in it.
    ///
    /// # Errors
    ///
    /// There is such a file and it is not to be replaced, or it cannot be made.
    pub fn create(path: &Path, replace: bool, appears: Appears, mask: Option<Mask>) -> Result<Self, String> {
        let there = std::fs::metadata(path);
        if there.is_ok() && !replace {
            return Err(format!("{}: there is such a file; --force replaces it", path.display()));
        }
        let is_file = there.map_or(true, |there| there.is_file());
        let made = match appears {
            Appears::Whole if is_file => Place::beside(path, replace).and_then(|place| {
                let writer = Writer::named(place.file.try_clone()?, path);
                Ok((writer, Some(place)))
            }),
            Appears::Whole | Appears::AtOnce => Writer::create(path).map(|writer| (writer, None)),
        };
        let (writer, place) = made.map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(Self { writer, mask, counts: Counts::default(), place })
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
    /// Writing fails; a file that was to be replaced at the end is as it was then.
    pub fn finish(self) -> io::Result<Counts> {
        self.writer.finish()?;
        if let Some(place) = self.place {
            place.take()?;
        }
        Ok(self.counts)
    }
}

impl Place {
    /// A file with a name of its own, hidden and for its owner alone, in the folder of `path`.
    fn beside(path: &Path, replace: bool) -> io::Result<Self> {
        // What a link points to is replaced, and not the link.
        let target = if replace { path.canonicalize().unwrap_or_else(|_| path.to_owned()) } else { path.to_owned() };
        let folder = target.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let made: NamedTempFile = tempfile::Builder::new().prefix(".recording-").suffix(".tmp").tempfile_in(folder)?;
        let (file, written) = made.into_parts();
        Ok(Self { written, file, target, replace })
    }

    /// Gives it its name, once it is on the disk: the file that it replaces may be its source.
    /// That file's owner keeps it, where this process may give files away.
    fn take(self) -> io::Result<()> {
        if let Ok(earlier) = std::fs::metadata(&self.target) {
            let _not_root = fchown(&self.file, Some(earlier.uid()), Some(earlier.gid()));
        }
        self.file.sync_all()?;
        let moved = match self.replace {
            true => self.written.persist(&self.target),
            false => self.written.persist_noclobber(&self.target),
        };
        moved.map_err(|error| error.error)
    }
}
