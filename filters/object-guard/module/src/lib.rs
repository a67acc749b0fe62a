//! The object guard as a proxy-wasm module.
// The SDK's entry macro exports unmangled functions, which the gateway calls.
#![allow(unsafe_code, missing_docs)]

host::filter!("object-guard", &[object_guard::PLUGIN]);
