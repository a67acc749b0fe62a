//! The waf filter as a proxy-wasm module
