//! Builds patterns and phrase lists in advance, which requests would otherwise build at their first use.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use super::build::Engine;
use crate::operator::Operator;

/// How much memory a VM takes in advance, in bytes, and in what pieces: the costliest request of 64 KiB takes as much, and
/// the pages of fresh memory cost the first one a tenth of its time. A VM never gives memory back, so the allocator has
/// it for any request. Elsewhere the memory of a process is its allocator's own affair.
pub(super) const RESERVED: usize = 12 << 20;
pub(super) const RESERVED_PIECE: usize = 512 << 10;

/// How many engines are not prepared: the last one reserves memory, so that what the others build does not take it.
static UNPREPARED: AtomicUsize = AtomicUsize::new(0);

/// Whether the memory of this VM is reserved: once, for all its rule sets.
static IS_RESERVED: AtomicBool = AtomicBool::new(!cfg!(target_family = "wasm"));

/// How far an engine is prepared.
pub(super) struct Preparation {
    /// The operators of rules that may run, each once.
    operators: OnceLock<Vec<u32>>,
    /// How many pieces of all of them are prepared: the first piece of each, then the second of each, and so on.
    done: AtomicUsize,
    /// Nothing is left to build.
    is_complete: AtomicBool,
    /// Memory that is reserved: held until there is enough of it, then released.
    reserved: Mutex<Vec<Vec<u8>>>,
}

impl Default for Preparation {
    fn default() -> Self {
        UNPREPARED.fetch_add(1, Ordering::Relaxed);
        let (done, is_complete) = (AtomicUsize::new(0), AtomicBool::new(false));
        Self { operators: OnceLock::new(), done, is_complete, reserved: Mutex::default() }
    }
}

impl Preparation {
    fn complete(&self) {
        if !self.is_complete.swap(true, Ordering::Relaxed) {
            UNPREPARED.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

impl Drop for Preparation {
    fn drop(&mut self) {
        self.complete();
    }
}

impl Engine {
    /// Builds one piece: a pattern, an automaton of one, or a list of phrases; `false` once there is nothing left to build.
    /// Rules that never run, such as those of a higher paranoia level, are left out.
    ///
    /// All of the Core Rule Set takes some 0.3 s, its largest pattern 15 ms. An engine that is not prepared builds a
    /// pattern with the first request that needs it: the first attacks that a process sees are slow.
    pub fn prepare(&self) -> bool {
        let operators = self.prepared.operators.get_or_init(|| self.operators_in_use());
        let all = operators.len() * Operator::PIECES;
        loop {
            let next = self.prepared.done.fetch_add(1, Ordering::Relaxed);
            if next >= all {
                self.prepared.done.store(all, Ordering::Relaxed);
                self.prepared.complete();
                return self.reserve();
            }
            let (piece, at) = (next / operators.len(), next % operators.len());
            let built = operators.get(at).and_then(|number| self.operators.get(*number as usize));
            if built.is_some_and(|built| built.operator.prepare(piece)) {
                return true;
            }
        }
    }

    /// Reserves a piece of memory; `false` once there is enough, or while another engine is not prepared.
    fn reserve(&self) -> bool {
        if IS_RESERVED.load(Ordering::Relaxed) || UNPREPARED.load(Ordering::Relaxed) > 0 {
            return false;
        }
        let mut pieces = self.prepared.reserved.lock().unwrap_or_else(PoisonError::into_inner);
        // Written to: an untouched page is not there yet.
        pieces.push(vec![1; RESERVED_PIECE]);
        if pieces.len() * RESERVED_PIECE >= RESERVED {
            *pieces = Vec::new();
            IS_RESERVED.store(true, Ordering::Relaxed);
        }
        true
    }

    fn operators_in_use(&self) -> Vec<u32> {
        let rules =
            self.pruned_plans.iter().flat_map(|plan| &plan.steps).filter_map(|step| self.rules.get(step.rule as usize));
        let mut operators: Vec<u32> = rules.flat_map(|rule| &rule.links).filter_map(|link| link.operator).collect();
        operators.sort_unstable();
        operators.dedup();
        operators
    }
}
