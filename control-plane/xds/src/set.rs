//! A set of resources, named and versioned by content.

use std::collections::BTreeMap;
use std::sync::Arc;

use envoy_types::pb::envoy::config::core::v3::TypedExtensionConfig;
use envoy_types::pb::google::protobuf::Any;
use prost::bytes::Bytes;
use prost::{Message, Name};
use snapshot::{content_hash, hex};

use super::parted::{PartSet, Parted};
use entities::Delivery;

/// The kinds of resources that this control plane serves, in the order in which Envoy must take them: what is referred to
/// comes before what refers to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// Clusters (CDS).
    Cluster,
    /// Listeners (LDS).
    Listener,
    /// Route configurations (RDS).
    Route,
    /// Filter configurations (ECDS).
    Extension,
}

/// One resource as Envoy gets it.
#[derive(Debug)]
pub struct Resource {
    /// Hash of `body`: equal content has an equal version, on every control plane and after every restart.
    pub version: String,
    /// The encoded resource.
    pub body: Any,
    /// `body` itself encoded: what every stream is sent, without a copy of its own.
    pub(super) encoded: Bytes,
    /// The parts of a filter's snapshot.
    parted: Parted,
}

/// Everything that one gateway is given.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ResourceSet {
    delivery: Delivery,
    kinds: BTreeMap<Kind, BTreeMap<String, Arc<Resource>>>,
    /// By filter, the version of its snapshot.
    snapshots: BTreeMap<String, String>,
}

// === impl Kind ===

impl Kind {
    /// All of them, in serving order.
    pub const ALL: [Kind; 4] = [Kind::Cluster, Kind::Listener, Kind::Route, Kind::Extension];

    /// The type URL by which Envoy asks for the kind.
    #[must_use]
    pub fn type_url(self) -> &'static str {
        match self {
            Self::Cluster => "type.googleapis.com/envoy.config.cluster.v3.Cluster",
            Self::Listener => "type.googleapis.com/envoy.config.listener.v3.Listener",
            Self::Route => "type.googleapis.com/envoy.config.route.v3.RouteConfiguration",
            Self::Extension => "type.googleapis.com/envoy.config.core.v3.TypedExtensionConfig",
        }
    }

    /// The kind of a type URL; `None` for one that is not served here.
    #[must_use]
    pub fn of_type_url(url: &str) -> Option<Kind> {
        Self::ALL.into_iter().find(|kind| kind.type_url() == url)
    }

    /// Whether a first request without names asks for everything of the kind. What others refer to by name is asked for by
    /// name: without one, nothing is.
    #[must_use]
    pub fn has_wildcard(self) -> bool {
        matches!(self, Self::Cluster | Self::Listener)
    }

    /// A short word for metrics and logs.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Cluster => "cluster",
            Self::Listener => "listener",
            Self::Route => "route",
            Self::Extension => "filter",
        }
    }
}

// === impl Resource ===

impl Resource {
    /// Wraps an encoded resource and names its version.
    #[must_use]
    pub fn new(body: Any) -> Resource {
        let mut version = hex(&content_hash(&body.value));
        version.truncate(16);
        let encoded = Bytes::from(body.encode_to_vec());
        Resource { version, body, encoded, parted: Parted::default() }
    }

    /// The hashes of the parts in it.
    pub(super) fn parts(&self) -> &PartSet {
        self.parted.parts()
    }

    /// What is sent to a gateway that has these parts already; `None` where that is all of it.
    pub(super) fn without(&self, held: &PartSet) -> Option<Bytes> {
        self.parted.without(held, &self.body)
    }
}

impl PartialEq for Resource {
    fn eq(&self, other: &Self) -> bool {
        self.version == other.version && self.body == other.body
    }
}

// === impl ResourceSet ===

impl ResourceSet {
    /// An empty set for gateways that take this.
    #[must_use]
    pub fn new(delivery: Delivery) -> ResourceSet {
        ResourceSet { delivery, ..ResourceSet::default() }
    }

    /// What its gateways take.
    #[must_use]
    pub fn delivery(&self) -> Delivery {
        self.delivery
    }

    /// Whether resources of this kind are ours to serve. Where they are not, a request for them is not answered: even an
    /// answer without resources would take away the resources of another control plane.
    #[must_use]
    pub fn serves(&self, kind: Kind) -> bool {
        self.delivery == Delivery::Full || kind == Kind::Extension
    }

    /// Its version: a hash over what it holds.
    pub(crate) fn version(&self) -> String {
        version_of(self.kinds.values().flatten())
    }

    /// Notes the version of a filter's snapshot, which stands inside of its resource.
    pub(crate) fn note_snapshot(&mut self, filter: String, version: String) {
        self.snapshots.insert(filter, version);
    }

    /// The version of a filter's snapshot.
    pub(crate) fn snapshot_version(&self, filter: &str) -> Option<&str> {
        self.snapshots.get(filter).map(String::as_str)
    }

    /// Shares what `other` holds as well, so that it is in memory once.
    pub(crate) fn share(&mut self, other: &ResourceSet) {
        for (kind, resources) in &mut self.kinds {
            let Some(others) = other.kinds.get(kind) else { continue };
            for (name, resource) in resources {
                if let Some(known) = others.get(name).filter(|known| *known == resource) {
                    *resource = Arc::clone(known);
                }
            }
        }
    }

    /// Adds an encoded resource, or replaces the one of this name. `body` must be of the kind's type.
    pub fn insert(&mut self, kind: Kind, name: impl Into<String>, body: Any) {
        let resources = self.kinds.entry(kind).or_default();
        resources.insert(name.into(), Arc::new(Resource::new(body)));
    }

    /// Encodes a message and adds it.
    pub fn insert_message<M: Message + Name>(&mut self, kind: Kind, name: impl Into<String>, message: &M) {
        let body = Any { type_url: M::type_url(), value: message.encode_to_vec() };
        self.insert(kind, name, body);
    }

    /// Adds a filter, whose snapshot has these parts.
    pub(super) fn insert_filter(&mut self, config: &TypedExtensionConfig, parts: PartSet) {
        let body = Any { type_url: TypedExtensionConfig::type_url(), value: config.encode_to_vec() };
        let resource = Resource { parted: Parted::new(parts), ..Resource::new(body) };
        self.kinds.entry(Kind::Extension).or_default().insert(config.name.clone(), Arc::new(resource));
    }

    /// Takes a resource out; tells whether there was one.
    pub fn remove(&mut self, kind: Kind, name: &str) -> bool {
        self.kinds.get_mut(&kind).is_some_and(|resources| resources.remove(name).is_some())
    }

    /// One resource.
    #[must_use]
    pub fn get(&self, kind: Kind, name: &str) -> Option<&Resource> {
        self.kinds.get(&kind)?.get(name).map(AsRef::as_ref)
    }

    /// The resources of a kind, by name.
    pub fn iter(&self, kind: Kind) -> impl Iterator<Item = (&String, &Arc<Resource>)> {
        self.kinds.get(&kind).into_iter().flatten()
    }
}

/// The version of a selection of resources: a hash over names and versions, so that it changes exactly when one of them does.
pub(crate) fn version_of<'a>(resources: impl Iterator<Item = (&'a String, &'a Arc<Resource>)>) -> String {
    let mut text = String::new();
    for (name, resource) in resources {
        text.push_str(name);
        text.push('\0');
        text.push_str(&resource.version);
        text.push('\0');
    }
    let mut version = hex(&content_hash(text.as_bytes()));
    version.truncate(16);
    version
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_follow_content_and_nothing_else() {
        let any = |text: &str| Any { type_url: Kind::Cluster.type_url().into(), value: text.into() };
        let mut one = ResourceSet::default();
        one.insert(Kind::Cluster, "a", any("1"));
        one.insert(Kind::Cluster, "b", any("2"));
        let mut two = ResourceSet::default();
        two.insert(Kind::Cluster, "b", any("2"));
        two.insert(Kind::Cluster, "a", any("1"));
        assert_eq!(version_of(one.iter(Kind::Cluster)), version_of(two.iter(Kind::Cluster)));
        two.insert(Kind::Cluster, "a", any("3"));
        assert_ne!(version_of(one.iter(Kind::Cluster)), version_of(two.iter(Kind::Cluster)));
        assert!(two.remove(Kind::Cluster, "a") && !two.remove(Kind::Cluster, "a"));
    }

    #[test]
    fn every_kind_is_found_by_its_type_url() {
        for kind in Kind::ALL {
            assert_eq!(Kind::of_type_url(kind.type_url()), Some(kind));
        }
        assert_eq!(Kind::of_type_url("type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment"), None);
    }
}
