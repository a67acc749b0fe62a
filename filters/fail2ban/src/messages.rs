//! What a snapshot says of the plugin.

use prost::{Enumeration, Message};

/// The configuration of a `fail2ban` step.
#[derive(Clone, PartialEq, Message)]
pub struct Fail2BanStep {
    /// Bans are only reported.
    #[prost(bool, tag = "1")]
    pub dry_run: bool,
    /// Which identity of a caller is banned.
    #[prost(enumeration = "Fail2BanScope", tag = "2")]
    pub ban_scope: i32,
    /// What failures are counted by.
    #[prost(message, repeated, tag = "3")]
    pub key: Vec<KeyPart>,
    /// Addresses and CIDRs that are never counted.
    #[prost(string, repeated, tag = "4")]
    pub ignored: Vec<String>,
    /// What a failure adds to the score, 0 to 100.
    #[prost(double, tag = "5")]
    pub weight: f64,
    /// The limits of requests that no rule of `rules` matches.
    #[prost(message, optional, tag = "6")]
    pub general: Option<Fail2BanRule>,
    /// Limits of paths; the first that matches a request applies.
    #[prost(message, repeated, tag = "7")]
    pub rules: Vec<Fail2BanRule>,
}

/// Which failures count, and what they lead to.
#[derive(Clone, PartialEq, Message)]
pub struct Fail2BanRule {
    /// A regular expression on the path; empty for the general limits.
    #[prost(string, tag = "1")]
    pub pattern: String,
    /// Methods; empty for all.
    #[prost(string, repeated, tag = "2")]
    pub methods: Vec<String>,
    /// Statuses that count.
    #[prost(message, repeated, tag = "3")]
    pub statuses: Vec<StatusRange>,
    /// How many failures lead to a ban, at least 1.
    #[prost(uint32, tag = "4")]
    pub max_retry: u32,
    /// Within how long, in milliseconds.
    #[prost(uint64, tag = "5")]
    pub detect_millis: u64,
    /// The length of the ban in milliseconds.
    #[prost(uint64, tag = "6")]
    pub ban_millis: u64,
}

/// Statuses from one to another, both included.
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub struct StatusRange {
    /// The first.
    #[prost(uint32, tag = "1")]
    pub first: u32,
    /// The last.
    #[prost(uint32, tag = "2")]
    pub last: u32,
}

/// A part of the key that failures are counted by.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct KeyPart {
    /// Its kind.
    #[prost(enumeration = "KeyPlace", tag = "1")]
    pub place: i32,
    /// The text of a literal, or the name of a header.
    #[prost(string, tag = "2")]
    pub text: String,
}

/// What a part of the key is taken from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Enumeration)]
#[repr(i32)]
pub enum KeyPlace {
    /// A text of the configuration.
    Literal = 0,
    /// The id of the route.
    RouteId = 1,
    /// The name of the route.
    RouteName = 2,
    /// The caller's address; of IPv6 the network that callers are judged by.
    Ip = 3,
    /// The method.
    Method = 4,
    /// The path without the query.
    Path = 5,
    /// The host that was asked for.
    Host = 6,
    /// The verified user.
    User = 7,
    /// The id of the verified API key.
    ApiKey = 8,
    /// The most specific verified identity.
    Identity = 9,
    /// The value of a header.
    Header = 10,
}

/// Which identity of a caller is banned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Enumeration)]
#[repr(i32)]
pub enum Fail2BanScope {
    /// The most specific one.
    Auto = 0,
    /// The address.
    Ip = 1,
    /// The API key.
    ApiKey = 2,
}
