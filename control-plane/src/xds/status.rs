//! What every node made of what it was sent.

use serde::Serialize;

/// One Envoy, as its streams and its filters describe it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct NodeStatus {
    /// The node's id in its bootstrap.
    pub id: String,
    /// Envoy's own version, such as `1.40.0`; empty where it did not say.
    pub version: String,
    /// It has an open stream.
    pub connected: bool,
    /// Since when it is connected, or not any more: milliseconds since the Unix epoch.
    pub since: u64,
    /// Per type URL, what was sent and what was taken.
    pub types: Vec<TypeStatus>,
    /// Per filter, the snapshot that it last reported on.
    pub filters: Vec<FilterStatus>,
}

/// The state of one type of resource on a node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct TypeStatus {
    /// The type's URL.
    pub type_url: String,
    /// Version of the last response.
    pub sent_version: String,
    /// Version of the last response that was taken; empty for none.
    pub acked_version: String,
    /// The refusal of the last response, until a later one is taken.
    pub nack: Option<Nack>,
}

/// A refusal.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Nack {
    /// Version of the refused response.
    pub version: String,
    /// Envoy's words, and after them those of the filters that refused their snapshots.
    pub reason: String,
    /// The resources of the response that Envoy's words name; all of them where it names none.
    pub resources: Vec<String>,
    /// When, in milliseconds since the Unix epoch.
    pub at: u64,
}

/// What a filter made of its snapshot.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct FilterStatus {
    /// The filter's name.
    pub filter: String,
    /// The snapshot's version.
    pub version: String,
    /// Why it was refused; empty where it was taken.
    pub error: String,
}
