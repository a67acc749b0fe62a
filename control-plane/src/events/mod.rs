//! Events: taken from the nodes, checked, given to exporters, and correlated into incidents; and what is done to the
//! control plane itself, which takes the same way out.

mod audit;
mod event;
mod exporter;
mod hub;
mod incidents;
mod queue;

pub use audit::{Audit, AuditAction};
pub use event::{EventError, MAX_EVENT_BYTES};
pub use exporter::Exporter;
pub use hub::{EventHub, ExporterStatus};
pub use incidents::{IdentityRef, Incident, MAX_INCIDENTS, TIMELINE, TimelineEntry, WINDOW_MILLIS};
