//! Learning windows: what all gateways count of one WAF config from its start to its stop.

mod entries;
pub(super) mod parameters;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use prost::Message;

pub(super) use parameters::{MAX_PARAMETERS, parameter_key};

use super::workers::KeptWorkers;
use crate::samples::callers::network_of;
use crate::samples::messages::{MAX_SCORE, Matched, Parameter, ScoreCount, Totals, ValueShape};

/// The entries of a window, but for a few; what matches beyond them is counted in [`Window::left_out`].
pub(super) const MAX_ENTRIES: usize = 20_000;
/// The callers of an entry that are told apart, at most.
pub(super) const MAX_CALLERS: usize = 64;
/// The callers of an entry whose values are described, at most.
pub(super) const MAX_SHAPES: usize = 16;
/// The callers with other signs that are remembered, at most.
const MAX_SUSPECTS: usize = 16_384;
/// The nodes of a window that are told apart, at most.
const MAX_NODES: usize = 4096;
/// What a count ends at.
const MAX_COUNT: u64 = 1 << 53;

/// A rule that matched at one input on one path within a window.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Entry {
    #[prost(uint64, tag = "1")]
    pub(super) rule_id: u64,
    #[prost(string, tag = "2")]
    pub(super) target: String,
    #[prost(string, tag = "3")]
    pub(super) path: String,
    /// Exchanges.
    #[prost(uint64, tag = "4")]
    pub(super) count: u64,
    /// Those of them that were refused, or would have been.
    #[prost(uint64, tag = "5")]
    pub(super) would_block: u64,
    /// The paranoia level of the rule; 0 for none.
    #[prost(uint32, tag = "6")]
    pub(super) paranoia: u32,
    /// Numbers of distinct callers in order, at most 64, see [`Matched::callers`]; those with other signs are not among them.
    #[prost(fixed64, repeated, tag = "7")]
    pub(super) callers: Vec<u64>,
    /// What the values at the input look like, of some of the callers, at most 16, in the order of their numbers.
    #[prost(message, repeated, tag = "8")]
    pub(super) shapes: Vec<ValueShape>,
    /// Those of `would_block` in which no other rule has matched at an input.
    #[prost(uint64, tag = "9")]
    pub(super) alone: u64,
}

impl Entry {
    /// The networks that its callers are in.
    pub(super) fn networks(&self) -> usize {
        networks(self.callers.iter())
    }
}

/// How many networks callers are in.
pub(super) fn networks<'c>(callers: impl Iterator<Item = &'c u64>) -> usize {
    callers.map(|caller| network_of(*caller)).collect::<BTreeSet<u64>>().len()
}

/// Keys, in the order in which what they have gives way: of the fewest networks first, then of the fewest callers, then what was counted least.
fn weakest<T>(all: &HashMap<String, T>, weigh: impl Fn(&T) -> (usize, usize, u64)) -> Vec<String> {
    let mut weighed: Vec<_> = all.iter().map(|(key, one)| (weigh(one), key)).collect();
    weighed.sort_unstable();
    weighed.into_iter().map(|(_, key)| key.clone()).collect()
}

/// A window as it is kept.
#[derive(Clone, PartialEq, Message)]
struct KeptWindow {
    #[prost(string, tag = "1")]
    config: String,
    #[prost(uint64, tag = "2")]
    started_at: u64,
    #[prost(uint64, tag = "3")]
    stopped_at: u64,
    #[prost(uint64, tag = "4")]
    requests: u64,
    #[prost(uint64, tag = "5")]
    matched: u64,
    #[prost(uint64, tag = "6")]
    would_block: u64,
    #[prost(message, repeated, tag = "7")]
    scores: Vec<ScoreCount>,
    #[prost(string, repeated, tag = "8")]
    nodes: Vec<String>,
    #[prost(message, repeated, tag = "9")]
    entries: Vec<Entry>,
    #[prost(uint64, tag = "10")]
    left_out: u64,
    /// The reports that are counted in it, so that none counts again after a restart.
    #[prost(message, optional, tag = "11")]
    workers: Option<KeptWorkers>,
    #[prost(fixed64, repeated, tag = "12")]
    suspects: Vec<u64>,
    #[prost(message, repeated, tag = "13")]
    parameters: Vec<Parameter>,
}

/// A window.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Window {
    /// In milliseconds since 1970.
    pub(super) started_at: u64,
    /// The same; 0 while it runs.
    pub(super) stopped_at: u64,
    /// Exchanges, those with a match that is logged, and those that were refused, or would have been.
    pub(super) requests: u64,
    pub(super) matched: u64,
    pub(super) would_block: u64,
    /// Requests by their inbound anomaly score above 0.
    pub(super) scores: BTreeMap<u32, u64>,
    pub(super) nodes: BTreeSet<String>,
    /// By [`entry_key`].
    pub(super) entries: HashMap<String, Entry>,
    /// About how many bytes they take where they are kept.
    pub(super) held: usize,
    /// Matches for which there was no room.
    pub(super) left_out: u64,
    /// Callers that other plugins have found bad: what they send is counted, and they are no callers of an entry.
    pub(super) suspects: BTreeSet<u64>,
    /// What requests have at which parameters, by [`parameter_key`].
    pub(super) parameters: HashMap<String, Parameter>,
    pub(super) changed: bool,
}

/// `<rule>|<target>|<path>`.
pub(super) fn entry_key(rule_id: u64, target: &str, path: &str) -> String {
    format!("{rule_id}|{target}|{path}")
}

impl Window {
    pub(super) fn is_running(&self) -> bool {
        self.stopped_at == 0
    }

    fn times(&self) -> Times {
        (self.started_at, self.stopped_at)
    }

    fn total(&mut self, totals: &Totals) {
        let Totals { requests, matched, would_block, scores, .. } = totals;
        let add = |sum: &mut u64, more: u64| *sum = sum.saturating_add(more).min(MAX_COUNT);
        add(&mut self.requests, *requests);
        add(&mut self.matched, (*matched).min(*requests));
        add(&mut self.would_block, (*would_block).min(*requests));
        for ScoreCount { score, requests } in scores.iter().take(MAX_SCORE as usize) {
            add(self.scores.entry((*score).min(MAX_SCORE)).or_default(), *requests);
        }
    }

    /// Takes callers with other signs out of all entries.
    fn suspect(&mut self, callers: &[u64]) {
        for caller in callers {
            if self.suspects.len() < MAX_SUSPECTS {
                self.suspects.insert(*caller);
            }
        }
        for entry in self.entries.values_mut() {
            entry.callers.retain(|caller| !callers.contains(caller));
            entry.shapes.retain(|one| !callers.contains(&one.caller));
        }
        for parameter in self.parameters.values_mut() {
            parameter.shapes.retain(|one| !callers.contains(&one.caller));
        }
    }

    /// How many networks the callers of all entries are in.
    pub(super) fn networks(&self) -> usize {
        networks(self.entries.values().flat_map(|entry| &entry.callers))
    }
}

/// The windows of all configs, by config.
#[derive(Debug, Default)]
pub(super) struct Windows {
    all: BTreeMap<String, Window>,
    /// Configs whose windows are gone and still written.
    gone: BTreeSet<String>,
    /// The times of the windows that are written, as they were read or written last.
    stored: BTreeMap<String, Times>,
}

/// When a window began and when it stopped, by which it is known.
type Times = (u64, u64);

impl Windows {
    /// Reads one from the store, with the reports that are counted in it; `None` for bytes that are none.
    pub(super) fn load(&mut self, bytes: &[u8]) -> Option<KeptWorkers> {
        let kept = KeptWindow::decode(bytes).ok()?;
        let mut window = Window {
            started_at: kept.started_at,
            stopped_at: kept.stopped_at,
            requests: kept.requests,
            matched: kept.matched,
            would_block: kept.would_block,
            scores: kept.scores.iter().map(|one| (one.score, one.requests)).collect(),
            nodes: kept.nodes.into_iter().collect(),
            entries: HashMap::new(),
            held: 0,
            left_out: kept.left_out,
            suspects: kept.suspects.into_iter().take(MAX_SUSPECTS).collect(),
            parameters: HashMap::new(),
            changed: false,
        };
        window.load_entries(kept.entries);
        window.learn(&kept.parameters.iter().collect::<Vec<_>>());
        self.stored.insert(kept.config.clone(), window.times());
        self.all.insert(kept.config, window);
        Some(kept.workers.unwrap_or_default())
    }

    /// Takes over what another control plane has of the window of a config; `None` where it is gone. With the reports that are counted in it.
    /// What an operator has done here and is not written yet stays, unless another one has done something later there. Otherwise what is
    /// counted here and not written yet gives way where the window was begun, stopped or discarded elsewhere; the one that leads counts.
    pub(super) fn follow(&mut self, config: &str, bytes: Option<&[u8]>, leads: bool) -> Option<KeptWorkers> {
        let stored = self.stored.get(config).copied();
        let is_begun_here = |started_at: u64| stored.is_none_or(|(known, _)| known != started_at);
        let Some(bytes) = bytes else {
            self.stored.remove(config);
            if !self.all.get(config).is_some_and(|window| window.changed && is_begun_here(window.started_at)) {
                self.all.remove(config);
            }
            return None;
        };
        let kept = KeptWindow::decode(bytes).ok()?;
        let theirs = (kept.started_at, kept.stopped_at);
        if self.gone.contains(config) {
            // The one that was discarded here is written still; another one was begun since.
            if stored.is_some_and(|(started_at, _)| started_at == kept.started_at) {
                return None;
            }
            self.gone.remove(config);
            return self.load(bytes);
        }
        let Some(window) = self.all.get(config).filter(|window| window.changed) else { return self.load(bytes) };
        let ours = window.times();
        if ours == theirs {
            return None;
        }
        let latest = |(started_at, stopped_at): Times| started_at.max(stopped_at);
        if stored == Some(ours) || latest(ours) < latest(theirs) {
            return self.load(bytes);
        }
        if leads || ours.0 != theirs.0 {
            self.stored.insert(config.to_owned(), theirs);
            return None;
        }
        // It was stopped here, and the one that leads has counted.
        let workers = self.load(bytes);
        if let Some(window) = self.all.get_mut(config) {
            (window.stopped_at, window.changed) = (ours.1, true);
        }
        workers
    }

    /// Begins a window; one that is there ends, and what it had is gone.
    pub(super) fn start(&mut self, config: &str, now: u64) {
        self.gone.remove(config);
        self.all.insert(config.to_owned(), Window { started_at: now, changed: true, ..Window::default() });
    }

    /// Stops a window; false where none runs.
    pub(super) fn stop(&mut self, config: &str, now: u64) -> bool {
        let Some(window) = self.all.get_mut(config).filter(|window| window.is_running()) else { return false };
        (window.stopped_at, window.changed) = (now.max(1), true);
        true
    }

    /// Forgets a window; false where there is none.
    pub(super) fn discard(&mut self, config: &str) -> bool {
        let is_there = self.all.remove(config).is_some();
        if is_there {
            self.gone.insert(config.to_owned());
        }
        is_there
    }

    pub(super) fn get(&self, config: &str) -> Option<&Window> {
        self.all.get(config)
    }

    /// Takes callers that a node has found bad out of all windows that run.
    pub(super) fn suspect(&mut self, callers: &[u64]) {
        if callers.is_empty() {
            return;
        }
        for window in self.all.values_mut().filter(|window| window.is_running()) {
            window.suspect(callers);
            window.changed = true;
        }
    }

    /// Counts what a node has reported.
    pub(super) fn take(&mut self, node: &str, totals: &[Totals], matches: &[Matched]) {
        let named = |config: &str| {
            totals.iter().any(|one| one.config == config) || matches.iter().any(|one| one.config == config)
        };
        for (config, window) in self.all.iter_mut().filter(|(config, window)| window.is_running() && named(config)) {
            totals.iter().filter(|one| one.config == *config).for_each(|one| window.total(one));
            matches.iter().filter(|one| one.config == *config).for_each(|one| window.count(one));
            if window.nodes.len() < MAX_NODES {
                window.nodes.insert(node.to_owned());
            }
            window.changed = true;
        }
    }

    /// Takes what nodes have seen of parameters.
    pub(super) fn learn(&mut self, parameters: &[Parameter]) {
        for (config, window) in self.all.iter_mut().filter(|(_, window)| window.is_running()) {
            let of_config: Vec<&Parameter> = parameters.iter().filter(|one| one.config == *config).collect();
            if !of_config.is_empty() {
                window.learn(&of_config);
                window.changed = true;
            }
        }
    }

    /// Forgets the windows of configs that are gone.
    pub(super) fn forget(&mut self, is_config: impl Fn(&str) -> bool) {
        let gone: Vec<String> = self.all.keys().filter(|config| !is_config(config)).cloned().collect();
        for config in gone {
            self.discard(&config);
        }
    }

    /// What is written of all windows that have changed.
    #[cfg(test)]
    fn write_all(&mut self) -> Vec<(String, Vec<u8>)> {
        let (changed, _) = self.changes();
        let take = |config: String| {
            let (bytes, times) = self.take_changed(&config, KeptWorkers::default())?;
            self.written(&config, times);
            Some((config, bytes))
        };
        changed.into_iter().filter_map(take).collect()
    }

    /// The configs whose windows are to be written, and those whose windows are gone.
    pub(super) fn changes(&self) -> (Vec<String>, Vec<String>) {
        let changed = self.all.iter().filter(|(_, window)| window.changed);
        (changed.map(|(config, _)| config.clone()).collect(), self.gone.iter().cloned().collect())
    }

    /// The configs that have windows.
    pub(super) fn configs(&self) -> impl Iterator<Item = &String> {
        self.all.keys()
    }

    /// The window of a config, to be written, with its times; `None` where nothing has changed. With the reports that are counted in it.
    pub(super) fn take_changed(&mut self, config: &str, workers: KeptWorkers) -> Option<(Vec<u8>, Times)> {
        let window = self.all.get_mut(config).filter(|window| window.changed)?;
        window.changed = false;
        let kept = KeptWindow {
            config: config.to_owned(),
            started_at: window.started_at,
            stopped_at: window.stopped_at,
            requests: window.requests,
            matched: window.matched,
            would_block: window.would_block,
            scores: window
                .scores
                .iter()
                .map(|(score, requests)| ScoreCount { score: *score, requests: *requests })
                .collect(),
            nodes: window.nodes.iter().cloned().collect(),
            entries: window.entries.values().cloned().collect(),
            left_out: window.left_out,
            suspects: window.suspects.iter().copied().collect(),
            parameters: window.parameters.values().cloned().collect(),
            workers: Some(workers),
        };
        Some((kept.encode_to_vec(), window.times()))
    }

    /// The window of a config is written as it was at that time.
    pub(super) fn written(&mut self, config: &str, times: Times) {
        self.stored.insert(config.to_owned(), times);
    }

    /// Whether the window of a config is gone and still written.
    pub(super) fn is_gone(&self, config: &str) -> bool {
        self.gone.contains(config)
    }

    /// The window of a config is not written any more.
    pub(super) fn removed(&mut self, config: &str) {
        self.gone.remove(config);
        self.stored.remove(config);
    }

    /// The window of a config could not be written.
    pub(super) fn put_back(&mut self, config: &str) {
        if let Some(window) = self.all.get_mut(config) {
            window.changed = true;
        }
    }
}

#[cfg(test)]
mod tests;
