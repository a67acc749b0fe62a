//! Values of one transaction, and what transformations made of them.
//!
//! A value has a number; so has each transformed value. For each value and transformation the result is remembered:
//! two pipelines that begin alike share their work, and so do two rules, two variables with the same value, and a
//! pipeline whose steps change nothing.

mod chunks;
mod gates;

use std::borrow::Cow;

use chunks::Chunks;

use super::budget::{Budget, VALUE_SIZE};
use super::familiar::{Familiar, FamiliarValue, HeaderKind, Place, hash, is_familiar_name, is_same};
use super::limits::CACHED_BYTES;
use crate::operator::ByteSet;
use crate::transform::Transform;

/// The number of a value.
pub(super) type Value = u32;

/// The empty value, in every arena.
pub(super) const EMPTY: Value = 0;

/// How many transformations are remembered: codes below this.
const ROW: usize = 48;

/// How many values, roughly, keep their memory from one transaction to the next: about 1 MiB in all.
const KEPT: usize = 4096;

/// How long a value may be to be kept with the others in one buffer.
const SHORT: usize = 4096;

/// How many bytes of short values are kept in one buffer, which is copied as it grows.
const BUFFER: usize = 2 * 1024 * 1024;

/// How long a value may be to be looked for among the recent ones, and how many of these there are.
const REPEATED: usize = 64;
const RECENT: usize = 256;

/// How long a value may be to be looked through anew whenever something is asked about its bytes.
const SCANNED: usize = 64;

struct Blob {
    bytes: Bytes,
    /// The number of the results of transformations in [`Arena::rows`], plus 1; 0 while there are none.
    row: u32,
    /// The number of the gates it passes in [`Arena::gates`], plus 1; 0 if it was not scanned.
    gates: u32,
    /// The pipelines of transformations that may change the value, once it was scanned.
    triggers: u64,
    /// The bytes of the value, once someone asked.
    present: Option<ByteSet>,
    /// Where it may be known from other transactions.
    place: Place,
    /// The number of the test that did not match it last.
    failed: u32,
}

/// Where the bytes of a value are.
enum Bytes {
    /// In the buffer of all short values.
    Shared(usize, usize),
    /// On their own: these can be given back one by one.
    Own(Box<[u8]>),
}

impl Bytes {
    fn get<'b>(&'b self, buffer: &'b [u8]) -> &'b [u8] {
        match self {
            Self::Shared(start, end) => buffer.get(*start..*end).unwrap_or_default(),
            Self::Own(bytes) => bytes,
        }
    }
}

impl Blob {
    fn new(bytes: Bytes) -> Self {
        Self { bytes, row: 0, gates: 0, triggers: 0, present: None, place: Place::default(), failed: 0 }
    }
}

/// All values.
#[derive(Default)]
pub(super) struct Arena {
    blobs: Vec<Blob>,
    buffer: Vec<u8>,
    bytes: usize,
    /// The values of small numbers: counts, scores.
    numbers: [u32; 32],
    /// For each value and transformation the result plus 1; 0 if it is not known.
    rows: Chunks<u32>,
    /// For each value that was scanned, which gates it passes.
    gates: Chunks<u64>,
    /// What is there in every transaction.
    constants: Constants,
    /// Whether something was remembered of a constant.
    touched: bool,
    /// What is known from other transactions, while rules run.
    pub(super) familiar: Familiar,
    /// What the transaction has cost.
    pub(super) budget: Budget,
    /// Long values that were scanned.
    scanned: Vec<Value>,
    /// Counts the tests that note which values failed them, in all transactions.
    tests: u32,
    /// Short values that were pushed, by a hash: arguments repeat themselves. What is left of other transactions does no
    /// harm, as the bytes are compared.
    recent: Vec<Value>,
}

/// Values that stay when the others are forgotten: how many, their bytes, and those that are small numbers.
#[derive(Default)]
struct Constants {
    blobs: usize,
    buffer: usize,
    numbers: [u32; 32],
}

impl Arena {
    #[cfg(test)]
    pub(super) fn new() -> Self {
        let mut arena = Self::default();
        arena.clear();
        arena
    }

    /// Forgets all values, and keeps the memory for the next ones as far as it is not much.
    pub(super) fn clear(&mut self) {
        self.blobs.truncate(self.constants.blobs);
        self.buffer.truncate(self.constants.buffer);
        if std::mem::take(&mut self.touched) {
            self.blobs.iter_mut().for_each(|blob| (blob.row, blob.gates) = (0, 0));
        }
        self.rows.clear();
        self.gates.clear();
        self.scanned.clear();
        self.blobs.shrink_to(KEPT);
        self.buffer.shrink_to(KEPT * 64);
        self.bytes = 0;
        self.budget = Budget::default();
        self.numbers = self.constants.numbers;
        if self.blobs.is_empty() {
            self.blobs.push(Blob::new(Bytes::Shared(0, 0)));
        }
    }

    /// How much memory is kept, in bytes.
    pub(super) fn size(&self) -> usize {
        self.blobs.capacity() * size_of::<Blob>() + self.buffer.capacity() + self.rows.size() + self.gates.size()
    }

    /// An arena in which constant number `n` of the list is value `n + 1`; the list begins with the numbers from 0.
    pub(super) fn with_constants(constants: &[Box<[u8]>]) -> Self {
        let mut arena = Self::default();
        arena.clear();
        for constant in constants {
            let start = arena.buffer.len();
            arena.buffer.extend_from_slice(constant);
            arena.blobs.push(Blob::new(Bytes::Shared(start, arena.buffer.len())));
        }
        let numbers = std::array::from_fn(|number| u32::try_from(number + 1).unwrap_or(0));
        arena.constants = Constants { blobs: arena.blobs.len(), buffer: arena.buffer.len(), numbers };
        arena.numbers = numbers;
        arena
    }

    pub(super) fn get(&self, value: Value) -> &[u8] {
        self.blobs.get(value as usize).map(|blob| blob.bytes.get(&self.buffer)).unwrap_or_default()
    }

    pub(super) fn push(&mut self, bytes: impl AsRef<[u8]>) -> Value {
        let bytes = bytes.as_ref();
        if bytes.is_empty() {
            return EMPTY;
        }
        // In a full arena values come and go.
        let bytes = match bytes.len() <= SHORT && self.buffer.len() < BUFFER && !self.is_full() {
            true => {
                let start = self.buffer.len();
                self.buffer.extend_from_slice(bytes);
                Bytes::Shared(start, self.buffer.len())
            }
            false => Bytes::Own(bytes.into()),
        };
        self.add(bytes)
    }

    /// A value that nearly every request brings again: see [`super::familiar`].
    pub(super) fn push_familiar(&mut self, bytes: &[u8]) -> Value {
        let value = self.push(bytes);
        if let Some(blob) = self.blobs.get_mut(value as usize).filter(|_| value != EMPTY) {
            blob.place = self.familiar.place(bytes);
        }
        value
    }

    /// The name of a header, and what such a header is.
    pub(super) fn push_header_name(&mut self, name: &[u8]) -> (Value, HeaderKind) {
        let value = self.push_familiar(name);
        let place = self.blobs.get(value as usize).map(|blob| blob.place).unwrap_or_default();
        let kind = self.familiar.get(place).map_or_else(|| HeaderKind::of(name), FamiliarValue::header);
        (value, kind)
    }

    /// The name of an argument or a cookie, which may be there already: then its number.
    pub(super) fn push_name(&mut self, name: &[u8]) -> Value {
        let value = self.push_shared(name);
        if is_familiar_name(name)
            && let Some(blob) = self.blobs.get_mut(value as usize).filter(|_| value != EMPTY)
        {
            blob.place = self.familiar.place(name);
        }
        value
    }

    /// What the value passes after a pipeline, by number, if that is known from other transactions.
    pub(super) fn familiar_made(&self, value: Value, pipeline: u32) -> Option<&[u64]> {
        self.familiar.get(self.blobs.get(value as usize)?.place)?.made(pipeline)
    }

    /// Keeps what the value passes after a pipeline for other transactions, if it is of those that come again.
    pub(super) fn keep_made(&mut self, value: Value, pipeline: u32, row: &[u64]) {
        if let Some(blob) = self.blobs.get(value as usize) {
            self.familiar.keep_made(blob.place, pipeline, row);
        }
    }

    /// Whether a test is known not to match the value, whatever transformations make of it.
    pub(super) fn fails(&self, value: Value, test: u32) -> bool {
        let place = self.blobs.get(value as usize).map(|blob| blob.place);
        place.and_then(|place| self.familiar.get(place)).is_some_and(|known| known.fails(test))
    }

    /// Keeps for other transactions that a test does not match the value, if it is one of those that come again.
    pub(super) fn keep_failed(&mut self, value: Value, test: u32) {
        if let Some(blob) = self.blobs.get(value as usize) {
            self.familiar.keep_failed(blob.place, test);
        }
    }

    /// Whether a value is one of those that come again.
    pub(super) fn is_familiar(&self, value: Value) -> bool {
        self.blobs.get(value as usize).is_some_and(|blob| !blob.place.is_none())
    }

    /// A value that may be there already: then its number.
    pub(super) fn push_once(&mut self, bytes: &[u8]) -> Value {
        // Nothing is found in the place of an empty value but numbers that are no more.
        if bytes.is_empty() || bytes.len() > REPEATED {
            return self.push(bytes);
        }
        self.push_shared(bytes)
    }

    /// The same for a value of any length.
    pub(super) fn push_shared(&mut self, bytes: &[u8]) -> Value {
        if bytes.is_empty() {
            return EMPTY;
        }
        self.budget.charge_copy(bytes.len());
        self.recent.resize(RECENT, EMPTY);
        let at = hash(bytes) % RECENT;
        if let Some(known) = self.recent.get(at).copied().filter(|known| is_same(self.get(*known), bytes)) {
            return known;
        }
        let value = self.push(bytes);
        if let Some(slot) = self.recent.get_mut(at) {
            *slot = value;
        }
        value
    }

    fn push_vec(&mut self, bytes: Vec<u8>) -> Value {
        match bytes.len() <= SHORT {
            true => self.push(bytes),
            false => self.add(Bytes::Own(bytes.into())),
        }
    }

    /// A value of its own, which can be replaced.
    pub(super) fn push_own(&mut self, bytes: &[u8]) -> Value {
        self.add(Bytes::Own(bytes.into()))
    }

    /// Replaces a value of its own, to whose number nothing else refers.
    pub(super) fn replace(&mut self, value: Value, bytes: &[u8]) {
        self.hollow(value);
        self.budget.charge_value(bytes.len());
        self.bytes += bytes.len() + VALUE_SIZE;
        if let Some(blob) = self.blobs.get_mut(value as usize) {
            *blob = Blob::new(Bytes::Own(bytes.into()));
        }
    }

    fn add(&mut self, bytes: Bytes) -> Value {
        let length = bytes.get(&self.buffer).len();
        self.budget.charge_value(length);
        self.bytes += length + VALUE_SIZE;
        self.blobs.push(Blob::new(bytes));
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
        let mut bytes = 0;
        for blob in self.blobs.drain(mark.max(1).min(self.blobs.len())..) {
            bytes += blob.bytes.get(&self.buffer).len() + VALUE_SIZE;
        }
        self.bytes = self.bytes.saturating_sub(bytes);
        self.budget.release(bytes);
        for number in self.numbers.iter_mut().filter(|number| **number as usize >= mark) {
            *number = 0;
        }
    }

    /// Empties a value nothing needs any more.
    pub(super) fn hollow(&mut self, value: Value) {
        if let Some(blob) = self.blobs.get_mut(value as usize) {
            let bytes = blob.bytes.get(&self.buffer).len() + VALUE_SIZE;
            self.bytes = self.bytes.saturating_sub(bytes);
            self.budget.release(bytes);
            *blob = Blob::new(Bytes::Shared(0, 0));
        }
    }

    /// A number for a test: no value has failed it yet.
    pub(super) fn new_test(&mut self) -> u32 {
        self.tests = self.tests.checked_add(1).unwrap_or_else(|| {
            // The numbers begin again: values that stay must not be taken for ones that failed.
            self.blobs.iter_mut().for_each(|blob| blob.failed = 0);
            1
        });
        self.tests
    }

    /// Whether a value failed the test of this number.
    pub(super) fn has_failed(&self, value: Value, test: u32) -> bool {
        self.blobs.get(value as usize).is_some_and(|blob| blob.failed == test)
    }

    /// Notes that a value failed a test; the test before is forgotten.
    pub(super) fn note_failed(&mut self, value: Value, test: u32) {
        if let Some(blob) = self.blobs.get_mut(value as usize) {
            blob.failed = test;
        }
    }

    /// A copy of a value.
    pub(super) fn copy(&mut self, value: Value) -> Value {
        self.beginning(value, usize::MAX)
    }

    /// A copy of the beginning of a value.
    pub(super) fn beginning(&mut self, value: Value, length: usize) -> Value {
        let bytes = self.get(value);
        let bytes = bytes.get(..length).unwrap_or(bytes).to_vec();
        self.push(bytes)
    }

    /// How many bytes all values have.
    #[cfg(test)]
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// A short value with small letters: what transformations most often make, and without another copy.
    fn lowered(&mut self, value: Value, range: std::ops::Range<usize>) -> Value {
        if !self.buffer.get(range.clone()).is_some_and(|bytes| bytes.iter().any(u8::is_ascii_uppercase)) {
            return value;
        }
        let start = self.buffer.len();
        self.buffer.extend_from_within(range);
        if let Some(lowered) = self.buffer.get_mut(start..) {
            lowered.make_ascii_lowercase();
        }
        self.add(Bytes::Shared(start, self.buffer.len()))
    }

    /// The value after one transformation: the same number if nothing changed.
    pub(super) fn transformed(&mut self, value: Value, transform: Transform) -> Value {
        let at = usize::from(transform.code());
        let full = self.is_full();
        let Some(blob) = self.blobs.get(value as usize) else { return value };
        let mut row = blob.row as usize;
        if let Some(known) = row.checked_sub(1).and_then(|row| self.rows.get(row)?.get(at)).filter(|known| **known != 0)
        {
            return known - 1;
        }
        let length = blob.bytes.get(&self.buffer).len();
        self.budget.charge_transformation(length);
        let result = match (transform, &blob.bytes) {
            (Transform::Lowercase, Bytes::Shared(start, end)) if !full => self.lowered(value, *start..*end),
            _ => match transform.apply(blob.bytes.get(&self.buffer)) {
                Cow::Borrowed(_) => value,
                Cow::Owned(bytes) => self.push_vec(bytes),
            },
        };
        if !full {
            if row == 0 {
                self.touched |= (value as usize) < self.constants.blobs.max(1);
                row = self.rows.add(ROW) + 1;
                self.budget.keep(ROW * size_of::<u32>());
                if let Some(blob) = self.blobs.get_mut(value as usize) {
                    blob.row = u32::try_from(row).unwrap_or(0);
                }
            }
            if let Some(slot) = row.checked_sub(1).and_then(|row| self.rows.get_mut(row)?.get_mut(at)) {
                *slot = result + 1;
            }
        }
        result
    }
}

#[cfg(test)]
mod tests;
