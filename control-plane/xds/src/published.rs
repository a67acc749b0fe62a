//! What is published: the resources of each group of gateways.

use std::collections::BTreeMap;
use std::sync::Arc;

use entities::DEFAULT_GROUP;

use super::set::ResourceSet;

/// What every group is served. A group that was never published is served nothing, and not what others are: its gateways
/// keep what they have.
#[derive(Clone, Debug, Default)]
pub(super) struct Published {
    pub(super) default: Option<GroupSnapshot>,
    pub(super) groups: BTreeMap<String, Option<GroupSnapshot>>,
}

/// What one group is served.
#[derive(Clone, Debug)]
pub(super) struct GroupSnapshot {
    /// Its resources; the same `Arc` as before where nothing of them has changed.
    pub(super) set: Arc<ResourceSet>,
    /// The version of the set.
    pub(super) version: Arc<str>,
    /// When the change began that it came with, in milliseconds since the Unix epoch.
    pub(super) began: u64,
}

// === impl Published ===

impl Published {
    /// What a node of this cluster is given; `None` where its group was never published.
    pub(super) fn of(&self, cluster: &str) -> Option<&GroupSnapshot> {
        self.groups.get(cluster).unwrap_or(&self.default).as_ref()
    }

    /// The group of a cluster.
    pub(super) fn group_of(&self, cluster: &str) -> &str {
        self.groups.get_key_value(cluster).map_or(DEFAULT_GROUP, |(name, _)| name)
    }

    /// Whether the cluster names a group.
    pub(super) fn knows(&self, cluster: &str) -> bool {
        cluster.is_empty() || cluster == DEFAULT_GROUP || self.groups.contains_key(cluster)
    }

    /// What this group is served, and no other.
    pub(super) fn exactly(&self, group: &str) -> Option<&GroupSnapshot> {
        if group == DEFAULT_GROUP { self.default.as_ref() } else { self.groups.get(group)?.as_ref() }
    }

    /// Whether every group is served the same resources.
    pub(super) fn same(&self, other: &Published) -> bool {
        let same = |one: &Option<GroupSnapshot>, other: &Option<GroupSnapshot>| match (one, other) {
            (Some(one), Some(other)) => Arc::ptr_eq(&one.set, &other.set),
            (None, None) => true,
            _ => false,
        };
        same(&self.default, &other.default)
            && self.groups.len() == other.groups.len()
            && self.groups.iter().all(|(name, one)| other.groups.get(name).is_some_and(|other| same(one, other)))
    }
}

// === impl GroupSnapshot ===

impl GroupSnapshot {
    /// What was there before stays where it is equal, and what two groups have in common is in memory once.
    pub(super) fn new(
        mut set: ResourceSet,
        began: u64,
        before: Option<&GroupSnapshot>,
        other: Option<&GroupSnapshot>,
    ) -> GroupSnapshot {
        if let Some(before) = before {
            if *before.set == set {
                return before.clone();
            }
            set.share(&before.set);
        }
        if let Some(other) = other {
            set.share(&other.set);
        }
        GroupSnapshot { version: set.version().into(), set: Arc::new(set), began }
    }
}
