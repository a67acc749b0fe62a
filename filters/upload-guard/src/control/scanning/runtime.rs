//! What is at work: the scanners by their ids.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use kit::EntitySource;
use outbound::Outbound;

use super::memory::Memory;
use super::scanner::Scanner;
use crate::control::MalwareScanner;

/// The scanners of a control plane.
#[derive(Default)]
pub(in crate::control) struct Scanners {
    scanners: Mutex<BTreeMap<String, Arc<Scanner>>>,
    outbound: OnceLock<Outbound>,
    /// For bodies.
    pub(super) memory: Memory,
}

impl Scanners {
    /// The client that scanners are reached by, from now on.
    pub(super) fn reach_by(&self, outbound: Outbound) {
        // A control plane has one.
        let _ = self.outbound.set(outbound);
    }

    pub(super) fn outbound(&self) -> Option<Outbound> {
        self.outbound.get().cloned()
    }

    /// A scanner that is enabled.
    pub(super) fn get(&self, id: &str) -> Option<Arc<Scanner>> {
        self.scanners.lock().unwrap_or_else(PoisonError::into_inner).get(id).cloned()
    }

    pub(super) fn all(&self) -> Vec<(String, Arc<Scanner>)> {
        let scanners = self.scanners.lock().unwrap_or_else(PoisonError::into_inner);
        scanners.iter().map(|(id, scanner)| (id.clone(), Arc::clone(scanner))).collect()
    }

    /// Takes the entities over: those that have not changed keep their connections and verdicts. The ids that are gone.
    pub(super) fn follow(&self, entities: &dyn EntitySource, outbound: &Outbound) -> Vec<String> {
        let view = kit::View::new(entities);
        let mut scanners = self.scanners.lock().unwrap_or_else(PoisonError::into_inner);
        let mut before = std::mem::take(&mut *scanners);
        for item in view.all::<MalwareScanner>().filter(|item| item.body.enabled) {
            let id = item.head.id.clone();
            let kept = before.remove(&id).filter(|scanner| scanner.definition == item.body);
            let scanner = kept.unwrap_or_else(|| Arc::new(Scanner::new(item.body.clone(), outbound.clone())));
            scanners.insert(id, scanner);
        }
        before.into_keys().collect()
    }
}
