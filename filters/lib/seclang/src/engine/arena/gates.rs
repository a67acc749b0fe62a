//! What gates values pass, and what is known of their bytes.

use super::super::scanner::{Scanner, close_gate, is_open};
use super::{Arena, Blob, SCANNED, SHORT, Value};
use crate::operator::ByteSet;

/// How many long values are compared with a new one.
const ALIKE: usize = 16;

impl Arena {
    /// The operator of a gate was run on a value, as it is, and did not match: it is not run again, and no other
    /// transaction if the value is one of those that come again.
    pub(in crate::engine) fn close(&mut self, value: Value, gate: u32) {
        let Some(blob) = self.blobs.get(value as usize) else { return };
        self.familiar.close(blob.place, gate);
        // What holds for this value need not hold for one with other capitals.
        self.scanned.retain(|scanned| *scanned != value);
        if let Some(row) = (blob.gates as usize).checked_sub(1).and_then(|row| self.gates.get_mut(row)) {
            close_gate(row, gate);
        }
    }

    /// The bytes that occur in a value.
    pub(in crate::engine) fn present(&mut self, value: Value) -> ByteSet {
        let Some(blob) = self.blobs.get_mut(value as usize) else { return ByteSet::default() };
        *blob.present.get_or_insert_with(|| ByteSet::of_bytes(blob.bytes.get(&self.buffer)))
    }

    /// Whether transformations with these triggers leave the value as it is, as far as its bytes tell; `changes` is the
    /// bit a scanned value has if it holds any of the triggers, 0 if there is none.
    pub(in crate::engine) fn is_unchanged(&mut self, value: Value, triggers: &Option<ByteSet>, changes: u64) -> bool {
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
    pub(in crate::engine) fn leaves(&self, value: Value, changes: u64) -> bool {
        self.blobs
            .get(value as usize)
            .is_some_and(|blob| changes != 0 && blob.gates != 0 && blob.triggers & changes == 0)
    }

    /// The pipelines of transformations that may change what gates a value passes; all of them unless it was scanned.
    pub(in crate::engine) fn triggers(&self, value: Value) -> u64 {
        self.blobs.get(value as usize).filter(|blob| blob.gates != 0).map_or(u64::MAX, |blob| blob.triggers)
    }

    /// How many words the gates of all values take.
    pub(in crate::engine) fn gate_words(&self) -> usize {
        self.gates.items()
    }

    /// The gates a value passes; scans it if that was not done yet.
    pub(in crate::engine) fn open_gates(&mut self, scanner: &Scanner, value: Value) -> Option<&[u64]> {
        let words = scanner.words();
        if self.blobs.get(value as usize)?.gates == 0 {
            self.scan(scanner, value, words)?;
        }
        self.gates.get((self.blobs.get(value as usize)?.gates as usize).checked_sub(1)?)
    }

    #[inline(never)]
    fn scan(&mut self, scanner: &Scanner, value: Value, words: usize) -> Option<()> {
        let length = self.get(value).len();
        self.budget.charge_scan(length);
        self.budget.keep(words * size_of::<u64>());
        let alike = self.scanned_alike(value).and_then(|from| Some(self.gates.get(from)?.to_vec()));
        let number = self.gates.add(words);
        let blob = self.blobs.get_mut(value as usize)?;
        if blob.bytes.get(&self.buffer).len() > SHORT && self.scanned.len() < ALIKE {
            self.scanned.push(value);
        }
        self.touched |= (value as usize) < self.constants.blobs.max(1);
        let (bytes, row) = (blob.bytes.get(&self.buffer), self.gates.get_mut(number)?);
        blob.triggers = match (self.familiar.get(blob.place).filter(|known| known.scanned), &alike) {
            (Some(known), _) => {
                row.copy_from_slice(&known.plain);
                known.triggers
            }
            (None, Some(alike)) => {
                row.copy_from_slice(alike);
                scanner.triggers(bytes)
            }
            (None, None) => {
                let allowed = self.budget.scan_steps_left();
                let (triggers, steps) = scanner.scan_within(bytes, row, allowed);
                self.budget.charge_scan_steps(steps);
                // A scan that ended early has spent the budget, and tells nothing of the value.
                if steps <= allowed {
                    self.familiar.keep(blob.place, row, triggers);
                }
                triggers
            }
        };
        blob.gates = u32::try_from(number + 1).unwrap_or(0);
        Some(())
    }

    /// The number of the gates of another long value that is the same but for the case of letters, to which gates are blind:
    /// transformations that differ in nothing else make such values.
    pub(super) fn scanned_alike(&mut self, value: Value) -> Option<usize> {
        let bytes = self.blobs.get(value as usize)?.bytes.get(&self.buffer);
        if bytes.len() <= SHORT {
            return None;
        }
        let others = self.scanned.iter().filter_map(|other| self.blobs.get(*other as usize));
        let mut of_length = others.filter(|other| other.bytes.get(&self.buffer).len() == bytes.len());
        let budget = &mut self.budget;
        let same = |other: &&Blob| {
            budget.charge_copy(bytes.len());
            other.gates != 0 && other.bytes.get(&self.buffer).eq_ignore_ascii_case(bytes)
        };
        (of_length.find(same)?.gates as usize).checked_sub(1)
    }

    /// Whether a value is known not to pass a gate.
    pub(in crate::engine) fn is_closed(&self, value: Value, gate: u32) -> bool {
        let number = self.blobs.get(value as usize).and_then(|blob| (blob.gates as usize).checked_sub(1));
        let row = number.and_then(|number| self.gates.get(number));
        row.is_some_and(|row| !is_open(row, gate))
    }
}
