//! Events: taken from the nodes, checked, given to exporters, and correlated into incidents; and what is done to the
//! control plane itself, which takes the same way out.

mod audit;
mod dependency;
mod event;
mod exporter;
mod exporters;
mod format;
mod hub;
mod incidents;
mod keep;
mod keep_stored;
mod live;
mod ocsf;
mod offence;
mod outbox;
#[cfg(test)]
mod published;
mod queue;
mod reported;
#[cfg(test)]
mod samples;
mod seen;
mod sinks;
mod spill;
mod tally;
mod tap;
mod trouble;

pub use audit::{Audit, AuditAction};
pub use dependency::dependency;
pub use event::MAX_SCORE;
pub use event::{EventError, MAX_EVENT_BYTES, severity};
pub use exporter::{Exporter, STORE};
pub use exporters::ExporterStatus;
pub use format::EventFormat;
pub use hub::EventHub;
pub use incidents::Place;
pub use incidents::{IdentityRef, Incident, IncidentLimits, IncidentState, SharedText, TimelineEntry};
pub use keep::{keep_incidents, restore_incidents, save_incidents};
pub use keep_stored::{keep_events, keep_rollups, save_rollups};
pub use live::{LiveBatch, LiveEvent, LiveEvents, LiveStream, MAX_LISTENERS, MAX_WAITING_EVENTS};
pub use offence::{ChargedByTrail, Deed, Offence};
pub use outbox::Outbox;
pub use seen::{BanMade, BanWay, Seen, Sighting};
pub use sinks::Backoff;
pub use sinks::elasticsearch::Elasticsearch;
pub use sinks::file::Rotation;
pub use sinks::kafka::{Kafka, KafkaLogin, SaslMechanism};
pub use sinks::otlp::{Otlp, OtlpCompression};
pub use sinks::server::retry_after;
pub use sinks::server::{ServerError, ServerOptions};
pub use sinks::stored::Stored;
pub use sinks::syslog::Syslog;
pub use sinks::webhook::Webhook;
pub use spill::{Spill, SpillError};
pub use tally::RollupName;
pub use tap::EventTap;
pub use trouble::{Part, Trouble};
