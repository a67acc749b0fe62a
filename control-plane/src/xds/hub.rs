//! What is published, and what every node made of it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use envoy_types::pb::envoy::config::core::v3::{Node, node};
use snapshot::LoadReport;
use tokio::sync::watch;

use super::set::{Kind, ResourceSet};
use super::status::{FilterStatus, Nack, NodeStatus, TypeStatus};

/// The most nodes whose status is kept; the ones longest disconnected go first.
const MAX_NODES: usize = 10_000;
/// The most filters that one node reports on.
const MAX_FILTERS: usize = 64;
/// The most characters of a refusal's reason.
const MAX_REASON: usize = 4096;

/// The meeting point of the compiler, which publishes, and the streams, which serve. Clones share one state.
#[derive(Clone, Debug)]
pub struct Hub {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    set: watch::Sender<Option<Arc<ResourceSet>>>,
    nodes: Mutex<BTreeMap<String, Entry>>,
    clock: fn() -> u64,
}

#[derive(Debug, Default)]
struct Entry {
    version: String,
    streams: u64,
    since: u64,
    types: BTreeMap<Kind, TypeStatus>,
    filters: BTreeMap<String, FilterStatus>,
}

// === impl Hub ===

impl Default for Hub {
    fn default() -> Self {
        Self::new()
    }
}

impl Hub {
    /// A hub on the wall clock. Until the first [`Hub::publish`] its streams are not answered, so that a gateway that is
    /// connected already keeps what it serves.
    #[must_use]
    pub fn new() -> Hub {
        Hub::with_clock(crate::clock::now_millis)
    }

    /// A hub that takes the time, in milliseconds since the Unix epoch, from `clock`.
    #[must_use]
    pub fn with_clock(clock: fn() -> u64) -> Hub {
        let (set, _) = watch::channel(None);
        Hub { inner: Arc::new(Inner { set, nodes: Mutex::default(), clock }) }
    }

    /// Serves `set` from now on, to every stream, open and to come. An equal set changes nothing.
    pub fn publish(&self, set: ResourceSet) {
        self.inner.set.send_if_modified(|current| {
            let changed = current.as_deref() != Some(&set);
            if changed {
                *current = Some(Arc::new(set));
            }
            changed
        });
    }

    /// Every node that has been seen, by id.
    #[must_use]
    pub fn nodes(&self) -> Vec<NodeStatus> {
        let nodes = self.lock();
        nodes.iter().map(|(id, entry)| entry.status(id)).collect()
    }

    /// A filter on a node took or refused its snapshot.
    pub fn report_load(&self, node: &str, report: LoadReport) {
        if !report.error.is_empty() {
            tracing::warn!(
                node,
                filter = report.filter,
                version = report.version,
                reason = report.error,
                "a filter refused its snapshot; it keeps the one before"
            );
        }
        let mut nodes = self.lock();
        let entry = self.entry(&mut nodes, node);
        if entry.filters.len() >= MAX_FILTERS && !entry.filters.contains_key(&report.filter) {
            return;
        }
        let status = FilterStatus { filter: report.filter.clone(), version: report.version, error: report.error };
        entry.filters.insert(report.filter, status);
    }

    /// The set that a node is given, and its changes. Every node is given the same set today; groups of nodes with sets
    /// of their own are told apart here and nowhere else.
    pub(crate) fn set_for(&self, _node: &str) -> watch::Receiver<Option<Arc<ResourceSet>>> {
        self.inner.set.subscribe()
    }

    /// A node opened a stream.
    pub(crate) fn connected(&self, node: &Node) {
        let now = (self.inner.clock)();
        let mut nodes = self.lock();
        let entry = self.entry(&mut nodes, &node.id);
        if entry.streams == 0 {
            entry.since = now;
        }
        entry.streams += 1;
        entry.version = envoy_version(node);
        metrics::gauge!("palisade_xds_streams").increment(1.0);
        tracing::info!(node = node.id, version = entry.version, "a gateway has connected");
    }

    /// A node's stream ended.
    pub(crate) fn disconnected(&self, node: &str) {
        let now = (self.inner.clock)();
        let mut nodes = self.lock();
        let entry = self.entry(&mut nodes, node);
        entry.streams = entry.streams.saturating_sub(1);
        if entry.streams == 0 {
            entry.since = now;
        }
        metrics::gauge!("palisade_xds_streams").decrement(1.0);
        tracing::info!(node, "a gateway's stream has ended");
    }

    /// A response went out.
    pub(crate) fn sent(&self, node: &str, kind: Kind, version: &str) {
        metrics::counter!("palisade_xds_responses_total", "type" => kind.word()).increment(1);
        self.with_type(node, kind, |status| version.clone_into(&mut status.sent_version));
    }

    /// A response was taken (`refused` is none) or refused.
    pub(crate) fn answered(&self, node: &str, kind: Kind, version: String, refused: Option<(String, Vec<String>)>) {
        let outcome = if refused.is_some() { "refused" } else { "taken" };
        metrics::counter!("palisade_xds_answers_total", "type" => kind.word(), "outcome" => outcome).increment(1);
        let Some((reason, resources)) = refused else {
            return self.with_type(node, kind, |status| {
                status.acked_version = version;
                status.nack = None;
            });
        };
        let reason: String = reason.chars().take(MAX_REASON).collect();
        tracing::warn!(
            node,
            r#type = kind.word(),
            version,
            ?resources,
            reason,
            "a gateway refused what it was sent; it keeps what it had"
        );
        let nack = Nack { version, reason, resources, at: (self.inner.clock)() };
        self.with_type(node, kind, |status| status.nack = Some(nack));
    }

    fn with_type(&self, node: &str, kind: Kind, change: impl FnOnce(&mut TypeStatus)) {
        let mut nodes = self.lock();
        let status = self.entry(&mut nodes, node).types.entry(kind).or_default();
        kind.type_url().clone_into(&mut status.type_url);
        change(status);
    }

    fn entry<'a>(&self, nodes: &'a mut BTreeMap<String, Entry>, node: &str) -> &'a mut Entry {
        if nodes.len() >= MAX_NODES && !nodes.contains_key(node) {
            let idle = nodes.iter().filter(|(_, entry)| entry.streams == 0).min_by_key(|(_, entry)| entry.since);
            if let Some(oldest) = idle.map(|(id, _)| id.clone()) {
                nodes.remove(&oldest);
            }
        }
        nodes.entry(node.to_owned()).or_default()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Entry>> {
        self.inner.nodes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl Entry ===

impl Entry {
    fn status(&self, id: &str) -> NodeStatus {
        let mut types: Vec<TypeStatus> = self.types.values().cloned().collect();
        let filters: Vec<FilterStatus> = self.filters.values().cloned().collect();
        for status in &mut types {
            if status.type_url == Kind::Extension.type_url()
                && let Some(nack) = &mut status.nack
            {
                explain(nack, &filters);
            }
        }
        NodeStatus {
            id: id.to_owned(),
            version: self.version.clone(),
            connected: self.streams > 0,
            since: self.since,
            types,
            filters,
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
