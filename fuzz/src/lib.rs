//! What the fuzz targets run. The plain test `filters/lib/seclang/tests/all/fuzz_smoke.rs` runs the same bodies.

pub mod bodies;
/// API contracts; the plain test is `filters/lib/contract/src/tests/fuzz_smoke.rs`.
#[path = "bodies/contract_body.rs"]
pub mod contract_body;
#[path = "bodies/contract_document.rs"]
pub mod contract_document;
#[path = "bodies/contract_parameters.rs"]
pub mod contract_parameters;
/// Uploaded files; the plain test is `filters/lib/files/tests/fuzz_smoke.rs`.
#[path = "bodies/files.rs"]
pub mod files;
/// Scanners of responses; the plain test is `filters/lib/response-scan/tests/fuzz_smoke.rs`.
#[path = "bodies/response_scan.rs"]
pub mod responses;
