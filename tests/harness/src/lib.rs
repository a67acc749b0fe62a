//! Traffic through the filters, with and without a gateway.
//!
//! [`host`] runs a shipped .wasm module in a proxy-wasm host of its own, with a clock that stands until it is moved;
//! [`engine`] puts that, the same plugins linked in natively, and a real Envoy behind one trait; [`replay`] runs recorded
//! traffic through them on the recording's clock; [`ftw`] judges an engine by the regression suite of the OWASP Core Rule
//! Set, [`corpus`] by requests of good intent; [`mod@bench`] measures the rule engine beside libmodsecurity; [`cost`]
//! searches for the request that costs a worker most; [`double`] is a control plane that answers from a script; [`record`] makes recordings. The binaries are `palisade-replay`, `palisade-bench-waf` and `palisade-bench-replay`.

pub mod bench;
pub mod corpus;
pub mod cost;
pub mod differential;
pub mod double;
pub mod engine;
pub mod ftw;
pub mod host;
pub mod record;
pub mod replay;
pub mod traffic;
