//! What every crate of the control plane stands on: the clock, files that are written as a whole and whose they are, the identities that
//! bans, the allowlist and the ledger are about, the networks around an address, which entries of a table give way, and the search in
//! lists.

pub mod atomic_file;
pub mod clock;
pub mod crowd;
pub mod identity;
pub mod networks;
pub mod owner;
pub mod search;
