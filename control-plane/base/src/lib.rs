//! What every crate of the control plane stands on: the clock, files that are written as a whole, and the identities that
//! bans, the allowlist and the ledger are about.

pub mod atomic_file;
pub mod clock;
pub mod identity;
