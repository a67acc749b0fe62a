//! One JSON document, written as it comes.

use std::io::{self, BufWriter, Seek as _, Write};

use serde::Serialize;
use tempfile::SpooledTempFile;

use super::Sink;
use crate::about::{About, BadEntryText};
use crate::row::Row;
use crate::totals::Totals;

/// The version of the document: its first field. New fields do not change it.
pub(crate) const VERSION: u64 = 1;
/// Bytes of bad entries that are held in memory; what is more goes to a temporary file.
const SPOOL: usize = 1 << 20;

/// Writes `{"palisade_replay": 1, "about": {...}, "requests": [...], "bad_entries": [...], "totals": {...}}`, a request
/// per line. Bad entries wait in a temporary file where there are many.
#[derive(Debug)]
pub struct Json<W: Write> {
    out: BufWriter<W>,
    rows: u64,
    bad: BufWriter<SpooledTempFile>,
    bad_entries: u64,
}

impl<W: Write> Json<W> {
    /// Begins the document.
    ///
    /// # Errors
    /// The output cannot be written.
    pub fn new(out: W, about: &About) -> io::Result<Self> {
        let mut out = BufWriter::new(out);
        write!(out, "{{\"palisade_replay\": {VERSION},\n\"about\": ")?;
        value(&mut out, about)?;
        out.write_all(b",\n\"requests\": [")?;
        out.flush()?;
        Ok(Self { out, rows: 0, bad: BufWriter::new(SpooledTempFile::new(SPOOL)), bad_entries: 0 })
    }
}

impl<W: Write> Sink for Json<W> {
    fn row(&mut self, row: &Row) -> io::Result<()> {
        item(&mut self.out, &mut self.rows, row)
    }

    fn bad(&mut self, bad: &BadEntryText) -> io::Result<()> {
        item(&mut self.bad, &mut self.bad_entries, bad)
    }

    fn end(mut self: Box<Self>, totals: &Totals, _about: &About) -> io::Result<()> {
        self.out.write_all(b"\n],\n\"bad_entries\": [")?;
        let mut bad = self.bad.into_inner().map_err(io::IntoInnerError::into_error)?;
        bad.rewind()?;
        io::copy(&mut bad, &mut self.out)?;
        self.out.write_all(b"\n],\n\"totals\": ")?;
        value(&mut self.out, &totals.summary())?;
        self.out.write_all(b"\n}\n")?;
        self.out.flush()
    }
}

fn item(out: &mut impl Write, items: &mut u64, item: &impl Serialize) -> io::Result<()> {
    out.write_all(if *items == 0 { b"\n" } else { b",\n" })?;
    *items += 1;
    value(out, item)
}

fn value(out: &mut impl Write, value: &impl Serialize) -> io::Result<()> {
    serde_json::to_writer(out, value).map_err(io::Error::from)
}
