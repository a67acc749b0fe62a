//! A file that is appended to, and rotated.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use super::lines::{self, Outcome};
use super::{Failure, Sink, Then};
use crate::queue::{Bounds, Line};

/// When a file is rotated, and how many old ones are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rotation {
    /// A line that would make the file larger begins a new one; at least 1.
    pub max_bytes: u64,
    /// Old files that are kept, as `.1` (the youngest) to `.N`; at least 1.
    pub keep: u32,
}

/// The sink of one file.
#[derive(Debug)]
pub(crate) struct FileSink {
    /// Away while a batch is written.
    log: Option<Log>,
    path: PathBuf,
    rotation: Option<Rotation>,
}

impl FileSink {
    pub(crate) fn new(path: PathBuf, rotation: Option<Rotation>) -> FileSink {
        FileSink { log: None, path, rotation }
    }
}

impl Sink for FileSink {
    const BATCH: Bounds = Bounds { lines: 10_000, bytes: 8 << 20 };

    async fn write(&mut self, batch: &[Line]) -> Result<(), Failure> {
        let mut log = self.log.take().unwrap_or_else(|| Log::new(self.path.clone(), self.rotation));
        let batch = batch.to_vec();
        let writing = tokio::task::spawn_blocking(move || {
            let (written, result) = log.append(&batch);
            (log, written, result)
        });
        let (written, result) = match writing.await {
            Ok((log, written, result)) => {
                self.log = Some(log);
                (written, result)
            }
            Err(error) => (0, Err(io::Error::other(error))),
        };
        result.map_err(|error| Failure { written, refused: 0, reason: error.to_string(), then: Then::Retry(None) })
    }
}

/// The file itself.
#[derive(Debug)]
struct Log {
    path: PathBuf,
    rotation: Option<Rotation>,
    open: Option<Open>,
    /// The last rotation has failed; told once.
    stuck: bool,
}

#[derive(Debug)]
struct Open {
    file: File,
    size: u64,
    /// The last line has no end.
    torn: bool,
}

impl Log {
    fn new(path: PathBuf, rotation: Option<Rotation>) -> Log {
        Log { path, rotation, open: None, stuck: false }
    }

    /// Appends lines; how many are written to their ends.
    fn append(&mut self, lines: &[Line]) -> (usize, io::Result<()>) {
        let mut written = 0;
        while written < lines.len() {
            let rest = lines.get(written..).unwrap_or_default();
            let result = self.append_part(rest);
            let (count, result) = match result {
                Ok(Outcome { lines, result, .. }) => (lines, result),
                Err(error) => (0, Err(error)),
            };
            written += count;
            if let Err(error) = result {
                self.open = None;
                return (written, Err(error));
            }
        }
        (written, Ok(()))
    }

    /// Appends as many lines as the file has room for, at least one.
    fn append_part(&mut self, lines: &[Line]) -> io::Result<Outcome> {
        let first = lines.first().map_or(0, |line| line.len() as u64 + 1);
        let max = self.rotation.map_or(u64::MAX, |rotation| rotation.max_bytes);
        let open = self.opened()?;
        if open.torn {
            open.file.write_all(b"\n")?;
            open.torn = false;
            open.size += 1;
        }
        if open.size > 0 && open.size.saturating_add(first) > max {
            self.rotate();
        }
        let open = self.opened()?;
        let mut grown = open.size;
        let fits = |line: &&Line| {
            grown = grown.saturating_add(line.len() as u64 + 1);
            grown <= max
        };
        let count = lines.iter().take_while(fits).count().max(1);
        let outcome = lines::write(&mut open.file, lines.get(..count).unwrap_or_default());
        open.size += outcome.bytes;
        if outcome.torn > 0 {
            // The line is written again from its beginning. Where the half of it cannot be taken back, the next opening
            // closes it.
            if size(&open.file).is_ok_and(|size| size == open.size) {
                let _ = open.file.set_len(open.size - outcome.torn);
            }
        }
        Ok(outcome)
    }

    /// The file that the path leads to: log rotation by others moves a file away and expects a new one.
    fn opened(&mut self) -> io::Result<&mut Open> {
        if self.open.as_ref().is_some_and(|open| !same_file(&open.file, &self.path)) {
            self.open = None;
        }
        let mut open = match self.open.take() {
            Some(open) => open,
            None => open(&self.path)?,
        };
        // Others may have cut it since.
        open.size = size(&open.file)?;
        Ok(self.open.insert(open))
    }

    /// Moves the file away and the older ones out of its way. If that fails, the file keeps growing.
    fn rotate(&mut self) {
        let Some(rotation) = self.rotation else { return };
        match shift(&self.path, rotation.keep) {
            Ok(()) => (self.open, self.stuck) = (None, false),
            Err(error) => {
                if !std::mem::replace(&mut self.stuck, true) {
                    let file = self.path.display();
                    tracing::warn!(%file, %error, "rotating the file of events failed; it grows beyond its limit");
                }
            }
        }
    }
}

/// Opens a file to append to it.
fn open(path: &Path) -> io::Result<Open> {
    // A pipe or a device has no end to look at, and may not be readable.
    let regular = std::fs::metadata(path).map_or(true, |metadata| metadata.is_file());
    let mut file = OpenOptions::new().create(true).append(true).read(regular).open(path)?;
    let size = size(&file)?;
    let mut last = *b"\n";
    if size > 0 {
        file.seek(SeekFrom::End(-1))?;
        file.read_exact(&mut last)?;
    }
    Ok(Open { file, size, torn: last != *b"\n" })
}

/// A pipe or a device has none.
fn size(file: &File) -> io::Result<u64> {
    let metadata = file.metadata()?;
    Ok(if metadata.is_file() { metadata.len() } else { 0 })
}

/// `PATH.N` goes, `PATH.1` becomes `PATH.2` and so on, and `PATH` becomes `PATH.1`.
fn shift(path: &Path, keep: u32) -> io::Result<()> {
    let keep = keep.max(1);
    for number in (1..keep).rev() {
        match std::fs::rename(numbered(path, number), numbered(path, number + 1)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    // Replaces the last one where only one is kept.
    std::fs::rename(path, numbered(path, 1))
}

fn numbered(path: &Path, number: u32) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{number}"));
    name.into()
}

#[cfg(unix)]
fn same_file(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    let (Ok(opened), Ok(there)) = (file.metadata(), std::fs::metadata(path)) else { return false };
    (opened.dev(), opened.ino()) == (there.dev(), there.ino())
}

#[cfg(not(unix))]
fn same_file(_file: &File, path: &Path) -> bool {
    path.exists()
}

#[cfg(test)]
mod tests;
