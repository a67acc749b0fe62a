//! The form in which a compiled contract is shipped: tables of offsets in front of records, so that arrival costs no more than a
//! check of bounds. Equal records are there once.
//!
//! ```text
//! "PCT1"  5 numbers (texts, schemas, resources, routes, operations)  the offsets of each table  records: length, bytes
//! ```
//!
//! Numbers have four bytes, the lowest first. Offsets count from the first record.

/// The first bytes of an image; the digit is the version.
const MAGIC: &[u8; 4] = b"PCT1";
/// The tables.
const TABLES: usize = 5;
/// The largest image, in bytes: 32 MiB.
pub const MAX_IMAGE: usize = 32 << 20;

/// What a table holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub(crate) enum Table {
    /// Names and other texts.
    Texts = 0,
    /// Schemas.
    Schemas = 1,
    /// Schema resources.
    Resources = 2,
    /// Nodes of the tree of paths.
    Routes = 3,
    /// Operations.
    Operations = 4,
}

impl Table {
    const ALL: [Self; TABLES] = [Self::Texts, Self::Schemas, Self::Resources, Self::Routes, Self::Operations];
}

/// An image whose bounds were checked.
#[derive(Debug)]
pub(crate) struct Image {
    bytes: Box<[u8]>,
    /// Where each table begins, and its entries.
    tables: [(usize, usize); TABLES],
    records: usize,
}

impl Image {
    /// Takes an image, where its offsets are in bounds.
    pub(crate) fn open(bytes: &[u8]) -> Result<Self, String> {
        let broken = || "a compiled contract is damaged".to_owned();
        if bytes.len() > MAX_IMAGE {
            return Err(format!("a compiled contract has more than {MAX_IMAGE} bytes"));
        }
        if bytes.get(..MAGIC.len()) != Some(MAGIC) {
            return Err("a compiled contract is of another version than this filter".to_owned());
        }
        let mut tables = [(0, 0); TABLES];
        let mut at = MAGIC.len() + 4 * TABLES;
        for (place, table) in tables.iter_mut().enumerate() {
            let count = number(bytes, MAGIC.len() + 4 * place).ok_or_else(broken)?;
            *table = (at, count);
            at = count.checked_mul(4).and_then(|size| at.checked_add(size)).ok_or_else(broken)?;
        }
        let image = Self { bytes: bytes.into(), tables, records: at };
        for table in Table::ALL {
            if (0..image.count(table)).any(|entry| image.record(table, entry).is_none()) {
                return Err(broken());
            }
        }
        Ok(image)
    }

    /// The entries of a table.
    pub(crate) fn count(&self, table: Table) -> usize {
        self.tables.get(table as usize).map_or(0, |(_, count)| *count)
    }

    /// The bytes of an entry.
    pub(crate) fn record(&self, table: Table, entry: usize) -> Option<&[u8]> {
        let (start, count) = *self.tables.get(table as usize)?;
        if entry >= count {
            return None;
        }
        let at = self.records.checked_add(number(&self.bytes, start + 4 * entry)?)?;
        let from = at.checked_add(4)?;
        self.bytes.get(from..from.checked_add(number(&self.bytes, at)?)?)
    }

    /// A text; empty where there is none.
    pub(crate) fn text(&self, entry: u32) -> &[u8] {
        usize::try_from(entry).ok().and_then(|entry| self.record(Table::Texts, entry)).unwrap_or_default()
    }

    /// Where a text is.
    pub(crate) fn text_place(&self, entry: u32) -> (u32, u32) {
        let text = self.text(entry);
        let start = text.as_ptr().addr().wrapping_sub(self.bytes.as_ptr().addr());
        let short = |place: usize| u32::try_from(place).unwrap_or(u32::MAX);
        if text.is_empty() { (0, 0) } else { (short(start), short(start.saturating_add(text.len()))) }
    }

    /// The bytes between two places.
    #[inline]
    pub(crate) fn slice(&self, start: u32, end: u32) -> &[u8] {
        let place = |place: u32| usize::try_from(place).unwrap_or(usize::MAX);
        self.bytes.get(place(start)..place(end)).unwrap_or_default()
    }

    /// Its size, in bytes.
    pub(crate) fn size(&self) -> usize {
        self.bytes.len()
    }
}

/// The number at an offset.
fn number(bytes: &[u8], at: usize) -> Option<usize> {
    let bytes = bytes.get(at..at.checked_add(4)?)?;
    usize::try_from(u32::from_le_bytes(bytes.try_into().ok()?)).ok()
}

/// Makes an image.
#[cfg(feature = "compile")]
#[derive(Default)]
pub(crate) struct ImageWriter {
    tables: [Vec<u32>; TABLES],
    records: Vec<u8>,
    known: std::collections::HashMap<Vec<u8>, u32>,
}

#[cfg(feature = "compile")]
impl ImageWriter {
    /// Adds an entry behind the others of its table.
    pub(crate) fn push(&mut self, table: Table, record: Vec<u8>) -> Result<(), String> {
        let large = || format!("the compiled contract has more than {MAX_IMAGE} bytes");
        let at = match self.known.get(&record) {
            Some(at) => *at,
            None => {
                let at = u32::try_from(self.records.len()).map_err(|_| large())?;
                self.records.extend(u32::try_from(record.len()).map_err(|_| large())?.to_le_bytes());
                self.records.extend(&record);
                self.known.insert(record, at);
                at
            }
        };
        if self.records.len() > MAX_IMAGE {
            return Err(large());
        }
        if let Some(table) = self.tables.get_mut(table as usize) {
            table.push(at);
        }
        Ok(())
    }

    /// The image.
    pub(crate) fn finish(self) -> Result<Vec<u8>, String> {
        let mut bytes = MAGIC.to_vec();
        let counts = self.tables.iter().map(|table| u32::try_from(table.len()).unwrap_or(u32::MAX));
        bytes.extend(counts.flat_map(u32::to_le_bytes));
        bytes.extend(self.tables.iter().flatten().copied().flat_map(u32::to_le_bytes));
        bytes.extend(self.records);
        if bytes.len() > MAX_IMAGE {
            return Err(format!("the compiled contract has more than {MAX_IMAGE} bytes"));
        }
        Ok(bytes)
    }
}
