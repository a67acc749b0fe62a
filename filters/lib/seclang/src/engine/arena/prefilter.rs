//! The rows of prefilters that values pass, and the bytes that occur in values.

use super::super::scanner::{LONG, Scanner, clear_passed, is_passed};
use super::{Arena, Blob, SCANNED, SHORT, Value};
use crate::operator::ByteSet;

/// The most long values that are compared with a new one.
const ALIKE: usize = 16;
/// The most steps of a scan after which it is not asked whether the budget is spent.
const FEW_STEPS: usize = 2048;

impl Arena {
    /// Clears a prefilter in the row of a value: its operator was run on the untransformed value and did not match. It
    /// is not run on the value again, in no other transaction either if the value is in the hot cache.
    pub(in crate::engine) fn reject(&mut self, value: Value, prefilter: u32) {
        let Some(blob) = self.blobs.get(value as usize) else { return };
        self.hot_cache.reject(blob.cache_slot, prefilter);
        // The result does not hold for a value that differs in case.
        self.scanned.retain(|scanned| *scanned != value);
        if let Some(row) = (blob.prefilters as usize).checked_sub(1).and_then(|row| self.prefilters.get_mut(row)) {
            clear_passed(row, prefilter);
        }
    }

    /// The bytes that occur in a value.
    pub(in crate::engine) fn present(&mut self, value: Value) -> ByteSet {
        let Some(blob) = self.blobs.get_mut(value as usize) else { return ByteSet::default() };
        *blob.present.get_or_insert_with(|| ByteSet::of_bytes(blob.bytes.get(&self.buffer)))
    }

    /// Whether the bytes of a value show that transformations with these triggers do not change it; `changes` is the
    /// bit that a scanned value has if it holds a trigger, 0 if there is no bit.
    pub(in crate::engine) fn is_unchanged(&mut self, value: Value, triggers: &Option<ByteSet>, changes: u64) -> bool {
        let (Some(triggers), Some(blob)) = (triggers, self.blobs.get(value as usize)) else { return false };
        if changes != 0 && blob.prefilters != 0 {
            return blob.triggers & changes == 0;
        }
        let bytes = blob.bytes.get(&self.buffer);
        if bytes.len() < SCANNED {
            return !bytes.iter().any(|byte| triggers.contains(*byte));
        }
        !self.present(value).intersects(triggers)
    }

    /// Whether a scanned value holds none of the bytes with this bit; `false` if there is no bit.
    pub(in crate::engine) fn leaves(&self, value: Value, changes: u64) -> bool {
        self.blobs
            .get(value as usize)
            .is_some_and(|blob| changes != 0 && blob.prefilters != 0 && blob.triggers & changes == 0)
    }

    /// The bits of the pipelines that may change the prefilters that a value passes; all bits if it was not scanned.
    pub(in crate::engine) fn triggers(&self, value: Value) -> u64 {
        self.blobs.get(value as usize).filter(|blob| blob.prefilters != 0).map_or(u64::MAX, |blob| blob.triggers)
    }

    /// Whether the row of prefilters that a value passes is known.
    pub(in crate::engine) fn is_scanned(&self, value: Value) -> bool {
        self.blobs.get(value as usize).is_some_and(|blob| blob.prefilters != 0)
    }

    /// The words that the rows of all values take.
    pub(in crate::engine) fn prefilter_words(&self) -> usize {
        self.prefilters.items()
    }

    /// The row of prefilters that a value passes; scans the value at the first call.
    pub(in crate::engine) fn passed_prefilters(&mut self, scanner: &Scanner, value: Value) -> Option<&[u64]> {
        let words = scanner.words();
        if self.blobs.get(value as usize)?.prefilters == 0 {
            self.scan(scanner, value, words)?;
        }
        self.prefilters.get((self.blobs.get(value as usize)?.prefilters as usize).checked_sub(1)?)
    }

    #[inline(never)]
    fn scan(&mut self, scanner: &Scanner, value: Value, words: usize) -> Option<()> {
        let length = self.get(value).len();
        let mut steps = 0;
        let alike = self.scanned_ignoring_case(value).and_then(|from| Some(self.prefilters.get(from)?.to_vec()));
        let number = self.prefilters.add(words);
        self.note_row(words * size_of::<u64>());
        let blob = self.blobs.get_mut(value as usize)?;
        if blob.bytes.get(&self.buffer).len() > SHORT && self.scanned.len() < ALIKE {
            self.scanned.push(value);
        }
        self.touched |= (value as usize) < self.constants.blobs.max(1);
        let (bytes, row) = (blob.bytes.get(&self.buffer), self.prefilters.get_mut(number)?);
        blob.triggers = match (self.hot_cache.get(blob.cache_slot).filter(|cached| cached.scanned), &alike) {
            (Some(cached), _) => {
                row.copy_from_slice(&cached.plain);
                cached.triggers
            }
            (None, Some(alike)) => {
                row.copy_from_slice(alike);
                scanner.triggers(bytes)
            }
            (None, None) => {
                let allowed = if length < LONG { usize::MAX } else { self.budget.scan_steps_left() };
                let (triggers, taken) = scanner.scan_within(bytes, row, allowed);
                steps = taken;
                // A scan that ended early has spent the budget: its result is not cached.
                if steps <= allowed {
                    self.hot_cache.store_scan(blob.cache_slot, row, triggers);
                }
                triggers
            }
        };
        blob.prefilters = u32::try_from(number + 1).unwrap_or(0);
        self.budget.charge_scan(length, steps);
        (steps <= FEW_STEPS || !self.budget.is_spent()).then_some(())
    }

    /// The row of another long value that differs at most in the case of letters, which prefilters ignore:
    /// transformations that only change case produce such values.
    pub(super) fn scanned_ignoring_case(&mut self, value: Value) -> Option<usize> {
        let bytes = self.blobs.get(value as usize)?.bytes.get(&self.buffer);
        if bytes.len() <= SHORT {
            return None;
        }
        let others = self.scanned.iter().filter_map(|other| self.blobs.get(*other as usize));
        let mut of_length = others.filter(|other| other.bytes.get(&self.buffer).len() == bytes.len());
        let budget = &mut self.budget;
        let same = |other: &&Blob| {
            budget.charge_copy(bytes.len());
            other.prefilters != 0 && other.bytes.get(&self.buffer).eq_ignore_ascii_case(bytes)
        };
        (of_length.find(same)?.prefilters as usize).checked_sub(1)
    }

    /// Whether a scanned value does not pass a prefilter.
    pub(in crate::engine) fn is_rejected(&self, value: Value, prefilter: u32) -> bool {
        let number = self.blobs.get(value as usize).and_then(|blob| (blob.prefilters as usize).checked_sub(1));
        let row = number.and_then(|number| self.prefilters.get(number));
        row.is_some_and(|row| !is_passed(row, prefilter))
    }
}
