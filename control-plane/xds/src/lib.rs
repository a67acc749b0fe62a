//! xDS: what Envoy is told, and how.
//!
//! [`resources`] turns a plain description of a gateway into Envoy's resources; [`set`] names and versions them by their
//! content; [`session`] is the protocol of one stream as a pure state machine; [`hub`] holds what is published and what
//! every node made of it; [`ads`] is the gRPC services; [`bootstrap`] writes the file that Envoy starts with.

pub mod ads;
pub mod bootstrap;
pub mod hub;
mod nodes;
mod parted;
mod publication;
mod published;
pub mod resources;
pub mod session;
pub mod set;
pub mod status;
mod wire;

pub use ads::{ecds_service, service};
pub use hub::Hub;
pub use publication::{GroupPublication, PublicationFailure, PublicationStatus};
pub use set::{Kind, Resource, ResourceSet};
pub use status::{FilterStatus, Nack, NodeStatus, TypeStatus, VmVersion};
pub use wire::{DeltaReply, StateReply};
