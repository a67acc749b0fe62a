//! What a worker remembers of answers.

use std::cell::RefCell;
use std::collections::HashMap;

/// The most answers of a generation; there are two.
const ANSWERS: usize = 16_384;

/// Answers by a hash of what was asked, in two generations: what is asked for often stays.
#[derive(Default)]
pub(crate) struct Memory(RefCell<Generations>);

#[derive(Default)]
struct Generations {
    current: HashMap<u64, bool>,
    before: HashMap<u64, bool>,
}

impl Memory {
    /// Whether an object is within its budget; `None` where that is not known.
    pub(crate) fn known(&self, print: u64) -> Option<bool> {
        let mut generations = self.0.try_borrow_mut().ok()?;
        if let Some(within) = generations.current.get(&print) {
            return Some(*within);
        }
        let within = generations.before.remove(&print)?;
        generations.put(print, within);
        Some(within)
    }

    pub(crate) fn note(&self, print: u64, within: bool) {
        if let Ok(mut generations) = self.0.try_borrow_mut() {
            generations.put(print, within);
        }
    }
}

impl Generations {
    fn put(&mut self, print: u64, within: bool) {
        if self.current.len() >= ANSWERS {
            self.before = std::mem::take(&mut self.current);
        }
        self.current.insert(print, within);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_for_often_stays_among_a_million_others() {
        let memory = Memory::default();
        memory.note(7, true);
        memory.note(8, false);
        for print in 100..1_000_100 {
            memory.note(print, print % 2 == 0);
            if print % 10_000 == 0 {
                assert_eq!((memory.known(7), memory.known(8)), (Some(true), Some(false)));
            }
        }
        assert_eq!((memory.known(1_000_099), memory.known(100), memory.known(9)), (Some(false), None, None));
        let generations = memory.0.borrow();
        assert!(generations.current.len() <= ANSWERS && generations.before.len() <= ANSWERS);
    }
}
