//! The same plugins behind one trait: linked in natively, as the shipped module in a VM, or in a real gateway.

mod envoy;
mod native;

pub use envoy::Envoy;
pub use ftw::Engine;
pub use native::Native;
pub(crate) use native::{Journey, Stage};
