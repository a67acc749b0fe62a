//! Where rules are compiled and tried: off the async threads, a few at a time, with an end.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::http::{StatusCode, header};
use seclang::{Coverage, Engine};
use snapshot::PartHash;
use tokio::sync::Semaphore;

use crate::error::ApiError;
use waf::control::{CheckedRules, Composition, ElementProblem, RuleWarning};

/// Compositions that are compiled or tried at the same time: each may take a processor.
const CONCURRENT: usize = 2;
/// How long a call waits for its turn.
const WAIT: Duration = Duration::from_secs(10);
/// How long a call waits for its answer. The work itself cannot be cut off; it keeps its turn until it is done.
const WORK: Duration = Duration::from_secs(30);
/// Built engines that are kept: work on rules tests the same ones repeatedly.
const KEPT: usize = 4;

/// Compiles compositions, and remembers the last few.
#[derive(Clone)]
pub(super) struct Workbench {
    turns: Arc<Semaphore>,
    /// How long a call waits for its turn.
    wait: Duration,
    kept: Arc<Mutex<VecDeque<(PartHash, Built)>>>,
}

/// A composition, ready to run.
#[derive(Clone)]
pub(super) struct Built {
    pub(super) engine: Arc<Engine>,
    /// What has no effect in it.
    pub(super) warnings: Arc<Vec<RuleWarning>>,
    /// What its rules do for an ordinary request.
    pub(super) coverage: Coverage,
}

/// Why a composition cannot run.
#[derive(Debug)]
pub(super) enum BuildError {
    /// Its elements.
    Elements(Vec<ElementProblem>),
    /// The engine refuses what they come to.
    Engine(String),
}

impl Default for Workbench {
    fn default() -> Workbench {
        Workbench { turns: Arc::new(Semaphore::new(CONCURRENT)), wait: WAIT, kept: Arc::default() }
    }
}

impl Workbench {
    /// Does the work when its turn comes.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Workbench) -> T + Send + 'static,
    ) -> Result<T, ApiError> {
        let busy = || {
            let message = "other rules are being compiled; try again in a few seconds";
            ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "busy", message).with_header(header::RETRY_AFTER, "5")
        };
        let turn = tokio::time::timeout(self.wait, Arc::clone(&self.turns).acquire_owned()).await;
        let turn = turn.map_err(|_| busy())?.map_err(|_| busy())?;
        let workbench = self.clone();
        let task = tokio::task::spawn_blocking(move || {
            let _turn = turn;
            work(&workbench)
        });
        let failed = |word, message: String| ApiError::new(StatusCode::SERVICE_UNAVAILABLE, word, message);
        match tokio::time::timeout(WORK, task).await {
            Ok(Ok(done)) => Ok(done),
            Ok(Err(error)) => Err(failed("failed", format!("the work broke off: {error}"))),
            Err(_) => Err(failed("too_slow", format!("this takes longer than {} s", WORK.as_secs()))),
        }
    }

    /// Compiles a composition and builds its engine. Blocks.
    pub(super) fn build(&self, composition: &Composition) -> Result<Built, BuildError> {
        let key = composition.fingerprint();
        if let Some(built) = self.remembered(&key) {
            return Ok(built);
        }
        let CheckedRules { program, coverage, warnings } = composition.compile().map_err(BuildError::Elements)?;
        let engine = Arc::new(Engine::new(program).map_err(BuildError::Engine)?);
        let built = Built { engine, warnings: Arc::new(warnings), coverage };
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
    use waf::control::Crs;
    use waf::control::own_elements;

    fn composition(number: usize) -> Composition {
        let rules = [format!("SecAction \"id:{number},phase:1,pass,nolog\"")];
        Composition::new(&own_elements(&rules).collect::<Vec<_>>(), &Crs::default())
    }

    #[test]
    fn the_last_used_engines_are_kept() {
        let workbench = Workbench::default();
        let build = |number| workbench.build(&composition(number)).unwrap().engine;
        let first = build(1);
        (2..=KEPT).for_each(|number| drop(build(number)));
        assert!(Arc::ptr_eq(&first, &build(1)));
        drop(build(KEPT + 1));
        assert!(Arc::ptr_eq(&first, &build(1)), "the least recently used one has made room");
        (10..10 + KEPT).for_each(|number| drop(build(number)));
        assert!(!Arc::ptr_eq(&first, &build(1)));
    }

    #[tokio::test]
    async fn work_waits_for_its_turn_and_not_for_ever() {
        assert_eq!(WAIT, Duration::from_secs(10));
        let workbench = Workbench { wait: Duration::from_millis(1), ..Workbench::default() };
        assert_eq!(workbench.run(|_| 7).await.unwrap(), 7);
        let _all = Arc::clone(&workbench.turns).try_acquire_many_owned(CONCURRENT as u32).unwrap();
        let refused = format!("{:?}", workbench.run(|_| 7).await.unwrap_err());
        assert!(refused.contains("busy"), "{refused}");
    }
}
