//! What the fuzz targets run. The plain test `filters/lib/seclang/tests/fuzz_smoke.rs` runs the same bodies.

pub mod bodies;
