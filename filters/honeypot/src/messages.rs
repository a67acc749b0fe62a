//! The compiled configuration of a step.

use prost::{Enumeration, Message};

/// Configuration of a `honeypot` step.
#[derive(Clone, PartialEq, Message)]
pub struct HoneypotStep {
    /// The SHA-256 of the part with its [`HoneypotTraps`].
    #[prost(bytes = "vec", tag = "1")]
    pub traps: Vec<u8>,
    /// The name of the policy, for people.
    #[prost(string, tag = "2")]
    pub name: String,
    /// The weight of a signal, 0 to 100.
    #[prost(double, tag = "3")]
    pub weight: f64,
    /// What is done about a match.
    #[prost(enumeration = "HoneypotReaction", tag = "4")]
    pub reaction: i32,
    /// The status of a refusal, 200 to 599.
    #[prost(uint32, tag = "5")]
    pub status: u32,
    /// How long a ban lasts, in seconds.
    #[prost(uint64, tag = "6")]
    pub ban_for_seconds: u64,
    /// The id of the policy.
    #[prost(string, tag = "7")]
    pub id: String,
}

/// What is done about a match.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Enumeration)]
#[repr(i32)]
pub enum HoneypotReaction {
    /// None was given: no step has this.
    Unspecified = 0,
    /// It adds to the score.
    Monitor = 1,
    /// The request is refused.
    Deny = 2,
    /// The request is refused, and its identity banned.
    Ban = 3,
}

/// The decoys of a policy, in the order in which they are looked up. A part of a snapshot.
#[derive(Clone, PartialEq, Message)]
pub struct HoneypotTraps {
    /// Decoy paths, sorted by their bytes, each once.
    #[prost(message, repeated, tag = "1")]
    pub exact: Vec<DecoyPath>,
    /// What decoy paths begin with, sorted by its bytes; none begins with another.
    #[prost(message, repeated, tag = "2")]
    pub prefixes: Vec<DecoyPath>,
    /// What canaries begin with, each once.
    #[prost(message, repeated, tag = "3")]
    pub heads: Vec<CanaryHead>,
    /// What canaries end with.
    #[prost(message, repeated, tag = "4")]
    pub canaries: Vec<CanaryTail>,
}

/// A decoy path or what it begins with.
#[derive(Clone, PartialEq, Message)]
pub struct DecoyPath {
    /// In lower case (ASCII).
    #[prost(bytes = "vec", tag = "1")]
    pub path: Vec<u8>,
    /// As the policy has it, for people.
    #[prost(string, tag = "2")]
    pub shown: String,
}

/// The first bytes of canaries, and those that begin with them, as places in [`HoneypotTraps::canaries`]. Each list is sorted by
/// their tails; none in it begins with another.
#[derive(Clone, PartialEq, Message)]
pub struct CanaryHead {
    /// At most [`HEAD_BYTES`], and all of a canary that is shorter.
    #[prost(bytes = "vec", tag = "1")]
    pub head: Vec<u8>,
    /// Canaries that are looked for in the values of headers.
    #[prost(uint32, repeated, tag = "2")]
    pub header: Vec<u32>,
    /// Canaries that are looked for in the path.
    #[prost(uint32, repeated, tag = "3")]
    pub path: Vec<u32>,
    /// Canaries that are looked for in the query.
    #[prost(uint32, repeated, tag = "4")]
    pub query: Vec<u32>,
}

/// The rest of a canary.
#[derive(Clone, PartialEq, Message)]
pub struct CanaryTail {
    /// What follows its head.
    #[prost(bytes = "vec", tag = "1")]
    pub tail: Vec<u8>,
    /// What operators know it by. It does not have the value, which is a secret.
    #[prost(string, tag = "2")]
    pub label: String,
}

/// The bytes of a canary that one automaton searches for, together with those of all others. What follows is compared where they
/// are found: an automaton over 1000 values of 1024 bytes would take tens of megabytes in every worker.
pub const HEAD_BYTES: usize = 32;
