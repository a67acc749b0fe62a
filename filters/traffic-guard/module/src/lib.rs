//! The traffic guard as a proxy-wasm module.
// The SDK's entry macro exports unmangled functions, which the gateway calls.
#![allow(unsafe_code, missing_docs)]

host::filter!("traffic-guard", &[traffic_guard::PLUGIN]);
