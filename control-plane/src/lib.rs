//! The Palisade control plane: it owns the configuration of many gateways, and what they must agree on.
//!
//! [`entities`] are the documents that say what gateways shall do; [`store`] keeps them; [`rest`] is the admin API;
//! [`access`] says who may call it; [`console`] is what operators use with a session; [`listen`] how its ports
//! are reached; [`alerts`] tells people; [`health`] looks whether what it stands on works; [`outbound`] is what it calls itself; [`cli`] puts the parts together.

pub mod access;
pub mod alerts;
mod atomic_file;
pub mod bans;
pub mod challenges;
pub mod cli;
pub mod clock;
pub mod compile;
pub mod config;
pub mod console;
pub mod entities;
pub mod events;
pub mod fabric;
pub mod health;
pub mod link;
pub mod listen;
pub mod openapi;
pub mod outbound;
pub mod publish;
pub mod rest;
pub mod store;
pub mod telemetry;
pub mod xds;
