//! Recordings as our own JSON lines.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use flate2::Compression;
use flate2::write::GzEncoder;

use crate::Entry;
use crate::formats::lines::line::Line;

/// Writes entries, a line each. What it writes is read back as the same entries, but for their places.
pub struct Writer {
    out: Out,
}

enum Out {
    Plain(Box<dyn Write + Send>),
    Packed(GzEncoder<Box<dyn Write + Send>>),
}

impl Writer {
    /// A new file, compressed with gzip if its name ends in `.gz`. What was there is lost. A file that did not exist is for its
    /// owner alone (mode 0600): it may have secrets.
    ///
    /// # Errors
    ///
    /// The file cannot be made.
    pub fn create(path: &Path) -> io::Result<Self> {
        let file = File::options().write(true).create(true).truncate(true).mode(0o600).open(path)?;
        Ok(Self::named(file, path))
    }

    /// Writes to what will have this name: compressed with gzip if it ends in `.gz`.
    pub fn named(out: impl Write + Send + 'static, name: &Path) -> Self {
        let out: Box<dyn Write + Send> = Box::new(BufWriter::new(out));
        let packed = name.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("gz"));
        let out = if packed { Out::Packed(GzEncoder::new(out, Compression::default())) } else { Out::Plain(out) };
        Self { out }
    }

    /// Writes to anything, uncompressed.
    pub fn new(out: impl Write + Send + 'static) -> Self {
        Self { out: Out::Plain(Box::new(out)) }
    }

    /// Writes an entry. [`crate::mask::Mask::apply`] comes before.
    ///
    /// # Errors
    ///
    /// Writing fails.
    pub fn write(&mut self, entry: &Entry) -> io::Result<()> {
        let mut line = serde_json::to_vec(&Line::of(entry))?;
        line.push(b'\n');
        match &mut self.out {
            Out::Plain(out) => out.write_all(&line),
            Out::Packed(out) => out.write_all(&line),
        }
    }

    /// Writes what is held back so far; more may follow. For recordings that go on: what was flushed outlives the process.
    ///
    /// # Errors
    ///
    /// Writing fails.
    pub fn flush(&mut self) -> io::Result<()> {
        match &mut self.out {
            Out::Plain(out) => out.flush(),
            Out::Packed(out) => out.flush(),
        }
    }

    /// Writes what is held back. Without it, the end of the file may be missing and nobody hears why.
    ///
    /// # Errors
    ///
    /// Writing fails.
    pub fn finish(self) -> io::Result<()> {
        match self.out {
            Out::Plain(mut out) => out.flush(),
            Out::Packed(out) => out.finish()?.flush(),
        }
    }
}
