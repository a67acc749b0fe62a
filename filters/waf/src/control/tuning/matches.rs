//! The matches that gateways report, merged over nodes. Nothing that they report is believed: every text and number has a bound here.

use std::collections::{BTreeMap, BTreeSet};

use exchange::fold::SLUG;
use prost::Message;
use snapshot::content_hash;

use super::target::is_input;
use crate::samples::callers;
use crate::samples::messages::{
    MAX_BODY, MAX_CALLERS, MAX_REFERENCE, MAX_REFERENCES, MAX_SHAPES, MAX_TEXT, Matched, Parameter, SampledRequest,
};
use crate::samples::target::is_unseen;

/// The matches that are kept, at most.
pub(super) const MAX_MATCHES: usize = 500;
/// The headers of a sample, at most, and their bytes.
const MAX_HEADERS: usize = 128;
const MAX_HEADER_BYTES: usize = 16 * 1024;
/// The callers of a match that are told apart, at most.
const MAX_CALLERS_KEPT: usize = 256;
/// The ids of requests that are kept of a match, at most.
const MAX_REFERENCES_KEPT: usize = 32;
/// What a count ends at.
const MAX_COUNT: u64 = 1 << 53;

/// A rule that matched at one input on one path.
#[derive(Clone, PartialEq, Message)]
pub(super) struct KeptMatch {
    /// As it was reported last, with the sums of its counts; `age` is the time of the last match, in milliseconds since 1970.
    #[prost(message, required, tag = "1")]
    pub(super) matched: Matched,
    /// When it was reported first, in milliseconds since 1970.
    #[prost(uint64, tag = "2")]
    pub(super) first_seen: u64,
}

impl KeptMatch {
    /// `<config>|<rule>|<target>|<path>`.
    pub(super) fn key(&self) -> String {
        let Matched { config, rule_id, target, path, .. } = &self.matched;
        format!("{config}|{rule_id}|{target}|{path}")
    }

    /// Stands for the key where it is named.
    pub(super) fn id(&self) -> String {
        id_of(&self.key())
    }

    /// When it matched last, in milliseconds since 1970.
    pub(super) fn last_seen(&self) -> u64 {
        self.matched.age
    }

    /// What gives way together: the matches of one rule of one config.
    fn kind(&self) -> (&str, u64) {
        (&self.matched.config, self.matched.rule_id)
    }

    /// Adds what a worker has counted since its last report.
    fn add(&mut self, mut fresh: Matched, now: u64) {
        let known = &mut self.matched;
        let sum = |known: u64, more: u64| known.saturating_add(more).min(MAX_COUNT);
        fresh.count = sum(known.count, fresh.count);
        fresh.would_block = sum(known.would_block, fresh.would_block);
        fresh.alone = sum(known.alone, fresh.alone);
        fresh.age = now.saturating_sub(fresh.age).max(known.age);
        let mut callers = std::mem::take(&mut known.callers);
        // A first report is kept as it came, in whatever order.
        callers.sort_unstable();
        callers.dedup();
        fresh.callers.iter().for_each(|caller| callers::add(&mut callers, *caller, MAX_CALLERS_KEPT));
        fresh.callers = callers;
        let references = known.references.drain(..).chain(std::mem::take(&mut fresh.references));
        let references: Vec<String> = references.collect();
        fresh.references = references.into_iter().rev().take(MAX_REFERENCES_KEPT).rev().collect();
        if fresh.request.is_none() {
            // The value belongs to the request that is kept.
            fresh.request = known.request.take();
            fresh.value = std::mem::take(&mut known.value);
        }
        *known = fresh;
    }
}

fn id_of(key: &str) -> String {
    content_hash(key.as_bytes()).iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

/// The matches.
#[derive(Debug)]
pub(super) struct MatchStore {
    /// How many are kept, at most.
    most: usize,
    /// By id.
    matches: BTreeMap<String, KeptMatch>,
    /// Ids of matches that have changed since they were written.
    changed: BTreeSet<String>,
    /// Ids of matches that are gone and still written.
    gone: BTreeSet<String>,
}

impl Default for MatchStore {
    fn default() -> Self {
        Self::of(MAX_MATCHES)
    }
}

impl MatchStore {
    /// An empty one that keeps so many.
    pub(super) fn of(most: usize) -> Self {
        Self { most, matches: BTreeMap::new(), changed: BTreeSet::new(), gone: BTreeSet::new() }
    }

    /// What was kept in the store.
    pub(super) fn load(kept: impl Iterator<Item = KeptMatch>) -> Self {
        Self { matches: kept.map(|one| (one.id(), one)).collect(), ..Self::default() }
    }

    /// Takes over what another control plane has of a match; `None` where it is gone. One that was counted here since stays as it is.
    pub(super) fn follow(&mut self, id: &str, kept: Option<KeptMatch>) {
        if self.changed.contains(id) || self.gone.contains(id) {
            return;
        }
        match kept {
            Some(kept) => drop(self.matches.insert(id.to_owned(), kept)),
            None => drop(self.matches.remove(id)),
        }
    }

    /// Takes matches that are within their bounds.
    pub(super) fn take(&mut self, matches: Vec<Matched>, now: u64) {
        for mut matched in matches {
            // Windows have them.
            matched.shapes = Vec::new();
            let fresh = KeptMatch { first_seen: now, matched };
            let id = fresh.id();
            match self.matches.get_mut(&id) {
                Some(known) => known.add(fresh.matched, now),
                None => {
                    let mut fresh = fresh;
                    fresh.matched.age = now.saturating_sub(fresh.matched.age);
                    self.gone.remove(&id);
                    self.matches.insert(id.clone(), fresh);
                }
            }
            self.changed.insert(id);
            self.make_room();
        }
    }

    /// Of the rule with the most matches, the one that is not seen for longest gives way: a scan pushes out what it brought, and what is
    /// rare stays.
    fn make_room(&mut self) {
        while self.matches.len() > self.most {
            let mut kinds: BTreeMap<(&str, u64), usize> = BTreeMap::new();
            self.matches.values().for_each(|one| *kinds.entry(one.kind()).or_default() += 1);
            let Some(kind) = kinds.into_iter().max_by_key(|(_, count)| *count).map(|(kind, _)| kind) else { return };
            let of_kind = self.matches.iter().filter(|(_, one)| one.kind() == kind);
            let Some(oldest) = of_kind.min_by_key(|(_, one)| one.last_seen()).map(|(id, _)| id.clone()) else { return };
            self.remove(&oldest);
        }
    }

    fn remove(&mut self, id: &str) {
        if self.matches.remove(id).is_some() {
            self.changed.remove(id);
            self.gone.insert(id.to_owned());
        }
    }

    /// Forgets the matches of configs that are gone.
    pub(super) fn forget(&mut self, is_config: impl Fn(&str) -> bool) {
        let gone = self.matches.iter().filter(|(_, one)| !is_config(&one.matched.config));
        let gone: Vec<String> = gone.map(|(id, _)| id.clone()).collect();
        gone.iter().for_each(|id| self.remove(id));
    }

    /// A match by its id or its key.
    pub(super) fn get(&self, name: &str) -> Option<&KeptMatch> {
        self.matches.get(name).or_else(|| self.matches.get(&id_of(name)))
    }

    /// The matches of a request, by its id.
    pub(super) fn of_request<'s>(&'s self, reference: &'s str) -> impl Iterator<Item = &'s KeptMatch> {
        self.matches.values().filter(move |one| one.matched.references.iter().any(|known| known == reference))
    }

    /// The ids of all of them.
    pub(super) fn ids(&self) -> impl Iterator<Item = &String> {
        self.matches.keys()
    }

    /// All of them, by id.
    pub(super) fn all(&self) -> impl Iterator<Item = &KeptMatch> {
        self.matches.values()
    }

    /// What is to be written: ids with matches, and ids of those that are gone.
    pub(super) fn changes(&mut self) -> (Vec<(String, KeptMatch)>, Vec<String>) {
        let changed = std::mem::take(&mut self.changed);
        let put = changed.into_iter().filter_map(|id| Some((id.clone(), self.matches.get(&id)?.clone()))).collect();
        (put, std::mem::take(&mut self.gone).into_iter().collect())
    }

    /// What could not be written.
    pub(super) fn put_back(&mut self, id: String) {
        match self.matches.contains_key(&id) {
            true => self.changed.insert(id),
            false => self.gone.insert(id),
        };
    }
}

/// Brings a match within its bounds; false for what no filter of this release makes.
pub(super) fn bounded(matched: &mut Matched) -> bool {
    let Matched { config, rule_id, phase, target, path, count, would_block, alone, .. } = matched;
    let fits = |text: &str| !text.is_empty() && text.len() <= MAX_TEXT && !text.contains(is_unseen);
    let is_ok = fits(config)
        && *rule_id > 0
        && (1..=5).contains(phase)
        && fits(target)
        && is_input(target)
        && is_folded(path)
        && *count > 0
        && *count <= MAX_COUNT;
    *would_block = (*would_block).min(*count);
    *alone = (*alone).min(*would_block);
    for text in [&mut matched.route_id, &mut matched.route_name, &mut matched.msg, &mut matched.method] {
        cut(text);
    }
    matched.value.truncate(MAX_TEXT);
    matched.callers.truncate(MAX_CALLERS);
    matched.shapes.truncate(MAX_SHAPES);
    matched.references.retain(|reference| reference.len() <= MAX_REFERENCE && !reference.contains(char::is_control));
    matched.references.truncate(MAX_REFERENCES);
    is_ok && matched.request.as_ref().is_none_or(is_sample)
}

/// Whether a parameter of a report is one that a filter of this release makes. What is too long in it is cut.
pub(super) fn bounded_parameter(one: &mut Parameter) -> bool {
    let fits = |text: &str| !text.is_empty() && text.len() <= MAX_TEXT && !text.contains(is_unseen);
    one.shapes.truncate(MAX_SHAPES);
    one.shapes.retain(|shape| shape.shortest <= shape.longest);
    // They are looked for by the number of the caller.
    one.shapes.sort_by_key(|shape| shape.caller);
    one.shapes.dedup_by_key(|shape| shape.caller);
    let is_parameter = one.target.starts_with("ARGS:") && is_input(&one.target);
    fits(&one.config)
        && fits(&one.target)
        && is_parameter
        && is_folded(&one.path)
        && (1..=MAX_COUNT).contains(&one.count)
}

/// Whether a path is one that gateways fold: short, and of characters that show. They fold no names, of which a single request says nothing.
fn is_folded(path: &str) -> bool {
    path.starts_with('/')
        && path.len() <= MAX_TEXT
        && path.bytes().all(|byte| byte.is_ascii_graphic())
        && !path.contains(SLUG)
}

fn is_sample(request: &SampledRequest) -> bool {
    let bytes = request.headers.iter().map(|header| header.name.len().saturating_add(header.value.len()));
    request.body.len() <= MAX_BODY
        && request.method.len() <= 64
        && request.uri.len() <= MAX_HEADER_BYTES
        && request.protocol.len() <= 16
        && request.headers.len() <= MAX_HEADERS
        && bytes.sum::<usize>() <= MAX_HEADER_BYTES
}

fn cut(text: &mut String) {
    text.truncate(text.floor_char_boundary(MAX_TEXT));
}

#[cfg(test)]
mod tests;
