//! What the handlers share.

use std::sync::Arc;

use crate::access::Access;
use entities::EntityService;
use events::EventHub;
use store::Store;
use telemetry::{Metrics, Readiness};

/// What the handlers share; cheap to clone.
#[derive(Clone)]
pub struct AppState {
    /// The store.
    pub store: Arc<dyn Store>,
    /// The entities and the way to change them.
    pub entities: EntityService,
    /// The check of admin keys.
    pub access: Access,
    /// Where it is told who has changed what.
    pub events: EventHub,
    /// What must be up before the control plane calls itself ready.
    pub readiness: Readiness,
    /// What `/metrics` shows.
    pub metrics: Metrics,
    /// Settings of the API.
    pub config: Arc<RestConfig>,
}

/// Settings of the API.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RestConfig {
    /// The segment after `/apis/`. Default `palisade.svc`.
    pub entity_group: String,
    /// The bytes of a request body, at most. Default 8 MiB.
    pub max_body_bytes: usize,
    /// The hosts that the API answers to; all where there are none, which is the default.
    pub hosts: Vec<String>,
}

impl Default for RestConfig {
    fn default() -> RestConfig {
        RestConfig { entity_group: "palisade.svc".to_owned(), max_body_bytes: 8 * 1024 * 1024, hosts: Vec::new() }
    }
}
