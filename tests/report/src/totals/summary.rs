//! The totals as plain data.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::latency::Latency;
use super::timeline::Timeline;
use super::top::Top;
use super::{FIRST, REASON};
use crate::row::{Effect, Row};
use crate::text::head;

/// The totals of a replay: what `totals` is in the JSON document.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// The requests that were replayed.
    pub requests: u64,
    /// What became of them.
    pub effects: Effects,
    /// Requests by the status that the client gets.
    pub statuses: BTreeMap<u16, u64>,
    /// Requests by the action that was decided on; after 256 different ones the rest are `(others)`.
    pub actions: BTreeMap<String, u64>,
    /// Requests by score.
    pub scores: Scores,
    /// Requests by time.
    pub timeline: Timeline,
    /// The rules that matched most; a rule counts once per request.
    pub rules: Top,
    /// The paths, without their queries, that were asked for most. Longer ones than 1 KiB count by their beginning.
    pub paths: Top,
    /// Who asked most.
    pub callers: Top,
    /// What weighed most often; a signal counts once per request.
    pub signals: Top,
    /// How long requests were held, on the replay's clock.
    pub held: Held,
    /// The requests that the filter died of.
    pub faults: Faults,
    /// The faults that were no request's: a timer of a filter died. Their ids are the callbacks.
    #[serde(default, skip_serializing_if = "Faults::is_empty")]
    pub timer_faults: Faults,
    /// The entries that could not be read and are in no other figure here.
    pub bad_entries: Unreadable,
    /// What the recording did not tell or what was guessed.
    pub notes: Notes,
    /// The statuses against the recorded ones.
    pub changed: Changed,
    /// What the real clock says: the only part that differs between two replays of the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timing: Option<Timing>,
}

/// Requests by what became of them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Effects {
    /// See [`Effect::Passed`].
    pub passed: u64,
    /// See [`Effect::Observed`].
    pub observed: u64,
    /// See [`Effect::Slowed`].
    pub slowed: u64,
    /// See [`Effect::Blocked`].
    pub blocked: u64,
    /// See [`Effect::Failed`].
    pub failed: u64,
}

/// Requests by score.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Scores {
    /// Those with a score of 0: nothing weighed.
    pub zero: u64,
    /// All others: above 0 and below 5 (and any below 0), from 5 to below 10, ..., and in the last of 21 from 100 on.
    pub buckets: Vec<u64>,
}

/// How long requests were held.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Held {
    /// The requests that were held at all.
    pub requests: u64,
    /// All of it together, in milliseconds.
    pub total_millis: u64,
    /// The longest, in milliseconds.
    pub longest_millis: u64,
}

/// What the filter died of.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Faults {
    /// How many.
    pub count: u64,
    /// The first 100.
    pub first: Vec<Fault>,
}

impl Faults {
    /// Whether there was none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Counts one; `what` is cut.
    pub(super) fn add(&mut self, id: &str, what: &str) {
        self.count += 1;
        if self.first.len() < FIRST {
            self.first.push(Fault { id: id.to_owned(), what: head(what, REASON).into_owned() });
        }
    }
}

/// One of them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fault {
    /// The request, or the callback of a timer.
    pub id: String,
    /// The trap and its backtrace, at most 4 KiB of it.
    pub what: String,
}

/// The entries that could not be read.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unreadable {
    /// How many.
    pub count: u64,
    /// The first 100, each `FILE#NUMBER: why`.
    pub first: Vec<String>,
}

/// What the recording did not tell or what was guessed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Notes {
    /// The requests with at least one note.
    pub requests: u64,
    /// The notes by their text.
    pub texts: Top,
}

/// The statuses of the replay against the recorded ones. Refused is what the filters blocked or failed at, and every
/// status from 400 on; in the recording, every status from 400 on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Changed {
    /// The requests with a recorded status.
    pub compared: u64,
    /// Refused now, not in the recording.
    pub newly_refused: u64,
    /// Refused in the recording, not now.
    pub no_longer_refused: u64,
    /// Another status, and refused in both or in neither.
    pub other: u64,
}

/// How a request's status differs from the recorded one. See [`Changed`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Change {
    /// Refused now, not in the recording.
    NewlyRefused,
    /// Refused in the recording, not now.
    NoLongerRefused,
    /// Another status, and refused in both or in neither.
    Other,
}

/// What the real clock says.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Timing {
    /// What the replay took, in milliseconds; 0 where nobody said.
    pub elapsed_millis: u64,
    /// Requests per second of that; 0 where nobody said.
    pub rate: f64,
    /// What single requests took, where that was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency: Option<Latency>,
}

impl Effects {
    /// Counts one.
    pub fn add(&mut self, effect: Effect) {
        match effect {
            Effect::Passed => self.passed += 1,
            Effect::Observed => self.observed += 1,
            Effect::Slowed => self.slowed += 1,
            Effect::Blocked => self.blocked += 1,
            Effect::Failed => self.failed += 1,
        }
    }

    /// Adds the counts of another.
    pub fn join(&mut self, other: &Self) {
        self.passed += other.passed;
        self.observed += other.observed;
        self.slowed += other.slowed;
        self.blocked += other.blocked;
        self.failed += other.failed;
    }

    /// The count of one of them.
    pub fn of(&self, effect: Effect) -> u64 {
        match effect {
            Effect::Passed => self.passed,
            Effect::Observed => self.observed,
            Effect::Slowed => self.slowed,
            Effect::Blocked => self.blocked,
            Effect::Failed => self.failed,
        }
    }

    /// All of them.
    pub fn all(&self) -> u64 {
        Effect::ALL.into_iter().map(|effect| self.of(effect)).sum()
    }
}

impl Scores {
    /// A bucket's width.
    pub const WIDTH: u32 = 5;
    /// How many buckets there are.
    pub const BUCKETS: usize = 21;

    pub(super) fn add(&mut self, score: f64) {
        if score == 0.0 || score.is_nan() {
            self.zero += 1;
            return;
        }
        self.buckets.resize(Self::BUCKETS, 0);
        // A float becomes the nearest integer that there is: below 0 is 0.
        let place = (score / f64::from(Self::WIDTH)) as usize;
        self.buckets[place.min(Self::BUCKETS - 1)] += 1;
    }

    /// What a bucket holds, in words: `5 to 10`, `100 and more`.
    pub fn label(place: usize) -> String {
        let from = place * Self::WIDTH as usize;
        match place {
            0 => format!("below {}", Self::WIDTH),
            place if place + 1 >= Self::BUCKETS => format!("{from} and more"),
            _ => format!("{from} to {}", from + Self::WIDTH as usize),
        }
    }
}

impl Held {
    pub(super) fn add(&mut self, millis: u64) {
        self.requests += u64::from(millis > 0);
        self.total_millis = self.total_millis.saturating_add(millis);
        self.longest_millis = self.longest_millis.max(millis);
    }
}

impl Change {
    /// How the row's status differs from the recorded one; `None` where it does not, or where none was recorded.
    pub fn of(row: &Row) -> Option<Self> {
        let recorded = row.recorded_status?;
        if recorded == row.status {
            return None;
        }
        let refused = row.status >= 400 || matches!(row.effect, Effect::Blocked | Effect::Failed);
        Some(match (recorded >= 400, refused) {
            (false, true) => Self::NewlyRefused,
            (true, false) => Self::NoLongerRefused,
            _ => Self::Other,
        })
    }

    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            Self::NewlyRefused => "newly refused",
            Self::NoLongerRefused => "no longer refused",
            Self::Other => "other status",
        }
    }
}

impl Changed {
    pub(super) fn add(&mut self, row: &Row) {
        self.compared += u64::from(row.recorded_status.is_some());
        match Change::of(row) {
            Some(Change::NewlyRefused) => self.newly_refused += 1,
            Some(Change::NoLongerRefused) => self.no_longer_refused += 1,
            Some(Change::Other) => self.other += 1,
            None => {}
        }
    }

    /// All requests whose status differs.
    pub fn all(&self) -> u64 {
        self.newly_refused + self.no_longer_refused + self.other
    }
}
