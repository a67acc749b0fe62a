//! Whether the control plane can do its work yet.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Gathers what must be up. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Readiness {
    parts: Arc<Mutex<BTreeMap<String, bool>>>,
}

/// One part that must be up; starts as not ready.
#[derive(Clone, Debug)]
pub struct Gate {
    readiness: Readiness,
    part: String,
}

impl Readiness {
    /// Adds a part that must be up, by the name that `/readyz` shows while it is not.
    pub fn register(&self, part: &str) -> Gate {
        let gate = Gate { readiness: self.clone(), part: part.to_owned() };
        gate.set(false);
        gate
    }

    /// The parts that are not up.
    pub fn missing(&self) -> Vec<String> {
        let parts = self.parts.lock().unwrap_or_else(PoisonError::into_inner);
        parts.iter().filter(|(_, up)| !**up).map(|(part, _)| part.clone()).collect()
    }
}

impl Gate {
    /// Says whether the part is up.
    pub fn set(&self, up: bool) {
        let mut parts = self.readiness.parts.lock().unwrap_or_else(PoisonError::into_inner);
        parts.insert(self.part.clone(), up);
    }
}
