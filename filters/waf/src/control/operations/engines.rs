//! The engines of the last few compositions that were tried.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use seclang::{Coverage, Engine, RuleLookups};
use snapshot::PartHash;

use crate::control::composition::{CheckedRules, Composition, ElementProblem, RuleWarning};
use kit::Tool;

/// Built engines that are kept: work on rules tests the same ones repeatedly.
const KEPT: usize = 4;

/// Compiles compositions, and remembers the last few.
#[derive(Default)]
pub(in crate::control) struct Engines {
    kept: Mutex<VecDeque<(PartHash, Built)>>,
}

impl Tool for Engines {}

/// A composition, ready to run.
#[derive(Clone)]
pub(in crate::control) struct Built {
    pub(in crate::control) engine: Arc<Engine>,
    /// What has no effect in it.
    pub(in crate::control) warnings: Arc<Vec<RuleWarning>>,
    /// What its rules do for an ordinary request.
    pub(in crate::control) coverage: Coverage,
    /// What they look up about addresses.
    pub(in crate::control) lookups: RuleLookups,
}

/// Why a composition cannot run.
#[derive(Debug)]
pub(in crate::control) enum BuildError {
    /// Its elements.
    Elements(Vec<ElementProblem>),
    /// The engine refuses what they come to.
    Engine(String),
}

// === impl Engines ===

impl Engines {
    /// Compiles a composition and builds its engine. Blocks.
    pub(in crate::control) fn build(&self, composition: &Composition) -> Result<Built, BuildError> {
        let key = composition.fingerprint();
        if let Some(built) = self.remembered(&key) {
            return Ok(built);
        }
        let CheckedRules { program, coverage, lookups, warnings } =
            composition.compile().map_err(BuildError::Elements)?;
        let engine = Arc::new(Engine::new(program).map_err(BuildError::Engine)?);
        let built = Built { engine, warnings: Arc::new(warnings), coverage, lookups };
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.push_front((key, built.clone()));
        kept.truncate(KEPT);
        Ok(built)
    }

    /// The engine of that fingerprint, which from now on is the last used one.
    fn remembered(&self, key: &PartHash) -> Option<Built> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let at = kept.iter().position(|(known, _)| known == key)?;
        let found = kept.remove(at)?;
        let built = found.1.clone();
        kept.push_front(found);
        Some(built)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::{Crs, own_elements};

    fn composition(number: usize) -> Composition {
        let rules = [format!("SecAction \"id:{number},phase:1,pass,nolog\"")];
        Composition::new(&own_elements(&rules).collect::<Vec<_>>(), &Crs::default())
    }

    #[test]
    fn the_last_used_engines_are_kept() {
        let engines = Engines::default();
        let build = |number| engines.build(&composition(number)).unwrap().engine;
        let first = build(1);
        (2..=KEPT).for_each(|number| drop(build(number)));
        assert!(Arc::ptr_eq(&first, &build(1)));
        drop(build(KEPT + 1));
        assert!(Arc::ptr_eq(&first, &build(1)), "the least recently used one has made room");
        (10..10 + KEPT).for_each(|number| drop(build(number)));
        assert!(!Arc::ptr_eq(&first, &build(1)));
    }
}
