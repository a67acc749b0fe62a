//! The compiled configuration of a step, and what gateways ask the control plane.

use maze::MazeLimits;
use prost::{Enumeration, Message};

use crate::fingerprint::{FingerprintList, FingerprintStep};

/// Configuration of a `bot-guard` step.
#[derive(Clone, PartialEq, Message)]
pub struct BotGuardStep {
    /// The SHA-256 of the part with its [`BotList`].
    #[prost(bytes = "vec", tag = "1")]
    pub bots: Vec<u8>,
    /// The name of the policy, for people.
    #[prost(string, tag = "2")]
    pub name: String,
    /// Bots with a method are verified by it, and bots with published addresses by those.
    #[prost(bool, tag = "3")]
    pub verify: bool,
    /// Verified bots skip the access phase of detectors behind this step.
    #[prost(bool, tag = "4")]
    pub bypass: bool,
    /// What a failed verification adds to the score, 0 to 100.
    #[prost(double, tag = "5")]
    pub impersonator_weight: f64,
    /// The action after a failed verification.
    #[prost(enumeration = "BotReaction", tag = "6")]
    pub impersonator: i32,
    /// What an unknown bot adds to the score, 0 to 100.
    #[prost(double, tag = "7")]
    pub unknown_weight: f64,
    /// The status of a refusal, 200 to 599.
    #[prost(uint32, tag = "8")]
    pub status: u32,
    /// What a bot adds to the score that has read robots.txt and takes what it forbids, 0 to 100.
    #[prost(double, tag = "9")]
    pub robots_weight: f64,
    /// Bots with a key directory are verified by the signatures of their requests as well.
    #[prost(bool, tag = "10")]
    pub signatures: bool,
    /// The longest life of a signature, in seconds.
    #[prost(uint32, tag = "11")]
    pub signature_max_age: u32,
    /// A signature without a nonce does not count.
    #[prost(bool, tag = "12")]
    pub signature_nonce: bool,
    /// The signatures that a worker verifies in a second, at most.
    #[prost(uint32, tag = "13")]
    pub signatures_per_second: u32,
    /// The hosts that signatures must be for, in lower case and without a port, `*.` for all below; empty for any.
    #[prost(string, repeated, tag = "14")]
    pub signature_hosts: Vec<String>,
    /// The pages for bots with the reaction [`BotReaction::Maze`]; absent where none has it.
    #[prost(message, optional, tag = "15")]
    pub maze: Option<MazeLimits>,
    /// The threat response of the chain has a tier with a maze: those that are not to be shown one are marked by a signal.
    #[prost(bool, tag = "16")]
    pub marks_spared: bool,
    /// The action on TLS fingerprints; absent for none.
    #[prost(message, optional, tag = "60")]
    pub fingerprints: Option<FingerprintStep>,
}

/// The action for a bot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Enumeration)]
#[repr(i32)]
pub enum BotReaction {
    /// None was given: no bot has this.
    Unspecified = 0,
    /// It passes.
    Allow = 1,
    /// It adds to the score.
    Monitor = 2,
    /// It is refused.
    Deny = 3,
    /// What robots.txt forbids it is refused; a bot that is known not to be verified gets a generated page there.
    Maze = 4,
}

/// The bots of a policy, in its order, and the texts that it serves. A part of a snapshot.
#[derive(Clone, PartialEq, Message)]
pub struct BotList {
    /// The bots.
    #[prost(message, repeated, tag = "1")]
    pub bots: Vec<KnownBot>,
    /// The robots.txt to serve; empty for none.
    #[prost(bytes = "vec", tag = "2")]
    pub robots_txt: Vec<u8>,
    /// The llms.txt to serve; empty for none.
    #[prost(bytes = "vec", tag = "3")]
    pub llms_txt: Vec<u8>,
    /// The known TLS fingerprints, and the rules for some; absent where the policy leaves them alone.
    #[prost(message, optional, tag = "60")]
    pub fingerprints: Option<FingerprintList>,
}

/// A bot of a policy with the rule that it is under.
#[derive(Clone, PartialEq, Message)]
pub struct KnownBot {
    /// Its name, unique in the policy.
    #[prost(string, tag = "1")]
    pub name: String,
    /// The word of its category.
    #[prost(string, tag = "2")]
    pub category: String,
    /// Parts of its user agent, in lower case (ASCII).
    #[prost(bytes = "vec", repeated, tag = "3")]
    pub tokens: Vec<Vec<u8>>,
    /// The action.
    #[prost(enumeration = "BotReaction", tag = "4")]
    pub reaction: i32,
    /// What it adds to the score if it is monitored or denied, 0 to 100.
    #[prost(double, tag = "5")]
    pub weight: f64,
    /// How it is verified: [`METHOD_BYTES`](crate::METHOD_BYTES) that stand for the suffixes of its host names; empty if it cannot be.
    #[prost(bytes = "vec", tag = "6")]
    pub method: Vec<u8>,
    /// The lists of addresses that its owner publishes, by their labels in the table of ranges; empty if they are not used.
    #[prost(string, repeated, tag = "7")]
    pub ranges: Vec<String>,
    /// The identifier of the directory with the keys that it signs with (see [`identifier`](crate::identifier)); empty for none.
    #[prost(string, tag = "8")]
    pub directory: String,
}

/// The report of a gateway that met an unverified crawler.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct CrawlerSeen {
    /// The method by which it can be verified, and its address: the key of its verdict.
    #[prost(bytes = "vec", tag = "1")]
    pub key: Vec<u8>,
}
