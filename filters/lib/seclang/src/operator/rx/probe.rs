//! An automaton that stops where the general engine would go on with a simulation of the NFA.

use std::sync::{Mutex, OnceLock, PoisonError};

use regex_automata::hybrid::dfa::{self, Cache, DFA};
use regex_automata::nfa::thompson;
use regex_automata::{Anchored, Input, MatchKind, Span};

use super::linear::syntax;
use super::{PATTERN_CACHE_LIMIT, PATTERN_SIZE_LIMIT};

/// How often an automaton is thrown away in one search before it is given up.
const CLEARED: usize = 3;

/// The automaton of a pattern.
#[derive(Debug)]
pub(super) struct Probe {
    forward: Automaton,
    /// Reads a match from its end to its start. Built with the first match whose groups are wanted.
    backward: OnceLock<Option<Automaton>>,
}

/// The automaton stopped.
pub(super) struct GaveUp;

#[derive(Debug)]
struct Automaton {
    dfa: DFA,
    cache: Mutex<Cache>,
}

impl Probe {
    /// `None` if the pattern cannot be compiled.
    pub(super) fn new(pattern: &str) -> Option<Self> {
        Some(Self { forward: Automaton::new(pattern, false)?, backward: OnceLock::new() })
    }

    /// The memory of its states, in bytes.
    pub(super) fn cached(&self) -> usize {
        self.automata().map(Automaton::cached).sum()
    }

    /// Releases the states.
    pub(super) fn forget(&self) {
        self.automata().for_each(Automaton::forget);
    }

    fn automata(&self) -> impl Iterator<Item = &Automaton> {
        std::iter::once(&self.forward).chain(self.backward.get().and_then(Option::as_ref))
    }

    /// The first match: without groups any end of it, and the start of the input in place of its own. Adds the bytes of the
    /// states that were built for it.
    pub(super) fn search(
        &self,
        pattern: &str,
        input: &Input<'_>,
        groups: bool,
        built: &mut usize,
    ) -> Result<Option<Span>, GaveUp> {
        let Some(end) =
            self.forward.search(built, |dfa, cache| dfa.try_search_fwd(cache, &input.clone().earliest(!groups)))?
        else {
            return Ok(None);
        };
        if !groups || input.get_anchored().is_anchored() {
            return Ok(Some(Span { start: input.start(), end }));
        }
        let backward = self.backward.get_or_init(|| Automaton::new(pattern, true)).as_ref().ok_or(GaveUp)?;
        let input = input.clone().range(input.start()..end).anchored(Anchored::Yes).earliest(false);
        let start = backward.search(built, |dfa, cache| dfa.try_search_rev(cache, &input))?.ok_or(GaveUp)?;
        Ok(Some(Span { start, end }))
    }
}

impl Automaton {
    fn new(pattern: &str, reverse: bool) -> Option<Self> {
        let nfa = thompson::Config::new()
            .utf8(false)
            .reverse(reverse)
            .nfa_size_limit(Some(PATTERN_SIZE_LIMIT))
            .which_captures(thompson::WhichCaptures::None);
        let lazy = dfa::Config::new()
            // From its end a match is read to the first of all its starts.
            .match_kind(if reverse { MatchKind::All } else { MatchKind::LeftmostFirst })
            .cache_capacity(PATTERN_CACHE_LIMIT)
            .skip_cache_capacity_check(true)
            .minimum_cache_clear_count(Some(CLEARED))
            .minimum_bytes_per_state(Some(10));
        let dfa = dfa::Builder::new().syntax(syntax()).thompson(nfa).configure(lazy).build(pattern).ok()?;
        let cache = Mutex::new(dfa.create_cache());
        Some(Self { dfa, cache })
    }

    fn cached(&self) -> usize {
        self.cache.try_lock().map_or(0, |cache| cache.memory_usage())
    }

    fn forget(&self) {
        if let Ok(mut cache) = self.cache.try_lock() {
            *cache = self.dfa.create_cache();
        }
    }

    fn search<E>(
        &self,
        built: &mut usize,
        search: impl FnOnce(&DFA, &mut Cache) -> Result<Option<regex_automata::HalfMatch>, E>,
    ) -> Result<Option<usize>, GaveUp> {
        let mut cache = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        let (before, cleared) = (cache.memory_usage(), cache.clear_count());
        let found = search(&self.dfa, &mut cache);
        let cleared = cache.clear_count().saturating_sub(cleared);
        *built += (cache.memory_usage() + cleared * PATTERN_CACHE_LIMIT).saturating_sub(before);
        match found {
            Ok(found) => Ok(found.map(|found| found.offset())),
            Err(_) => {
                // The states of this value help no other.
                cache.reset(&self.dfa);
                Err(GaveUp)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use regex_automata::meta;

    use super::*;

    #[test]
    fn finds_what_the_general_engine_finds() {
        for pattern in ["a+b", "(?i)(?:union|select).{1,9}?from", "^x*(y|z)$", "\\bor\\b", "(a|ab)(c|bcd)?", "", "x*"] {
            let bytes = meta::Config::new().utf8_empty(false);
            let general = meta::Regex::builder().syntax(syntax()).configure(bytes).build(pattern).unwrap();
            let probe = Probe::new(pattern).unwrap();
            for value in ["", "aaab", "xaab aab", "UNION all select * from", "a\nxxy\nz", "for or", "abcd", "\u{ff}xx"]
            {
                for at in 0..=value.len() {
                    let input = Input::new(value.as_bytes()).range(at..);
                    let expected = general.search(&input).map(|found| found.span());
                    let Ok(found) = probe.search(pattern, &input, true, &mut 0) else { panic!("{pattern} gave up") };
                    assert_eq!(found, expected, "{pattern} from {at} in {value:?}");
                    let Ok(found) = probe.search(pattern, &input, false, &mut 0) else { panic!("{pattern} gave up") };
                    assert_eq!(found.is_some(), expected.is_some(), "{pattern} from {at} in {value:?}");
                }
            }
        }
    }
}
