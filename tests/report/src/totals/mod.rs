//! What a replay comes to. [`Totals`] takes rows one by one and keeps none; [`Summary`] is what it says at the end.

mod latency;
mod summary;
mod timeline;
mod top;

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Serialize, Serializer};

pub use latency::Latency;
pub use summary::{Change, Changed, Effects, Fault, Faults, Held, Notes, Scores, Summary, Timing, Unreadable};
pub use timeline::Timeline;
pub(crate) use top::Sketch;
pub use top::{Counted, Top};

use crate::about::BadEntryText;
use crate::row::{Effect, Row};
use crate::text::head;

/// Different rules, paths, callers, signals and notes that are counted exactly.
const COUNTERS: usize = 4_096;
/// Of these, how many a summary lists.
const LISTED: usize = 50;
/// Bytes of a name that are kept.
const NAME: usize = 1_024;
/// Faults and bad entries that a summary lists.
const FIRST: usize = 100;
/// Bytes of a fault or of a bad entry's reason that are kept.
const REASON: usize = 4_096;
/// Different actions that are counted by their word.
const ACTIONS: usize = 256;
/// The rest of them.
const OTHER_ACTIONS: &str = "(others)";

/// The totals of a replay while it runs. Takes a few MiB at most, however many rows there are. Two replays with equal
/// rows in the same order have equal totals, but for [`Summary::timing`]. Serialized as its [`Summary`].
#[derive(Debug)]
pub struct Totals {
    counts: Summary,
    timeline: timeline::Counts,
    rules: Sketch<u64>,
    paths: Sketch<String>,
    callers: Sketch<String>,
    signals: Sketch<String>,
    notes: Sketch<String>,
    latency: latency::Histogram,
    elapsed: Option<Duration>,
}

impl Default for Totals {
    fn default() -> Self {
        Self::new()
    }
}

impl Totals {
    /// Totals of nothing.
    pub fn new() -> Self {
        Self {
            counts: Summary::default(),
            timeline: timeline::Counts::default(),
            rules: Sketch::new(COUNTERS),
            paths: Sketch::new(COUNTERS),
            callers: Sketch::new(COUNTERS),
            signals: Sketch::new(COUNTERS),
            notes: Sketch::new(COUNTERS),
            latency: latency::Histogram::default(),
            elapsed: None,
        }
    }

    /// Counts a request.
    pub fn add(&mut self, row: &Row) {
        let blocked = row.effect == Effect::Blocked;
        self.counts.requests += 1;
        self.counts.effects.add(row.effect);
        *self.counts.statuses.entry(row.status).or_default() += 1;
        self.counts.scores.add(row.score);
        self.counts.held.add(row.held_millis);
        self.counts.changed.add(row);
        self.add_action(&row.action);
        self.timeline.add(row.at, row.effect);
        if row.micros > 0 {
            self.latency.add(row.micros);
        }
        if let Some(fault) = &row.fault {
            self.counts.faults.add(&row.id, fault);
        }
        self.paths.add(name(row.path_only()).as_ref(), "", blocked);
        self.callers.add(name(&row.caller).as_ref(), "", blocked);
        // A rule that matched twice in a request is one request all the same.
        for (place, rule) in row.rules.iter().enumerate() {
            if row.rules[..place].iter().all(|earlier| earlier.id != rule.id) {
                self.rules.add(&rule.id, &name(&rule.msg), blocked);
            }
        }
        for (place, signal) in row.signals.iter().enumerate() {
            if row.signals[..place].iter().all(|earlier| earlier.name != signal.name) {
                self.signals.add(name(&signal.name).as_ref(), "", blocked);
            }
        }
        for note in &row.notes {
            self.notes.add(name(note).as_ref(), "", blocked);
        }
        if !row.notes.is_empty() {
            self.counts.notes.requests += 1;
        }
    }

    /// Counts a fault that was no request's: in a callback, and what it says.
    pub fn timer_fault(&mut self, callback: &str, what: &str) {
        self.counts.timer_faults.add(callback, what);
    }

    /// Counts an entry that could not be read.
    pub fn bad(&mut self, bad: &BadEntryText) {
        let unreadable = &mut self.counts.bad_entries;
        unreadable.count += 1;
        if unreadable.first.len() < FIRST {
            unreadable.first.push(head(&bad.to_string(), REASON).into_owned());
        }
    }

    /// Says how long the replay took in real time.
    pub fn took(&mut self, elapsed: Duration) {
        self.elapsed = Some(elapsed);
    }

    /// The requests that were counted.
    pub fn requests(&self) -> u64 {
        self.counts.requests
    }

    /// The totals as they are now.
    pub fn summary(&self) -> Summary {
        let mut summary = self.counts.clone();
        summary.timeline = self.timeline.timeline();
        summary.rules = self.rules.top(LISTED);
        summary.paths = self.paths.top(LISTED);
        summary.callers = self.callers.top(LISTED);
        summary.signals = self.signals.top(LISTED);
        summary.notes.texts = self.notes.top(LISTED);
        summary.timing = self.timing();
        summary
    }

    fn timing(&self) -> Option<Timing> {
        let latency = self.latency.latency();
        if self.elapsed.is_none() && latency.is_none() {
            return None;
        }
        let elapsed = self.elapsed.unwrap_or_default();
        let seconds = elapsed.as_secs_f64();
        Some(Timing {
            elapsed_millis: u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX),
            rate: if seconds > 0.0 { (self.counts.requests as f64 / seconds * 10.0).round() / 10.0 } else { 0.0 },
            latency,
        })
    }

    fn add_action(&mut self, action: &str) {
        let actions: &mut BTreeMap<String, u64> = &mut self.counts.actions;
        let action = name(action);
        let action =
            if actions.len() < ACTIONS || actions.contains_key(action.as_ref()) { &*action } else { OTHER_ACTIONS };
        match actions.get_mut(action) {
            Some(count) => *count += 1,
            None => drop(actions.insert(action.to_owned(), 1)),
        }
    }
}

impl Serialize for Totals {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.summary().serialize(serializer)
    }
}

fn name(text: &str) -> std::borrow::Cow<'_, str> {
    head(text, NAME)
}

#[cfg(test)]
mod tests;
