//! The compiled configuration of the evidence, and what gateways report.

use prost::Message;

use crate::messages::BotReaction;

/// What a step does with TLS fingerprints.
#[derive(Clone, Copy, PartialEq, Message)]
pub struct FingerprintStep {
    /// What a fingerprint of other software than the agent says adds to the score, 0 to 100.
    #[prost(double, tag = "1")]
    pub mismatch_weight: f64,
    /// What a fingerprint adds that is not one of those that are known of the agent's software, 0 to 100.
    #[prost(double, tag = "2")]
    pub unknown_weight: f64,
    /// What a fingerprint adds that comes with agents of different software, 0 to 100.
    #[prost(double, tag = "3")]
    pub rotation_weight: f64,
    /// From how many kinds of software on that is so.
    #[prost(uint32, tag = "4")]
    pub rotation_families: u32,
    /// From how many networks each of them must have come.
    #[prost(uint32, tag = "5")]
    pub rotation_networks: u32,
    /// What was seen is reported.
    #[prost(bool, tag = "6")]
    pub learn: bool,
}

/// The pairs and rules of a policy, in its order.
#[derive(Clone, PartialEq, Message)]
pub struct FingerprintList {
    /// The known pairs.
    #[prost(message, repeated, tag = "1")]
    pub pairs: Vec<FingerprintPair>,
    /// The rules; the first that matches counts.
    #[prost(message, repeated, tag = "2")]
    pub rules: Vec<FingerprintRule>,
}

/// Fingerprints that a family of agents is known to have.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct FingerprintPair {
    /// The word of the family.
    #[prost(string, tag = "1")]
    pub family: String,
    /// The fingerprints, as a [`Pattern`](super::Pattern) reads them.
    #[prost(string, repeated, tag = "2")]
    pub fingerprints: Vec<String>,
}

/// The action for a fingerprint.
#[derive(Clone, PartialEq, Message)]
pub struct FingerprintRule {
    /// The fingerprint, as a [`Pattern`](super::Pattern) reads it.
    #[prost(string, tag = "1")]
    pub fingerprint: String,
    /// The action.
    #[prost(enumeration = "BotReaction", tag = "2")]
    pub reaction: i32,
    /// What it adds to the score, 0 to 100.
    #[prost(double, tag = "3")]
    pub weight: f64,
    /// How many requests of all clients with the fingerprint are taken in a minute before it acts; 0 acts on every one.
    #[prost(uint32, tag = "4")]
    pub requests_per_minute: u32,
}

/// The report of a gateway that has seen a fingerprint with an agent of a family, for the first time in a day from that network.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct FingerprintSeen {
    /// The JA4.
    #[prost(bytes = "vec", tag = "1")]
    pub ja4: Vec<u8>,
    /// The word of the family.
    #[prost(string, tag = "2")]
    pub family: String,
    /// The network of the client: the first three bytes of IPv4, six of IPv6.
    #[prost(bytes = "vec", tag = "3")]
    pub network: Vec<u8>,
}
