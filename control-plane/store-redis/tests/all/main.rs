//! What both stores owe, and what is particular to the shared one, on a real Redis.
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stderr,
    clippy::print_stdout,
    clippy::unwrap_used,
    missing_docs,
    reason = "tests"
)]

mod conformance;
mod cost;
mod events;
mod failures;
mod kinds;
mod migrate;
mod passes;
mod server;
mod setbacks;
mod sharing;
mod skew;
