//! The login-guard filter as a proxy-wasm module. The threat response comes along, because it judges the signals of responses.
// The SDK's entry macro exports unmangled functions, which the gateway calls.
#![allow(unsafe_code, missing_docs)]

host::filter!("login-guard", &[login_guard::PLUGIN, threat_response::PLUGIN]);
