//! What every node made of what it was sent.

use schemars::JsonSchema;
use serde::Serialize;

use super::publication::PublicationFailure;
use crate::entities::Delivery;

/// One Envoy, as its streams and its filters describe it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct NodeStatus {
    /// The node's id in its bootstrap.
    pub id: String,
    /// Envoy's own version, such as `1.40.0`; empty where it did not say.
    pub version: String,
    /// The cluster in its bootstrap (`node.cluster`), by which its group is found.
    pub cluster: String,
    /// The group whose configuration it is given.
    pub group: String,
    /// False where its cluster names no group, so that it is given the default one.
    pub known_group: bool,
    /// What its group takes from here.
    pub delivery: Delivery,
    /// Its token or its certificate names this id whole; otherwise it is what the node says, as everybody could who has a token
    /// or certificate that is for several (`edge-*`, `*.example`), or may connect without any.
    pub bound: bool,
    /// It has an open stream.
    pub connected: bool,
    /// Since when it is connected, or not any more: milliseconds since the Unix epoch.
    pub since: u64,
    /// It has not taken all that its group is served now: something is under way, was refused, or waits for its return.
    pub behind: bool,
    /// Since when it is behind: milliseconds since the Unix epoch.
    pub behind_since: Option<u64>,
    /// Why its group is not served the entities as they are now; null where it is.
    pub not_published: Option<PublicationFailure>,
    /// When it was last heard of, by a stream or a link, in milliseconds since the Unix epoch.
    pub last_seen: u64,
    /// It has neither a stream nor a link, and was not heard of for longer than `security.incidents.stale_after_seconds`.
    pub stale: bool,
    /// Type URLs that it asks for and that its group does not take from here; it is not answered.
    pub not_served: Vec<String>,
    /// Per type URL, what was sent and what was taken; once for each stream that it has for the type.
    pub types: Vec<TypeStatus>,
    /// Per filter, the snapshot that it last reported on.
    pub filters: Vec<FilterStatus>,
}

/// The state of one type of resource on a node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
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
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
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
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct FilterStatus {
    /// The filter's name.
    pub filter: String,
    /// The version of the snapshot that it spoke of last.
    pub version: String,
    /// Why it was refused; empty where it was taken.
    pub error: String,
    /// When it said so last, in milliseconds since the Unix epoch.
    pub at: u64,
    /// How many large parts of it the VM that spoke last has decoded for it.
    pub parts_decoded: u32,
    /// How many it had decoded already, for a snapshot before.
    pub parts_reused: u32,
    /// The version of the snapshot that is served now; empty for a filter that is not served.
    pub current_version: String,
    /// What the VMs of the node run that have a link: each worker has one, and the main thread.
    pub vms: Vec<VmVersion>,
}

/// How many VMs run a snapshot.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct VmVersion {
    /// The snapshot's version.
    pub version: String,
    /// How many VMs.
    pub vms: u64,
}
