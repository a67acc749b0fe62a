//! The verdicts that are in force, bounded, and what changes of them for gateways.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

use reputation_tables::UNKNOWN;
use tables::{KeyOps, KeysBuilder};

use crate::AddressVerdict;

/// The operations of one delta of the table, at most.
const OPS: usize = 500;

/// What a zone has answered that lists an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in super::super) struct Listing {
    pub(in super::super) codes: Vec<Ipv4Addr>,
    /// Until when it counts if the zone answers nothing more, in milliseconds since 1970.
    pub(super) until: u64,
}

/// What was found out about an address.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in super::super) struct Found {
    /// The zones that list it, by key.
    pub(in super::super) listed: BTreeMap<String, Listing>,
    /// A zone could not be asked.
    pub(in super::super) is_partial: bool,
    /// The keys of the zones that have not answered, those among them that are left alone because they fail.
    pub(super) unknown: BTreeSet<String>,
}

impl Found {
    /// Takes over what zones that have not answered said before. Each listing keeps its end.
    pub(super) fn remember(&mut self, before: &Found, now: u64) {
        for (zone, listing) in &before.listed {
            if self.unknown.contains(zone) && listing.until > now {
                self.listed.entry(zone.clone()).or_insert_with(|| listing.clone());
            }
        }
    }

    /// When the first of the listings ends.
    pub(super) fn first_end(&self) -> Option<u64> {
        self.listed.values().map(|listing| listing.until).min()
    }

    /// The keys as gateways have them, with [`UNKNOWN`] in front of those of zones that have not answered.
    pub(super) fn keys(&self) -> Vec<u8> {
        let unknown = self.unknown.iter().filter(|key| !self.listed.contains_key(*key));
        let unknown = unknown.map(|key| format!("{}{key}", char::from(UNKNOWN)));
        self.listed.keys().cloned().chain(unknown).collect::<Vec<_>>().join(",").into_bytes()
    }
}

/// What was found out, and for how long it counts, in milliseconds since 1970.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Verdict {
    pub(super) found: Found,
    pub(super) until: u64,
    pub(super) renew: u64,
}

impl Verdict {
    /// Until when it is kept: a listing of it may count for longer than the verdict, and is taken over by the next one.
    fn kept_until(&self) -> u64 {
        self.found.listed.values().map(|listing| listing.until).fold(self.until, u64::max)
    }
}

/// The verdicts by key. Those that are kept for the shortest time give way where there are too many, those on listed addresses last.
#[derive(Debug, Default)]
pub(super) struct Verdicts {
    verdicts: BTreeMap<Vec<u8>, Verdict>,
    /// By the end of the time for which they are kept; of listed addresses apart from the others.
    listed: BTreeSet<(u64, Vec<u8>)>,
    others: BTreeSet<(u64, Vec<u8>)>,
    /// Keys that changed since the table was last told.
    changed: BTreeSet<Vec<u8>>,
}

impl Verdicts {
    /// The verdict of a key that has not ended.
    pub(super) fn get(&self, key: &[u8], now: u64) -> Option<&Verdict> {
        self.verdicts.get(key).filter(|verdict| verdict.until > now)
    }

    /// What was found out last about a key, be it in a verdict that has ended.
    pub(super) fn found(&self, key: &[u8]) -> Option<&Found> {
        self.verdicts.get(key).map(|verdict| &verdict.found)
    }

    pub(super) fn len(&self) -> usize {
        self.verdicts.len()
    }

    /// How many are on listed addresses.
    pub(super) fn listed(&self) -> usize {
        self.listed.len()
    }

    /// Whether there is something to tell.
    pub(super) fn is_changed(&self) -> bool {
        !self.changed.is_empty()
    }

    /// Puts a verdict in the place of the one before; `max` are kept.
    pub(super) fn put(&mut self, key: &[u8], verdict: Verdict, max: usize) {
        self.remove(key);
        while self.verdicts.len() >= max.max(1) {
            // One on an address that is not listed makes none on a listed one give way.
            if self.others.is_empty() && verdict.found.listed.is_empty() {
                return;
            }
            let first = self.others.first().or_else(|| self.listed.first()).map(|(_, key)| key.clone());
            let Some(first) = first else { return };
            self.remove(&first);
        }
        self.by_end(&verdict).insert((verdict.kept_until(), key.to_vec()));
        self.verdicts.insert(key.to_vec(), verdict);
        self.changed.insert(key.to_vec());
    }

    /// Removes those that are kept no longer.
    pub(super) fn expire(&mut self, now: u64) {
        let ended = |by_end: &BTreeSet<(u64, Vec<u8>)>| {
            by_end.iter().take_while(|(until, _)| *until <= now).map(|(_, key)| key.clone()).collect::<Vec<_>>()
        };
        for key in [ended(&self.listed), ended(&self.others)].concat() {
            self.remove(&key);
        }
    }

    pub(super) fn clear(&mut self) {
        let all: Vec<Vec<u8>> = self.verdicts.keys().cloned().collect();
        all.iter().for_each(|key| self.remove(key));
    }

    fn remove(&mut self, key: &[u8]) {
        if let Some(verdict) = self.verdicts.remove(key) {
            self.by_end(&verdict).remove(&(verdict.kept_until(), key.to_vec()));
            self.changed.insert(key.to_vec());
        }
    }

    fn by_end(&mut self, verdict: &Verdict) -> &mut BTreeSet<(u64, Vec<u8>)> {
        if verdict.found.listed.is_empty() { &mut self.others } else { &mut self.listed }
    }

    /// The deltas for the table since the last call.
    pub(super) fn deltas(&mut self) -> Vec<Vec<u8>> {
        let changed = std::mem::take(&mut self.changed);
        let (mut deltas, mut ops) = (Vec::new(), KeyOps::default());
        for key in changed {
            // Keys and values are within the limits of the table: zones are few.
            let _ = match self.verdicts.get(&key) {
                Some(verdict) => ops.put(&key, &value(verdict)),
                None => ops.remove(&key),
            };
            if ops.len() >= OPS {
                deltas.push(std::mem::take(&mut ops).finish());
            }
        }
        if !ops.is_empty() {
            deltas.push(ops.finish());
        }
        deltas
    }

    /// All of them as a table.
    pub(super) fn table(&mut self) -> Result<Vec<u8>, String> {
        self.changed.clear();
        let mut builder = KeysBuilder::default();
        for (key, verdict) in &self.verdicts {
            builder.put(key, &value(verdict)).map_err(|error| error.to_string())?;
        }
        builder.build().map_err(|error| error.to_string())
    }
}

fn value(verdict: &Verdict) -> Vec<u8> {
    AddressVerdict { until: verdict.until, renew: verdict.renew, keys: verdict.found.keys() }.to_bytes()
}
