//! Keys with values.

mod layout;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::iter::Peekable;

pub use layout::KeysBuilder;
use layout::{Layout, Records};

use crate::{BaseError, MAX_DELTA, MAX_OPS, MAX_OVERLAY, OpError, Progress, TableError, TableIndex};

/// The longest key, in bytes.
pub const MAX_KEY: usize = 255;

/// The longest value, in bytes.
pub const MAX_VALUE: usize = 255;

const PUT: u8 = 1;
const REMOVE: u8 = 2;

/// Keys with values: verdicts on fingerprints, names of verified crawlers.
///
/// A lookup is one binary search in the base, after one in each overlay; nothing is allocated.
#[derive(Debug, Clone)]
pub struct Keys {
    base: Vec<u8>,
    layout: Layout,
    /// The deltas since the last compaction began: each key with its new value, or none.
    overlay: Overlay,
    /// The deltas that are being merged into the next base.
    merging: Overlay,
    compaction: Option<Compaction>,
}

type Overlay = BTreeMap<Vec<u8>, Option<Vec<u8>>>;

#[derive(Debug, Clone)]
struct Compaction {
    /// The next record of the base.
    record: usize,
    /// The last key of the overlay that was written.
    after: Option<Vec<u8>>,
    out: Records,
}

impl Keys {
    /// The value of a key.
    #[must_use]
    pub fn find(&self, key: &[u8]) -> Option<&[u8]> {
        match self.overlay.get(key).or_else(|| self.merging.get(key)) {
            Some(value) => value.as_deref(),
            None => self.layout.find(&self.base, key),
        }
    }

    /// The number of keys in the base.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.layout.len()
    }

    /// Deltas that lead from this table to `newer`, in their order; none if they are equal. Each keeps to the limits of a
    /// delta. This looks at every key of both: it is for the control plane.
    #[must_use]
    pub fn deltas_to(&self, newer: &Self) -> Vec<Vec<u8>> {
        let (old, new) = (self.save(), newer.save());
        let (Ok(old_layout), Ok(new_layout)) = (Layout::read(&old), Layout::read(&new)) else { return Vec::new() };
        let mut before = old_layout.iter(&old).peekable();
        let mut after = new_layout.iter(&new).peekable();
        in_deltas(std::iter::from_fn(|| next_change(&mut before, &mut after)))
    }

    /// True at the end.
    fn merge(&self, compaction: &mut Compaction, budget: usize) -> bool {
        let start = match &compaction.after {
            Some(key) => std::ops::Bound::Excluded(key.clone()),
            None => std::ops::Bound::Unbounded,
        };
        let mut entries = self.merging.range((start, std::ops::Bound::Unbounded)).peekable();
        for _ in 0..budget.max(1) {
            let record = self.layout.record(&self.base, compaction.record);
            let entry = entries.peek().map(|(key, _)| key.as_slice());
            if let Some((key, value)) = record.filter(|(key, _)| entry.is_none_or(|entry| *key < entry)) {
                compaction.out.push(key, value);
                compaction.record += 1;
            } else if let Some((key, value)) = entries.next() {
                if let Some(value) = value {
                    compaction.out.push(key, value);
                }
                compaction.record += usize::from(record.is_some_and(|(known, _)| known == key));
                compaction.after = Some(key.clone());
            } else {
                return true;
            }
        }
        false
    }
}

type Record<'a> = (&'a [u8], &'a [u8]);

/// Changes as deltas, each within its limits.
fn in_deltas<'a>(changes: impl Iterator<Item = Op<'a>>) -> Vec<Vec<u8>> {
    let mut deltas = Vec::new();
    let mut ops = KeyOps::default();
    for (key, change) in changes {
        // Keys and values of a table are within the limits.
        let written = match change {
            Some(value) => ops.put(key, value),
            None => ops.remove(key),
        };
        let full = ops.len() >= MAX_OPS || ops.size() > MAX_DELTA - MAX_KEY - MAX_VALUE - 3;
        if written.is_ok() && full {
            deltas.push(std::mem::take(&mut ops).finish());
        }
    }
    if !ops.is_empty() {
        deltas.push(ops.finish());
    }
    deltas
}

/// The next key that differs between two sorted lists, with its value in the second one.
fn next_change<'a>(
    before: &mut Peekable<impl Iterator<Item = Record<'a>>>,
    after: &mut Peekable<impl Iterator<Item = Record<'a>>>,
) -> Option<Op<'a>> {
    loop {
        let (old, new) = (before.peek().copied(), after.peek().copied());
        match (old, new) {
            (None, None) => return None,
            (Some((key, _)), new) if new.is_none_or(|(newer, _)| key < newer) => {
                before.next();
                return Some((key, None));
            }
            (old, Some((key, value))) => {
                after.next();
                match old.filter(|(older, _)| *older == key) {
                    Some((_, known)) => {
                        before.next();
                        if known != value {
                            return Some((key, Some(value)));
                        }
                    }
                    None => return Some((key, Some(value))),
                }
            }
            (Some(_), None) => return None,
        }
    }
}

impl TableIndex for Keys {
    fn load(base: Vec<u8>) -> Result<Self, BaseError> {
        let layout = Layout::read(&base)?;
        Ok(Self { base, layout, overlay: Overlay::new(), merging: Overlay::new(), compaction: None })
    }

    fn apply(&mut self, ops: &[u8]) -> Result<(), TableError> {
        let mut checked = Vec::new();
        let mut rest = ops;
        while !rest.is_empty() {
            let (op, left) = read_op(rest).map_err(|error| TableError::Op(ops.len() - rest.len(), error))?;
            checked.push(op);
            rest = left;
            if checked.len() > MAX_OPS {
                return Err(TableError::TooLarge);
            }
        }
        if self.overlay.len() + checked.len() > MAX_OVERLAY {
            return Err(TableError::OverlayFull);
        }
        for (key, value) in checked {
            self.overlay.insert(key.to_vec(), value.map(<[u8]>::to_vec));
        }
        Ok(())
    }

    fn overlay(&self) -> usize {
        self.overlay.len() + self.merging.len()
    }

    fn compact(&mut self, budget: usize) -> Progress {
        let mut compaction = match self.compaction.take() {
            Some(compaction) => compaction,
            None if self.overlay() == 0 => return Progress::Done,
            // The last round made a base beyond the limits: this table needs a new one.
            None if !self.merging.is_empty() => return Progress::Done,
            None => {
                self.merging = std::mem::take(&mut self.overlay);
                let records = self.layout.len() + self.merging.len();
                let added: usize =
                    self.merging.iter().map(|(key, value)| key.len() + value.as_ref().map_or(0, Vec::len) + 5).sum();
                Compaction { record: 0, after: None, out: Records::with_capacity(records, self.base.len() + added) }
            }
        };
        if !self.merge(&mut compaction, budget) {
            self.compaction = Some(compaction);
            return Progress::More;
        }
        let base = compaction.out.finish();
        if let Ok(layout) = Layout::read(&base) {
            self.layout = layout;
            self.base = base;
            self.merging = Overlay::new();
        }
        Progress::Done
    }

    fn base(&self) -> &[u8] {
        &self.base
    }

    fn changes(&self) -> Vec<Vec<u8>> {
        let entries = self.merging.iter().chain(&self.overlay);
        in_deltas(entries.map(|(key, value)| (key.as_slice(), value.as_deref())))
    }

    fn save(&self) -> Vec<u8> {
        let mut copy = self.clone();
        // The first round ends a compaction that has begun, the second one takes the deltas since.
        for _ in 0..2 {
            while copy.compact(usize::MAX) == Progress::More {}
        }
        copy.base
    }
}

/// An operation: the key, and its new value if it is not removed.
type Op<'a> = (&'a [u8], Option<&'a [u8]>);

/// The first operation, and what is left: a tag (u8; 1 puts, 2 removes), the length of the key (u8), the key, and where it puts
/// the length of the value (u8), the value.
fn read_op(bytes: &[u8]) -> Result<(Op<'_>, &[u8]), OpError> {
    let (tag, rest) = bytes.split_first().ok_or(OpError::Truncated)?;
    if ![PUT, REMOVE].contains(tag) {
        return Err(OpError::Unknown(*tag));
    }
    let (key, rest) = read_field(rest)?;
    if *tag == REMOVE {
        return Ok(((key, None), rest));
    }
    let (value, rest) = read_field(rest)?;
    Ok(((key, Some(value)), rest))
}

fn read_field(bytes: &[u8]) -> Result<(&[u8], &[u8]), OpError> {
    let (length, rest) = bytes.split_first().ok_or(OpError::Truncated)?;
    rest.split_at_checked(usize::from(*length)).ok_or(OpError::Truncated)
}

/// Writes the operations of a delta of [`Keys`], in the order in which they apply.
#[derive(Debug, Clone, Default)]
pub struct KeyOps {
    count: usize,
    bytes: Vec<u8>,
}

impl KeyOps {
    /// Gives a key a value, whatever it had.
    ///
    /// # Errors
    ///
    /// [`OpError::Length`] beyond [`MAX_KEY`] or [`MAX_VALUE`].
    pub fn put(&mut self, key: &[u8], value: &[u8]) -> Result<(), OpError> {
        let (key_length, value_length) = (length(key)?, length(value)?);
        self.bytes.extend_from_slice(&[PUT, key_length]);
        self.bytes.extend_from_slice(key);
        self.bytes.push(value_length);
        self.bytes.extend_from_slice(value);
        self.count += 1;
        Ok(())
    }

    /// Removes a key.
    ///
    /// # Errors
    ///
    /// [`OpError::Length`] beyond [`MAX_KEY`].
    pub fn remove(&mut self, key: &[u8]) -> Result<(), OpError> {
        let key_length = length(key)?;
        self.bytes.extend_from_slice(&[REMOVE, key_length]);
        self.bytes.extend_from_slice(key);
        self.count += 1;
        Ok(())
    }

    /// How many operations there are; a delta holds at most [`MAX_OPS`] and [`MAX_DELTA`] bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The number of bytes so far.
    #[must_use]
    pub fn size(&self) -> usize {
        self.bytes.len()
    }

    /// The bytes.
    #[must_use]
    pub fn finish(self) -> Vec<u8> {
        self.bytes
    }
}

/// The length of a key or value: both have the same limit.
fn length(field: &[u8]) -> Result<u8, OpError> {
    u8::try_from(field.len()).map_err(|_| OpError::Length)
}
