//! Bans that gateways ask for, in the store: what was acknowledged to a node outlives the control plane.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use snapshot::{AllowChange, BanChange, BanRequest};

use crate::events::{Audit, AuditAction, BanWay, EventHub, MAX_SCORE};
use crate::fabric::{BanRules, Identity};
use crate::link::{Asker, BanSink, Verdict};
use crate::store::fabric::{Allowance, Ban, Issued, LAST_MOMENT, Note, Step};
use crate::store::{Pending, Store};

/// How long a refusal for the same identity is not told again, in milliseconds: every request of the caller leads to one.
const TOLD_MILLIS: u64 = 60_000;
/// The most identities whose refusal is remembered for that.
const MAX_TOLD: usize = 10_000;

/// The longest reason that is taken from a node, in characters, and the most tags.
const MAX_REASON: usize = 1000;
const MAX_TAGS: usize = 64;

/// [`BanSink`] over a [`Store`].
pub struct StoredBans {
    store: Arc<dyn Store>,
    events: EventHub,
    runtime: tokio::runtime::Handle,
    clock: fn() -> u64,
    rules: Box<dyn Fn() -> BanRules + Send + Sync>,
    told: Arc<Mutex<HashMap<String, u64>>>,
}

impl StoredBans {
    /// Bans in `store`; refusals are told `events`. Must be called within a tokio runtime of more than one thread.
    #[must_use]
    pub fn new(store: Arc<dyn Store>, events: EventHub, clock: fn() -> u64) -> Self {
        let runtime = tokio::runtime::Handle::current();
        Self { store, events, runtime, clock, rules: Box::new(BanRules::default), told: Arc::default() }
    }

    /// The same, with what nodes may ask for as `rules` says at that time.
    #[must_use]
    pub fn with_rules(self, rules: impl Fn() -> BanRules + Send + Sync + 'static) -> Self {
        Self { rules: Box::new(rules), ..self }
    }

    fn wait<T>(&self, pending: Pending<'_, T>) -> Result<T, String> {
        self.runtime.block_on(pending).map_err(|error| error.to_string())
    }

    fn asked(&self, by: &str, node: &str, ban: &BanRequest, identity: &Identity, now: u64) -> Ban {
        let key = identity.key();
        let step = Step { at: now, action: "ban".to_owned(), by: by.to_owned(), detail: ban.reason.clone() };
        Ban {
            signals: self.events.signals(&key),
            key,
            reason: ban.reason.clone(),
            tags: ban.tags.clone(),
            score: if ban.score.is_finite() { ban.score.clamp(0.0, MAX_SCORE) } else { 0.0 },
            issued_at: ban.issued_at_millis.min(now),
            until: ban.until_millis,
            issued_by: by.to_owned(),
            timeline: vec![step],
            address: ban.address.clone(),
            node: node.to_owned(),
            ..Ban::default()
        }
    }

    fn verdict(&self, ban: &BanRequest, issued: Issued, now: u64) -> Result<Verdict, String> {
        let why = match issued {
            Issued::Live(live) => {
                self.events.banned(&live, BanWay::Tier, now);
                return Ok(Verdict::Live(change_of(&live)));
            }
            Issued::Allowlisted(entry) => {
                format!("{} is on the allowlist: {}", entry.key, entry.reason)
            }
            Issued::Lifted(at) => format!("the ban was lifted at {}", crate::clock::rfc3339(at)),
            Issued::Full => "the list is full".to_owned(),
        };
        // What stands there all the same, because an operator has banned the whole network of an address that is on the
        // allowlist, must not end on every node for what this one has asked.
        let stands = self.wait(self.store.ban(&ban.key, now))?;
        Ok(stands.map_or(Verdict::Refused(why), |held| Verdict::Live(change_of(&held))))
    }

    /// The events of what is refused: kept with the bans of the same batch, or not at all.
    fn note(&self, by: &str, asked: &[Ban], now: u64) -> Note<Vec<Issued>> {
        let (told, by) = (Arc::clone(&self.told), by.to_owned());
        let keys: Vec<String> = asked.iter().map(|ban| ban.key.clone()).collect();
        Note::new(move |issued: &Vec<Issued>| {
            let refused = keys.into_iter().zip(issued).filter_map(|(key, issued)| {
                let Issued::Allowlisted(entry) = issued else { return None };
                is_due(&told, &key, now).then(|| {
                    let detail = format!("asked for by node {by}: {} is on the allowlist: {}", entry.key, entry.reason);
                    Audit::new(AuditAction::BanRefused).of(key).detail(detail).note(now)
                })
            });
            refused.collect()
        })
    }
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
fn vet(rules: &BanRules, ban: &BanRequest, now: u64) -> Result<BanRequest, String> {
    let identity = rules.bannable(&ban.key)?;
    let until_millis = ban.until_millis.min(now.saturating_add(rules.longest_millis));
    if until_millis <= now {
        return Err("it has ended already, or the configuration bans no client".to_owned());
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

impl BanSink for StoredBans {
    fn vet(&self, bans: &[BanRequest]) -> Vec<Result<BanRequest, String>> {
        let (rules, now) = ((self.rules)(), (self.clock)());
        bans.iter().map(|ban| vet(&rules, ban, now)).collect()
    }

    fn put(&self, by: Asker<'_>, bans: &[BanRequest]) -> Result<Vec<Verdict>, String> {
        let now = (self.clock)();
        let unnamed = "a node without an id";
        let (by, node) = match by {
            Asker::Node("") => (unnamed, unnamed),
            Asker::Node(node) => (node, node),
            Asker::ControlPlane => ("control plane", ""),
        };
        let read: Vec<Result<Identity, String>> = bans.iter().map(|ban| Identity::parse(&ban.key)).collect();
        let asked = |(ban, identity): (&BanRequest, &Result<Identity, String>)| {
            identity.as_ref().ok().map(|identity| self.asked(by, node, ban, identity, now))
        };
        let asked: Vec<Ban> = bans.iter().zip(&read).filter_map(asked).collect();
        let note = self.note(by, &asked, now);
        let mut issued = self.wait(self.store.bans_issue(asked, now, note))?.into_iter();
        self.events.outbox_filled();
        let verdict = |(ban, identity): (&BanRequest, Result<Identity, String>)| match identity {
            Err(why) => Ok(Verdict::Refused(why)),
            Ok(_) => issued.next().map_or_else(|| Ok(unanswered()), |issued| self.verdict(ban, issued, now)),
        };
        bans.iter().zip(read).map(verdict).collect()
    }

    fn widen(&self, live: &[BanChange]) -> Result<Vec<BanChange>, String> {
        let is_v6 = |change: &&BanChange| Identity::parse(&change.key).is_ok_and(|one| one.network_v6().is_some());
        let keys: Vec<String> = live.iter().filter(is_v6).map(|change| change.key.clone()).collect();
        if keys.is_empty() || !(self.rules)().widens {
            return Ok(Vec::new());
        }
        let now = (self.clock)();
        let wider = self.wait(self.store.bans_widen(keys, now, widened_note(now)))?;
        self.events.outbox_filled();
        for ban in &wider {
            self.events.banned(ban, BanWay::Tier, now);
        }
        Ok(wider.iter().map(change_of).collect())
    }

    fn lift(&self, key: &str) -> Result<(), String> {
        self.wait(self.store.ban_lift(key, (self.clock)(), Note::none())).map(drop)
    }

    fn list(&self, now: u64) -> Result<Vec<BanChange>, String> {
        let lifted = self.wait(self.store.lifted(true))?.into_iter().map(lift_of);
        let live = self.wait(self.store.bans_standing(now))?.into_iter();
        let live = live.map(|ban| BanChange {
            key: ban.key,
            until_millis: ban.until,
            reason: ban.reason,
            hand_until_millis: ban.hand_until,
            ..BanChange::default()
        });
        Ok(lifted.chain(live).collect())
    }

    fn allowed(&self, now: u64) -> Result<Vec<AllowChange>, String> {
        let removed = self.wait(self.store.lifted(false))?.into_iter();
        let live = self.wait(self.store.allowlist(now))?;
        let removed = removed.map(|key| AllowChange { key, until_millis: 0 });
        Ok(removed.chain(live.iter().map(allow_of)).collect())
    }
}

fn unanswered() -> Verdict {
    Verdict::Refused("the store returned no outcome".to_owned())
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
    use crate::store::{SqliteOptions, SqliteStore};

    #[tokio::test(flavor = "multi_thread")]
    async fn a_batch_of_bans_is_checked_by_rules_that_are_read_once() {
        let folder = tempfile::tempdir().unwrap();
        let store = Arc::new(SqliteStore::open(folder.path(), SqliteOptions::default()).unwrap());
        let reads = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&reads);
        let bans = StoredBans::new(store, EventHub::new(Vec::new(), || 1000), || 1000).with_rules(move || {
            counted.fetch_add(1, Ordering::Relaxed);
            BanRules { longest_millis: 500, ..BanRules::default() }
        });
        let ask = |key: &str| BanRequest { key: key.into(), until_millis: 9000, ..BanRequest::default() };
        let vetted = bans.vet(&["ip:192.0.2.1", "ip:10.0.0.0/8", "ip:2001:db8::7"].map(ask));
        let shown: Vec<_> =
            vetted.iter().map(|ban| ban.as_ref().map(|ban| (ban.key.as_str(), ban.until_millis))).collect();
        let refused = "nodes may not ban ranges".to_owned();
        assert_eq!(shown, [Ok(("ip:192.0.2.1", 1500)), Err(&refused), Ok(("ip:2001:db8::/64", 1500))]);
        assert_eq!(reads.load(Ordering::Relaxed), 1);
    }
}
