//! What is known of every node: its streams, what it took and refused, what its filters run.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use envoy_types::pb::envoy::config::core::v3::{Node, node};
use snapshot::LoadReport;

use super::published::Published;
use super::set::Kind;
use super::status::{FilterStatus, Nack, NodeStatus, TypeStatus, VmVersion};
use entities::DEFAULT_GROUP;

/// The most nodes whose status is kept; the ones longest disconnected go first.
const MAX_NODES: usize = 10_000;
/// The most filters that one node reports on.
const MAX_FILTERS: usize = 64;
/// The most links of one node whose reports are told apart.
const MAX_LINKS: usize = 1024;
/// The most characters of a refusal's reason.
const MAX_REASON: usize = 4096;
/// The most characters of a name or a version that are kept.
const MAX_NAME: usize = 256;
/// The most resources of a refusal that are named.
const MAX_RESOURCES: usize = 100;

/// The nodes, by id.
#[derive(Debug, Default)]
pub(super) struct Nodes {
    entries: BTreeMap<String, Entry>,
}

#[derive(Debug, Default)]
struct Entry {
    version: String,
    cluster: String,
    since: u64,
    /// When it was heard of last.
    last_seen: u64,
    bound: bool,
    /// Open streams; where there is none, the last one.
    streams: BTreeMap<u64, Stream>,
    /// It has not all that its group is served, since then.
    behind_since: Option<u64>,
    filters: BTreeMap<String, FilterStatus>,
    /// What each VM runs, by its link and the filter.
    links: BTreeMap<u64, BTreeMap<String, String>>,
}

#[derive(Debug, Default)]
struct Stream {
    open: bool,
    types: BTreeMap<Kind, TypeStatus>,
    not_served: Vec<Kind>,
    /// The version of the set that the node has taken whole.
    holds: Option<Arc<str>>,
}

// === impl Nodes ===

impl Nodes {
    /// Every node at `now`; one that was not heard of for longer than `stale_after` is stale.
    pub(super) fn statuses(&self, published: Option<&Published>, now: u64, stale_after: u64) -> Vec<NodeStatus> {
        let status = |(id, entry): (&String, &Entry)| NodeStatus {
            stale: entry.is_away() && now.saturating_sub(entry.last_seen) > stale_after,
            ..entry.status(id, published)
        };
        self.entries.iter().map(status).collect()
    }

    /// The nodes with an open stream that refuse a type of what they are served: how many, and of the first ones which type
    /// and why.
    pub(super) fn refusals(&self, named: usize) -> (usize, Vec<String>) {
        let (mut count, mut first) = (0, Vec::new());
        for (id, entry) in &self.entries {
            let streams = entry.streams.values().filter(|stream| stream.open);
            let mut refused = streams
                .flat_map(|stream| &stream.types)
                .filter_map(|(kind, status)| Some((kind.word(), status.nack.as_ref()?)));
            let Some((kind, nack)) = refused.next() else { continue };
            count += 1;
            if first.len() < named {
                first.push(format!("{id} ({kind}): {}", nack.reason));
            }
        }
        (count, first)
    }

    /// Every node whose group has got something new is behind from now on.
    pub(super) fn published(&mut self, published: &Published, now: u64) {
        for entry in self.entries.values_mut() {
            entry.measure(Some(published), now);
        }
    }

    pub(super) fn connected(&mut self, node: &Node, stream: u64, published: Option<&Published>, now: u64) {
        let entry = self.entry(&node.id);
        let mut held = Stream { open: true, ..Stream::default() };
        if !entry.is_connected() {
            entry.since = now;
            metrics::gauge!("palisade_xds_nodes").increment(1.0);
        }
        // What it took on a stream that has ended it still has: it is not sent again.
        let ended: Vec<u64> = entry.streams.iter().filter(|(_, stream)| !stream.open).map(|(id, _)| *id).collect();
        for id in ended {
            held.types = entry.streams.remove(&id).map(|stream| stream.types).unwrap_or_default();
        }
        entry.streams.insert(stream, held);
        entry.version = cut(&envoy_version(node), MAX_NAME);
        entry.cluster = cut(&node.cluster, MAX_NAME);
        entry.measure(published, now);
        entry.last_seen = now;
        let group = published.map_or(DEFAULT_GROUP, |published| published.group_of(&node.cluster));
        tracing::info!(
            node = node.id,
            version = entry.version,
            cluster = entry.cluster,
            group,
            "a gateway has connected"
        );
    }

    pub(super) fn bound(&mut self, node: &str, bound: bool) {
        self.entry(node).bound = bound;
    }

    pub(super) fn disconnected(&mut self, node: &str, stream: u64, published: Option<&Published>, now: u64) {
        let entry = self.entry(node);
        if entry.streams.values().filter(|stream| stream.open).count() > 1 {
            entry.streams.remove(&stream);
        } else if let Some(last) = entry.streams.get_mut(&stream) {
            if std::mem::take(&mut last.open) {
                metrics::gauge!("palisade_xds_nodes").decrement(1.0);
            }
            entry.since = now;
        }
        entry.last_seen = now;
        entry.measure(published, now);
    }

    pub(super) fn sent(&mut self, node: &str, stream: u64, kind: Kind, version: &str) {
        self.with_type(node, stream, kind, |status| version.clone_into(&mut status.sent_version));
    }

    pub(super) fn answered(
        &mut self,
        node: &str,
        stream: u64,
        kind: Kind,
        version: String,
        refused: Option<(String, Vec<String>)>,
        now: u64,
    ) {
        self.with_type(node, stream, kind, |status| match refused {
            None => {
                status.acked_version = cut(&version, MAX_NAME);
                status.nack = None;
            }
            Some((reason, resources)) => {
                let reason = cut(&reason, MAX_REASON);
                let resources = resources.iter().take(MAX_RESOURCES).map(|name| cut(name, MAX_NAME)).collect();
                status.nack = Some(Nack { version: cut(&version, MAX_NAME), reason, resources, at: now });
            }
        });
    }

    /// Since when a node could have taken what it is served: since the change, or since it connected where that came later.
    pub(super) fn served_since(&self, node: &str, published: &Published) -> Option<u64> {
        let entry = self.entries.get(node)?;
        Some(entry.since.max(published.of(&entry.cluster)?.began))
    }

    pub(super) fn not_served(&mut self, node: &str, stream: u64, kinds: &[Kind]) {
        if let Some(stream) = self.entry(node).streams.get_mut(&stream) {
            kinds.clone_into(&mut stream.not_served);
        }
    }

    pub(super) fn holds(
        &mut self,
        node: &str,
        stream: u64,
        version: Option<&Arc<str>>,
        published: Option<&Published>,
        now: u64,
    ) {
        let entry = self.entry(node);
        if let Some(stream) = entry.streams.get_mut(&stream) {
            stream.holds = version.cloned();
        }
        entry.measure(published, now);
    }

    pub(super) fn report_load(&mut self, node: &str, link: u64, report: LoadReport, now: u64) {
        let report = LoadReport {
            filter: cut(&report.filter, MAX_NAME),
            version: cut(&report.version, MAX_NAME),
            error: cut(&report.error, MAX_REASON),
            ..report
        };
        let entry = self.entry(node);
        entry.last_seen = now;
        if entry.filters.len() >= MAX_FILTERS && !entry.filters.contains_key(&report.filter) {
            return;
        }
        let LoadReport { filter, version, error, parts_decoded, parts_reused } = report;
        // Who refused a snapshot runs the one before.
        if error.is_empty() && (entry.links.len() < MAX_LINKS || entry.links.contains_key(&link)) {
            entry.links.entry(link).or_default().insert(filter.clone(), version.clone());
        }
        let status = FilterStatus {
            filter: filter.clone(),
            version,
            error,
            at: now,
            parts_decoded,
            parts_reused,
            ..FilterStatus::default()
        };
        entry.filters.insert(filter, status);
    }

    pub(super) fn link_ended(&mut self, node: &str, link: u64, now: u64) {
        if let Some(entry) = self.entries.get_mut(node) {
            entry.links.remove(&link);
            entry.last_seen = now;
        }
    }

    fn with_type(&mut self, node: &str, stream: u64, kind: Kind, change: impl FnOnce(&mut TypeStatus)) {
        let Some(stream) = self.entry(node).streams.get_mut(&stream) else { return };
        let status = stream.types.entry(kind).or_default();
        kind.type_url().clone_into(&mut status.type_url);
        change(status);
    }

    fn entry(&mut self, node: &str) -> &mut Entry {
        if self.entries.len() >= MAX_NODES && !self.entries.contains_key(node) {
            let idle = self.entries.iter().filter(|(_, entry)| !entry.is_connected());
            if let Some(oldest) = idle.min_by_key(|(_, entry)| entry.since).map(|(id, _)| id.clone()) {
                self.entries.remove(&oldest);
            }
        }
        self.entries.entry(node.to_owned()).or_default()
    }
}

// === impl Entry ===

impl Entry {
    fn is_connected(&self) -> bool {
        self.streams.values().any(|stream| stream.open)
    }

    /// It has neither a stream nor a link that has reported.
    fn is_away(&self) -> bool {
        !self.is_connected() && self.links.is_empty()
    }

    /// Notes whether it is behind what its group is served, and since when.
    fn measure(&mut self, published: Option<&Published>, now: u64) {
        let Some(published) = published else { return };
        // Nothing was published to its group: there is nothing that it could be behind.
        let current = published.of(&self.cluster).map(|given| &given.version);
        let lacks = |stream: &Stream| current.is_some_and(|current| stream.holds.as_ref() != Some(current));
        let behind = self.streams.values().any(lacks);
        // A node that is known by its links alone is served by somebody else.
        self.behind_since = behind.then(|| self.behind_since.unwrap_or(now));
    }

    fn status(&self, id: &str, published: Option<&Published>) -> NodeStatus {
        let given = published.and_then(|published| published.of(&self.cluster));
        let filters: Vec<FilterStatus> = self.filters.values().map(|status| self.filter(status, given)).collect();
        let mut types: Vec<TypeStatus> =
            self.streams.values().flat_map(|stream| stream.types.values().cloned()).collect();
        for status in &mut types {
            if status.type_url == Kind::Extension.type_url()
                && let Some(nack) = &mut status.nack
            {
                explain(nack, &filters);
            }
        }
        let not_served: BTreeSet<Kind> =
            self.streams.values().flat_map(|stream| stream.not_served.iter().copied()).collect();
        NodeStatus {
            id: id.to_owned(),
            version: self.version.clone(),
            cluster: self.cluster.clone(),
            group: published.map_or(DEFAULT_GROUP, |published| published.group_of(&self.cluster)).to_owned(),
            known_group: published.is_none_or(|published| published.knows(&self.cluster)),
            delivery: given.map(|given| given.set.delivery()).unwrap_or_default(),
            bound: self.bound,
            connected: self.is_connected(),
            since: self.since,
            behind: self.behind_since.is_some(),
            behind_since: self.behind_since,
            not_published: None,
            last_seen: self.last_seen,
            stale: false,
            not_served: not_served.into_iter().map(|kind| kind.type_url().to_owned()).collect(),
            types,
            filters,
        }
    }

    fn filter(&self, status: &FilterStatus, given: Option<&super::published::GroupSnapshot>) -> FilterStatus {
        let mut versions: BTreeMap<&str, u64> = BTreeMap::new();
        for version in self.links.values().filter_map(|filters| filters.get(&status.filter)) {
            *versions.entry(version).or_default() += 1;
        }
        let vms = versions.into_iter().map(|(version, vms)| VmVersion { version: version.to_owned(), vms });
        FilterStatus {
            vms: vms.collect(),
            current_version: given
                .and_then(|given| given.set.snapshot_version(&status.filter))
                .map(ToOwned::to_owned)
                .unwrap_or_default(),
            ..status.clone()
        }
    }
}

/// Envoy says only that a plugin could not be created; the filter itself says why.
fn explain(nack: &mut Nack, filters: &[FilterStatus]) {
    for filter in filters.iter().filter(|filter| !filter.error.is_empty()) {
        if nack.resources.iter().any(|name| name.strip_prefix("palisade.") == Some(filter.filter.as_str())) {
            nack.reason.push_str(&format!("; filter {} says: {}", filter.filter, filter.error));
        }
    }
}

/// The beginning of a text that a node has sent, of any length.
fn cut(text: &str, characters: usize) -> String {
    text.chars().take(characters).collect()
}

fn envoy_version(node: &Node) -> String {
    match &node.user_agent_version_type {
        Some(node::UserAgentVersionType::UserAgentVersion(version)) => version.clone(),
        Some(node::UserAgentVersionType::UserAgentBuildVersion(build)) => build
            .version
            .as_ref()
            .map(|version| format!("{}.{}.{}", version.major_number, version.minor_number, version.patch))
            .unwrap_or_default(),
        None => String::new(),
    }
}
