//! What every node made of what it was sent.

use schemars::JsonSchema;
use serde::Serialize;

use super::publication::PublicationFailure;
use entities::Delivery;

/// One Envoy, as reported by its streams and its filters.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct NodeStatus {
    /// The node's id in its bootstrap.
    pub id: String,
    /// Envoy's own version, such as `1.40.0`; empty if unknown.
    pub version: String,
    /// The cluster in its bootstrap (`node.cluster`), which names its group.
    pub cluster: String,
    /// The group whose configuration it gets.
    pub group: String,
    /// False if its cluster names no group, so that it belongs to the default group.
    pub known_group: bool,
    /// What its group gets from the control plane.
    pub delivery: Delivery,
    /// Whether its token or its certificate names exactly this id. Otherwise the id is a claim: any node with a token or
    /// certificate for several ids (`edge-*`, `*.example`), or that may connect without one, could make it.
    pub bound: bool,
    /// Whether it has an open stream.
    pub connected: bool,
    /// When it connected or disconnected, in milliseconds since the Unix epoch.
    pub since: u64,
    /// Whether it has not acknowledged all current resources of its group: they are in transit, were refused, or it is away.
    pub behind: bool,
    /// Since when it is behind, in milliseconds since the Unix epoch.
    pub behind_since: Option<u64>,
    /// Why the current entities are not published to its group; null if they are.
    pub not_published: Option<PublicationFailure>,
    /// When its last message came, by a stream or a link, in milliseconds since the Unix epoch.
    pub last_seen: u64,
    /// Whether it has neither a stream nor a link, and sent nothing for `security.incidents.stale_after_seconds`.
    pub stale: bool,
    /// Type URLs that it requests and that its group does not get from the control plane; these requests are ignored.
    pub not_served: Vec<String>,
    /// Per type URL the versions sent and acknowledged, once for each of its streams for the type.
    pub types: Vec<TypeStatus>,
    /// Per filter the snapshot that it reported last.
    pub filters: Vec<FilterStatus>,
}

/// The state of one type of resource on a node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct TypeStatus {
    /// The type's URL.
    pub type_url: String,
    /// Version of the last response.
    pub sent_version: String,
    /// Version of the last acknowledged response; empty for none.
    pub acked_version: String,
    /// The refusal of the last response, until a later one is acknowledged.
    pub nack: Option<Nack>,
}

/// A refusal.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Nack {
    /// Version of the refused response.
    pub version: String,
    /// Envoy's message, followed by those of the filters that refused their snapshots.
    pub reason: String,
    /// The resources that Envoy's message names; all of the response if it names none.
    pub resources: Vec<String>,
    /// When, in milliseconds since the Unix epoch.
    pub at: u64,
}

/// The report of a filter on its snapshot.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct FilterStatus {
    /// The filter's name.
    pub filter: String,
    /// The version of the last reported snapshot.
    pub version: String,
    /// Why it was refused; empty if it was accepted.
    pub error: String,
    /// When the last report came, in milliseconds since the Unix epoch.
    pub at: u64,
    /// How many of its large parts the reporting VM decoded.
    pub parts_decoded: u32,
    /// How many of its large parts that VM reused from an earlier snapshot.
    pub parts_reused: u32,
    /// The version of the snapshot that is served now; empty for a filter that is not served.
    pub current_version: String,
    /// The snapshots of the node's VMs with a link: one per worker, and one of the main thread.
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
