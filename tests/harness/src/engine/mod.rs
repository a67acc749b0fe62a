//! The same plugins behind one trait: linked in natively, as the shipped module in a VM, or in a real gateway.

mod envoy;
mod native;

use crate::host::Vm;
use crate::traffic::{Exchange, Outcome};

pub use envoy::Envoy;
pub use native::Native;
pub(crate) use native::{Journey, Stage};

/// Runs exchanges one after the other. Engines of one configuration give equal outcomes, except for random ids.
pub trait Engine {
    /// The engine's word on the command line.
    fn name(&self) -> &'static str;

    /// Runs one exchange from its first header to its log.
    fn exchange(&mut self, exchange: &Exchange) -> Outcome;
}

impl Engine for Vm {
    fn name(&self) -> &'static str {
        "wasm"
    }

    fn exchange(&mut self, exchange: &Exchange) -> Outcome {
        Self::exchange(self, exchange)
    }
}
