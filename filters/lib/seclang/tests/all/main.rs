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
mod const_prop;
mod core_rules;
mod fuzz_smoke;
mod modsecurity_cases;
mod prefilter;
mod reference;
