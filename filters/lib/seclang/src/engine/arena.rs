//! Values of one transaction, and what transformations made of them.
//!
//! A value has a number; so has each transformed value. For each value and transformation the result is remembered:
//! two pipelines that begin alike share their work, and so do two rules, two variables with the same value, and a
//! pipeline whose steps change nothing.

use std::borrow::Cow;

use super::limits::CACHED_BYTES;
use crate::transform::Transform;

/// The number of a value.
pub(super) type Value = u32;

/// The empty value, in every arena.
pub(super) const EMPTY: Value = 0;

/// How many transformations are remembered: codes below this.
const ROW: usize = 48;

/// For each transformation, the result plus 1; 0 if it is not known.
type Row = Box<[u32; ROW]>;

struct Blob {
    bytes: Box<[u8]>,
    row: Option<Row>,
}

/// All values.
pub(super) struct Arena {
    blobs: Vec<Blob>,
    bytes: usize,
    /// The values of small numbers: counts, scores.
    numbers: [u32; 64],
}

impl Arena {
    pub(super) fn new() -> Self {
        let empty = Blob { bytes: Box::default(), row: None };
        Self { blobs: vec![empty], bytes: 0, numbers: [0; 64] }
    }

    pub(super) fn get(&self, value: Value) -> &[u8] {
        self.blobs.get(value as usize).map(|blob| &*blob.bytes).unwrap_or_default()
    }

    pub(super) fn push(&mut self, bytes: impl Into<Box<[u8]>>) -> Value {
        let bytes = bytes.into();
        if bytes.is_empty() {
            return EMPTY;
        }
        self.bytes += bytes.len();
        self.blobs.push(Blob { bytes, row: None });
        u32::try_from(self.blobs.len() - 1).unwrap_or(EMPTY)
    }

    pub(super) fn number(&mut self, number: i64) -> Value {
        let small = usize::try_from(number).ok().filter(|small| *small < self.numbers.len());
        if let Some(known) = small.and_then(|small| self.numbers.get(small)).filter(|known| **known != 0) {
            return *known;
        }
        let value = self.push(number.to_string().into_bytes());
        if let Some(slot) = small.and_then(|small| self.numbers.get_mut(small)) {
            *slot = value;
        }
        value
    }

    /// How many values there are: what [`Arena::forget_since`] goes back to.
    pub(super) fn mark(&self) -> usize {
        self.blobs.len()
    }

    /// Whether the cache is full: results are no longer remembered.
    pub(super) fn is_full(&self) -> bool {
        self.bytes > CACHED_BYTES
    }

    /// Drops the values made since `mark`. Only sound if the arena was full at the mark, as nothing refers to them then.
    pub(super) fn forget_since(&mut self, mark: usize) {
        for blob in self.blobs.drain(mark.max(1).min(self.blobs.len())..) {
            self.bytes -= blob.bytes.len();
        }
        for number in self.numbers.iter_mut().filter(|number| **number as usize >= mark) {
            *number = 0;
        }
    }

    /// Empties a value nothing needs any more.
    pub(super) fn hollow(&mut self, value: Value) {
        if let Some(blob) = self.blobs.get_mut(value as usize) {
            self.bytes -= blob.bytes.len();
            blob.bytes = Box::default();
            blob.row = None;
        }
    }

    /// A copy of the beginning of a value.
    pub(super) fn beginning(&mut self, value: Value, length: usize) -> Value {
        let bytes = self.get(value);
        let bytes: Box<[u8]> = bytes.get(..length).unwrap_or(bytes).into();
        self.push(bytes)
    }

    /// How many bytes all values have.
    #[cfg(test)]
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// The value after one transformation: the same number if nothing changed.
    pub(super) fn transformed(&mut self, value: Value, transform: Transform) -> Value {
        let at = usize::from(transform.code());
        let full = self.is_full();
        let Some(blob) = self.blobs.get(value as usize) else { return value };
        let known = blob.row.as_ref().and_then(|row| row.get(at)).filter(|known| **known != 0);
        if let Some(known) = known {
            return known - 1;
        }
        let result = match transform.apply(&blob.bytes) {
            Cow::Borrowed(_) => value,
            Cow::Owned(bytes) => self.push(bytes),
        };
        if !full && let Some(blob) = self.blobs.get_mut(value as usize) {
            let row = blob.row.get_or_insert_with(|| Box::new([0; ROW]));
            if let Some(slot) = row.get_mut(at) {
                *slot = result + 1;
            }
        }
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_results() {
        let mut arena = Arena::new();
        let value = arena.push(*b"AbC");
        let lower = arena.transformed(value, Transform::Lowercase);
        assert_eq!(arena.get(lower), b"abc");
        assert_eq!(arena.transformed(value, Transform::Lowercase), lower);
        assert_eq!(arena.transformed(lower, Transform::Lowercase), lower);
        let again = arena.number(5);
        assert_eq!(arena.number(5), again);
    }

    #[test]
    fn does_not_grow_once_full() {
        let mut arena = Arena::new();
        let value = arena.push(vec![b'A'; CACHED_BYTES + 1]);
        let mark = arena.mark();
        let first = arena.transformed(value, Transform::Lowercase);
        assert_eq!(arena.get(first).first(), Some(&b'a'));
        arena.forget_since(mark);
        assert_eq!(arena.mark(), mark);
        let second = arena.transformed(value, Transform::Lowercase);
        assert_eq!(arena.get(second).first(), Some(&b'a'));
    }
}
