//! Databases, and a control plane that fetches them from a publisher in the test.

mod publisher;
mod reading;
mod whole;

#[path = "../../../../tests/support/mmdb.rs"]
#[allow(unreachable_pub, clippy::indexing_slicing, clippy::unwrap_used, clippy::panic, reason = "tests")]
mod write;
