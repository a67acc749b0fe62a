//! Traffic through the filters, with and without a gateway.
//!
//! [`engine`] puts a shipped module in a [`proxy_host::Vm`], the same plugins linked in natively, and a real Envoy behind one
//! trait; [`replay`] runs recorded traffic through them on the recording's clock; [`record`] makes recordings. The binary is
//! `palisade-replay`.

pub mod engine;
pub mod record;
pub mod replay;
