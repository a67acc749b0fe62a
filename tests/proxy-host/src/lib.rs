//! A proxy-wasm host (ABI 0.2.1) on wasmtime, which behaves like Envoy as far as filters can tell.
//!
//! A [`Module`] is compiled once; a [`Vm`] is one instance of it with one configuration, like a worker's; the VMs of a
//! [`Node`] share its data, its queues, its metrics and its clock. Time stands still until somebody moves it
//! ([`Vm::advance`], or [`Vm::exchange`] where the filter holds the request); randomness comes from a seed, so equal
//! inputs give equal outcomes.
//!
//! [`Vm::exchange`] runs one exchange to its end. [`Vm::begin`] starts one and leaves it where the filter holds it, so
//! that others run meanwhile, as in a gateway; it goes on when the clock has come to what it waits for.
//!
//! What the filter says to clusters is answered by [`Clusters`], where a VM was given one; calls fail otherwise, as to a
//! cluster that cannot be reached, and streams are left to [`Vm::deliver`].

mod abi;
mod calls;
mod clock;
mod clusters;
mod compiled;
pub mod headers;
mod load;
mod node;
mod properties;
mod reload;
mod state;
pub mod traffic;
mod vm;
mod wasi;
mod way;

#[cfg(test)]
mod tests;

use std::time::Duration;

pub use clock::reset;
pub use clusters::{Answer, Clusters, Delivery, Outgoing, Word, timed_out, unreachable};
pub use load::{LoadError, Module};
pub use node::{Metric, Node};
pub use state::GrpcStream;
pub use vm::{Options, Vm};
pub use way::Finished;
pub use way::local_reply_headers;

/// How long this thread has run: what others do on the machine at the same time is not in it.
#[must_use]
pub fn cpu_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::try_from(time).unwrap_or_default()
}
