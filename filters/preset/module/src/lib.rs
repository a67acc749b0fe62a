//! The preset filter as a proxy-wasm module
