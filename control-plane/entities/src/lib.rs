//! Entities: the documents that say what gateways shall do.
//!
//! One generic machinery serves every collection. A collection is a type that implements [`Entity`] and belongs to a plugin, or has a
//! line in [`registry`]; store, REST and command line handle it through [`Kind`] and never learn its type.

mod admission;
mod alerts;
mod api_key;
mod backend_address;
mod batch;
mod change;
mod document;
mod files;
mod gateway;
mod global;
mod groups;
mod history;
pub mod host_pattern;
mod identity;
mod listener;
#[cfg(test)]
mod parse_tests;
mod patch;
pub mod path_prefix;
mod plugin_refs;
pub mod plugins;
pub mod registry;
mod route;
mod security;
mod service;
mod set;
mod tls;
pub mod unused;
mod write_queue;
mod writes;

pub use admission::{Admission, Change, EntityRef, Refusal, Warning};
pub use alerts::{AlertChannel, AlertRule, AlertTrigger, ChannelKind, EventCategory};
pub use api_key::ApiKey;
pub use batch::Proposal;
pub use change::{
    BatchEntry, BatchOptions, BatchOutcome, BatchWrite, Precondition, Replacement, WriteError, Written, exactly,
};
pub use files::{FileEntity, FileProblem};
pub use gateway::{Delivery, Gateway};
pub use global::{GlobalConfig, Validator, WafSettings};
pub use groups::{DEFAULT_GROUP, Group};
pub use history::{EntityVersion, VersionChanges, VersionState};
pub use identity::{CertificateName, Gives, IdentitySettings, SetBy, Verifier, VerifierKind};
pub use ip_reputation::control::{AsnDatabase, DecisionScope, GeoDatabase, SvcBouncer};
pub use listener::{EscapedSlashes, ListenerConfig, RequestTrailers, UnderscoreHeaders};
pub use route::{Backend, Protocol, Route, RoutePlugin, path_patterns};
pub use security::{IncidentSettings, LedgerSettings, SecuritySettings, TarpitSettings};
pub use service::EntityService;
pub use set::EntitySet;
pub use tls::{ServerTls, TlsSecret};

pub use groups::missing as missing_group;
pub use kit::{
    AnyEntity, Collection, Entity, EntitySource, FieldProblem, Head, Headers, Item, Kind, MASK, References, Secret,
    Slot, did_you_mean, typed, unsaved,
};

use kit::number;
