//! Bans that gateways ask for, in the store: what was acknowledged to a node outlives the control plane.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use snapshot::{AllowChange, BanChange, BanRequest};

use crate::events::{Audit, AuditAction, BanWay, EventHub};
use crate::fabric::Identity;
use crate::link::{BanSink, Verdict};
use crate::store::fabric::{Allowance, Ban, Issued, LAST_MOMENT, Note, Step};
use crate::store::{Pending, Store};

/// How long a refusal for the same identity is not told again, in milliseconds: every request of the caller leads to one.
const TOLD_MILLIS: u64 = 60_000;
/// The most identities whose refusal is remembered for that.
const MAX_TOLD: usize = 10_000;

/// [`BanSink`] over a [`Store`].
pub struct StoredBans {
    store: Arc<dyn Store>,
    events: EventHub,
    runtime: tokio::runtime::Handle,
    clock: fn() -> u64,
    told: Arc<Mutex<HashMap<String, u64>>>,
}

impl StoredBans {
    /// Bans in `store`; refusals are told `events`. Must be called within a tokio runtime of more than one thread.
    #[must_use]
    pub fn new(store: Arc<dyn Store>, events: EventHub, clock: fn() -> u64) -> Self {
        Self { store, events, runtime: tokio::runtime::Handle::current(), clock, told: Arc::default() }
    }

    fn wait<T>(&self, pending: Pending<'_, T>) -> Result<T, String> {
        self.runtime.block_on(pending).map_err(|error| error.to_string())
    }

    fn asked(&self, by: &str, ban: &BanRequest, identity: &Identity, now: u64) -> Ban {
        let key = identity.key();
        let step = Step { at: now, action: "ban".to_owned(), by: by.to_owned(), detail: ban.reason.clone() };
        Ban {
            signals: self.events.signals(&key),
            key,
            reason: ban.reason.clone(),
            tags: ban.tags.clone(),
            score: if ban.score.is_finite() { ban.score } else { 0.0 },
            issued_at: ban.issued_at_millis.min(now),
            until: ban.until_millis,
            issued_by: by.to_owned(),
            by_hand: false,
            timeline: vec![step],
        }
    }

    fn verdict(&self, issued: Issued, now: u64) -> Verdict {
        match issued {
            Issued::Live(live) => {
                self.events.banned(&live, BanWay::Tier, now);
                Verdict::Live(change_of(&live))
            }
            Issued::Allowlisted(entry) => {
                Verdict::Refused(format!("{} is on the allowlist: {}", entry.key, entry.reason))
            }
            Issued::Lifted(at) => Verdict::Refused(format!("the ban was lifted at {}", crate::clock::rfc3339(at))),
            Issued::Full => Verdict::Refused("there are too many bans on ranges".to_owned()),
        }
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

impl BanSink for StoredBans {
    fn put(&self, node: &str, bans: &[BanRequest]) -> Result<Vec<Verdict>, String> {
        let now = (self.clock)();
        let by = if node.is_empty() { "control plane" } else { node };
        let read: Vec<Result<Identity, String>> = bans.iter().map(|ban| Identity::parse(&ban.key)).collect();
        let asked = |(ban, identity): (&BanRequest, &Result<Identity, String>)| {
            identity.as_ref().ok().map(|identity| self.asked(by, ban, identity, now))
        };
        let asked: Vec<Ban> = bans.iter().zip(&read).filter_map(asked).collect();
        let note = self.note(by, &asked, now);
        let mut issued = self.wait(self.store.bans_issue(asked, now, note))?.into_iter();
        self.events.outbox_filled();
        let verdict = |identity: Result<Identity, String>| match identity {
            Err(why) => Verdict::Refused(why),
            Ok(_) => issued.next().map_or_else(unanswered, |issued| self.verdict(issued, now)),
        };
        Ok(read.into_iter().map(verdict).collect())
    }

    fn lift(&self, key: &str) -> Result<(), String> {
        self.wait(self.store.ban_lift(key, (self.clock)(), Note::none())).map(drop)
    }

    fn list(&self, now: u64) -> Result<Vec<BanChange>, String> {
        let lifted = self.wait(self.store.lifted(true))?.into_iter().map(lift_of);
        let live = self.wait(self.store.bans_standing(now))?.into_iter();
        let live = live.map(|ban| BanChange { key: ban.key, until_millis: ban.until, reason: ban.reason });
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
    Verdict::Refused("the store has said nothing of it".to_owned())
}

/// A ban as nodes hold it.
pub(crate) fn change_of(ban: &Ban) -> BanChange {
    BanChange { key: ban.key.clone(), until_millis: ban.until, reason: ban.reason.clone() }
}

/// A ban that nodes let go of.
pub(crate) fn lift_of(key: String) -> BanChange {
    BanChange { key, ..BanChange::default() }
}

/// An entry of the allowlist as nodes hold it.
pub(crate) fn allow_of(entry: &Allowance) -> AllowChange {
    AllowChange { key: entry.key.clone(), until_millis: entry.until.unwrap_or(LAST_MOMENT) }
}
