//! Captures: TX.0 to TX.9.
//!
//! Each match of a rule that captures sets them anew, so a transaction keeps the last ones only. The value before can
//! still be among those that the link under way looks at, if it has to do with TX: it goes when the rule is over.

use super::arena::Value;
use super::transaction::Transaction;
use crate::operator::{MAX_CAPTURE_LENGTH, MAX_CAPTURES};

/// The values that were made of captures.
#[derive(Debug, Default)]
pub(super) struct KeptCaptures {
    /// For each capture its value, and whether it was made in the link under way: then nothing else refers to it.
    current: [Option<(Value, bool)>; MAX_CAPTURES],
    /// Whether more was captured than is kept.
    cut: [bool; MAX_CAPTURES],
    /// Values that nothing needs when the rule is over.
    old: Vec<Value>,
    /// Values that can be used again.
    free: Vec<Value>,
}

impl KeptCaptures {
    /// A link begins: what there is may be among its values.
    pub(super) fn begin_link(&mut self) {
        self.current.iter_mut().flatten().for_each(|(_, own)| *own = false);
    }

    /// Whether the name of TX is a capture that is not there to its end.
    pub(super) fn is_cut(&self, slot: u32) -> bool {
        self.cut.get(slot as usize).is_some_and(|cut| *cut)
    }

    /// Whether a value of TX is a capture: another name needs a copy of it.
    pub(super) fn holds(&self, value: Value) -> bool {
        self.current.iter().flatten().any(|(current, _)| *current == value)
    }
}

impl Transaction {
    /// Writes the captures to TX.0 to TX.9. Groups that took no part keep what they had, as in ModSecurity v3.
    pub(super) fn keep_captures(&mut self) {
        for (slot, at) in (0u32..).zip(0..MAX_CAPTURES.min(self.captures.len())) {
            let Some(bytes) = self.captures.get(at) else { continue };
            let current = self.kept_captures.current.get(at).copied().flatten();
            let value = match current {
                Some((value, true)) => value,
                Some((value, false)) => {
                    self.kept_captures.old.push(value);
                    self.kept_captures.free.pop().unwrap_or_else(|| self.arena.push_own(&[]))
                }
                None => self.kept_captures.free.pop().unwrap_or_else(|| self.arena.push_own(&[])),
            };
            let cut = bytes.len() >= MAX_CAPTURE_LENGTH;
            self.arena.replace(value, bytes);
            if let Some(known) = self.kept_captures.cut.get_mut(at) {
                *known = cut;
            }
            if let Some(current) = self.kept_captures.current.get_mut(at) {
                *current = Some((value, true));
            }
            self.tx.set(slot, Some(value));
        }
    }

    /// A rule is over: captures before the last ones are given back.
    pub(super) fn release_captures(&mut self) {
        for value in std::mem::take(&mut self.kept_captures.old) {
            self.arena.hollow(value);
            self.kept_captures.free.push(value);
        }
    }
}
