//! Entities: the documents that say what gateways shall do.
//!
//! One generic machinery serves every collection. A collection is a type that implements [`Entity`] and one line in
//! [`registry`]; store, REST and command line handle it through [`Kind`] and never learn its type.

mod admission;
mod entity;
mod files;
mod global;
mod number;
mod parse;
mod patch;
mod problem;
pub mod registry;
mod route;
mod service;
mod set;
mod suggest;
mod threat;
mod waf;

pub use admission::{Admission, Change, EntityRef};
pub use entity::{AnyEntity, Entity, Head, Item, References};
pub use files::FileProblem;
pub use global::{Gateway, GlobalConfig, Identity, Validator, WafSettings};
pub use problem::FieldProblem;
pub use registry::Kind;
pub use route::{Backend, Protocol, Route, RoutePlugin};
pub use service::{EntityService, Precondition, Replacement, WriteError, Written};
pub use set::{EntitySet, Slot};
pub use threat::{BanIdentity, ThreatPolicy, Tier, TierAction};
pub use waf::{Crs, OversizeBody, UndecodableBody, WafConfig, WafRuleset};

pub(crate) use parse::typed;
pub(crate) use suggest::did_you_mean;
