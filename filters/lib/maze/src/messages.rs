//! The part of a step's configuration that a maze is made of.

use prost::Message;

/// What the pages of a maze are like, and what they may cost. Limits are those of one node; pages and bytes are counted over an hour,
/// processor time over 10 seconds.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct MazeLimits {
    /// The path that all links lead below; see [`is_path`](crate::is_path).
    #[prost(string, tag = "1")]
    pub path: String,
    /// The size of a page in bytes; see [`PAGE_BYTES`](crate::PAGE_BYTES).
    #[prost(uint32, tag = "2")]
    pub page_bytes: u32,
    /// How long a caller waits for a page, in milliseconds.
    #[prost(uint32, tag = "3")]
    pub hold_millis: u32,
    /// The most for one caller.
    #[prost(message, required, tag = "4")]
    pub caller: MazeBudget,
    /// The most for all callers together.
    #[prost(message, required, tag = "5")]
    pub all: MazeBudget,
}

/// What pages may cost.
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub struct MazeBudget {
    /// Pages in an hour.
    #[prost(uint32, tag = "1")]
    pub pages: u32,
    /// Their bytes in an hour, in KiB.
    #[prost(uint32, tag = "2")]
    pub kibibytes: u32,
    /// Processor time in 10 seconds, in microseconds.
    #[prost(uint32, tag = "3")]
    pub micros: u32,
}
