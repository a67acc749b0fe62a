//! The incidents that events belong to.

use std::sync::{Arc, MutexGuard, PoisonError};

use serde_json::Value;

use super::EventHub;
use crate::incidents::{Incident, IncidentState, Incidents, Unsaved};
use store::fabric::{MergeIncident, Workflow};

impl EventHub {
    /// The incidents with an event since `oldest` (milliseconds since the Unix epoch; 0 for all), each with its state; the most recent
    /// first. There may be many: they are shared, and no event waits while a caller looks through them.
    #[must_use]
    pub fn incidents_since(&self, oldest: u64) -> Vec<(Arc<Incident>, IncidentState)> {
        let now = (self.inner.clock)();
        self.lock().since(oldest, now)
    }

    /// How many incidents there are.
    #[must_use]
    pub fn incidents_count(&self) -> usize {
        let now = (self.inner.clock)();
        self.lock().count(now)
    }

    /// What operators made of the incident of an identity; `None` while it is open.
    #[must_use]
    pub fn workflow(&self, key: &str) -> Option<Workflow> {
        let now = (self.inner.clock)();
        self.lock().workflow(key, now).cloned()
    }

    /// Takes over what the store has acknowledged; `None` where the state was cleared.
    pub fn set_workflow(&self, key: &str, workflow: Option<Workflow>) {
        self.lock().set_workflow(key, workflow);
    }

    /// The signals of the last event of an identity.
    pub fn signals(&self, key: &str) -> Vec<Value> {
        self.lock().signals(key)
    }

    pub(crate) fn restore_incidents(&self, incidents: Vec<Incident>) {
        self.lock().restore(incidents);
    }

    pub(crate) fn restore_workflows(&self, workflows: Vec<Workflow>) {
        self.lock().restore_workflows(workflows);
    }

    pub(crate) fn unsaved(&self) -> Unsaved {
        let now = (self.inner.clock)();
        self.lock().unsaved(now)
    }

    pub(crate) fn put_back(&self, unsaved: Unsaved) {
        self.lock().put_back(unsaved);
    }

    pub(crate) fn merge_incidents(&self) -> MergeIncident {
        self.lock().merge()
    }

    pub(crate) fn kept(&self, incidents: Vec<Incident>) {
        let now = (self.inner.clock)();
        self.lock().kept(incidents, now);
    }

    /// The store has no incidents with these keys any more: another control plane has forgotten them.
    pub(crate) fn incidents_gone(&self, keys: &[String]) {
        self.lock().gone(keys);
    }

    pub(crate) fn incident_keys(&self) -> Vec<String> {
        self.lock().keys()
    }

    pub(crate) fn workflow_changes(&self) -> u64 {
        self.lock().workflow_changes()
    }

    pub(crate) fn follow_workflows(&self, workflows: Vec<Workflow>, changes: u64) -> bool {
        self.lock().follow_workflows(workflows, changes)
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Incidents> {
        let limits = self.inner.limits.get().map(|limits| (limits.0)());
        let mut incidents = self.inner.incidents.lock().unwrap_or_else(PoisonError::into_inner);
        incidents.limit(limits.unwrap_or_default());
        incidents
    }
}
