//! What a snapshot says of the plugin.

use prost::{Enumeration, Message};

/// The configuration of a `traffic-guard` step.
#[derive(Clone, PartialEq, Message)]
pub struct TrafficGuardStep {
    /// What is watched, each dimension once.
    #[prost(message, repeated, tag = "1")]
    pub dimensions: Vec<DimensionOfStep>,
    /// How many times the usual pace is a surge.
    #[prost(double, tag = "2")]
    pub surge_factor: f64,
    /// The length of a bucket in milliseconds, at least 1.
    #[prost(uint32, tag = "3")]
    pub bucket_millis: u32,
    /// Over how many buckets the usual pace is averaged, at least 1.
    #[prost(uint32, tag = "4")]
    pub learning_buckets: u32,
    /// How many buckets are learned before anything is a surge.
    #[prost(uint32, tag = "5")]
    pub warmup_buckets: u32,
    /// The most keys that a node watches.
    #[prost(uint32, tag = "6")]
    pub max_keys: u32,
}

/// A dimension that is watched.
#[derive(Clone, Copy, PartialEq, Message)]
pub struct DimensionOfStep {
    /// Which one.
    #[prost(enumeration = "Dimension", tag = "1")]
    pub dimension: i32,
    /// The pace below which nothing is usual or a surge, in requests per second.
    #[prost(double, tag = "2")]
    pub floor: f64,
    /// What a surge adds to the score, 0 to 100.
    #[prost(double, tag = "3")]
    pub weight: f64,
}

/// What requests are counted by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Enumeration)]
#[repr(i32)]
pub enum Dimension {
    /// The route.
    Route = 0,
    /// The caller's address, or its network of IPv6.
    Source = 1,
    /// The verified API key or user.
    Consumer = 2,
    /// The network (autonomous system) of the caller's address.
    Asn = 3,
}
