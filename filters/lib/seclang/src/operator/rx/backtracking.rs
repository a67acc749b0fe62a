//! The engine for lookaround, backreferences, atomic groups and possessive quantifiers, under limits.

use std::sync::OnceLock;

use fancy_regex::BytesMode;

use super::linear::Linear;
use super::outline::outline;
use super::{OperatorError, PATTERN_CACHE_LIMIT, PATTERN_SIZE_LIMIT, Spans};

/// How many steps back the backtracking engine takes in one search before it gives up: 100 000.
pub const BACKTRACK_LIMIT: usize = 100_000;

/// How many bytes of a value a pattern that needs backtracking looks at: 64 KiB. Without a match in them the search
/// counts as given up, unless the rest of the pattern shows that there is none.
pub const BACKTRACK_INPUT_LIMIT: usize = 64 * 1024;

/// The same for a pattern that repeats something without end: 8 KiB. At every byte of the value it may look at all that
/// follow, which counts as no step back.
pub const BACKTRACK_SCAN_LIMIT: usize = 8 * 1024;

/// How many steps back all searches of one transaction may take together: 10 million, which is a quarter of a second. What
/// comes after gives up at once. A megabyte of honest text in a thousand fields takes 4 million with the rules of CRS 3.3.
pub const BACKTRACK_BUDGET: usize = 10_000_000;

/// How many bytes that are looked at take as long as a step back.
const BYTES_PER_STEP: usize = 128;

/// The most units of one charge: no sum of them overflows.
const CHARGE: u64 = 1 << 48;

/// The limits a search is tried under, one after the other. The engine stops at a limit but does not say how many steps
/// it took: the smallest limit that sufficed is what a search costs, so that small values cost little.
const TIERS: [usize; 3] = [200, 4000, BACKTRACK_LIMIT];

/// What a search may cost, what it has cost, and whether it gave up.
#[derive(Debug, Clone, Copy)]
pub(in super::super) struct Effort {
    /// Steps back that are left.
    pub(in super::super) left: usize,
    /// Steps back that were taken.
    pub(in super::super) spent: usize,
    /// What searches in linear time have cost, in units of work.
    pub(in super::super) cost: u64,
    /// What they may cost.
    pub(in super::super) allowance: u64,
    /// Whether a search gave up.
    pub(in super::super) limited: bool,
}

impl Effort {
    /// For searches in linear time, whatever they cost.
    #[cfg(test)]
    pub(super) fn without_steps() -> Self {
        Self { left: 0, spent: 0, cost: 0, allowance: u64::MAX, limited: false }
    }

    /// The units that searches in linear time may still cost.
    pub(super) fn left(&self) -> u64 {
        self.allowance.saturating_sub(self.cost)
    }

    /// Charges units of work.
    pub(super) fn charge(&mut self, units: u64) {
        self.cost = self.cost.wrapping_add(units.min(CHARGE));
    }
}

/// A pattern, compiled for each tier when a search first needs it.
#[derive(Debug)]
pub(super) struct Backtracking {
    pattern: String,
    /// Whether it repeats something without end.
    scans: bool,
    /// What it matches at most, for values that are too long for it. Built when there is one.
    outline: OnceLock<Option<Linear>>,
    tiers: [OnceLock<Option<fancy_regex::Regex>>; TIERS.len()],
}

impl Backtracking {
    pub(super) fn new(pattern: &str) -> Result<Self, OperatorError> {
        let first = compile(pattern, TIERS[0])?;
        let mut tiers = [const { OnceLock::new() }; TIERS.len()];
        tiers[0] = OnceLock::from(Some(first));
        // In a rewritten pattern these are quantifiers: what stands for itself is escaped.
        let scans = pattern.contains(['*', '+']) || pattern.contains(",}");
        Ok(Self { pattern: pattern.to_owned(), scans, outline: OnceLock::new(), tiers })
    }

    /// The spans of the first match from `at` on.
    pub(super) fn search(&self, value: &[u8], at: usize, effort: &mut Effort) -> Option<Spans> {
        let most = if self.scans { BACKTRACK_SCAN_LIMIT } else { BACKTRACK_INPUT_LIMIT };
        let seen = value.get(..most).unwrap_or(value);
        if seen.len() < value.len() && self.cannot_match(value, at, effort) {
            return None;
        }
        if at > seen.len() {
            effort.limited = true;
            return None;
        }
        for (tier, limit) in self.tiers.iter().zip(TIERS) {
            let steps = limit + self.scanned(seen.len() - at, limit);
            let Some(left) = effort.left.checked_sub(steps) else { break };
            let Some(regex) = tier.get_or_init(|| compile(&self.pattern, limit).ok()) else { break };
            (effort.left, effort.spent) = (left, effort.spent + steps);
            match regex.captures_from_pos(seen, at) {
                Ok(Some(found)) => {
                    let mut spans = Spans::default();
                    for (index, span) in spans.iter_mut().enumerate() {
                        *span = found.get(index).map(|group| (group.start(), group.end()));
                    }
                    debug_assert!(
                        !self.cannot_match(seen, at, &mut { *effort }),
                        "the outline of {} misses it",
                        self.pattern
                    );
                    return Some(spans);
                }
                Ok(None) => {
                    effort.limited |= seen.len() < value.len();
                    return None;
                }
                Err(fancy_regex::Error::RuntimeError(fancy_regex::RuntimeError::BacktrackLimitExceeded)) => {}
                Err(_) => break,
            }
        }
        effort.limited = true;
        None
    }

    /// What it matches at most, if that was needed before.
    pub(super) fn outline(&self) -> Option<&Linear> {
        self.outline.get()?.as_ref()
    }

    /// What looking ahead costs at most, in steps back.
    fn scanned(&self, length: usize, steps: usize) -> usize {
        if self.scans { length.min(steps) * length / BYTES_PER_STEP } else { 0 }
    }

    /// Whether a search in linear time shows that there is no match.
    fn cannot_match(&self, value: &[u8], at: usize, effort: &mut Effort) -> bool {
        let outline = self.outline.get_or_init(|| Linear::new(&outline(&self.pattern)?).ok());
        let mut own = Effort { left: 0, spent: 0, limited: false, ..*effort };
        let found = outline.as_ref().is_some_and(|outline| outline.search(value, at, false, &mut own).is_none());
        effort.cost = own.cost;
        found && !own.limited
    }
}

fn compile(pattern: &str, limit: usize) -> Result<fancy_regex::Regex, OperatorError> {
    let mut builder = fancy_regex::RegexBuilder::new(pattern);
    builder
        .bytes_mode(BytesMode::Ascii)
        .dot_matches_new_line(true)
        .multi_line(true)
        .backtrack_limit(limit)
        .delegate_size_limit(PATTERN_SIZE_LIMIT)
        .delegate_dfa_size_limit(PATTERN_CACHE_LIMIT)
        .max_prog_size(PATTERN_SIZE_LIMIT / 64);
    builder.build().map_err(|error| match error {
        fancy_regex::Error::ParseError(offset, error) => OperatorError {
            message: format!("the regular expression is invalid: {error}"),
            help: None,
            offset: Some(offset),
        },
        error => OperatorError {
            message: format!("the regular expression is invalid: {error}"),
            help: Some(
                "It needs backtracking; lookbehind must have a fixed length in each of its alternatives.".into(),
            ),
            offset: None,
        },
    })
}
