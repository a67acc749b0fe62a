//! The values of one transaction, and the value cache: the results of transformations and scans.
//!
//! Each value has a number, and so has each transformed value. The result of a transformation is cached for each value:
//! pipelines with the same first steps share them, and so do rules, variables with the same value, and pipelines whose
//! steps change nothing.

mod chunks;
mod prefilter;

use std::borrow::Cow;

use chunks::Chunks;

use super::budget::{Budget, VALUE_SIZE};
use super::hot_cache::{CacheSlot, CachedValue, HeaderKind, HotCache, hash, is_cacheable_name, is_same};
use super::limits::CACHED_BYTES;
use crate::operator::ByteSet;
use crate::transform::Transform;

/// The index of a value in its [`Arena`].
pub(super) type Value = u32;

/// The empty value, in every arena.
pub(super) const EMPTY: Value = 0;

/// The number of transformations whose results are cached: those with a code below this.
const ROW: usize = 48;

/// Roughly the number of values whose memory the next transaction reuses: about 1 MiB in all.
const KEPT: usize = 4096;

/// The longest value in the shared buffer, in bytes.
const SHORT: usize = 4096;

/// The size of the shared buffer, in bytes; it is copied as it grows.
const BUFFER: usize = 2 * 1024 * 1024;

/// The longest value that is looked for among recent ones, in bytes, and the number of recent ones.
const REPEATED: usize = 64;
const RECENT: usize = 256;

/// The length below which the bytes of a value are searched anew for every question about them.
const SCANNED: usize = 64;

/// The most bytes of values, and of rows, that the budget is not charged with yet: most are short, and are charged together.
const UNCHARGED: usize = 16 * 1024;

struct Blob {
    bytes: Bytes,
    /// The row of transformation results in [`Arena::rows`], plus 1; 0 if there are none.
    row: u32,
    /// The row of prefilters it passes in [`Arena::prefilters`], plus 1; 0 if it was not scanned.
    prefilters: u32,
    /// The pipelines of transformations that may change the value, once it was scanned.
    triggers: u64,
    /// The set of bytes that occur in the value, made at the first use.
    present: Option<ByteSet>,
    /// Its slot in the hot cache, if any.
    cache_slot: CacheSlot,
    /// The number of the last test that did not match it.
    failed: u32,
}

/// Where the bytes of a value are.
enum Bytes {
    /// In the buffer of all short values.
    Shared(usize, usize),
    /// In memory of their own, which can be released separately.
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
        Self { bytes, row: 0, prefilters: 0, triggers: 0, present: None, cache_slot: CacheSlot::default(), failed: 0 }
    }
}

/// The values of one transaction.
#[derive(Default)]
pub(super) struct Arena {
    blobs: Vec<Blob>,
    buffer: Vec<u8>,
    /// The bytes of all values, [`VALUE_SIZE`] for each included, that the budget was charged with.
    bytes: usize,
    charged: Charged,
    /// The values of small numbers, such as counts and scores; 0 if not made yet.
    numbers: [u32; 32],
    /// For each value and transformation the result plus 1; 0 if it is not cached.
    rows: Chunks<u32>,
    /// For each scanned value the row of prefilters it passes.
    prefilters: Chunks<u64>,
    /// The values that every transaction has.
    constants: Constants,
    /// Whether a result was cached for a constant.
    touched: bool,
    /// The cross-request cache, borrowed while rules run.
    pub(super) hot_cache: HotCache,
    /// The budget of the transaction.
    pub(super) budget: Budget,
    /// Long values that were scanned.
    scanned: Vec<Value>,
    /// The number of tests so far, in all transactions that used this memory.
    tests: u32,
    /// Short values by a hash, because arguments repeat. Stale entries of other transactions are harmless, as the bytes
    /// are compared.
    recent: Vec<Value>,
}

/// How many values the budget was charged with, the bytes of rows that it was charged with, and the bytes of values and rows
/// that it was not.
#[derive(Default)]
struct Charged {
    values: usize,
    rows: usize,
    left: usize,
}

/// The constants, which stay when the arena is cleared: their number, the length of their bytes, and those that are
/// small numbers.
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

    /// Drops all values but the constants; keeps a limited amount of memory for the next transaction.
    pub(super) fn clear(&mut self) {
        self.blobs.truncate(self.constants.blobs);
        self.buffer.truncate(self.constants.buffer);
        if std::mem::take(&mut self.touched) {
            self.blobs.iter_mut().for_each(|blob| (blob.row, blob.prefilters) = (0, 0));
        }
        self.rows.clear();
        self.prefilters.clear();
        self.scanned.clear();
        self.blobs.shrink_to(KEPT);
        self.buffer.shrink_to(KEPT * 64);
        self.bytes = 0;
        self.budget = Budget::default();
        self.numbers = self.constants.numbers;
        if self.blobs.is_empty() {
            self.blobs.push(Blob::new(Bytes::Shared(0, 0)));
        }
        self.note_charged();
    }

    /// The memory in use, in bytes.
    pub(super) fn size(&self) -> usize {
        self.blobs.capacity() * size_of::<Blob>() + self.buffer.capacity() + self.rows.size() + self.prefilters.size()
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
        // In a full arena values are released one by one.
        let length = bytes.len();
        let bytes = match length <= SHORT && self.buffer.len() < BUFFER && !self.is_full() {
            true => {
                let start = self.buffer.len();
                self.buffer.extend_from_slice(bytes);
                Bytes::Shared(start, self.buffer.len())
            }
            false => Bytes::Own(bytes.into()),
        };
        self.add(bytes, length)
    }

    /// Adds a value that may be in the hot cache: see [`super::hot_cache`].
    pub(super) fn push_cacheable(&mut self, bytes: &[u8]) -> Value {
        let value = self.push(bytes);
        if let Some(blob) = self.blobs.get_mut(value as usize).filter(|_| value != EMPTY) {
            blob.cache_slot = self.hot_cache.slot(bytes);
        }
        value
    }

    /// Adds the name of a header; returns its value and its kind.
    pub(super) fn push_header_name(&mut self, name: &[u8]) -> (Value, HeaderKind) {
        let value = self.push_cacheable(name);
        let slot = self.blobs.get(value as usize).map(|blob| blob.cache_slot).unwrap_or_default();
        let kind = self.hot_cache.get(slot).map_or_else(|| HeaderKind::of(name), CachedValue::header);
        (value, kind)
    }

    /// Adds the name of an argument or a cookie; a name that is already present keeps its number.
    pub(super) fn push_name(&mut self, name: &[u8]) -> Value {
        let value = self.push_shared(name);
        if is_cacheable_name(name)
            && let Some(blob) = self.blobs.get_mut(value as usize).filter(|_| value != EMPTY)
        {
            blob.cache_slot = self.hot_cache.slot(name);
        }
        value
    }

    /// The cached row of prefilters that a value passes after a pipeline.
    pub(super) fn cached_pipeline_row(&self, value: Value, pipeline: u32) -> Option<&[u64]> {
        self.hot_cache.get(self.blobs.get(value as usize)?.cache_slot)?.pipeline_row(pipeline)
    }

    /// Caches the row of prefilters that a value passes after a pipeline, if the value is in the hot cache.
    pub(super) fn cache_pipeline_row(&mut self, value: Value, pipeline: u32, row: &[u64]) {
        if let Some(blob) = self.blobs.get(value as usize) {
            self.hot_cache.cache_pipeline_row(blob.cache_slot, pipeline, row);
        }
    }

    /// Whether the hot cache says that a test, with its transformations, does not match a value.
    pub(super) fn fails(&self, value: Value, test: u32) -> bool {
        let slot = self.blobs.get(value as usize).map(|blob| blob.cache_slot);
        slot.and_then(|slot| self.hot_cache.get(slot)).is_some_and(|cached| cached.fails(test))
    }

    /// Caches that a test does not match a value, if the value is in the hot cache.
    pub(super) fn cache_failed_test(&mut self, value: Value, test: u32) {
        if let Some(blob) = self.blobs.get(value as usize) {
            self.hot_cache.cache_failed_test(blob.cache_slot, test);
        }
    }

    /// Whether a value has a slot in the hot cache.
    pub(super) fn is_in_hot_cache(&self, value: Value) -> bool {
        self.blobs.get(value as usize).is_some_and(|blob| !blob.cache_slot.is_none())
    }

    /// Adds a value, or returns the number of an equal recent one if it is short.
    pub(super) fn push_once(&mut self, bytes: &[u8]) -> Value {
        // The recent entry of an empty value would be a stale number.
        if bytes.is_empty() || bytes.len() > REPEATED {
            return self.push(bytes);
        }
        self.push_shared(bytes)
    }

    /// Adds a value of any length, or returns the number of an equal recent one.
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
            false => {
                let length = bytes.len();
                self.add(Bytes::Own(bytes.into()), length)
            }
        }
    }

    /// Adds a value in memory of its own, which can be replaced.
    pub(super) fn push_own(&mut self, bytes: &[u8]) -> Value {
        self.add(Bytes::Own(bytes.into()), bytes.len())
    }

    /// Replaces a value of [`Arena::push_own`]; no cached result may refer to it.
    pub(super) fn replace(&mut self, value: Value, bytes: &[u8]) {
        self.hollow(value);
        self.bytes += bytes.len() + VALUE_SIZE;
        self.budget.charge_values(1, bytes.len() + VALUE_SIZE);
        if let Some(blob) = self.blobs.get_mut(value as usize) {
            *blob = Blob::new(Bytes::Own(bytes.into()));
        }
    }

    /// Adds a value of so many bytes.
    #[inline(always)]
    fn add(&mut self, bytes: Bytes, length: usize) -> Value {
        self.blobs.push(Blob::new(bytes));
        self.charged.left += length + VALUE_SIZE;
        if self.charged.left > UNCHARGED {
            self.charge_values();
        }
        u32::try_from(self.blobs.len() - 1).unwrap_or(EMPTY)
    }

    /// A row of so many bytes was added.
    fn note_row(&mut self, bytes: usize) {
        self.charged.left += bytes;
        if self.charged.left > UNCHARGED {
            self.charge_values();
        }
    }

    /// Charges the budget with the values and rows that were added since the last call.
    #[cold]
    #[inline(never)]
    pub(super) fn charge_values(&mut self) {
        let values = self.blobs.len().saturating_sub(self.charged.values);
        let rows = self.row_bytes().saturating_sub(self.charged.rows);
        let bytes = self.charged.left.saturating_sub(rows);
        self.bytes += bytes;
        self.budget.charge_values(values, bytes);
        self.budget.keep(rows);
        self.note_charged();
    }

    /// All values and rows are charged.
    fn note_charged(&mut self) {
        self.charged = Charged { values: self.blobs.len(), rows: self.row_bytes(), left: 0 };
    }

    /// The bytes of the rows of all values.
    fn row_bytes(&self) -> usize {
        self.rows.items() * size_of::<u32>() + self.prefilters.items() * size_of::<u64>()
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

    /// The number of values: the mark for [`Arena::forget_since`].
    pub(super) fn mark(&self) -> usize {
        self.blobs.len()
    }

    /// Whether the value cache is full: results are no longer cached.
    pub(super) fn is_full(&self) -> bool {
        self.bytes > CACHED_BYTES
    }

    /// Drops the values made since `mark`. The arena must have been full at the mark: then no cached result refers to
    /// them.
    pub(super) fn forget_since(&mut self, mark: usize) {
        self.charge_values();
        let mut bytes = 0;
        for blob in self.blobs.drain(mark.max(1).min(self.blobs.len())..) {
            bytes += blob.bytes.get(&self.buffer).len() + VALUE_SIZE;
        }
        self.bytes = self.bytes.saturating_sub(bytes);
        self.budget.release(bytes);
        self.note_charged();
        for number in self.numbers.iter_mut().filter(|number| **number as usize >= mark) {
            *number = 0;
        }
    }

    /// Releases the bytes of a value that is no longer needed.
    pub(super) fn hollow(&mut self, value: Value) {
        self.charge_values();
        if let Some(blob) = self.blobs.get_mut(value as usize) {
            let bytes = blob.bytes.get(&self.buffer).len() + VALUE_SIZE;
            self.bytes = self.bytes.saturating_sub(bytes);
            self.budget.release(bytes);
            *blob = Blob::new(Bytes::Shared(0, 0));
        }
    }

    /// A new number for a test, which no value has failed.
    pub(super) fn new_test(&mut self) -> u32 {
        self.tests = self.tests.checked_add(1).unwrap_or_else(|| {
            // After a wrap-around: constants must not count as failed.
            self.blobs.iter_mut().for_each(|blob| blob.failed = 0);
            1
        });
        self.tests
    }

    /// Whether a value failed the test of this number.
    pub(super) fn has_failed(&self, value: Value, test: u32) -> bool {
        self.blobs.get(value as usize).is_some_and(|blob| blob.failed == test)
    }

    /// Records that a value failed a test; replaces the test before.
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

    /// The bytes of all values.
    #[cfg(test)]
    pub(super) fn bytes(&mut self) -> usize {
        self.charge_values();
        self.bytes
    }

    /// A short value in lower case, in the buffer and without another copy: the most frequent transformation.
    fn lowered(&mut self, value: Value, range: std::ops::Range<usize>) -> Value {
        if !self.buffer.get(range.clone()).is_some_and(|bytes| bytes.iter().any(u8::is_ascii_uppercase)) {
            return value;
        }
        let start = self.buffer.len();
        self.buffer.extend_from_within(range);
        if let Some(lowered) = self.buffer.get_mut(start..) {
            lowered.make_ascii_lowercase();
        }
        let end = self.buffer.len();
        self.add(Bytes::Shared(start, end), end.saturating_sub(start))
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
        let result = match (transform, &blob.bytes) {
            (Transform::Lowercase, Bytes::Shared(start, end)) if !full => self.lowered(value, *start..*end),
            _ => match transform.apply(blob.bytes.get(&self.buffer)) {
                Cow::Borrowed(_) => value,
                Cow::Owned(bytes) => self.push_vec(bytes),
            },
        };
        self.budget.charge_transformation(length, (result != value).then_some(transform));
        if !full {
            if row == 0 {
                self.touched |= (value as usize) < self.constants.blobs.max(1);
                row = self.rows.add(ROW) + 1;
                self.note_row(ROW * size_of::<u32>());
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
