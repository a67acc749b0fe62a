//! End-to-end tests against the real Envoy, the demo, the benchmarks
