//! The threat-gate filter as a proxy-wasm module
