//! Captures: TX.0 to TX.9.
//!
//! Each match of a rule with `capture` sets them anew, so a transaction keeps the last ones only. The current link may
//! still read a replaced value if it reads TX: the value is released when the rule ends.

use super::arena::Value;
use super::transaction::Transaction;
use crate::operator::{MAX_CAPTURE_LENGTH, MAX_CAPTURES};

/// The values of captures.
#[derive(Debug, Default)]
pub(super) struct CapturedValues {
    /// For each capture its value, and whether the current link made it: then nothing else refers to it.
    current: [Option<(Value, bool)>; MAX_CAPTURES],
    /// Whether a capture was cut.
    cut: [bool; MAX_CAPTURES],
    /// Replaced values, released when the rule ends.
    old: Vec<Value>,
    /// Released values, to be reused.
    free: Vec<Value>,
}

impl CapturedValues {
    /// Marks the captures as made by an earlier link, whose values the new link may read.
    pub(super) fn begin_link(&mut self) {
        self.current.iter_mut().flatten().for_each(|(_, own)| *own = false);
    }

    /// Whether the name of TX is a cut capture.
    pub(super) fn is_cut(&self, slot: u32) -> bool {
        self.cut.get(slot as usize).is_some_and(|cut| *cut)
    }

    /// Whether a value of TX is a capture: another name needs a copy of it.
    pub(super) fn holds(&self, value: Value) -> bool {
        self.current.iter().flatten().any(|(current, _)| *current == value)
    }
}

impl Transaction {
    /// Writes the captures to TX.0 to TX.9. Groups outside the match keep their values, as in ModSecurity v3.
    pub(super) fn keep_captures(&mut self) {
        for (slot, at) in (0u32..).zip(0..MAX_CAPTURES.min(self.captures.len())) {
            let Some(bytes) = self.captures.get(at) else { continue };
            let current = self.captured_values.current.get(at).copied().flatten();
            let value = match current {
                Some((value, true)) => value,
                Some((value, false)) => {
                    self.captured_values.old.push(value);
                    self.captured_values.free.pop().unwrap_or_else(|| self.arena.push_own(&[]))
                }
                None => self.captured_values.free.pop().unwrap_or_else(|| self.arena.push_own(&[])),
            };
            let cut = bytes.len() >= MAX_CAPTURE_LENGTH;
            self.arena.replace(value, bytes);
            if let Some(known) = self.captured_values.cut.get_mut(at) {
                *known = cut;
            }
            if let Some(current) = self.captured_values.current.get_mut(at) {
                *current = Some((value, true));
            }
            self.tx.set(slot, Some(value));
        }
    }

    /// Releases replaced captures at the end of a rule.
    pub(super) fn release_captures(&mut self) {
        for value in std::mem::take(&mut self.captured_values.old) {
            self.arena.hollow(value);
            self.captured_values.free.push(value);
        }
    }
}
