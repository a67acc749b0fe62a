//! TLS fingerprints: what a policy says of them, and the pairs of fingerprint and family of agents that are learned from what gateways
//! report. A learned pair acts once an operator has accepted it.

mod compile;
mod gather;
mod keep;
mod learned;
mod operations;
mod policy;
mod runtime;
#[cfg(test)]
mod tests;

pub(super) use compile::{list, step};
pub(super) use gather::gather;
pub(super) use operations::{decide_operation, list_operation};
pub use policy::{BotFingerprints, FingerprintPolicyRule, KnownPair};
pub(super) use runtime::Pairs;
