//! The compiled configuration of a step.

use prost::Message;

/// Configuration of an `error-leakage` step.
#[derive(Clone, PartialEq, Message)]
pub struct ErrorLeakageStep {
    /// It only reports what it would have replaced.
    #[prost(bool, tag = "1")]
    pub monitor: bool,
    /// The most bytes of a body that are inspected.
    #[prost(uint64, tag = "2")]
    pub body_limit: u64,
    /// Which rules are used: 1 to 4.
    #[prost(uint32, tag = "3")]
    pub paranoia_level: u32,
    /// The media types that are inspected; empty for the usual ones.
    #[prost(string, repeated, tag = "4")]
    pub content_types: Vec<String>,
    /// The weight of a signal, 0 to 100.
    #[prost(double, tag = "5")]
    pub weight: f64,
    /// Requests for parts of texts go on, and the parts are not inspected.
    #[prost(bool, tag = "6")]
    pub pass_ranges: bool,
}
