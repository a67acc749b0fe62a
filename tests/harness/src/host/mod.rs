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
pub(crate) mod headers;
mod load;
mod node;
mod properties;
mod reload;
mod state;
mod vm;
mod wasi;
mod way;

#[cfg(test)]
mod tests;

pub(crate) use clock::reset;
pub use clusters::{Answer, Clusters, Delivery, Outgoing, Word, timed_out, unreachable};
pub use load::{LoadError, Module};
pub use node::{Metric, Node};
pub use state::GrpcStream;
pub use vm::{Options, Vm};
pub use way::Finished;
pub(crate) use way::local_reply_headers;
