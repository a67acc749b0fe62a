//! The tests of the engine from outside, in one binary.
#![allow(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stderr,
    clippy::unwrap_used,
    reason = "tests"
)]

mod bodies;
mod budget;
mod core_rules;
mod foresight;
mod fuzz_smoke;
mod gates;
mod modsecurity_cases;
mod reference;
