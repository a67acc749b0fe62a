//! The matches of a worker: counted by key, and reported.

use std::collections::BTreeMap;

use exchange::{Host, offline};
use prost::Message as _;

use super::callers::{self, Suspects};
use super::messages::{
    MATCHES, MAX_CALLERS, MAX_REFERENCE, MAX_REFERENCES, MAX_SHAPES, MatchReport, Matched, SampledRequest, Totals,
    ValueShape,
};
use super::parameters::Parameters;
use super::{shape, totals};

/// The most keys of a worker. Beyond it, no new key is taken.
pub(super) const MAX_KEYS: usize = 4_096;
/// The most bytes that wait to be reported. Beyond it, no new key and no further request is taken, and beyond twice that nothing.
pub(super) const MAX_HELD: usize = 1024 * 1024;
/// The most bytes of a report; the link takes reports of 64 KiB.
pub(super) const MAX_REPORT: usize = 40 * 1024;
/// The most reports of one time: three times of them are in the quota of the link.
pub(super) const MAX_REPORTS: usize = 4;
/// The configs whose exchanges are counted, at most: a worker has a few.
const MAX_CONFIGS: usize = 16;
/// The time between two runs of the timer, in milliseconds.
pub(super) const TICK: u32 = 1_000;
/// The time between two reports of a key, in milliseconds.
pub(super) const PERIOD: u64 = 30_000;
/// How long a key has no further request after one, in milliseconds.
pub(super) const REQUEST_SILENCE: u64 = 600_000;
/// How long a key without matches is remembered, in milliseconds, and where keys are many.
const IDLE: u64 = 3_600_000;
const IDLE_OF_MANY: u64 = 60_000;
/// How many keys are many.
const MANY: usize = MAX_KEYS / 4 * 3;
/// What a match takes beside its message, in bytes, at most: the marks around it in a report.
const MARKS: usize = 8;
/// What the shape of a caller's values takes, in bytes, at most.
const SHAPE: usize = 32;

/// The matches.
#[derive(Debug, Default)]
pub(super) struct Sampler {
    /// All exchanges, by config.
    totals: BTreeMap<String, Totals>,
    /// When they were sent, in milliseconds since the Unix epoch.
    totalled: u64,
    /// The number of this worker; 0 before its first report.
    worker: u64,
    sequence: u64,
    /// When the timer ran, and when idle keys were forgotten, in milliseconds since the Unix epoch.
    ticked: u64,
    swept: u64,
    keys: BTreeMap<u64, Key>,
    /// How many of them have something to report.
    waiting: usize,
    /// Bytes of what they have to report.
    held: usize,
    /// Matches that were not counted, because there was no room.
    left_out: u64,
    /// Callers with other signs.
    suspects: Suspects,
    /// Parameters, whether a rule matched there or not.
    pub(super) parameters: Parameters,
    /// Secrets are not masked: the samples stay in this process.
    #[cfg(feature = "control")]
    pub(super) keeps_secrets: bool,
}

/// A rule at an input on a path. Of one that has nothing to report, times alone are remembered.
#[derive(Debug)]
struct Key {
    /// What was counted since the last report.
    counted: Option<Box<Counted>>,
    /// When its last match was, in milliseconds since the Unix epoch.
    last: u64,
    /// When it was reported, and when its last request was taken.
    reported: Option<u64>,
    requested: Option<u64>,
}

/// What a key has to report.
#[derive(Debug)]
struct Counted {
    matched: Matched,
    /// When the first match was.
    since: u64,
    /// Its bytes, as they are held.
    weight: usize,
}

/// A match.
pub(super) struct Hit<'a> {
    /// The hash of the key.
    pub(super) key: u64,
    /// The number of the caller, see [`super::callers`]; `None` for one that does not stand behind the match.
    pub(super) caller: Option<u64>,
    /// What the value at the input looks like; `None` where it has no value, or several.
    pub(super) shape: Option<ValueShape>,
    /// The id of the request, which events and answers name; may be empty.
    pub(super) reference: &'a [u8],
    /// The WAF has refused the request.
    pub(super) blocked: bool,
    /// It has, or would have if it blocked.
    pub(super) would_block: bool,
    /// No other rule has matched at an input.
    pub(super) alone: bool,
}

/// What a match is to bring beside its numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wanted {
    /// Nothing: it was counted, or there is no room.
    Nothing,
    /// Its texts, for a key whose request was sent lately.
    Texts,
    /// Those and the request.
    Request,
}

impl Sampler {
    /// Counts a match of a key that waits to be reported; others are to be taken with what they bring. `size` is about what the
    /// request takes.
    pub(super) fn count(&mut self, hit: &Hit<'_>, size: usize, now: u64) -> Wanted {
        let (held, known) = (self.held.saturating_add(size), self.keys.len());
        match self.keys.get_mut(&hit.key) {
            Some(Key { counted: Some(counted), last, .. }) => {
                count(&mut counted.matched, hit);
                *last = (*last).max(now);
                return Wanted::Nothing;
            }
            Some(key) if self.held < 2 * MAX_HELD => {
                // A clock that was put back sends a request too many.
                let lately = |at: u64| now.checked_sub(at).is_some_and(|passed| passed < REQUEST_SILENCE);
                let silent = key.requested.is_some_and(lately) || held > MAX_HELD;
                return if silent { Wanted::Texts } else { Wanted::Request };
            }
            None if held <= MAX_HELD && known < MAX_KEYS => return Wanted::Request,
            _ => {}
        }
        self.left_out = self.left_out.saturating_add(1);
        Wanted::Nothing
    }

    /// Takes the first match of a key since its last report. Of `matched` the numbers are not read.
    pub(super) fn take(&mut self, hit: &Hit<'_>, matched: Matched, request: Option<SampledRequest>, now: u64) {
        let mut matched = Matched { count: 0, would_block: 0, alone: 0, callers: Vec::new(), request, ..matched };
        // Callers, shapes and references come later.
        let later = MAX_CALLERS * size_of::<u64>() + MAX_SHAPES * SHAPE + MAX_REFERENCES * (MAX_REFERENCE + MARKS);
        let weigh = |matched: &Matched| matched.encoded_len().saturating_add(later);
        let is_known = self.keys.contains_key(&hit.key);
        let mut weight = weigh(&matched);
        if self.held.saturating_add(weight) > MAX_HELD && is_known {
            matched.request = None;
            weight = weigh(&matched);
        }
        let most = if is_known { 2 * MAX_HELD } else { MAX_HELD };
        if self.held.saturating_add(weight) > most {
            self.left_out = self.left_out.saturating_add(1);
            return;
        }
        let requested = matched.request.is_some().then_some(now);
        count(&mut matched, hit);
        let key = self.keys.entry(hit.key).or_insert(Key { counted: None, last: now, reported: None, requested: None });
        if key.counted.is_none() {
            self.waiting = self.waiting.saturating_add(1);
            self.held = self.held.saturating_add(weight);
            key.counted = Some(Box::new(Counted { matched, since: now, weight }));
            key.last = key.last.max(now);
            key.requested = requested.or(key.requested);
        }
    }

    /// Sends what is due.
    pub(super) fn report(&mut self, host: &dyn Host) {
        let now = host.now();
        // The timers of all WAF steps of the worker come here.
        if now.abs_diff(self.ticked) < u64::from(TICK / 2) {
            return;
        }
        self.ticked = now;
        self.forget(now);
        let is_due = |at: u64| now.checked_sub(at).is_none_or(|passed| passed >= PERIOD);
        let totals_due = !(self.totals.is_empty() && self.suspects.is_empty()) && is_due(self.totalled);
        let parameters_due = !self.parameters.is_empty() && is_due(self.parameters.reported);
        if (self.waiting == 0 && !totals_due && !parameters_due) || offline::is(host.shared(), now) {
            return;
        }
        while self.worker == 0 {
            self.worker = host.random();
        }
        for report in self.reports(now) {
            host.send_report(MATCHES, report.encode_to_vec());
        }
        if totals_due {
            self.totalled = now;
            let totals = std::mem::take(&mut self.totals).into_values().collect();
            let suspects = self.suspects.take();
            let report = MatchReport { suspects, ..self.numbered(Vec::new(), totals) };
            host.send_report(MATCHES, report.encode_to_vec());
        }
        if parameters_due {
            self.parameters.reported = now;
            for parameters in self.parameters.take() {
                let report = MatchReport { parameters, ..self.numbered(Vec::new(), Vec::new()) };
                host.send_report(MATCHES, report.encode_to_vec());
            }
        }
    }

    /// Takes all parameters, and forgets them.
    #[cfg(feature = "control")]
    pub(super) fn drain_parameters(&mut self) -> Vec<super::messages::Parameter> {
        self.parameters.take().into_iter().flatten().collect()
    }

    /// Takes all that is counted, whenever it would be due, in the order in which it came. Keys are forgotten.
    #[cfg(feature = "control")]
    pub(super) fn drain(&mut self, now: u64) -> Vec<Matched> {
        let keys = std::mem::take(&mut self.keys).into_values();
        let counted = keys.filter_map(|Key { counted, last, .. }| Some((*counted?, last)));
        let mut all: Vec<(u64, Matched)> =
            counted.map(|(one, last)| (one.since, Matched { age: now.saturating_sub(last), ..one.matched })).collect();
        // Hashes of keys have an order that is another one in each process.
        let order = |(since, one): &(u64, Matched)| (*since, one.rule_id, one.target.clone(), one.path.clone());
        all.sort_by_cached_key(order);
        (self.waiting, self.held) = (0, 0);
        all.into_iter().map(|(_, matched)| matched).collect()
    }

    /// Whether there is room for what a few more exchanges may bring.
    #[cfg(feature = "control")]
    pub(super) fn has_room(&self) -> bool {
        self.held < MAX_HELD / 4 && self.keys.len() < MANY
    }

    /// Whether secrets are masked in requests.
    pub(super) fn masks(&self) -> bool {
        #[cfg(feature = "control")]
        if self.keeps_secrets {
            return false;
        }
        true
    }

    /// Remembers a caller with other signs than matches. What it has taught is forgotten.
    pub(super) fn suspect(&mut self, caller: u64) {
        if !self.suspects.contains(caller) {
            self.parameters.forget(caller);
        }
        self.suspects.add(caller);
    }

    /// Whether a caller is remembered for other signs than matches.
    pub(super) fn is_suspect(&self, caller: u64) -> bool {
        self.suspects.contains(caller)
    }

    /// Adds what a step has counted.
    pub(super) fn add(&mut self, more: Totals) {
        if let Some(known) = self.totals.get_mut(&more.config) {
            totals::add(known, more);
        } else if self.totals.len() < MAX_CONFIGS {
            self.totals.insert(more.config.clone(), more);
        }
    }

    /// The reports of what is due, those keys first that have waited longest.
    fn reports(&mut self, now: u64) -> Vec<MatchReport> {
        // A clock that was put back does not stop the reports.
        let passed = |at: u64| now.checked_sub(at).is_none_or(|passed| passed >= PERIOD);
        let due = self.keys.iter().filter(|(_, key)| key.reported.is_none_or(passed));
        let due = due.filter_map(|(hash, key)| Some((key.counted.as_ref()?.since, *hash)));
        let mut due: Vec<(u64, u64)> = due.collect();
        due.sort_unstable();
        let (mut reports, mut matches, mut size) = (Vec::new(), Vec::new(), 0_usize);
        for (_, hash) in due {
            let Some(key) = self.keys.get_mut(&hash) else { continue };
            let length = key.counted.as_ref().map_or(0, |counted| counted.matched.encoded_len());
            // The time since the last match comes on top, and the head of the report.
            let length = length.saturating_add(3 * MARKS);
            if !matches.is_empty() && size.saturating_add(length).saturating_add(4 * MARKS) > MAX_REPORT {
                reports.push(std::mem::take(&mut matches));
                size = 0;
                if reports.len() >= MAX_REPORTS {
                    break;
                }
            }
            let Some(counted) = key.counted.take() else { continue };
            let Counted { matched, weight, .. } = *counted;
            key.reported = Some(now);
            self.held = self.held.saturating_sub(weight);
            self.waiting = self.waiting.saturating_sub(1);
            size = size.saturating_add(length);
            matches.push(Matched { age: now.saturating_sub(key.last), ..matched });
        }
        if !matches.is_empty() {
            reports.push(matches);
        }
        reports.into_iter().map(|matches| self.numbered(matches, Vec::new())).collect()
    }

    fn numbered(&mut self, matches: Vec<Matched>, totals: Vec<Totals>) -> MatchReport {
        self.sequence = self.sequence.saturating_add(1);
        MatchReport { worker: self.worker, sequence: self.sequence, matches, totals, ..MatchReport::default() }
    }

    /// Forgets keys that have nothing to report and were not matched lately: once a minute, and where keys are many at once.
    fn forget(&mut self, now: u64) {
        let many = self.keys.len() > MANY;
        if many || now.abs_diff(self.swept) >= IDLE_OF_MANY {
            self.swept = now;
            let idle = if many { IDLE_OF_MANY } else { IDLE };
            self.keys.retain(|_, key| key.counted.is_some() || now.saturating_sub(key.last) < idle);
        }
    }

    /// The keys, the bytes that it holds, and the matches that it has left out.
    #[cfg(test)]
    pub(super) fn load(&self) -> (usize, usize, u64) {
        (self.keys.len(), self.held, self.left_out)
    }
}

fn count(matched: &mut Matched, hit: &Hit<'_>) {
    matched.count = matched.count.saturating_add(1);
    matched.would_block = matched.would_block.saturating_add(u64::from(hit.would_block));
    matched.alone = matched.alone.saturating_add(u64::from(hit.would_block && hit.alone));
    matched.blocked = hit.blocked;
    if let Some(caller) = hit.caller {
        callers::add(&mut matched.callers, caller, MAX_CALLERS);
    }
    if let Some(one) = hit.shape {
        shape::add(&mut matched.shapes, one, MAX_SHAPES);
    }
    if let Ok(reference) = std::str::from_utf8(hit.reference)
        && (1..=MAX_REFERENCE).contains(&reference.len())
    {
        let references = &mut matched.references;
        if references.len() >= MAX_REFERENCES {
            references.remove(0);
        }
        references.push(reference.to_owned());
    }
}
