//! The rules of a WAF config: composed of rulesets, the options of the core rule set and its own rules, then compiled.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use prost::bytes::Bytes;
use seclang::{Coverage, RuleLookups};
use snapshot::{PartHash, content_hash};

use super::composition::{CheckedRules, Composition, Element, ElementProblem, RuleWarning};
use super::config::Crs;
use kit::{FieldProblem, Tool};

/// A rule program, ready for a snapshot.
#[derive(Debug)]
pub struct CompiledRules {
    /// The encoded program, shared by all that have it.
    pub program: Bytes,
    /// SHA-256 of it.
    pub hash: PartHash,
    /// How many rules it has.
    pub rules: usize,
    /// What they do for an ordinary request.
    pub(crate) coverage: Coverage,
    /// What they look up about addresses.
    pub(super) lookups: RuleLookups,
    /// Options of the core rule set are set, and nothing imports it.
    pub(crate) crs_ignored: bool,
    /// What has no effect in the elements.
    pub(super) warnings: Vec<RuleWarning>,
}

/// Compiles rules, and remembers what it compiled: most changes leave most rules as they were.
#[derive(Default)]
pub struct RuleCompiler {
    /// By [`key`].
    memory: Mutex<HashMap<PartHash, (u64, Outcome)>>,
    generation: std::sync::atomic::AtomicU64,
}

type Outcome = Result<Arc<CompiledRules>, Arc<Vec<ElementProblem>>>;

impl RuleCompiler {
    /// Compiles a composition.
    ///
    /// # Errors
    ///
    /// Everything that is wrong with it, each with its place.
    pub fn compile(&self, elements: &[Element], crs: &Crs) -> Result<Arc<CompiledRules>, Vec<FieldProblem>> {
        match self.remembered(elements, crs) {
            Ok(rules) => Ok(rules),
            Err(problems) => Err(problems.iter().map(|problem| field_problem(problem, elements)).collect()),
        }
    }

    /// Forgets what was not asked for since the call before the last, and is not in use. Two passes may run at
    /// a time, and the one must not forget what the other has begun with.
    fn forget_unused(&self) {
        let generation = self.generation.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let mut memory = self.memory.lock().unwrap_or_else(PoisonError::into_inner);
        let held = |outcome: &Outcome| outcome.as_ref().is_ok_and(|rules| Arc::strong_count(rules) > 1);
        memory.retain(|_, (used, outcome)| *used + 1 >= generation || held(outcome));
    }

    fn remembered(&self, elements: &[Element], crs: &Crs) -> Outcome {
        let generation = self.generation.load(std::sync::atomic::Ordering::Relaxed);
        let key = key(elements, crs);
        if let Some((used, outcome)) = self.memory.lock().unwrap_or_else(PoisonError::into_inner).get_mut(&key) {
            *used = generation;
            return outcome.clone();
        }
        let composition = Composition::new(elements, crs);
        let crs_ignored = composition.crs_ignored;
        let outcome = match composition.compile() {
            Ok(CheckedRules { program, coverage, lookups, warnings }) => {
                let rules = program.rule_count();
                let program = Bytes::from(program.encode());
                let hash = content_hash(&program);
                Ok(Arc::new(CompiledRules { hash, program, rules, coverage, lookups, crs_ignored, warnings }))
            }
            Err(problems) => Err(Arc::new(problems)),
        };
        self.memory.lock().unwrap_or_else(PoisonError::into_inner).insert(key, (generation, outcome.clone()));
        outcome
    }
}

/// A hash over all that a composition is made of. Presets are a part of the program and named in the elements: they have about a megabyte, and a
/// thousand routes ask for the same one.
fn key(elements: &[Element], crs: &Crs) -> PartHash {
    let mut bytes = format!("{crs:?}").into_bytes();
    for Element { origin, text, .. } in elements {
        for field in [origin, text] {
            bytes.extend_from_slice(&(field.len() as u64).to_le_bytes());
            bytes.extend_from_slice(field.as_bytes());
        }
    }
    content_hash(&bytes)
}

impl Tool for RuleCompiler {
    fn end_pass(&self) {
        self.forget_unused();
    }
}

fn field_problem(problem: &ElementProblem, elements: &[Element]) -> FieldProblem {
    let element = problem.element.and_then(|index| elements.get(index));
    let pointer = element.and_then(|element| element.pointer.clone()).unwrap_or_default();
    FieldProblem::new(pointer, problem.diagnostic.to_string())
}
