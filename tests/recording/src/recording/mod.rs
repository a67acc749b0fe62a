//! A recording of many files as one stream in the order of time.

mod files;
mod meter;
mod order;

use std::collections::VecDeque;
use std::fmt;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::formats;
use crate::source::Source;
use crate::{BadEntry, Entries, Entry, Input, Options, Place};

use files::File;
pub use meter::{Meter, Progress};
use order::Merge;

/// Nothing can be read: a path is not there, a folder has no files, or there are too many.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenError {
    /// The path that was named.
    pub path: PathBuf,
    /// What is wrong with it.
    pub why: String,
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path.display(), self.why)
    }
}

impl std::error::Error for OpenError {}

/// Opens files and folders. Folders are read with all that is below them, by name; hidden files are left out, and links
/// are followed. See [`Recording`] for the order of the entries.
///
/// # Errors
///
/// A path that is not there, a folder without files, more than 1,048,576 files. What is wrong with a file comes as a
/// [`BadEntry`] with number 0 when its turn is.
pub fn open(paths: &[PathBuf], options: &Options) -> Result<Recording, OpenError> {
    let listed = files::list(paths)?;
    let meter = Meter::default();
    meter.expect(listed.files.iter().map(|file| file.length).sum());
    let bad = listed.unreadable.into();
    Ok(Recording { bad, merge: Merge::new(listed.files, options.clone(), meter.clone()), meter })
}

/// The entries of a stream that goes on, each as soon as it is whole, in the order in which they come. Reading blocks until
/// there is more. The name stands for the file's; the format shows in the first bytes.
pub fn live(name: &str, input: impl Read + Send + 'static, options: &Options) -> Entries {
    let (path, meter) = (Path::new(name), Meter::default());
    let source = Source::until(input, meter.clone(), 0, |head| formats::find(options, path, head).is_ok());
    read(path, source, options, &meter)
}

/// The entries of all files, in the order of time, as they are read.
///
/// The streams of the files are merged by time. A file below 1 MiB is put in order by itself, a larger one keeps its own
/// order. An entry without a time keeps its place behind the one before it, a file without any time its place behind the
/// beginning of the file before it: files without times come in the order in which they were named. If more files overlap
/// in time than may be read at once ([`Options::files_at_once`]), the others wait, and their entries come late.
///
/// For that, the first [`Iterator::next`] looks into every file, where there are more than one: for all times in small
/// ones, for the first in others. About 100 bytes and its path are kept for each. An entry of each open file is in memory,
/// or all of a small one (at most 16 MiB).
///
/// Nothing ends it early: what cannot be read is a [`BadEntry`], and reading goes on behind it, or with the next file.
#[derive(Debug)]
pub struct Recording {
    bad: VecDeque<BadEntry>,
    merge: Merge,
    meter: Meter,
}

impl Recording {
    /// What `input` has, under a name that stands for the file's. The name's ending tells the format where the content
    /// does not. How much there is to read is not known.
    pub fn of(name: &str, input: impl Read + Send + 'static, options: &Options) -> Self {
        let meter = Meter::default();
        let entries = read(Path::new(name), Source::new(input, meter.clone(), 0), options, &meter);
        Self { bad: VecDeque::new(), merge: Merge::single(entries, options.clone(), meter.clone()), meter }
    }

    /// How far it is.
    #[must_use]
    pub fn progress(&self) -> Progress {
        self.meter.progress()
    }

    /// A handle that tells how far it is while somebody else iterates.
    #[must_use]
    pub fn meter(&self) -> Meter {
        self.meter.clone()
    }
}

impl Iterator for Recording {
    type Item = Result<Entry, BadEntry>;

    fn next(&mut self) -> Option<Self::Item> {
        self.bad.pop_front().map(Err).or_else(|| self.merge.next())
    }
}

/// The entries of a file, or why there are none.
fn entries(file: &File, options: &Options, meter: &Meter) -> Entries {
    let opened = std::fs::File::open(&file.path);
    let source = opened.and_then(|opened| Source::new(opened, meter.clone(), file.length));
    read(&file.path, source, options, meter)
}

fn read(path: &Path, source: std::io::Result<Source>, options: &Options, meter: &Meter) -> Entries {
    let name: Arc<str> = path.to_string_lossy().into();
    let bad = |why: String| -> Entries {
        let place = Place { file: Arc::clone(&name), number: 0 };
        Box::new(std::iter::once(Err(BadEntry { place, why })))
    };
    let source = match source {
        Ok(source) => source,
        Err(error) => return bad(format!("cannot be read: {error}")),
    };
    match formats::find(options, path, &source.head) {
        Err(why) => bad(why),
        Ok(found) => found.read(Input {
            name: Arc::clone(&name),
            bytes: source.bytes,
            limit: options.entry_limit,
            peer: options.peer.clone(),
            meter: meter.clone(),
        }),
    }
}
