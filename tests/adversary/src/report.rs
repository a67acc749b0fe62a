//! What came of it all: a table for people, a document for programs.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::case::{Case, Kind};
use crate::known::Known;
use crate::run::{Outcome, Verdict};
use crate::stall::Stall;

/// A case with what came of it.
#[derive(Debug)]
pub struct Row<'a> {
    /// The case.
    pub case: &'a Case,
    /// Its outcome.
    pub outcome: Outcome,
    /// The figures, of a stall.
    pub stall: Option<Stall>,
    /// Whether libmodsecurity refuses the same request; none where it was not asked.
    pub peer: Option<bool>,
}

/// Everything.
#[derive(Debug)]
pub struct Report<'a> {
    /// One row per case.
    pub rows: Vec<Row<'a>>,
    /// Cases that the gateway has no means for.
    pub skipped: usize,
    /// The known misses.
    pub known: &'a Known,
    /// What the peer calls itself, if it was asked.
    pub peer: Option<String>,
}

#[derive(Debug, Default)]
struct Sums {
    sent: usize,
    refused: usize,
    passed: usize,
    wrong: usize,
    known: usize,
    peer_sent: usize,
    peer_refused: usize,
}

// === impl Report ===

impl Report<'_> {
    /// Misses that are not on the list.
    pub fn unexpected(&self) -> impl Iterator<Item = &Row<'_>> {
        self.rows.iter().filter(|row| !row.outcome.expected && self.known.reason(&row.case.id).is_none())
    }

    /// Entries of the list whose case is no miss any more.
    pub fn stale(&self) -> impl Iterator<Item = &Row<'_>> {
        self.rows.iter().filter(|row| row.outcome.expected && self.known.reason(&row.case.id).is_some())
    }

    /// The table.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = String::new();
        for kind in [Kind::Evasion, Kind::Control] {
            self.families(kind, &mut text);
        }
        self.stalls(&mut text);
        self.misses(&mut text);
        text
    }

    fn families(&self, kind: Kind, text: &mut String) {
        let mut families: BTreeMap<&str, Sums> = BTreeMap::new();
        for row in self.rows.iter().filter(|row| row.case.kind == kind) {
            for family in [row.case.family.as_str(), "~all"] {
                let sums = families.entry(family).or_default();
                sums.sent += 1;
                if row.outcome.verdict == Verdict::Passed {
                    sums.passed += 1;
                } else {
                    sums.refused += 1;
                }
                if !row.outcome.expected {
                    if self.known.reason(&row.case.id).is_some() { sums.known += 1 } else { sums.wrong += 1 }
                }
                if let Some(refused) = row.peer {
                    sums.peer_sent += 1;
                    sums.peer_refused += usize::from(refused);
                }
            }
        }
        if families.is_empty() {
            return;
        }
        let what = if kind == Kind::Evasion { "EVASIONS" } else { "HARMLESS REQUESTS" };
        let peer = if self.peer.is_some() { "libmodsecurity" } else { "" };
        let _ = writeln!(
            text,
            "{:<20} {:>5} {:>8} {:>7} {:>11} {:>11}  {peer}",
            what, "sent", "refused", "passed", "known miss", "unexpected"
        );
        for (family, sums) in families {
            let family = if family == "~all" { "all" } else { family };
            let peer = match sums.peer_sent {
                0 => String::new(),
                sent => format!("refuses {} of {sent}", sums.peer_refused),
            };
            let _ = writeln!(
                text,
                "{family:<20} {:>5} {:>8} {:>7} {:>11} {:>11}  {peer}",
                sums.sent, sums.refused, sums.passed, sums.known, sums.wrong
            );
        }
        text.push('\n');
    }

    fn stalls(&self, text: &mut String) {
        let rows: Vec<_> = self.rows.iter().filter_map(|row| Some((row, row.stall.as_ref()?))).collect();
        if rows.is_empty() {
            return;
        }
        let _ = writeln!(
            text,
            "{:<32} {:>10} {:>8} {:>9} {:>7} {:>5}  attack ms, answers",
            "STALLS", "sent KiB", "verdict", "worst ms", "clean", "lost"
        );
        for (row, stall) in rows {
            let seen: String = row.outcome.seen.chars().take(40).collect();
            let _ = writeln!(
                text,
                "{:<32} {:>10} {:>8} {:>9} {:>7} {:>5}  {} {}",
                row.case.id,
                stall.bytes / 1024,
                row.outcome.verdict.word(),
                stall.worst.as_millis(),
                stall.answered,
                stall.lost,
                stall.attack.as_millis(),
                seen
            );
        }
        text.push('\n');
    }

    fn misses(&self, text: &mut String) {
        let line = |row: &Row<'_>, why: &str| {
            let peer = match row.peer {
                Some(true) => ", libmodsecurity refuses",
                Some(false) => ", libmodsecurity passes",
                None => "",
            };
            format!("  {} ({}{peer}): {} {}\n", row.case.id, row.outcome.seen, row.outcome.verdict.word(), why)
        };
        let mut unexpected = String::new();
        for row in self.unexpected() {
            unexpected.push_str(&line(row, &format!("- {}", row.case.shows)));
        }
        let mut known = String::new();
        for row in self.rows.iter().filter(|row| !row.outcome.expected) {
            if let Some(reason) = self.known.reason(&row.case.id) {
                known.push_str(&line(row, &format!("- {reason}")));
            }
        }
        let stale: String = self.stale().map(|row| line(row, "- is no miss any more: take it off the list")).collect();
        for (title, lines) in [("Unexpected", unexpected), ("Known misses", known), ("Stale entries", stale)] {
            if !lines.is_empty() {
                let _ = writeln!(text, "{title}:\n{lines}");
            }
        }
        let peer = self.peer.as_ref().map(|name| format!("; beside it {name}")).unwrap_or_default();
        let _ = writeln!(
            text,
            "{} cases, {} unexpected, {} skipped (the gateway has no means for them){peer}",
            self.rows.len(),
            self.unexpected().count(),
            self.skipped
        );
    }

    /// The document.
    #[must_use]
    pub fn json(&self) -> Value {
        let rows: Vec<Value> = self.rows.iter().map(|row| self.row(row)).collect();
        json!({
            "cases": rows,
            "unexpected": self.unexpected().count(),
            "stale": self.stale().count(),
            "skipped": self.skipped,
            "peer": self.peer,
        })
    }

    fn row(&self, row: &Row<'_>) -> Value {
        let mut value = json!({
            "id": row.case.id,
            "family": row.case.family,
            "shows": row.case.shows,
            "verdict": row.outcome.verdict.word(),
            "expected": row.outcome.expected,
            "known": self.known.reason(&row.case.id),
            "seen": row.outcome.seen,
            "peer_refuses": row.peer,
        });
        if let Some(stall) = &row.stall {
            value["stall"] = json!({
                "bytes": stall.bytes,
                "attack_ms": stall.attack.as_millis() as u64,
                "worst_ms": stall.worst.as_millis() as u64,
                "clean_answered": stall.answered,
                "clean_lost": stall.lost,
            });
        }
        value
    }
}
