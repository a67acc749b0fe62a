//! The one crate that touches proxy-wasm: the safe layer over hostcalls, the filter entry, timers, the link to the control plane
