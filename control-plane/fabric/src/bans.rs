//! Bans that gateways ask for: checked, recorded in the store, and sent to every node. What was acknowledged to a node
//! outlives the control plane.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use snapshot::{AllowChange, BanChange, BanRequest, Down};
use tokio::sync::broadcast;

use super::announcer::Announcer;
use super::live::{LiveList, LiveLists};
use super::rules::{BanRefusal, BanRules};
use super::unrecorded::Unrecorded;
use base::identity::Identity;
use events::{Audit, AuditAction, BanWay, EventHub, MAX_SCORE};
use store::fabric::{Allowance, Ban, Issued, LAST_MOMENT, Note, Step};
use store::{Store, StoreError};

/// How long a refusal for the same identity is not reported again, in milliseconds: every request of the caller leads to one.
const TOLD_MILLIS: u64 = 60_000;
/// The most identities whose refusal is remembered for that.
const MAX_TOLD: usize = 10_000;

/// Bans of one batch that are recorded and sent together: bounds how long another change waits for them.
const BANS_AT_ONCE: usize = 500;

/// The longest reason that is taken from a node, in characters, and the most tags.
const MAX_REASON: usize = 1000;
const MAX_TAGS: usize = 64;

/// The outcome of a request for a ban.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BanOutcome {
    /// The ban is live; this is how nodes hold it now (an earlier, longer one may have won).
    Live(BanChange),
    /// The identity is not banned, and this is why.
    Refused(BanRefusal),
}

/// The bans of all nodes, over a [`Store`]. Clones share one state.
#[derive(Clone)]
pub struct Bans {
    store: Arc<dyn Store>,
    events: EventHub,
    announcer: Announcer,
    clock: fn() -> u64,
    rules: Arc<dyn Fn() -> BanRules + Send + Sync>,
    told: Arc<Mutex<HashMap<String, u64>>>,
    unrecorded: Arc<Unrecorded>,
    lists: Arc<LiveLists>,
}

impl Bans {
    /// Bans in `store`, whose refusals are reported to `events`, with the time, in milliseconds since 1970, from `clock`.
    #[must_use]
    pub fn new(store: Arc<dyn Store>, events: EventHub, clock: fn() -> u64) -> Self {
        let announcer = Announcer::new(clock);
        let rules = Arc::new(BanRules::default);
        let (told, unrecorded, lists) = (Arc::default(), Arc::default(), Arc::default());
        Self { store, events, announcer, clock, rules, told, unrecorded, lists }
    }

    /// The same, with what nodes may ask for as `rules` says at that time.
    #[must_use]
    pub fn with_rules(self, rules: impl Fn() -> BanRules + Send + Sync + 'static) -> Self {
        Self { rules: Arc::new(rules), ..self }
    }

    /// What sends changes to the nodes.
    #[must_use]
    pub fn announcer(&self) -> &Announcer {
        &self.announcer
    }

    /// Takes bans that `node` asks for (empty text: a node without an id): checks, records and announces them. What may not
    /// be asked for is dropped without an answer: no honest node asks for it.
    pub async fn take(&self, node: &str, asked: &[BanRequest]) {
        let bans = self.vetted(node, asked);
        for bans in bans.chunks(BANS_AT_ONCE) {
            // A task of its own: what is recorded is announced, even if the link that asked ends meanwhile.
            let (this, by, bans) = (self.clone(), node.to_owned(), bans.to_vec());
            let task = tokio::spawn(async move {
                let result = this.record(&by, &bans).await;
                (result, bans)
            });
            if let Ok((Err(error), bans)) = task.await {
                let keys: Vec<&str> = bans.iter().map(|ban| ban.key.as_str()).collect();
                tracing::error!(
                    node,
                    ?keys,
                    reason = %error,
                    "bans could not be stored; the gateways of this control plane have them, and they are stored once that works"
                );
            }
        }
    }

    fn vetted(&self, node: &str, asked: &[BanRequest]) -> Vec<BanRequest> {
        let accepted = |(ban, vetted): (&BanRequest, Result<BanRequest, BanRefusal>)| match vetted {
            Ok(ban) => Some(ban),
            Err(reason) => {
                metrics::counter!("palisade_link_bans_total", "outcome" => "rejected").increment(1);
                let key: String = ban.key.chars().take(128).collect();
                tracing::warn!(node, ?key, %reason, "a node asked for a ban that nodes may not ask for");
                None
            }
        };
        asked.iter().zip(self.vet(asked)).filter_map(accepted).collect()
    }

    /// For each ban that a node asks for, in their order, the ban to record in its place, or why no node may ask for it.
    fn vet(&self, asked: &[BanRequest]) -> Vec<Result<BanRequest, BanRefusal>> {
        let (rules, now) = ((self.rules)(), (self.clock)());
        asked.iter().map(|ban| vet(&rules, ban, now)).collect()
    }

    /// Records bans, all or none, and announces them; the outcome of each, in their order. `node` asks for them.
    ///
    /// # Errors
    ///
    /// Why they could not be recorded yet; the nodes are told nonetheless, and [`Bans::keep_unrecorded`] tries again.
    pub async fn record(&self, node: &str, asked: &[BanRequest]) -> Result<Vec<BanOutcome>, StoreError> {
        let work = async {
            let (result, wider) = match self.put_and_widen(node, asked).await {
                Ok((outcomes, wider)) => (Ok(outcomes), wider),
                Err(error) => {
                    self.unrecorded.keep(node, asked);
                    (Err(error), Vec::new())
                }
            };
            let down = down(asked, result.as_deref().unwrap_or_default(), wider);
            (result, down)
        };
        self.announcer.change(work).await
    }

    /// Records bans that could not be recorded before; the nodes are told the outcome.
    pub(crate) async fn record_late(&self, node: &str, asked: &[BanRequest]) -> Result<(), StoreError> {
        let work = async {
            match self.put_and_widen(node, asked).await {
                Ok((outcomes, wider)) => (Ok(()), down(asked, &outcomes, wider)),
                Err(error) => (Err(error), Down::default()),
            }
        };
        self.announcer.change(work).await
    }

    pub(crate) fn unrecorded(&self) -> &Unrecorded {
        &self.unrecorded
    }

    pub(crate) fn store(&self) -> &dyn Store {
        self.store.as_ref()
    }

    pub(crate) fn now(&self) -> u64 {
        (self.clock)()
    }

    async fn put_and_widen(
        &self,
        node: &str,
        asked: &[BanRequest],
    ) -> Result<(Vec<BanOutcome>, Vec<BanChange>), StoreError> {
        let outcomes = self.put(node, asked).await?;
        let wider = self.widen(&outcomes).await.unwrap_or_else(|error| {
            // The next ban around there tries again.
            tracing::warn!(reason = %error, "banning a wider network failed");
            Vec::new()
        });
        Ok((outcomes, wider))
    }

    async fn put(&self, node: &str, asked: &[BanRequest]) -> Result<Vec<BanOutcome>, StoreError> {
        let now = (self.clock)();
        let node = if node.is_empty() { "a node without an id" } else { node };
        let read: Vec<_> = asked.iter().map(|ban| Identity::parse(&ban.key)).collect();
        let bans = asked.iter().zip(&read);
        let bans = bans.filter_map(|(ban, identity)| Some(self.ban(node, ban, identity.as_ref().ok()?, now)));
        let bans: Vec<Ban> = bans.collect();
        let note = self.note(node, &bans, now);
        let mut issued = self.store.bans_issue(bans, now, note).await?.into_iter();
        self.events.outbox_filled();
        let mut outcomes = Vec::with_capacity(asked.len());
        for (ban, identity) in asked.iter().zip(read) {
            outcomes.push(match identity {
                Err(error) => BanOutcome::Refused(BanRefusal::Identity(error)),
                Ok(_) => match issued.next() {
                    Some(issued) => self.outcome(ban, issued, now).await?,
                    None => BanOutcome::Refused(BanRefusal::Unanswered),
                },
            });
        }
        Ok(outcomes)
    }

    fn ban(&self, node: &str, ban: &BanRequest, identity: &Identity, now: u64) -> Ban {
        let key = identity.key();
        let step = Step { at: now, action: "ban".to_owned(), by: node.to_owned(), detail: ban.reason.clone() };
        Ban {
            signals: self.events.signals(&key),
            key,
            reason: ban.reason.clone(),
            tags: ban.tags.clone(),
            score: if ban.score.is_finite() { ban.score.clamp(0.0, MAX_SCORE) } else { 0.0 },
            issued_at: ban.issued_at_millis.min(now),
            until: ban.until_millis,
            issued_by: node.to_owned(),
            timeline: vec![step],
            address: ban.address.clone(),
            node: node.to_owned(),
            ..Ban::default()
        }
    }

    async fn outcome(&self, ban: &BanRequest, issued: Issued, now: u64) -> Result<BanOutcome, StoreError> {
        let refusal = match issued {
            Issued::Live(live) => {
                self.events.banned(&live, BanWay::Tier, now);
                return Ok(BanOutcome::Live(change_of(&live)));
            }
            Issued::Allowlisted(entry) => BanRefusal::Allowlisted { key: entry.key, reason: entry.reason },
            Issued::Lifted(at) => BanRefusal::Lifted { at },
            Issued::Full => BanRefusal::Full,
        };
        // What stands there all the same, because an operator has banned the whole network of an address that is on the
        // allowlist, must not end on every node for what this one has asked.
        let stands = self.store.ban(&ban.key, now).await?;
        Ok(stands.map_or(BanOutcome::Refused(refusal), |held| BanOutcome::Live(change_of(&held))))
    }

    /// The events of what is refused: kept with the bans of the same batch, or not at all.
    fn note(&self, node: &str, asked: &[Ban], now: u64) -> Note<Vec<Issued>> {
        let (told, node) = (Arc::clone(&self.told), node.to_owned());
        let keys: Vec<String> = asked.iter().map(|ban| ban.key.clone()).collect();
        Note::new(move |issued: &Vec<Issued>| {
            let refused = keys.into_iter().zip(issued).filter_map(|(key, issued)| {
                let Issued::Allowlisted(entry) = issued else { return None };
                is_due(&told, &key, now).then(|| {
                    let detail =
                        format!("asked for by node {node}: {} is on the allowlist: {}", entry.key, entry.reason);
                    Audit::new(AuditAction::BanRefused).of(key).detail(detail).note(now)
                })
            });
            refused.collect()
        })
    }

    /// Bans of the networks around these live ones, because there are so many of them.
    async fn widen(&self, outcomes: &[BanOutcome]) -> Result<Vec<BanChange>, StoreError> {
        let live = outcomes.iter().filter_map(|outcome| match outcome {
            BanOutcome::Live(change) => Some(&change.key),
            BanOutcome::Refused(_) => None,
        });
        let is_v6 = |key: &&String| Identity::parse(key).is_ok_and(|one| one.network_v6().is_some());
        let keys: Vec<String> = live.filter(is_v6).cloned().collect();
        if keys.is_empty() || !(self.rules)().widens {
            return Ok(Vec::new());
        }
        let now = (self.clock)();
        let wider = self.store.bans_widen(keys, now, widened_note(now)).await?;
        self.events.outbox_filled();
        for ban in &wider {
            self.events.banned(ban, BanWay::Tier, now);
        }
        Ok(wider.iter().map(change_of).collect())
    }

    /// For a link that begins: later changes, and every live ban and entry of the allowlist as of now, with an end of 0 those
    /// that were lifted and that a node may hold all the same, because it was away. A change in between may be in both; each
    /// says the same. Links that begin at one time share the list, and few lists are in memory at once: further links wait.
    ///
    /// # Errors
    ///
    /// What the store reports.
    pub async fn subscribe(&self) -> Result<(broadcast::Receiver<Arc<Down>>, Arc<LiveList>), StoreError> {
        let read = async {
            let (store, now) = (self.store.as_ref(), (self.clock)());
            let live = Down { allowed: allowed(store, now).await?, bans: list(store, now).await?, ..Down::default() };
            self.announcer.loaded();
            Ok(live)
        };
        self.lists.begin(|| self.announcer.subscribe(), read).await
    }
}

/// Every ban in force, and with an end of 0 those that were lifted and that a node may hold all the same.
pub(crate) async fn list(store: &dyn Store, now: u64) -> Result<Vec<BanChange>, StoreError> {
    let lifted = store.lifted(true).await?.into_iter().map(lift_of);
    let live = store.bans_standing(now).await?.into_iter();
    let live = live.map(|ban| BanChange {
        key: ban.key,
        until_millis: ban.until,
        reason: ban.reason,
        hand_until_millis: ban.hand_until,
        ..BanChange::default()
    });
    Ok(lifted.chain(live).collect())
}

/// The same of the allowlist.
pub(crate) async fn allowed(store: &dyn Store, now: u64) -> Result<Vec<AllowChange>, StoreError> {
    let removed = store.lifted(false).await?.into_iter();
    let live = store.allowlist(now).await?;
    let removed = removed.map(|key| AllowChange { key, until_millis: 0 });
    Ok(removed.chain(live.iter().map(allow_of)).collect())
}

impl fmt::Debug for Bans {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bans").field("announcer", &self.announcer).finish_non_exhaustive()
    }
}

/// What nodes are told of the outcomes of requests, which are none where the store has failed, and of wider bans.
fn down(asked: &[BanRequest], outcomes: &[BanOutcome], wider: Vec<BanChange>) -> Down {
    let known = outcomes.iter().map(Some).chain(std::iter::repeat(None));
    let mut bans: Vec<BanChange> = asked.iter().zip(known).map(|(ban, outcome)| change(ban, outcome)).collect();
    bans.extend(wider);
    Down { bans, ..Down::default() }
}

/// How nodes learn of the outcome of a request; `None` where it could not be recorded.
fn change(ban: &BanRequest, outcome: Option<&BanOutcome>) -> BanChange {
    let (label, change) = match outcome {
        Some(BanOutcome::Live(change)) => ("live", change.clone()),
        // The node that asked has it in force already: it must let go.
        Some(BanOutcome::Refused(_)) => ("refused", BanChange { key: ban.key.clone(), ..BanChange::default() }),
        // A store that fails must not open the gates.
        None => {
            let (key, reason, until_millis) = (ban.key.clone(), ban.reason.clone(), ban.until_millis);
            // What stands is not known: it must not shorten the ban of an operator.
            ("unrecorded", BanChange { key, until_millis, reason, unrecorded: true, ..BanChange::default() })
        }
    };
    metrics::counter!("palisade_link_bans_total", "outcome" => label).increment(1);
    change
}

/// Whether the refusal for an identity is to be told; from here on it was.
fn is_due(told: &Mutex<HashMap<String, u64>>, key: &str, now: u64) -> bool {
    let mut told = told.lock().unwrap_or_else(PoisonError::into_inner);
    if told.get(key).is_some_and(|at| now.saturating_sub(*at) < TOLD_MILLIS) {
        return false;
    }
    if told.len() >= MAX_TOLD {
        told.clear();
    }
    told.insert(key.to_owned(), now);
    true
}

/// The ban to record in place of one that a node asks for.
///
/// # Errors
///
/// Why no node may ask for it.
fn vet(rules: &BanRules, ban: &BanRequest, now: u64) -> Result<BanRequest, BanRefusal> {
    let identity = rules.bannable(&ban.key)?;
    let until_millis = ban.until_millis.min(now.saturating_add(rules.longest_millis));
    if until_millis <= now {
        return Err(BanRefusal::Ended);
    }
    // It says where bans come from: for a ban on an address it is that address and no other.
    let address = Identity::parse(&format!("ip:{}", ban.address)).ok().filter(|address| !address.is_range());
    let address = address.filter(|address| identity.kind() != "ip" || identity.covers(address));
    Ok(BanRequest {
        key: identity.key(),
        until_millis,
        reason: ban.reason.chars().take(MAX_REASON).collect(),
        tags: ban.tags.iter().take(MAX_TAGS).map(|tag| tag.chars().take(MAX_REASON).collect()).collect(),
        address: address.map(|address| address.value().to_owned()).unwrap_or_default(),
        ..ban.clone()
    })
}

/// A ban as nodes hold it.
pub(crate) fn change_of(ban: &Ban) -> BanChange {
    BanChange {
        key: ban.key.clone(),
        until_millis: ban.until,
        reason: ban.reason.clone(),
        hand_until_millis: ban.hand_until,
        ..BanChange::default()
    }
}

/// The events that say that a run of neighbours is banned as one; kept with the bans.
pub(crate) fn widened_note(now: u64) -> Note<Vec<Ban>> {
    let audit = |ban: &Ban| {
        Audit::new(AuditAction::Ban).of(ban.key.clone()).detail(format!("by the control plane: {}", ban.reason))
    };
    Note::new(move |wider: &Vec<Ban>| wider.iter().map(|ban| audit(ban).note(now)).collect())
}

/// The removal of a ban on nodes.
pub(crate) fn lift_of(key: String) -> BanChange {
    BanChange { key, ..BanChange::default() }
}

/// An entry of the allowlist as nodes hold it.
pub(crate) fn allow_of(entry: &Allowance) -> AllowChange {
    AllowChange { key: entry.key.clone(), until_millis: entry.until.unwrap_or(LAST_MOMENT) }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use store::{SqliteOptions, SqliteStore};

    #[tokio::test]
    async fn a_batch_of_bans_is_checked_by_rules_that_are_read_once() {
        const JA4: &str = "ja4:t13d1516h2_8daaf6152771_02713d6af862";
        let folder = tempfile::tempdir().unwrap();
        let store = Arc::new(SqliteStore::open(folder.path(), SqliteOptions::default()).unwrap());
        let reads = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&reads);
        let bans = Bans::new(store, EventHub::new(Vec::new(), || 1000), || 1000).with_rules(move || {
            counted.fetch_add(1, Ordering::Relaxed);
            BanRules { longest_millis: 500, ..BanRules::default() }
        });
        let ask = |key: &str| BanRequest { key: key.into(), until_millis: 9000, ..BanRequest::default() };
        let vetted = bans.vet(&["ip:192.0.2.1", "ip:10.0.0.0/8", "ip:2001:db8::7", JA4].map(ask));
        let shown: Vec<_> =
            vetted.iter().map(|ban| ban.as_ref().map(|ban| (ban.key.as_str(), ban.until_millis))).collect();
        let refused = Err(&BanRefusal::Range);
        let of_many = Err(&BanRefusal::Fingerprint);
        assert_eq!(shown, [Ok(("ip:192.0.2.1", 1500)), refused, Ok(("ip:2001:db8::/64", 1500)), of_many]);
        assert_eq!(reads.load(Ordering::Relaxed), 1);
    }
}
