//! Recordings as our own JSON lines.

use std::fs::File;
use std::io::{self, BufWriter, Write};
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
    /// A new file, compressed with gzip if its name ends in `.gz`. What was there is lost.
    ///
    /// # Errors
    ///
    /// The file cannot be made.
    pub fn create(path: &Path) -> io::Result<Self> {
        let file: Box<dyn Write + Send> = Box::new(BufWriter::new(File::create(path)?));
        let packed = path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("gz"));
        let out = if packed { Out::Packed(GzEncoder::new(file, Compression::default())) } else { Out::Plain(file) };
        Ok(Self { out })
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
