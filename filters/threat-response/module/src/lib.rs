//! The threat-response filter as a proxy-wasm module
