//! DNS blocklists: zones that say of an address whether it is listed.
//!
//! Gateways ask for callers that they have no verdict on. The control plane asks all zones at once, keeps the verdicts in a table that
//! gateways have, and asks no zone that cannot be believed.

mod gather;
mod health;
mod runtime;
mod settings;
#[cfg(test)]
mod tests;
mod verdicts;
mod waiting;
mod zone;

pub(super) use gather::{gather, settings};
pub(super) use runtime::Blocklists;
pub use settings::{DnsblSettings, DnsblZone};
pub(super) use verdicts::Found;
pub(super) use zone::zone_key;
