//! What the fuzz targets run. The plain test `filters/lib/seclang/tests/all/fuzz_smoke.rs` runs the same bodies.

pub mod bodies;
