//! What a snapshot says of the plugin.

use prost::Message;

/// The configuration of an `object-guard` step.
#[derive(Clone, PartialEq, Message)]
pub struct ObjectGuardStep {
    /// The declared paths, in their order.
    #[prost(message, repeated, tag = "1")]
    pub paths: Vec<ObjectPath>,
    /// Identifiers are detected by their shape.
    #[prost(bool, tag = "2")]
    pub auto_detect: bool,
    /// Patterns add to the score.
    #[prost(bool, tag = "3")]
    pub contribute: bool,
    /// The most distinct objects of a kind that a consumer may read in a window; 0 for no limit.
    #[prost(uint32, tag = "4")]
    pub budget: u32,
    /// That window in seconds.
    #[prost(uint32, tag = "5")]
    pub budget_window_seconds: u32,
    /// What is beyond a budget is only reported.
    #[prost(bool, tag = "6")]
    pub budget_logs: bool,
    /// The limits of surges.
    #[prost(message, optional, tag = "7")]
    pub surge: Option<SurgeLimits>,
    /// The limits of walks.
    #[prost(message, optional, tag = "8")]
    pub walk: Option<WalkLimits>,
    /// The limits of enumerations.
    #[prost(message, optional, tag = "9")]
    pub enumeration: Option<EnumerationLimits>,
    /// The most pairs of a consumer and a kind that a node watches.
    #[prost(uint32, tag = "10")]
    pub max_keys: u32,
}

/// A declared path.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct ObjectPath {
    /// Its template (`/api/orders/{id}`).
    #[prost(string, tag = "1")]
    pub template: String,
    /// The name of the kind; empty where the template is the kind.
    #[prost(string, tag = "2")]
    pub name: String,
    /// Its methods in upper case; empty for all.
    #[prost(string, repeated, tag = "3")]
    pub methods: Vec<String>,
    /// A budget of its own; absent for that of the step.
    #[prost(uint32, optional, tag = "4")]
    pub budget: Option<u32>,
}

/// When more objects than usual are a surge.
#[derive(Clone, Copy, PartialEq, Message)]
pub struct SurgeLimits {
    /// How many times the usual pace.
    #[prost(double, tag = "1")]
    pub factor: f64,
    /// No surge up to so many objects in a bucket.
    #[prost(uint32, tag = "2")]
    pub floor: u32,
    /// The same while the pace is not learned yet.
    #[prost(uint32, tag = "3")]
    pub ceiling: u32,
    /// The length of a bucket in seconds, at least 1.
    #[prost(uint32, tag = "4")]
    pub bucket_seconds: u32,
    /// Over how many buckets the usual pace is averaged.
    #[prost(uint32, tag = "5")]
    pub learning: u32,
    /// After how many buckets the pace is learned.
    #[prost(uint32, tag = "6")]
    pub warmup: u32,
    /// What a surge adds to the score, 0 to 100.
    #[prost(double, tag = "7")]
    pub weight: f64,
}

/// When numbered objects are a walk.
#[derive(Clone, Copy, PartialEq, Message)]
pub struct WalkLimits {
    /// How many numbered objects, 2 to 64.
    #[prost(uint32, tag = "1")]
    pub min: u32,
    /// Within how many seconds.
    #[prost(uint32, tag = "2")]
    pub window_seconds: u32,
    /// The largest median of the gaps between their numbers.
    #[prost(uint64, tag = "3")]
    pub max_gap: u64,
    /// What a walk adds to the score, 0 to 100.
    #[prost(double, tag = "4")]
    pub weight: f64,
}

/// When refused requests are an enumeration.
#[derive(Clone, PartialEq, Message)]
pub struct EnumerationLimits {
    /// How many requests, at least.
    #[prost(uint32, tag = "1")]
    pub min: u32,
    /// The share of them that is denied, 0 to 1.
    #[prost(double, tag = "2")]
    pub ratio: f64,
    /// Within how many seconds.
    #[prost(uint32, tag = "3")]
    pub window_seconds: u32,
    /// The statuses of denials.
    #[prost(uint32, repeated, tag = "4")]
    pub statuses: Vec<u32>,
    /// What an enumeration adds to the score, 0 to 100.
    #[prost(double, tag = "5")]
    pub weight: f64,
}
