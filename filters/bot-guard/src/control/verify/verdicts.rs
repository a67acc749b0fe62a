//! The verdicts that are in force, bounded, and what changes of them for gateways.

use std::collections::{BTreeMap, BTreeSet};

use tables::{KeyOps, KeysBuilder};

use crate::{CrawlerVerdict, Finding};

/// The operations of one delta of the table, at most.
const OPS: usize = 1_000;

/// The verdicts by key. Those that end first give way where there are too many, verified ones last.
#[derive(Debug, Default)]
pub(super) struct Verdicts {
    verdicts: BTreeMap<Vec<u8>, CrawlerVerdict>,
    /// By their end; of verified ones apart from the others.
    verified: BTreeSet<(u64, Vec<u8>)>,
    others: BTreeSet<(u64, Vec<u8>)>,
    counts: BTreeMap<Finding, usize>,
    /// Keys that changed since the table was last told.
    changed: BTreeSet<Vec<u8>>,
    /// Verified crawlers came or went since they were last kept.
    unkept: bool,
}

impl Verdicts {
    /// The verdict of a key that has not ended.
    pub(super) fn get(&self, key: &[u8], now: u64) -> Option<CrawlerVerdict> {
        self.verdicts.get(key).copied().filter(|verdict| verdict.until > now)
    }

    /// How many there are of each finding.
    pub(super) fn counts(&self) -> BTreeMap<Finding, usize> {
        self.counts.clone()
    }

    /// The verdicts on verified crawlers, if they changed since the last call.
    pub(super) fn unkept(&mut self) -> Option<impl Iterator<Item = (&Vec<u8>, CrawlerVerdict)>> {
        let verified =
            |(key, verdict): (_, &CrawlerVerdict)| (verdict.finding == Finding::Verified).then_some((key, *verdict));
        std::mem::take(&mut self.unkept).then(|| self.verdicts.iter().filter_map(verified))
    }

    /// They could not be kept.
    pub(super) fn keep_again(&mut self) {
        self.unkept = true;
    }

    /// Whether there is something to tell.
    pub(super) fn is_changed(&self) -> bool {
        !self.changed.is_empty()
    }

    /// Puts a verdict in the place of the one before; `max` are kept.
    pub(super) fn put(&mut self, key: &[u8], verdict: CrawlerVerdict, max: usize) {
        self.remove(key);
        while self.verdicts.len() >= max.max(1) {
            let first = self.others.first().or_else(|| self.verified.first()).map(|(_, key)| key.clone());
            // A verdict that is not verified makes no verified one give way.
            if self.others.is_empty() && verdict.finding != Finding::Verified {
                return;
            }
            let Some(first) = first else { return };
            self.remove(&first);
        }
        self.unkept |= verdict.finding == Finding::Verified;
        self.by_end(verdict.finding).insert((verdict.until, key.to_vec()));
        self.verdicts.insert(key.to_vec(), verdict);
        *self.counts.entry(verdict.finding).or_default() += 1;
        self.changed.insert(key.to_vec());
    }

    /// Removes those that have ended.
    pub(super) fn expire(&mut self, now: u64) {
        let ended = |by_end: &BTreeSet<(u64, Vec<u8>)>| {
            by_end.iter().take_while(|(until, _)| *until <= now).map(|(_, key)| key.clone()).collect::<Vec<_>>()
        };
        for key in [ended(&self.verified), ended(&self.others)].concat() {
            self.remove(&key);
        }
    }

    /// Removes those whose keys are not wanted any more.
    pub(super) fn retain(&mut self, keep: impl Fn(&[u8]) -> bool) {
        let gone: Vec<Vec<u8>> = self.verdicts.keys().filter(|key| !keep(key)).cloned().collect();
        gone.iter().for_each(|key| self.remove(key));
    }

    fn remove(&mut self, key: &[u8]) {
        if let Some(verdict) = self.verdicts.remove(key) {
            self.unkept |= verdict.finding == Finding::Verified;
            self.by_end(verdict.finding).remove(&(verdict.until, key.to_vec()));
            self.counts.entry(verdict.finding).and_modify(|count| *count = count.saturating_sub(1));
            self.changed.insert(key.to_vec());
        }
    }

    fn by_end(&mut self, finding: Finding) -> &mut BTreeSet<(u64, Vec<u8>)> {
        if finding == Finding::Verified { &mut self.verified } else { &mut self.others }
    }

    /// The deltas for the table since the last call.
    pub(super) fn deltas(&mut self) -> Vec<Vec<u8>> {
        let changed = std::mem::take(&mut self.changed);
        let (mut deltas, mut ops) = (Vec::new(), KeyOps::default());
        for key in changed {
            // Keys and values have a few bytes: they are within the limits of the table.
            let _ = match self.verdicts.get(&key) {
                Some(verdict) => ops.put(&key, &verdict.to_bytes()),
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
    pub(super) fn table(&self) -> Result<Vec<u8>, String> {
        let mut builder = KeysBuilder::default();
        for (key, verdict) in &self.verdicts {
            builder.put(key, &verdict.to_bytes()).map_err(|error| error.to_string())?;
        }
        builder.build().map_err(|error| error.to_string())
    }
}
