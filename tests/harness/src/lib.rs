//! Traffic through the filters without a gateway.
//!
//! [`host`] runs a shipped .wasm module in a proxy-wasm host of its own, with a clock that stands until it is moved;
//! [`engine`] puts that and the same plugins linked in natively behind one trait; [`ftw`] judges an engine by the
//! regression suite of the OWASP Core Rule Set; [`bench`] measures the rule engine beside libmodsecurity. The binaries are
//! `palisade-replay` and `palisade-bench-waf`.

pub mod bench;
pub mod engine;
pub mod ftw;
pub mod host;
pub mod traffic;
