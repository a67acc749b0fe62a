//! What is published, for which group of gateways, and what every node made of it.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use envoy_types::pb::envoy::config::core::v3::Node;
use snapshot::LoadReport;
use tokio::sync::watch;

use super::nodes::Nodes;
use super::publication::PublicationStatus;
use super::published::{GroupSnapshot, Published};
use super::set::{Kind, ResourceSet};
use super::status::NodeStatus;
use entities::DEFAULT_GROUP;

/// After so many milliseconds without news a node that is away is stale, where nothing else is said.
const STALE_AFTER: u64 = 300_000;
/// Gateways that refuse something and are named, at most.
const NAMED_REFUSALS: usize = 3;

/// The meeting point of the compiler, which publishes, and the streams, which serve. Clones share one state.
#[derive(Clone, Debug)]
pub struct Hub {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    published: watch::Sender<Option<Arc<Published>>>,
    nodes: Mutex<Nodes>,
    streams: AtomicU64,
    clock: fn() -> u64,
    /// When the change began that is compiled now; 0 for none.
    change_began: AtomicU64,
    publication: Mutex<PublicationStatus>,
    /// After so many milliseconds without news a node that is away is stale.
    stale_after: AtomicU64,
}

/// What one stream is to serve, now and later.
#[derive(Debug)]
pub(super) struct Feed {
    published: watch::Receiver<Option<Arc<Published>>>,
    cluster: String,
    last: Option<GroupSnapshot>,
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
        Hub::with_clock(base::clock::now_millis)
    }

    /// A hub that takes the time, in milliseconds since the Unix epoch, from `clock`.
    #[must_use]
    pub fn with_clock(clock: fn() -> u64) -> Hub {
        let (published, _) = watch::channel(None);
        let (nodes, streams, change_began) = (Mutex::default(), AtomicU64::default(), AtomicU64::default());
        let (publication, stale_after) = (Mutex::default(), AtomicU64::new(STALE_AFTER));
        let inner = Inner { published, nodes, streams, change_began, publication, stale_after, clock };
        Hub { inner: Arc::new(inner) }
    }

    /// A node that is away is stale after so many milliseconds without news; five minutes until it is said.
    pub fn set_stale_after(&self, millis: u64) {
        self.inner.stale_after.store(millis, Ordering::Relaxed);
    }

    /// Something has changed and is about to be compiled: what is published next is counted from now.
    pub fn change_begins(&self) {
        self.inner.change_began.store((self.inner.clock)(), Ordering::Relaxed);
    }

    /// Serves `set` to every node from now on, on every stream, open and to come. An equal set changes nothing.
    pub fn publish(&self, set: ResourceSet) {
        self.publish_groups(set, BTreeMap::new());
    }

    /// Serves each of `groups` to the nodes whose `node.cluster` is its name, and `default` to all others. What is equal
    /// to what a group had changes nothing for it.
    pub fn publish_groups(&self, default: ResourceSet, groups: BTreeMap<String, ResourceSet>) {
        let all = groups.into_iter().chain([(DEFAULT_GROUP.to_owned(), default)]);
        self.publish_each(0, all.map(|(group, set)| (group, Ok(set))).collect());
    }

    /// The same of what entities of this revision came to, group by group: where there is a set it is served from now on,
    /// where there are reasons why there is none, the group is served what it was.
    pub fn publish_each(&self, revision: u64, outcomes: BTreeMap<String, Result<ResourceSet, Vec<String>>>) {
        let before = self.inner.published.borrow().clone();
        let known = |name: &str| before.as_ref().and_then(|before| before.exactly(name));
        let now = (self.inner.clock)();
        let began = match self.inner.change_began.swap(0, Ordering::Relaxed) {
            0 => now,
            began => began,
        };
        self.publication().update(revision, &outcomes, now);
        let mut published = Published::default();
        let (default, others): (Vec<_>, Vec<_>) = outcomes.into_iter().partition(|(name, _)| name == DEFAULT_GROUP);
        // The default group comes first: the others share with it what they have in common.
        for (name, outcome) in default.into_iter().chain(others) {
            let given = match outcome {
                Ok(set) => Some(GroupSnapshot::new(set, began, known(&name), published.default.as_ref())),
                Err(_) => known(&name).cloned(),
            };
            match name == DEFAULT_GROUP {
                true => published.default = given,
                false => drop(published.groups.insert(name, given)),
            }
        }
        // Under the lock of the nodes, so that no stream reports on what is not known to be current yet.
        let mut nodes = self.lock();
        nodes.published(&published, now);
        self.inner.published.send_if_modified(|current| {
            let same = current.as_deref().is_some_and(|current| current.same(&published));
            if !same {
                *current = Some(Arc::new(published));
            }
            !same
        });
    }

    /// What was published of the entities, and what was not.
    #[must_use]
    pub fn publication_status(&self) -> PublicationStatus {
        self.publication().clone()
    }

    fn publication(&self) -> MutexGuard<'_, PublicationStatus> {
        self.inner.publication.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Every node that has been seen, by id.
    #[must_use]
    pub fn nodes(&self) -> Vec<NodeStatus> {
        let published = self.inner.published.borrow().clone();
        let stale_after = self.inner.stale_after.load(Ordering::Relaxed);
        let mut nodes = self.lock().statuses(published.as_deref(), (self.inner.clock)(), stale_after);
        let publication = self.publication();
        for node in &mut nodes {
            node.not_published = publication.failure(&node.group).cloned();
        }
        nodes
    }

    /// Why connected nodes do not have what they are served: those that refuse a type of it. `None` where none does.
    #[must_use]
    pub fn refusals(&self) -> Option<String> {
        let (count, first) = self.lock().refusals(NAMED_REFUSALS);
        metrics::gauge!("palisade_xds_nodes_refusing").set(count as f64);
        let named = first.join("; ");
        (count > 0)
            .then(|| format!("{count} connected gateways refuse what they are served and keep what they had: {named}"))
    }

    /// A filter on a node took or refused its snapshot.
    pub fn report_load(&self, node: &str, report: LoadReport) {
        self.report_load_on(node, 0, report);
    }

    /// The same, by the link that says so; every VM of a node has its own.
    pub fn report_load_on(&self, node: &str, link: u64, report: LoadReport) {
        if !report.error.is_empty() {
            tracing::warn!(
                node,
                filter = report.filter,
                version = report.version,
                reason = report.error,
                "a filter refused its snapshot and keeps the previous one"
            );
        }
        let outcome = if report.error.is_empty() { "taken" } else { "refused" };
        metrics::counter!("palisade_link_snapshots_total", "outcome" => outcome).increment(1);
        self.lock().report_load(node, link, report, (self.inner.clock)());
    }

    /// Whether the id of a node is that of its token or certificate, as the last of its streams was let in.
    pub fn bound(&self, node: &str, bound: bool) {
        self.lock().bound(node, bound);
    }

    /// A link has ended: nothing is known any more of what its VM runs.
    pub fn link_ended(&self, node: &str, link: u64) {
        self.lock().link_ended(node, link, (self.inner.clock)());
    }

    /// What a node is given, now and later. Groups of nodes are told apart here and nowhere else: by the cluster that the
    /// node's bootstrap names.
    pub(super) fn set_for(&self, node: &Node) -> Feed {
        Feed { published: self.inner.published.subscribe(), cluster: node.cluster.clone(), last: None }
    }

    /// A node opened a stream. Gives the stream's number.
    pub(super) fn connected(&self, node: &Node) -> u64 {
        let stream = self.inner.streams.fetch_add(1, Ordering::Relaxed) + 1;
        let published = self.inner.published.borrow().clone();
        self.lock().connected(node, stream, published.as_deref(), (self.inner.clock)());
        metrics::gauge!("palisade_xds_streams").increment(1.0);
        stream
    }

    /// A node's stream ended.
    pub(super) fn disconnected(&self, node: &str, stream: u64) {
        let published = self.inner.published.borrow().clone();
        self.lock().disconnected(node, stream, published.as_deref(), (self.inner.clock)());
        metrics::gauge!("palisade_xds_streams").decrement(1.0);
        tracing::info!(node, "a gateway's stream has ended");
    }

    /// A response of so many bytes went out.
    pub(super) fn sent(&self, node: &str, stream: u64, kind: Kind, version: &str, bytes: usize) {
        metrics::counter!("palisade_xds_responses_total", "type" => kind.word()).increment(1);
        metrics::counter!("palisade_xds_sent_bytes_total", "type" => kind.word()).increment(bytes as u64);
        self.lock().sent(node, stream, kind, version);
    }

    /// A response was taken (`refused` is none) or refused.
    pub(super) fn answered(
        &self,
        node: &str,
        stream: u64,
        kind: Kind,
        version: String,
        refused: Option<(String, Vec<String>)>,
    ) {
        let outcome = if refused.is_some() { "refused" } else { "taken" };
        metrics::counter!("palisade_xds_answers_total", "type" => kind.word(), "outcome" => outcome).increment(1);
        if let Some((reason, resources)) = &refused {
            let r#type = kind.word();
            tracing::warn!(
                node,
                r#type,
                version,
                ?resources,
                reason,
                "a gateway refused resources and keeps the previous ones"
            );
        } else {
            let published = self.inner.published.borrow().clone();
            let since = published.and_then(|published| self.lock().served_since(node, &published));
            if let Some(since) = since {
                let seconds = (self.inner.clock)().saturating_sub(since) as f64 / 1000.0;
                metrics::histogram!("palisade_xds_acknowledge_seconds", "type" => kind.word()).record(seconds);
            }
        }
        self.lock().answered(node, stream, kind, version, refused, (self.inner.clock)());
    }

    /// A node asks for a kind that its group is not served, or does so no more.
    pub(super) fn not_served(&self, node: &str, stream: u64, kinds: &[Kind]) {
        self.lock().not_served(node, stream, kinds);
    }

    /// What a stream's node holds: all of the set that has this version, or something else.
    pub(super) fn holds(&self, node: &str, stream: u64, version: Option<&Arc<str>>) {
        let published = self.inner.published.borrow().clone();
        self.lock().holds(node, stream, version, published.as_deref(), (self.inner.clock)());
    }

    fn lock(&self) -> MutexGuard<'_, Nodes> {
        self.inner.nodes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl Feed ===

impl Feed {
    /// What is to be served, as soon as it is not what was taken last. `None` when nothing will come any more.
    pub(super) async fn next(&mut self) -> Option<GroupSnapshot> {
        loop {
            let given =
                self.published.borrow_and_update().as_ref().and_then(|published| published.of(&self.cluster).cloned());
            let known =
                |given: &GroupSnapshot| self.last.as_ref().is_some_and(|last| Arc::ptr_eq(&last.set, &given.set));
            if let Some(given) = given.filter(|given| !known(given)) {
                self.last = Some(given.clone());
                return Some(given);
            }
            self.published.changed().await.ok()?;
        }
    }
}

#[cfg(test)]
mod tests;
