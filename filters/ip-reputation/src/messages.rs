//! The compiled configuration of a step.

use prost::Message;

/// Configuration of an `ip-reputation` step.
#[derive(Clone, PartialEq, Message)]
pub struct IpReputationStep {
    /// The feeds that count, sorted by their keys. A key in a label of the table that is not among them counts for nothing.
    #[prost(message, repeated, tag = "1")]
    pub feeds: Vec<FeedOfStep>,
    /// Nothing is refused: hits add to the score.
    #[prost(bool, tag = "2")]
    pub monitor: bool,
    /// The sum of the weights of hits from which a request is refused; 0 for none.
    #[prost(double, tag = "3")]
    pub score_threshold: f64,
    /// The status of a refusal, 200 to 599.
    #[prost(uint32, tag = "4")]
    pub status: u32,
    /// Addresses and CIDRs whose requests pass without a look.
    #[prost(string, repeated, tag = "5")]
    pub passthrough: Vec<String>,
    /// Refusals for its hits are reported to decision services.
    #[prost(bool, tag = "6")]
    pub report: bool,
    /// It has bouncers with decisions on networks, and the table that they are found by.
    #[prost(bool, tag = "20")]
    pub by_network: bool,
    /// It has bouncers with decisions on countries, and the table that they are found by.
    #[prost(bool, tag = "21")]
    pub by_country: bool,
    /// How long a request waits for the verdict of DNS blocklists, in milliseconds; 0: none waits.
    #[prost(uint32, tag = "30")]
    pub wait_millis: u32,
}

/// What a hit on one feed, on the decisions of one bouncer, or on one class of networks means.
#[derive(Clone, PartialEq, Message)]
pub struct FeedOfStep {
    /// What labels of the table call it by.
    #[prost(string, tag = "1")]
    pub key: String,
    /// The id of its entity.
    #[prost(string, tag = "2")]
    pub id: String,
    /// Its name, for people; its id where it has none.
    #[prost(string, tag = "3")]
    pub name: String,
    /// The tag of its signals.
    #[prost(string, tag = "4")]
    pub tag: String,
    /// What a hit adds to the score, 0 to 100.
    #[prost(double, tag = "5")]
    pub weight: f64,
    /// A hit refuses regardless of the score, unless the step only monitors.
    #[prost(bool, tag = "6")]
    pub blocks: bool,
    /// It is a bouncer: the decisions of a service, in a table of their own.
    #[prost(bool, tag = "7")]
    pub bouncer: bool,
    /// It is a class of networks, in a table of its own: `id` is its database, `name` the name of the class. It never refuses.
    #[prost(bool, tag = "20")]
    pub class: bool,
    /// It is a zone of a DNS blocklist, in the table of verdicts: `id` is its name.
    #[prost(bool, tag = "30")]
    pub zone: bool,
}
