//! What links have in common: what comes up is spread to events, bans and status; what changes goes down to all.

use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use ::counts::Counts;
use material::Material;
use prost::Message as _;
use snapshot::{Answered, Ask, CountsUp, Down, KeptTables, ReportBatch, Up};
use tokio::sync::broadcast;

use events::{EventHub, dependency};
use fabric::challenges::Verifier;
use fabric::{Announcer, Bans, LiveList, TableStatus};
use store::{Store, StoreError};
use xds::Hub;

use super::reports::ReportKinds;
use crate::challenges::{Puzzles, Tokens};
use crate::counts::{Budgets, CountsNow, Sets, Shared};
use crate::{Answers, QuestionBody};

/// The meeting point of all node links. Clones share one state.
#[derive(Clone)]
pub struct LinkHub {
    inner: Arc<Inner>,
}

struct Inner {
    events: EventHub,
    bans: Bans,
    hub: Hub,
    links: AtomicU64,
    clock: fn() -> u64,
    answers: Answers,
    /// The tables that workers keep.
    material: Material,
    /// What the worker of each link has said of its tables last.
    kept: Mutex<HashMap<u64, KeptTables>>,
    reports: ReportKinds,
    /// What nodes count together.
    counts: OnceLock<Arc<Counts>>,
    /// The store, where other control planes have it as well, and the kinds of reports that the one that leads gets.
    shared: OnceLock<(Arc<dyn Store>, BTreeSet<&'static str>)>,
}

impl LinkHub {
    /// A hub that gives events to `events`, bans to `bans` and load reports to `hub`, with the time, in milliseconds since
    /// the Unix epoch, from `clock`.
    #[must_use]
    pub fn new(events: EventHub, bans: Bans, hub: Hub, clock: fn() -> u64) -> LinkHub {
        LinkHub {
            inner: Arc::new(Inner {
                events,
                bans,
                hub,
                links: AtomicU64::default(),
                clock,
                answers: Answers::default(),
                material: Material::default(),
                kept: Mutex::default(),
                reports: ReportKinds::default(),
                counts: OnceLock::new(),
                shared: OnceLock::new(),
            }),
        }
    }

    /// Who answers the questions of workers.
    #[must_use]
    pub fn answers(&self) -> &Answers {
        &self.inner.answers
    }

    /// Spends puzzles and completed waits in this store; until then the answer is unknown. Only the first call counts.
    pub fn answer_from(&self, store: Arc<dyn Store>) {
        self.inner.answers.register(Puzzles { store, clock: self.inner.clock });
    }

    /// Verifies tokens of widgets with this; until then the answer is unknown. Only the first call counts.
    pub fn verify_with(&self, verifier: Arc<Verifier>) {
        self.inner.answers.register(Tokens(verifier));
    }

    /// Has nodes count together; until then each counts alone. What they decide by asking is in this store. Only the first call
    /// counts.
    pub fn count_with(&self, counts: Arc<Counts>, store: Arc<dyn Store>) {
        if self.inner.counts.set(Arc::clone(&counts)).is_ok() {
            let shared = Shared { counts: Arc::clone(&counts), store, clock: self.inner.clock };
            self.inner.answers.register(CountsNow(counts));
            self.inner.answers.register(Budgets(shared.clone()));
            self.inner.answers.register(Sets(shared));
        }
    }

    /// Shares what nodes count, and what plugins report, with other control planes that have this store, for as long as it is open: each
    /// knows the counts of all nodes, and the one that leads gets all reports of the kinds `counted_once`. Nothing, where the store is not
    /// shared. For a task of its own, before links begin.
    pub fn share(
        &self,
        store: Arc<dyn Store>,
        counted_once: BTreeSet<&'static str>,
    ) -> impl Future<Output = ()> + Send + 'static {
        let told = store.is_dedicated().then(|| store.told());
        if told.is_some() {
            let _first_wins = self.inner.shared.set((Arc::clone(&store), counted_once));
        }
        let (hub, leads) = (self.clone(), store.leads());
        async move {
            let Some(mut told) = told else { return };
            while let Some(message) = told.next().await {
                let Ok(Up { node, reports, counts: up, .. }) = Up::decode(&*message) else { continue };
                if let (Some(counts), Some(up)) = (hub.counts(), &up) {
                    counts.take(&node, up);
                }
                if *leads.borrow() {
                    hub.inner.reports.take(&node, reports);
                }
            }
        }
    }

    /// Tells other control planes what a node has sent of counts, and of reports where another one leads; the reports that are this one's to
    /// take.
    fn tell_others(&self, node: &str, counts: Option<&CountsUp>, reports: Vec<ReportBatch>) -> Vec<ReportBatch> {
        let Some((store, counted_once)) = self.inner.shared.get() else { return reports };
        let leads = *store.leads().borrow();
        let (ours, theirs): (Vec<_>, Vec<_>) =
            reports.into_iter().partition(|batch| leads || !counted_once.contains(batch.kind.as_str()));
        if counts.is_some() || !theirs.is_empty() {
            let up = Up { node: node.to_owned(), reports: theirs, counts: counts.cloned(), ..Up::default() };
            store.tell(up.encode_to_vec());
        }
        ours
    }

    /// The time, in milliseconds since the Unix epoch.
    pub(crate) fn clock(&self) -> fn() -> u64 {
        self.inner.clock
    }

    /// What nodes count together.
    pub(crate) fn counts(&self) -> Option<&Arc<Counts>> {
        self.inner.counts.get()
    }

    /// The tables that workers keep: what gatherers publish to.
    #[must_use]
    pub fn material(&self) -> Material {
        self.inner.material.clone()
    }

    /// The receivers of what plugins report.
    #[must_use]
    pub fn reports(&self) -> ReportKinds {
        self.inner.reports.clone()
    }

    /// The workers that keep a table: how many have it as it is now, and how many do not yet.
    #[must_use]
    pub fn in_force(&self, table: &str) -> (usize, usize) {
        let state = self.inner.material.get(table).map(|published| published.state().0);
        let kept = self.inner.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let states = kept.values().flat_map(|kept| &kept.tables).filter(|kept| kept.name == table);
        let (now, before): (Vec<_>, Vec<_>) = states.partition(|kept| state.is_some_and(|state| kept.state == state));
        (now.len(), before.len())
    }

    /// The tables that gatherers have published, and on how many workers they are in force.
    #[must_use]
    pub fn tables(&self) -> Vec<TableStatus> {
        let material = &self.inner.material;
        let status = |name: String| {
            let published = material.get(&name)?;
            let (current, behind) = self.in_force(&name);
            let state = published.state().0.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
            Some(TableStatus { name, state, base_bytes: published.base_len(), current, behind })
        };
        material.names().into_iter().filter_map(status).collect()
    }

    /// A worker has said what it has of its tables.
    pub(crate) fn tables_kept(&self, link: u64, kept: &KeptTables) {
        self.inner.kept.lock().unwrap_or_else(PoisonError::into_inner).insert(link, kept.clone());
    }

    /// The answer to a question of a worker.
    pub(crate) async fn answer(&self, node: Arc<str>, ask: Ask, body: QuestionBody) -> Answered {
        let (topic, data) = ask.question();
        let data = self.inner.answers.answer(node, &topic, data.into_owned(), body).await;
        ask.answered(data)
    }

    /// What sends changes to the nodes.
    pub fn announcer(&self) -> &Announcer {
        self.inner.bans.announcer()
    }

    /// Takes one batch from a worker of `node`, on its link of that number.
    pub(crate) async fn take(&self, link: u64, node: &str, up: Up) {
        for event in &up.events {
            if let Err(error) = self.inner.events.publish_of(node, event) {
                tracing::warn!(node, reason = %error, "a node sent an invalid event");
            }
        }
        if up.dropped > 0 {
            self.report_dropped(node, up.dropped);
        }
        for load in up.loads {
            self.inner.hub.report_load_on(node, link, load);
        }
        let reports = self.tell_others(node, up.counts.as_ref(), up.reports);
        self.inner.reports.take(node, reports);
        if let (Some(counts), Some(up)) = (self.counts(), &up.counts) {
            counts.take(node, up);
        }
        self.inner.bans.take(node, &up.bans).await;
    }

    /// The number of a new link.
    pub(crate) fn number(&self) -> u64 {
        self.inner.links.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Whether the id of a node is that of its token or certificate.
    pub(crate) fn bound(&self, node: &str, bound: bool) {
        self.inner.hub.bound(node, bound);
    }

    /// A link of `node` has ended.
    pub(crate) fn ended(&self, link: u64, node: &str) {
        self.inner.kept.lock().unwrap_or_else(PoisonError::into_inner).remove(&link);
        self.inner.hub.link_ended(node, link);
        if let Some(counts) = self.counts() {
            counts.unlinked(node, link);
        }
    }

    /// For a link that begins; see [`Bans::subscribe`].
    pub(crate) async fn subscribe(&self) -> Result<(broadcast::Receiver<Arc<Down>>, Arc<LiveList>), StoreError> {
        self.inner.bans.subscribe().await
    }

    fn report_dropped(&self, node: &str, dropped: u64) {
        metrics::counter!("palisade_link_dropped_total").increment(dropped);
        let message = format!("node {node} dropped {dropped} events while its link was down or too slow");
        let event = dependency((self.inner.clock)(), "node-link", Some(node), &message);
        if let Err(error) = self.inner.events.publish(event.to_string().as_bytes()) {
            tracing::error!(reason = %error, "the report on dropped events is not a valid event");
        }
    }
}

impl fmt::Debug for LinkHub {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LinkHub").field("links", &self.announcer().links()).finish_non_exhaustive()
    }
}
