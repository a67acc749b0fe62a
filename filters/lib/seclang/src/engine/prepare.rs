//! Builds patterns and phrase lists in advance, which requests would otherwise build at their first use.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::build::Engine;
use crate::operator::Operator;

/// How far an engine is prepared.
#[derive(Default)]
pub(super) struct Preparation {
    /// The operators of rules that may run, each once.
    operators: OnceLock<Vec<u32>>,
    /// How many pieces of all of them are prepared: the first piece of each, then the second of each, and so on.
    done: AtomicUsize,
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
                return false;
            }
            let (piece, at) = (next / operators.len(), next % operators.len());
            let built = operators.get(at).and_then(|number| self.operators.get(*number as usize));
            if built.is_some_and(|built| built.operator.prepare(piece)) {
                return true;
            }
        }
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
