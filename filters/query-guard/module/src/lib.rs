//! The query-guard filter as a proxy-wasm module. The threat response comes along, because a refusal is answered where it is made.
// The SDK's entry macro exports unmangled functions, which the gateway calls.
#![allow(unsafe_code, missing_docs)]

host::filter!("query-guard", &[query_guard::PLUGIN, threat_response::PLUGIN]);
