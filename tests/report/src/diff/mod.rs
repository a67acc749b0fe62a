//! Two replays held against each other: what the filters do otherwise with the same requests.

mod compare;
mod groups;
mod html;
mod reader;
mod source;
mod table;

use std::io::{self, BufWriter, Write};

use serde::{Deserialize, Serialize};

pub use compare::diff;
pub use reader::{Reader, Rest};
pub use source::Error;

use crate::about::About;
use crate::row::Effect;
use crate::totals::{Summary, Top};

/// The version of the document that [`Diff::json`] writes: its first field.
const VERSION: u64 = 1;

/// What counts as a difference, and how much is listed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Options {
    /// A score that differs by this or less has not changed.
    pub score: f64,
    /// Requests of each kind that are listed; all are counted.
    pub listed: usize,
}

impl Default for Options {
    /// Every change of a score; 1,000 requests of each kind.
    fn default() -> Self {
        Self { score: 0.0, listed: 1_000 }
    }
}

/// How two replays differ. A is the one before, B the one after.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Diff {
    /// The one before.
    pub a: Side,
    /// The one after.
    pub b: Side,
    /// How many requests differ, and how.
    pub counts: Counts,
    /// The requests that differ: by kind, and within a kind as they came.
    pub changed: Vec<Changed>,
    /// The first requests that B does not have.
    pub only_a: Vec<Single>,
    /// The first requests that A does not have.
    pub only_b: Vec<Single>,
    /// The rules that match requests in B that they did not match in A, by the number of such requests, `blocked` of them
    /// in B.
    pub rules_added: Top,
    /// The rules that no longer match requests in B that they matched in A; `blocked` of them in A.
    pub rules_removed: Top,
    /// How many requests differ by route, those with the most changes first; at most 50.
    #[serde(default)]
    pub routes: Vec<Group>,
    /// The same by the plugin that decided in B, or in A where none did in B.
    #[serde(default)]
    pub plugins: Vec<Group>,
}

/// Requests that differ and have a route or a plugin in common.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Group {
    /// The name of the route or the plugin; empty for none.
    pub name: String,
    /// How many differ.
    pub changed: u64,
    /// See [`Kind::Failed`].
    pub failed: u64,
    /// See [`Kind::Blocked`].
    pub blocked: u64,
    /// See [`Kind::Unblocked`].
    pub unblocked: u64,
    /// See [`Kind::Answer`].
    pub answer: u64,
    /// See [`Kind::Score`].
    pub score: u64,
    /// See [`Kind::Rules`].
    pub rules: u64,
}

/// One of the two.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Side {
    /// The document.
    pub name: String,
    /// What was replayed.
    pub about: About,
    /// Its totals.
    pub totals: Summary,
}

/// How many requests differ. A request in both counts once, by the first kind that fits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Requests in both.
    pub compared: u64,
    /// Those that do not differ.
    pub same: u64,
    /// See [`Kind::Failed`].
    pub failed: u64,
    /// See [`Kind::Blocked`].
    pub blocked: u64,
    /// See [`Kind::Unblocked`].
    pub unblocked: u64,
    /// See [`Kind::Answer`].
    pub answer: u64,
    /// See [`Kind::Score`].
    pub score: u64,
    /// See [`Kind::Rules`].
    pub rules: u64,
    /// Requests that B does not have.
    pub only_a: u64,
    /// Requests that A does not have.
    pub only_b: u64,
}

/// How a request differs, the gravest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// The filter dies of it in B, not in A.
    Failed,
    /// It is blocked in B, not in A.
    Blocked,
    /// It is blocked in A, not in B.
    Unblocked,
    /// Another effect, status or action, or held for more than 200 ms longer or shorter.
    Answer,
    /// Another score, by more than the threshold.
    Score,
    /// Other rules match, or another plugin decides.
    Rules,
}

/// A request that differs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Changed {
    /// How.
    pub kind: Kind,
    /// The recording's file and the entry's number in it.
    pub id: String,
    /// When it ran on the replay's clock, in milliseconds since the Unix epoch.
    #[serde(default)]
    pub at: u64,
    /// Its method and path.
    pub request: String,
    /// The host that was asked for.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub host: String,
    /// Who asked.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub caller: String,
    /// The name of its route; empty outside of all routes.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub route: String,
    /// What became of it in A.
    pub before: Outcome,
    /// What became of it in B.
    pub after: Outcome,
    /// The rules that match it in B and not in A.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rules_added: Vec<u64>,
    /// The rules that match it in A and not in B.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rules_removed: Vec<u64>,
}

/// A request that only one of the two has.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Single {
    /// The recording's file and the entry's number in it.
    pub id: String,
    /// Its method and path.
    pub request: String,
    /// What became of it.
    pub outcome: Outcome,
}

/// What became of a request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// What the filters did.
    pub effect: Effect,
    /// The status that the client gets.
    pub status: u16,
    /// The action that was decided on.
    pub action: String,
    /// How long it was held on the replay's clock, in milliseconds.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub held_millis: u64,
    /// The score.
    pub score: f64,
    /// The plugin that decided or had something to say; empty where none had.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub plugin: String,
    /// Why, in the filters' words.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

impl Diff {
    /// Whether there is any difference between the requests of the two.
    pub fn differs(&self) -> bool {
        self.counts.same != self.counts.compared || self.counts.only_a > 0 || self.counts.only_b > 0
    }

    /// `differs` or `same`.
    pub fn word(&self) -> &'static str {
        if self.differs() { "differs" } else { "same" }
    }

    /// Writes one JSON document: `palisade_diff` (its version), `result` (see [`Diff::word`]), `bad_entries` (how many of `a` and of
    /// `b` could not be read, and so were not compared), and the fields of [`Diff`].
    ///
    /// # Errors
    /// The output cannot be written.
    pub fn json(&self, out: impl Write) -> io::Result<()> {
        #[derive(Serialize)]
        struct Document<'a> {
            palisade_diff: u64,
            result: &'static str,
            bad_entries: Unread,
            #[serde(flatten)]
            diff: &'a Diff,
        }
        #[derive(Serialize)]
        struct Unread {
            a: u64,
            b: u64,
        }
        let mut out = BufWriter::new(out);
        let bad_entries = Unread { a: self.a.totals.bad_entries.count, b: self.b.totals.bad_entries.count };
        let document = Document { palisade_diff: VERSION, result: self.word(), bad_entries, diff: self };
        serde_json::to_writer_pretty(&mut out, &document)?;
        out.write_all(b"\n")?;
        out.flush()
    }
}

impl Counts {
    /// Of one kind.
    pub fn of(&self, kind: Kind) -> u64 {
        match kind {
            Kind::Failed => self.failed,
            Kind::Blocked => self.blocked,
            Kind::Unblocked => self.unblocked,
            Kind::Answer => self.answer,
            Kind::Score => self.score,
            Kind::Rules => self.rules,
        }
    }

    fn add(&mut self, kind: Option<Kind>) {
        self.compared += 1;
        *match kind {
            None => &mut self.same,
            Some(Kind::Failed) => &mut self.failed,
            Some(Kind::Blocked) => &mut self.blocked,
            Some(Kind::Unblocked) => &mut self.unblocked,
            Some(Kind::Answer) => &mut self.answer,
            Some(Kind::Score) => &mut self.score,
            Some(Kind::Rules) => &mut self.rules,
        } += 1;
    }
}

impl Kind {
    /// All of them, the gravest first.
    pub const ALL: [Self; 6] = [Self::Failed, Self::Blocked, Self::Unblocked, Self::Answer, Self::Score, Self::Rules];

    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            Self::Failed => "newly failed",
            Self::Blocked => "newly blocked",
            Self::Unblocked => "no longer blocked",
            Self::Answer => "other effect, status, action or hold",
            Self::Score => "other score",
            Self::Rules => "other rules or plugin",
        }
    }
}

fn is_zero(value: &u64) -> bool {
    *value == 0
}

/// What is said where nothing else differs.
const SAME: &str = "The two do not differ.";

/// `+942100 -920350`.
fn rules(changed: &Changed, most: usize) -> String {
    let added = changed.rules_added.iter().map(|rule| format!("+{rule}"));
    let removed = changed.rules_removed.iter().map(|rule| format!("-{rule}"));
    let all: Vec<_> = added.chain(removed).collect();
    let shown = all.len().min(most);
    let more = all.len() - shown;
    let text = all[..shown].join(" ");
    if more == 0 { text } else { format!("{text} and {more} more") }
}

#[cfg(test)]
mod tests;
