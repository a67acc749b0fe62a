//! The bytes of a base of keys.
//!
//! A header of 12 bytes: `PKT1`, the number of records, the number of their bytes (u32 each). Then the records, sorted by key: the
//! length of the key (u8), the key, the value; then the end of each record (u32). Numbers are little endian. The ends come
//! last so that a compaction can write the records where they stay.

use std::collections::BTreeMap;

use super::length;
use crate::{BaseError, MAX_BASE, MAX_ROWS, OpError};

const MAGIC: &[u8; 4] = b"PKT1";
const HEADER: usize = 12;

/// What the header says.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Layout {
    records: usize,
}

impl Layout {
    pub(crate) fn read(base: &[u8]) -> Result<Self, BaseError> {
        if base.len() > MAX_BASE {
            return Err(BaseError::TooLarge);
        }
        let (magic, rest) = base.split_first_chunk::<4>().ok_or(BaseError::Kind)?;
        if magic != MAGIC {
            return Err(BaseError::Kind);
        }
        let numbers = rest.first_chunk::<8>().ok_or(BaseError::Length)?;
        let [records, bytes] = numbers.as_chunks::<4>().0 else { return Err(BaseError::Length) };
        let number = |bytes: &[u8; 4]| usize::try_from(u32::from_le_bytes(*bytes)).map_err(|_| BaseError::TooLarge);
        let (records, bytes) = (number(records)?, number(bytes)?);
        let length = records.checked_mul(4).and_then(|ends| ends.checked_add(bytes)?.checked_add(HEADER));
        if length == Some(base.len()) { Ok(Self { records }) } else { Err(BaseError::Length) }
    }

    pub(crate) fn len(&self) -> usize {
        self.records
    }

    /// The ends of the records, and their bytes.
    fn parts<'a>(&self, base: &'a [u8]) -> (&'a [[u8; 4]], &'a [u8]) {
        let rest = base.get(HEADER..).unwrap_or_default();
        let (bytes, ends) = rest.split_at_checked(rest.len().saturating_sub(self.records * 4)).unwrap_or_default();
        (ends.as_chunks::<4>().0, bytes)
    }

    /// A record: key and value.
    pub(crate) fn record<'a>(&self, base: &'a [u8], at: usize) -> Option<(&'a [u8], &'a [u8])> {
        let (ends, bytes) = self.parts(base);
        record(ends, bytes, at)
    }

    pub(crate) fn iter<'a>(&self, base: &'a [u8]) -> impl Iterator<Item = (&'a [u8], &'a [u8])> {
        let (ends, bytes) = self.parts(base);
        (0..ends.len()).filter_map(move |at| record(ends, bytes, at))
    }

    /// The value of a key.
    pub(crate) fn find<'a>(&self, base: &'a [u8], key: &[u8]) -> Option<&'a [u8]> {
        let (ends, bytes) = self.parts(base);
        let (mut from, mut to) = (0, ends.len());
        while from < to {
            let middle = from.midpoint(to);
            let (found, value) = record(ends, bytes, middle)?;
            match found.cmp(key) {
                std::cmp::Ordering::Equal => return Some(value),
                std::cmp::Ordering::Less => from = middle + 1,
                std::cmp::Ordering::Greater => to = middle,
            }
        }
        None
    }
}

fn record<'a>(ends: &[[u8; 4]], bytes: &'a [u8], at: usize) -> Option<(&'a [u8], &'a [u8])> {
    let end = |at: usize| ends.get(at).map(|end| u32::from_le_bytes(*end) as usize);
    let from = at.checked_sub(1).map_or(Some(0), end)?;
    let (length, rest) = bytes.get(from..end(at)?)?.split_first()?;
    rest.split_at_checked(usize::from(*length))
}

/// The records of a base that is being made.
#[derive(Debug, Clone)]
pub(crate) struct Records {
    /// The header, not filled in yet, and the records.
    base: Vec<u8>,
    ends: Vec<u8>,
}

impl Records {
    /// Room for a base of this length and this number of records.
    pub(crate) fn with_capacity(records: usize, length: usize) -> Self {
        let mut base = Vec::with_capacity(length);
        base.resize(HEADER, 0);
        Self { base, ends: Vec::with_capacity(records * 4) }
    }

    /// Adds a record behind all others. The key comes from a delta or a base: its length fits.
    pub(crate) fn push(&mut self, key: &[u8], value: &[u8]) {
        self.base.push(u8::try_from(key.len()).unwrap_or(u8::MAX));
        self.base.extend_from_slice(key);
        self.base.extend_from_slice(value);
        self.ends.extend_from_slice(&number(self.base.len() - HEADER));
    }

    pub(crate) fn finish(mut self) -> Vec<u8> {
        let header = [*MAGIC, number(self.ends.len() / 4), number(self.base.len() - HEADER)];
        if let Some(place) = self.base.first_chunk_mut::<HEADER>() {
            place.copy_from_slice(header.as_flattened());
        }
        self.base.extend_from_slice(&self.ends);
        self.base
    }
}

/// A number of things in a base: all of them are far fewer than 2^32.
fn number(count: usize) -> [u8; 4] {
    u32::try_from(count).unwrap_or(u32::MAX).to_le_bytes()
}

/// Makes a base of keys.
#[derive(Debug, Clone, Default)]
pub struct KeysBuilder {
    records: BTreeMap<Vec<u8>, Vec<u8>>,
}

impl KeysBuilder {
    /// Gives a key a value, whatever it had.
    ///
    /// # Errors
    ///
    /// [`OpError::Length`] beyond [`MAX_KEY`](super::MAX_KEY) or [`MAX_VALUE`](super::MAX_VALUE).
    pub fn put(&mut self, key: &[u8], value: &[u8]) -> Result<(), OpError> {
        length(key)?;
        length(value)?;
        self.records.insert(key.to_vec(), value.to_vec());
        Ok(())
    }

    /// The base.
    ///
    /// # Errors
    ///
    /// [`BaseError::TooLarge`] beyond [`MAX_ROWS`] or [`MAX_BASE`].
    pub fn build(self) -> Result<Vec<u8>, BaseError> {
        if self.records.len() > MAX_ROWS {
            return Err(BaseError::TooLarge);
        }
        let length = self.records.iter().map(|(key, value)| key.len() + value.len() + 5).sum::<usize>();
        let mut records = Records::with_capacity(self.records.len(), HEADER + length);
        self.records.iter().for_each(|(key, value)| records.push(key, value));
        let base = records.finish();
        if base.len() > MAX_BASE { Err(BaseError::TooLarge) } else { Ok(base) }
    }
}
