//! Values of one transaction, and what transformations made of them.
//!
//! A value has a number; so has each transformed value. For each value and transformation the result is remembered:
//! two pipelines that begin alike share their work, and so do two rules, two variables with the same value, and a
//! pipeline whose steps change nothing.

use std::borrow::Cow;

use super::budget::{Budget, VALUE_SIZE};
use super::familiar::{Familiar, FamiliarValue, HeaderKind, Place, hash, is_familiar_name, is_same};
use super::limits::CACHED_BYTES;
use super::scanner::{Scanner, close_gate, is_open};
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

/// How many long values are compared with a new one.
const ALIKE: usize = 16;

/// How many bytes of short values are kept in one buffer, which is copied as it grows.
const BUFFER: usize = 2 * 1024 * 1024;

/// How long a value may be to be looked for among the recent ones, and how many of these there are.
const REPEATED: usize = 64;
const RECENT: usize = 256;

/// How long a value may be to be looked through anew whenever something is asked about its bytes.
const SCANNED: usize = 64;

struct Blob {
    bytes: Bytes,
    /// Where the results of transformations begin in [`Arena::rows`], plus 1; 0 while there are none.
    row: u32,
    /// Where the gates it passes begin in [`Arena::gates`], plus 1; 0 if it was not scanned.
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
    rows: Vec<u32>,
    /// For each value that was scanned, which gates it passes.
    gates: Vec<u64>,
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
        self.rows.shrink_to(KEPT * 16);
        self.gates.shrink_to(KEPT * 16);
        self.bytes = 0;
        self.budget = Budget::default();
        self.numbers = self.constants.numbers;
        if self.blobs.is_empty() {
            self.blobs.push(Blob::new(Bytes::Shared(0, 0)));
        }
    }

    /// How much memory is kept, in bytes.
    pub(super) fn size(&self) -> usize {
        self.blobs.capacity() * size_of::<Blob>()
            + self.buffer.capacity()
            + self.rows.capacity() * size_of::<u32>()
            + self.gates.capacity() * size_of::<u64>()
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

    /// The operator of a gate was run on a value, as it is, and did not match: nobody needs to do that again, and no other
    /// transaction if the value is one of those that come again.
    pub(super) fn close(&mut self, scanner: &Scanner, value: Value, gate: u32) {
        let Some(blob) = self.blobs.get(value as usize) else { return };
        self.familiar.close(blob.place, gate);
        // What holds for this value need not hold for one with other capitals.
        self.scanned.retain(|scanned| *scanned != value);
        let start = (blob.gates as usize).checked_sub(1);
        if let Some(row) = start.and_then(|start| self.gates.get_mut(start..start + scanner.words())) {
            close_gate(row, gate);
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

    /// The bytes that occur in a value.
    pub(super) fn present(&mut self, value: Value) -> ByteSet {
        let Some(blob) = self.blobs.get_mut(value as usize) else { return ByteSet::default() };
        *blob.present.get_or_insert_with(|| ByteSet::of_bytes(blob.bytes.get(&self.buffer)))
    }

    /// Whether transformations with these triggers leave the value as it is, as far as its bytes tell; `changes` is the
    /// bit a scanned value has if it holds any of the triggers, 0 if there is none.
    pub(super) fn is_unchanged(&mut self, value: Value, triggers: &Option<ByteSet>, changes: u64) -> bool {
        let (Some(triggers), Some(blob)) = (triggers, self.blobs.get(value as usize)) else { return false };
        if changes != 0 && blob.gates != 0 {
            return blob.triggers & changes == 0;
        }
        let bytes = blob.bytes.get(&self.buffer);
        if bytes.len() < SCANNED {
            return !bytes.iter().any(|byte| triggers.contains(*byte));
        }
        !self.present(value).intersects(triggers)
    }

    /// Whether a scanned value holds none of the bytes with this bit; never if there is no bit.
    pub(super) fn leaves(&self, value: Value, changes: u64) -> bool {
        self.blobs
            .get(value as usize)
            .is_some_and(|blob| changes != 0 && blob.gates != 0 && blob.triggers & changes == 0)
    }

    /// The pipelines of transformations that may change what gates a value passes; all of them unless it was scanned.
    pub(super) fn triggers(&self, value: Value) -> u64 {
        self.blobs.get(value as usize).filter(|blob| blob.gates != 0).map_or(u64::MAX, |blob| blob.triggers)
    }

    /// How many words the gates of all values take.
    pub(super) fn gate_words(&self) -> usize {
        self.gates.len()
    }

    /// The gates a value passes; scans it if that was not done yet.
    pub(super) fn open_gates(&mut self, scanner: &Scanner, value: Value) -> Option<&[u64]> {
        let words = scanner.words();
        if self.blobs.get(value as usize)?.gates == 0 {
            self.scan(scanner, value, words)?;
        }
        let start = (self.blobs.get(value as usize)?.gates as usize).checked_sub(1)?;
        self.gates.get(start..start + words)
    }

    #[inline(never)]
    fn scan(&mut self, scanner: &Scanner, value: Value, words: usize) -> Option<()> {
        let length = self.get(value).len();
        self.budget.charge_scan(length);
        self.budget.keep(words * size_of::<u64>());
        let alike = self.scanned_alike(value).filter(|from| from + words <= self.gates.len());
        let blob = self.blobs.get_mut(value as usize)?;
        if blob.bytes.get(&self.buffer).len() > SHORT && self.scanned.len() < ALIKE {
            self.scanned.push(value);
        }
        self.touched |= (value as usize) < self.constants.blobs.max(1);
        let start = self.gates.len();
        match alike {
            Some(from) => self.gates.extend_from_within(from..from + words),
            None => self.gates.resize(start + words, 0),
        }
        let (bytes, row) = (blob.bytes.get(&self.buffer), self.gates.get_mut(start..)?);
        blob.triggers = match (self.familiar.get(blob.place).filter(|known| known.scanned), alike) {
            (Some(known), _) => {
                row.copy_from_slice(&known.plain);
                known.triggers
            }
            (None, Some(_)) => scanner.triggers(bytes),
            (None, None) => {
                let triggers = scanner.scan(bytes, row);
                self.familiar.keep(blob.place, row, triggers);
                triggers
            }
        };
        blob.gates = u32::try_from(start + 1).unwrap_or(0);
        Some(())
    }

    /// Where the gates of another long value begin that is the same but for the case of letters, to which gates are blind:
    /// transformations that differ in nothing else make such values.
    fn scanned_alike(&mut self, value: Value) -> Option<usize> {
        let bytes = self.blobs.get(value as usize)?.bytes.get(&self.buffer);
        if bytes.len() <= SHORT {
            return None;
        }
        self.budget.charge_copy(bytes.len() * self.scanned.len());
        let mut others = self.scanned.iter().filter_map(|other| self.blobs.get(*other as usize));
        let same = |other: &&Blob| other.gates != 0 && other.bytes.get(&self.buffer).eq_ignore_ascii_case(bytes);
        (others.find(same)?.gates as usize).checked_sub(1)
    }

    /// Whether a value is known not to pass a gate.
    pub(super) fn is_closed(&self, scanner: &Scanner, value: Value, gate: u32) -> bool {
        let start = self.blobs.get(value as usize).and_then(|blob| (blob.gates as usize).checked_sub(1));
        let row = start.and_then(|start| self.gates.get(start..start + scanner.words()));
        row.is_some_and(|row| !is_open(row, gate))
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
        if row != 0
            && let Some(known) = self.rows.get(row - 1 + at).filter(|known| **known != 0)
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
                row = self.rows.len() + 1;
                self.budget.keep(ROW * size_of::<u32>());
                self.rows.resize(self.rows.len() + ROW, 0);
                if let Some(blob) = self.blobs.get_mut(value as usize) {
                    blob.row = u32::try_from(row).unwrap_or(0);
                }
            }
            if let Some(slot) = self.rows.get_mut(row - 1 + at) {
                *slot = result + 1;
            }
        }
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operator::Gate;
    #[cfg(target_os = "unknown")]
    use wasm_bindgen_test::wasm_bindgen_test as test;

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
    fn a_long_value_has_the_gates_of_one_with_other_capitals() {
        let gate = |literal: &str| Gate { literals: vec![literal.as_bytes().to_vec()], ..Gate::default() };
        let gates = [gate("needle"), gate("missing")];
        let (mut scanner, numbers) = Scanner::new(gates.iter().map(Some));
        let upper = Some(ByteSet::of_bytes(b"ABCDEFGHIJKLMNOPQRSTUVWXYZ"));
        scanner.set_triggers([(&upper, false)].into_iter());
        let [needle, missing] = [numbers[0].unwrap(), numbers[1].unwrap()];
        let text = |needle: &str| [b"hay ".repeat(SHORT), needle.as_bytes().to_vec()].concat();
        let mut arena = Arena::new();
        let (capitals, small, other) =
            (arena.push(text("NEEDLE")), arena.push(text("needle")), arena.push(text("nadele")));
        arena.open_gates(&scanner, capitals);
        assert!(arena.scanned_alike(small).is_some() && arena.scanned_alike(other).is_none());
        arena.open_gates(&scanner, small);
        assert!(!arena.is_closed(&scanner, small, needle) && arena.is_closed(&scanner, small, missing));
        // What changes a value depends on its capitals.
        assert_eq!((arena.triggers(capitals), arena.triggers(small)), (1, 0));
        // A gate that was closed for one value alone is open for the next.
        arena.close(&scanner, capitals, needle);
        arena.close(&scanner, small, needle);
        let again = arena.push(text("nEEdle"));
        arena.open_gates(&scanner, again);
        assert!(!arena.is_closed(&scanner, again, needle));
    }

    #[test]
    fn gives_repeated_values_one_number() {
        let mut arena = Arena::new();
        let (one, other) = (arena.push_once(b"red"), arena.push_once(b"blue"));
        assert_eq!((arena.push_once(b"red"), arena.push_once(b"blue")), (one, other));
        assert_ne!(one, other);
        // Of an earlier transaction only the bytes would count, and they are gone.
        arena.clear();
        assert_eq!(arena.push_once(b""), EMPTY);
        let again = arena.push_once(b"blue");
        assert_eq!(arena.get(again), b"blue");
        let long = [b'x'; REPEATED + 1];
        assert_ne!(arena.push_once(&long), arena.push_once(&long));
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
