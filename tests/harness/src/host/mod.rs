//! A proxy-wasm host (ABI 0.2.1) on wasmtime, which behaves like Envoy as far as filters can tell.
//!
//! A [`Module`] is compiled once; a [`Vm`] is one instance of it with one configuration, like a worker's; the VMs of a
//! [`Node`] share its data, its queues, its metrics and its clock. Time stands still until [`Vm::advance`] moves it or
//! the filter holds a request; randomness comes from a seed, so equal inputs give equal outcomes.
//!
//! What a gateway does and this host does not: HTTP calls and single gRPC calls are refused, a queue's arrival wakes
//! nobody, and a filter that never returns is waited for.

mod abi;
mod calls;
mod headers;
mod load;
mod node;
mod properties;
mod state;
mod vm;
mod wasi;

#[cfg(test)]
mod tests;

pub use load::{LoadError, Module};
pub use node::{Metric, Node};
pub use state::GrpcStream;
pub(crate) use vm::local_reply_headers;
pub use vm::{Options, Vm};
