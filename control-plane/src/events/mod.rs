//! Events: taken from the nodes, checked, given to exporters, and correlated into incidents.

mod event;
mod exporter;
mod hub;
mod incidents;
mod queue;

pub use event::{EventError, MAX_EVENT_BYTES};
pub use exporter::Exporter;
pub use hub::{EventHub, ExporterStatus};
pub use incidents::{IdentityRef, Incident, MAX_INCIDENTS, TIMELINE, TimelineEntry, WINDOW_MILLIS};
