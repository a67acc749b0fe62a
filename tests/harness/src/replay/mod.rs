//! Recorded traffic through the filters, on the recording's own clock.
//!
//! [`run`] takes entries and gives a row for each. The clock of the [`Gateway`] goes to the time of every entry, never
//! back, and the filters' timers run on the way. An exchange that a filter holds is held alone: those that come
//! meanwhile start at their own times, beside it, and its row waits until the clock has come to its end.
//!
//! [`Wasm`] is the shipped module in one or several VMs of one node, [`Native`] the plugins linked in, [`Real`] an Envoy.
//! What filters say to clusters is answered by a [`Script`] and a [`ControlPlane`].

mod control;
mod envoy;
mod gateway;
mod native;
mod order;
mod row;
mod run;
mod script;
mod wasm;

#[cfg(test)]
mod tests;

pub use control::{ControlPlane, Counts};
pub use envoy::Real;
pub use gateway::Gateway;
pub use native::Native;
pub use order::{Ordered, ordered};
pub use row::{Naming, printable};
pub use run::{START_MILLIS, Summary, run};
pub use script::Script;
pub use wasm::{Wasm, World};
