//! What links have in common: what comes up is spread to events, bans and status; what changes goes down to all.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use snapshot::{AnswerWord, Answered, Ask, BanChange, BanRequest, Down, Up};
use tokio::sync::broadcast;

use super::bans::{Asker, BanSink, Verdict};
use crate::challenges::{self, Verifier};
use crate::events::{EventHub, dependency};
use crate::store::Store;
use crate::xds::Hub;

/// Changes that a link may lag behind; one that lags further is cut off and starts anew with the full list.
const LAG: usize = 1024;

/// Bans of one batch that are recorded and told together: bounds how long another change waits for them.
const BANS_AT_ONCE: usize = 500;

/// The meeting point of all node links. Clones share one state.
#[derive(Clone)]
pub struct LinkHub {
    inner: Arc<Inner>,
}

struct Inner {
    events: EventHub,
    bans: Arc<dyn BanSink>,
    hub: Hub,
    changes: broadcast::Sender<Arc<Down>>,
    /// Held from recording a change until it is broadcast, so that nodes learn changes in the order of the record.
    order: tokio::sync::Mutex<()>,
    links: AtomicU64,
    clock: fn() -> u64,
    /// Where questions are answered from.
    answers: OnceLock<Arc<dyn Store>>,
    /// Who verifies tokens of widgets.
    verifier: OnceLock<Arc<Verifier>>,
    /// When bans, and the allowlist, were last read from the store as a whole or changed; 0 for never.
    refreshed: [AtomicU64; 2],
}

/// When something was last read from the store as a whole or changed there, in milliseconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Refreshed {
    /// The bans.
    pub(crate) bans: Option<u64>,
    /// The allowlist.
    pub(crate) allowed: Option<u64>,
}

impl LinkHub {
    /// A hub that gives events to `events`, bans to `bans` and load reports to `hub`, with the time, in milliseconds since
    /// the Unix epoch, from `clock`.
    #[must_use]
    pub fn new(events: EventHub, bans: Arc<dyn BanSink>, hub: Hub, clock: fn() -> u64) -> LinkHub {
        let (changes, _) = broadcast::channel(LAG);
        LinkHub {
            inner: Arc::new(Inner {
                events,
                bans,
                hub,
                changes,
                order: tokio::sync::Mutex::new(()),
                links: AtomicU64::default(),
                clock,
                answers: OnceLock::new(),
                verifier: OnceLock::new(),
                refreshed: Default::default(),
            }),
        }
    }

    /// Answers the questions of workers from this store; until then the answer is unknown. Only the first call
    /// counts.
    pub fn answer_from(&self, store: Arc<dyn Store>) {
        let _first_wins = self.inner.answers.set(store);
    }

    /// Verifies tokens of widgets with this; until then the answer is unknown. Only the first call counts.
    pub fn verify_with(&self, verifier: Arc<Verifier>) {
        let _first_wins = self.inner.verifier.set(verifier);
    }

    /// The answer to a question of a worker.
    pub(crate) async fn answer(&self, ask: Ask) -> Answered {
        let Inner { answers, verifier, clock, .. } = self.inner.as_ref();
        let answer = match (ask.spend_puzzle, ask.verify_token) {
            (Some(puzzle), _) => match answers.get() {
                Some(store) => challenges::spend(store.as_ref(), &puzzle, clock()).await,
                None => AnswerWord::Unknown,
            },
            (None, Some(token)) => match verifier.get() {
                Some(verifier) => verifier.verify(&token).await,
                None => AnswerWord::Unknown,
            },
            (None, None) => AnswerWord::Unknown,
        };
        Answered { id: ask.id, answer: answer.into() }
    }

    /// What gateways are served, and what is known of them.
    pub(crate) fn hub(&self) -> &Hub {
        &self.inner.hub
    }

    /// How many workers of gateways are linked.
    pub(crate) fn links(&self) -> usize {
        self.inner.changes.receiver_count()
    }

    /// When bans and the allowlist were last read from the store as a whole, or changed.
    pub(crate) fn refreshed(&self) -> Refreshed {
        let [bans, allowed] =
            self.inner.refreshed.each_ref().map(|at| Some(at.load(Ordering::Relaxed)).filter(|at| *at > 0));
        Refreshed { bans, allowed }
    }

    /// Bans and the allowlist were read from the store as a whole.
    pub(crate) fn loaded(&self) {
        self.note_refresh(true, true);
    }

    fn note_refresh(&self, bans: bool, allowed: bool) {
        for (at, _) in self.inner.refreshed.iter().zip([bans, allowed]).filter(|(_, noted)| *noted) {
            at.store((self.inner.clock)(), Ordering::Relaxed);
        }
    }

    /// Records a ban and tells every node. Must be called within a tokio runtime.
    ///
    /// # Errors
    ///
    /// Why it was not recorded; the nodes are told nonetheless, unless it was refused.
    pub async fn ban(&self, change: BanChange) -> Result<Verdict, String> {
        let request = BanRequest {
            key: change.key,
            until_millis: change.until_millis,
            reason: change.reason,
            issued_at_millis: (self.inner.clock)(),
            ..BanRequest::default()
        };
        let mut verdicts = self.put(None, vec![request]).await?;
        verdicts.pop().ok_or_else(|| "the keeper of bans has said nothing of it".to_owned())
    }

    /// Lifts a ban and tells every node.
    ///
    /// # Errors
    ///
    /// Why that was not recorded; the nodes are told nonetheless.
    pub async fn unban(&self, key: &str) -> Result<(), String> {
        let _in_order = self.inner.order.lock().await;
        let (bans, owned) = (self.inner.bans.clone(), key.to_owned());
        let result = blocking(move || bans.lift(&owned)).await;
        self.announce(vec![BanChange { key: key.to_owned(), ..BanChange::default() }]);
        result
    }

    /// Tells every node of changes of bans that are recorded already.
    pub fn announce(&self, changes: Vec<BanChange>) {
        self.tell(Down { bans: changes, ..Down::default() });
    }

    /// Records changes and tells every node of them, in the order of the record among all changes: `work` records, and
    /// answers what nodes are told.
    pub async fn change<T>(&self, work: impl Future<Output = (T, Down)>) -> T {
        let _in_order = self.inner.order.lock().await;
        let (value, down) = work.await;
        self.tell(down);
        value
    }

    fn tell(&self, down: Down) {
        if down == Down::default() {
            return;
        }
        self.note_refresh(!down.bans.is_empty(), !down.allowed.is_empty());
        // No receiver means that no node is connected: the next one starts with the full list.
        let _nobody = self.inner.changes.send(Arc::new(down));
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
        let bans = self.vetted(node, &up.bans);
        for bans in bans.chunks(BANS_AT_ONCE) {
            if let Err(reason) = self.put(Some(node.to_owned()), bans.to_vec()).await {
                let keys: Vec<&str> = bans.iter().map(|ban| ban.key.as_str()).collect();
                tracing::error!(
                    node,
                    ?keys,
                    reason,
                    "bans could not be stored; they stay in force until the control plane stops"
                );
            }
        }
    }

    /// What of these bans a node may ask for. The others are dropped without an answer: no honest node asks for them.
    fn vetted(&self, node: &str, bans: &[BanRequest]) -> Vec<BanRequest> {
        let vetted = self.inner.bans.vet(bans);
        let accepted = |(ban, vetted): (&BanRequest, _)| match vetted {
            Ok(ban) => Some(ban),
            Err(reason) => {
                metrics::counter!("palisade_link_bans_total", "outcome" => "rejected").increment(1);
                let key: String = ban.key.chars().take(128).collect();
                tracing::warn!(node, ?key, reason, "a node asked for a ban that nodes may not ask for");
                None
            }
        };
        bans.iter().zip(vetted).filter_map(accepted).collect()
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
        self.inner.hub.link_ended(node, link);
    }

    /// Later changes, and every live ban and entry of the allowlist as of now. A change in between may be in both; each
    /// says the same.
    pub(crate) async fn subscribe(&self) -> Result<(broadcast::Receiver<Arc<Down>>, Down), String> {
        let changes = self.inner.changes.subscribe();
        let (bans, now) = (self.inner.bans.clone(), (self.inner.clock)());
        let live = blocking(move || Ok(Down { allowed: bans.allowed(now)?, bans: bans.list(now)?, ..Down::default() }))
            .await?;
        self.loaded();
        Ok((changes, live))
    }

    /// Records bans that a node asks for, or the control plane itself.
    async fn put(&self, node: Option<String>, asked: Vec<BanRequest>) -> Result<Vec<Verdict>, String> {
        let _in_order = self.inner.order.lock().await;
        let (bans, asked) = (self.inner.bans.clone(), Arc::new(asked));
        let requests = Arc::clone(&asked);
        let result = blocking(move || {
            let by = node.as_deref().map_or(Asker::ControlPlane, Asker::Node);
            let verdicts = bans.put(by, &requests)?;
            let live = verdicts.iter().filter_map(|verdict| match verdict {
                Verdict::Live(change) => Some(change.clone()),
                Verdict::Refused(_) => None,
            });
            let wider = bans.widen(&live.collect::<Vec<_>>()).unwrap_or_else(|reason| {
                // The next ban around there tries again.
                tracing::warn!(reason, "banning a wider network failed");
                Vec::new()
            });
            Ok((verdicts, wider))
        });
        let (result, wider) = match result.await {
            Ok((verdicts, wider)) => (Ok(verdicts), wider),
            Err(reason) => (Err(reason), Vec::new()),
        };
        let verdict = |place: usize| result.as_ref().map(|verdicts| verdicts.get(place));
        let mut changes = Vec::with_capacity(asked.len());
        for (place, ban) in asked.iter().enumerate() {
            let (outcome, change) = match verdict(place) {
                Ok(Some(Verdict::Live(change))) => ("live", change.clone()),
                // The node that asked has it in force already: it must let go.
                Ok(Some(Verdict::Refused(_))) => {
                    ("refused", BanChange { key: ban.key.clone(), ..BanChange::default() })
                }
                // A store that fails must not open the gates.
                Ok(None) | Err(_) => {
                    let (key, reason) = (ban.key.clone(), ban.reason.clone());
                    let until_millis = ban.until_millis;
                    // What stands is not known: it must not shorten the ban of an operator.
                    ("unrecorded", BanChange { key, until_millis, reason, unrecorded: true, ..BanChange::default() })
                }
            };
            metrics::counter!("palisade_link_bans_total", "outcome" => outcome).increment(1);
            changes.push(change);
        }
        changes.extend(wider);
        self.announce(changes);
        result
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
        f.debug_struct("LinkHub").field("links", &self.inner.changes.receiver_count()).finish_non_exhaustive()
    }
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> Result<T, String> + Send + 'static) -> Result<T, String> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|error| Err(format!("the keeper of bans failed: {error}")))
}
