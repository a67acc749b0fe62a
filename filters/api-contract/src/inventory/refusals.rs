//! Requests that enforcing the contract would refuse, as a worker counts them.

use std::collections::BTreeMap;

use contract::{Mismatch, Violation};
use exchange::Caller;
use exchange::fold::fold_segment;

use super::counts::Callers;
use super::messages::{MismatchCount, WouldRefuse};

/// The longest place and the longest detail of a sample, in bytes.
const MAX_TEXT: usize = 200;

/// What was counted since the last report.
#[derive(Debug, Default)]
pub(super) struct Refusals {
    requests: u64,
    /// All callers so far.
    callers: Callers,
    /// Those that were not reported yet.
    fresh: Vec<u64>,
    kinds: BTreeMap<&'static str, Sampled>,
}

#[derive(Debug)]
struct Sampled {
    requests: u64,
    mismatch: Violation,
    at: u64,
}

impl Refusals {
    /// Counts a request by its first mismatch.
    pub(super) fn count(&mut self, mismatch: &Violation, caller: &Caller, now: u64) {
        self.requests = self.requests.saturating_add(1);
        if let Some(identity) = caller.identity() {
            let hash = Callers::hash(&identity.key());
            if self.callers.insert(hash) {
                self.fresh.push(hash);
            }
        }
        let sampled = self.kinds.entry(mismatch.kind.word()).or_insert_with(|| Sampled {
            requests: 0,
            mismatch: Violation { place: place(mismatch), detail: cut(&mismatch.detail), ..mismatch.clone() },
            at: now,
        });
        sampled.requests = sampled.requests.saturating_add(1);
    }

    /// Whether nothing waits to be reported.
    pub(super) fn is_empty(&self) -> bool {
        self.requests == 0
    }

    /// What waits to be reported, once.
    pub(super) fn take(&mut self, now: u64) -> Option<WouldRefuse> {
        if self.is_empty() {
            return None;
        }
        let kinds = std::mem::take(&mut self.kinds).into_iter().map(|(kind, sampled)| MismatchCount {
            kind: kind.to_owned(),
            requests: sampled.requests,
            place: sampled.mismatch.place,
            detail: sampled.mismatch.detail,
            age: now.saturating_sub(sampled.at),
        });
        let kinds = kinds.collect();
        Some(WouldRefuse {
            requests: std::mem::take(&mut self.requests),
            callers: std::mem::take(&mut self.fresh),
            kinds,
        })
    }
}

/// Where a mismatch is. The name of a parameter that is not declared is the caller's own text, and may be anything.
fn place(mismatch: &Violation) -> String {
    match (mismatch.kind, mismatch.place.split_once(':')) {
        (Mismatch::UnknownParameter, Some((where_, name))) => {
            format!("{where_}:{}", fold_segment(name.as_bytes()))
        }
        _ => cut(&mismatch.place),
    }
}

fn cut(text: &str) -> String {
    text.char_indices()
        .take_while(|(at, character)| at + character.len_utf8() <= MAX_TEXT)
        .map(|(_, shown)| shown)
        .collect()
}
