//! What workers report of matches that an exclusion can be written against. The control plane believes none of it: every text and every
//! number has a bound there.

use prost::Message;

/// The kind of the reports.
pub const MATCHES: &str = "waf-matches";

/// Matches of one worker since its last report.
#[derive(Clone, PartialEq, Message)]
pub struct MatchReport {
    /// A random number of the worker; never 0.
    #[prost(fixed64, tag = "1")]
    pub worker: u64,
    /// The number of the report, from 1 on. A report counts once.
    #[prost(uint64, tag = "2")]
    pub sequence: u64,
    /// The matches, each key once.
    #[prost(message, repeated, tag = "3")]
    pub matches: Vec<Matched>,
    /// All exchanges, each config once.
    #[prost(message, repeated, tag = "4")]
    pub totals: Vec<Totals>,
    /// Callers that other plugins have found bad since the last report, as in [`Matched::callers`], at most [`MAX_SUSPECTS`].
    #[prost(fixed64, repeated, tag = "5")]
    pub suspects: Vec<u64>,
    /// Parameters of requests, each key once.
    #[prost(message, repeated, tag = "6")]
    pub parameters: Vec<Parameter>,
}

/// A parameter on a path, and what its values look like, whether a rule matches there or not. A few requests of each second are counted.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct Parameter {
    /// The id of the WAF config.
    #[prost(string, tag = "1")]
    pub config: String,
    /// `ARGS:q`; names of secrets are left out.
    #[prost(string, tag = "2")]
    pub target: String,
    /// The path, as in [`Matched::path`].
    #[prost(string, tag = "3")]
    pub path: String,
    /// How many requests were counted since the last report.
    #[prost(uint64, tag = "4")]
    pub count: u64,
    /// What the values look like, as in [`Matched::shapes`]; empty values are left out.
    #[prost(message, repeated, tag = "5")]
    pub shapes: Vec<ValueShape>,
    /// An estimate of how many different values there are: 64 registers of HyperLogLog.
    #[prost(bytes = "vec", tag = "6")]
    pub distinct: Vec<u8>,
}

/// The exchanges of one WAF config.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct Totals {
    /// The id of the WAF config.
    #[prost(string, tag = "1")]
    pub config: String,
    /// How many exchanges since the last report.
    #[prost(uint64, tag = "2")]
    pub requests: u64,
    /// How many of them had a match that is logged.
    #[prost(uint64, tag = "3")]
    pub matched: u64,
    /// How many of them were refused by the WAF, or would have been if it blocked.
    #[prost(uint64, tag = "4")]
    pub would_block: u64,
    /// Their inbound anomaly scores above 0.
    #[prost(message, repeated, tag = "5")]
    pub scores: Vec<ScoreCount>,
}

/// Requests with one anomaly score.
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub struct ScoreCount {
    /// The score, at most [`MAX_SCORE`]; higher ones count as that.
    #[prost(uint32, tag = "1")]
    pub score: u32,
    /// How many requests.
    #[prost(uint64, tag = "2")]
    pub requests: u64,
}

/// The highest anomaly score that is told apart.
pub const MAX_SCORE: u32 = 255;

/// A rule that matched at one input on one path, and how often.
#[derive(Clone, PartialEq, Message)]
pub struct Matched {
    /// The id of the WAF config.
    #[prost(string, tag = "1")]
    pub config: String,
    /// The id of the route of the last match.
    #[prost(string, tag = "2")]
    pub route_id: String,
    /// Its name.
    #[prost(string, tag = "3")]
    pub route_name: String,
    /// The rule.
    #[prost(uint64, tag = "4")]
    pub rule_id: u64,
    /// 1 to 5.
    #[prost(uint32, tag = "5")]
    pub phase: u32,
    /// The message of the rule.
    #[prost(string, tag = "6")]
    pub msg: String,
    /// The input: `ARGS:content`, `REQUEST_BODY`.
    #[prost(string, tag = "7")]
    pub target: String,
    /// The path without its query, identifiers folded: `/orders/{id}`.
    #[prost(string, tag = "8")]
    pub path: String,
    /// How many exchanges since the last report.
    #[prost(uint64, tag = "9")]
    pub count: u64,
    /// How many of them were refused by the WAF, or would have been if it blocked.
    #[prost(uint64, tag = "10")]
    pub would_block: u64,
    /// How long ago the last one was, in milliseconds.
    #[prost(uint64, tag = "11")]
    pub age: u64,
    /// Numbers of the callers, the same on all nodes, in order, at most [`MAX_CALLERS`], of all networks alike: 32 bits of the hash of the
    /// identity, then 32 of that of the network.
    #[prost(fixed64, repeated, tag = "12")]
    pub callers: Vec<u64>,
    /// What matched, with secrets masked.
    #[prost(bytes = "vec", tag = "13")]
    pub value: Vec<u8>,
    /// One of the requests; absent where one was sent lately.
    #[prost(message, optional, tag = "14")]
    pub request: Option<SampledRequest>,
    /// The method of the last match.
    #[prost(string, tag = "15")]
    pub method: String,
    /// The last one was refused by the WAF.
    #[prost(bool, tag = "16")]
    pub blocked: bool,
    /// The paranoia level of the rule (its tag `paranoia-level/N`); 0 for none.
    #[prost(uint32, tag = "17")]
    pub paranoia: u32,
    /// The ids of the last requests, the oldest first, at most [`MAX_REFERENCES`].
    #[prost(string, repeated, tag = "18")]
    pub references: Vec<String>,
    /// What the values at the input look like, of one caller each, in the order of their numbers, at most [`MAX_SHAPES`], of all networks
    /// alike. Values of names that a request has more than once are left out.
    #[prost(message, repeated, tag = "19")]
    pub shapes: Vec<ValueShape>,
    /// How many of those that were refused, or would have been, had a match of no other rule at an input. 0 from gateways of older releases.
    #[prost(uint64, tag = "20")]
    pub alone: u64,
}

/// What the values of one caller at an input look like.
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub struct ValueShape {
    /// As in [`Matched::callers`].
    #[prost(fixed64, tag = "1")]
    pub caller: u64,
    /// The kinds of bytes that occur, a bit each.
    #[prost(uint64, tag = "2")]
    pub alphabet: u64,
    /// The bytes of the shortest value and of the longest one; 257 for any above 256.
    #[prost(uint32, tag = "3")]
    pub shortest: u32,
    /// The same.
    #[prost(uint32, tag = "4")]
    pub longest: u32,
}

/// A request as far as it takes to have the match again, with secrets masked.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct SampledRequest {
    /// The method.
    #[prost(string, tag = "1")]
    pub method: String,
    /// The path with its query.
    #[prost(bytes = "vec", tag = "2")]
    pub uri: Vec<u8>,
    /// `HTTP/1.1`.
    #[prost(string, tag = "3")]
    pub protocol: String,
    /// The headers, names in lower case, with the host, and without `content-encoding` where the body was decompressed.
    #[prost(message, repeated, tag = "4")]
    pub headers: Vec<SampledHeader>,
    /// The body, decompressed and without the content of files.
    #[prost(bytes = "vec", tag = "5")]
    pub body: Vec<u8>,
    /// Something is left out: more of the body, of the target or of the headers.
    #[prost(bool, tag = "6")]
    pub cut: bool,
    /// The input that matched is a secret, so that the match cannot be had again.
    #[prost(bool, tag = "7")]
    pub masked: bool,
}

/// A header.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct SampledHeader {
    /// In lower case.
    #[prost(bytes = "vec", tag = "1")]
    pub name: Vec<u8>,
    /// With secrets masked.
    #[prost(bytes = "vec", tag = "2")]
    pub value: Vec<u8>,
}

/// The most callers with other signs of one report.
pub const MAX_SUSPECTS: usize = 1024;
/// The most ids of requests of one key.
pub const MAX_REFERENCES: usize = 4;
/// The most bytes of such an id.
pub const MAX_REFERENCE: usize = 64;
/// The most numbers of callers of one key.
pub const MAX_CALLERS: usize = 32;
/// The most callers of one key whose values are described.
pub const MAX_SHAPES: usize = 8;
/// The most bytes of a body in a sample.
pub const MAX_BODY: usize = 16 * 1024;
/// The most bytes of a target, a path, a message, a value.
pub const MAX_TEXT: usize = 512;
