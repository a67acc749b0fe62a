//! The engine that takes time linear in the value: an automaton built as it is needed.
//!
//! A pattern with large repetitions can need so many states that the automaton is given up for a simulation of the NFA,
//! whose time per byte grows with the pattern. Where that could take long, another automaton looks first: it stops
//! instead of falling back.

use std::sync::{Arc, Mutex, OnceLock, TryLockError};

use regex_automata::util::prefilter::Prefilter;
use regex_automata::util::primitives::NonMaxUsize;
use regex_automata::util::syntax;
use regex_automata::{Anchored, HalfMatch, Input, MatchKind, Span, meta};
use regex_syntax::hir::literal;

use super::probe::{GaveUp, Probe};
use super::starts::{Found, Starts, needs};
use super::{Effort, MAX_CAPTURES, OperatorError, PATTERN_CACHE_LIMIT, PATTERN_SIZE_LIMIT, Spans};

/// How many steps of a simulated NFA a search may take: states times bytes. Beyond, an automaton looks first that stops
/// where the general engine would go on with a simulation.
const SIMULATION_LIMIT: usize = 1 << 24;

/// Units of work for each search, for each byte that it looks at, and for each byte of a match whose groups are wanted: at
/// least [`GROUP_BYTE`], and two for each state of the NFA; seven where the match is too long for its states and places to
/// be marked in [`MARKED`] bits, because all states are then followed at once.
const SEARCH: u64 = 680;
const BYTE: u64 = 8;
const GROUP_BYTE: u64 = 220;
const STATE: u64 = 2;
const STATE_AT_ONCE: u64 = 7;
const MARKED: usize = 1 << 21;

/// Units for each byte that a probe looks at.
const PROBED: u64 = 8;

/// How many bytes an automaton may take before its growth is charged, and the units for each byte more: a state takes
/// some hundred bytes, and some thousand instructions to be built.
const GROWN: usize = PATTERN_CACHE_LIMIT / 4;
const GROWTH: u64 = 10;

/// Units for each byte of a search in which an automaton was thrown away, perhaps more than once; for each step of a
/// simulation.
const THRASHED: u64 = 150;
const SIMULATED: u64 = 4;

/// How many steps it may take whatever may be spent.
const SIMULATION_CEILING: usize = 1 << 29;

/// How many bytes a state of an NFA takes, at least: for an estimate of their number.
const STATE_SIZE: usize = 32;

/// How many bytes the general engine is through with before anything else has begun.
const BRIEF: usize = 128;

/// Bytes that most values do not have, and that patterns have in parts that cost much.
const ABSENT: [&[u8]; 3] = [b"\\$", b"\\", b""];

/// The pieces of [`Linear::prepare`].
pub(super) const PIECES: usize = ABSENT.len() + 1;

/// After how many searched bytes the memory of an automaton is measured again.
const MEASURED: usize = 256;

/// For how long values a probe is built in advance, in bytes.
const PREPARED_LENGTH: usize = 64 << 10;

/// A compiled pattern.
#[derive(Debug)]
pub(super) struct Linear {
    regex: meta::Regex,
    /// What the automaton has become.
    cache: Mutex<Option<Kept>>,
    /// Whether the general engine looks for one of few literals that matches begin with, which nothing beats.
    by_prefix: bool,
    /// How many states the NFA has at most.
    states: usize,
    pattern: Box<str>,
    /// Where a match can begin, in values without the bytes of [`ABSENT`]. Built when a value needs it.
    starts: [OnceLock<Option<Arc<Starts>>>; ABSENT.len()],
    /// Built when a value is first that long.
    probe: OnceLock<Option<Probe>>,
}

/// What searches keep of an automaton.
#[derive(Debug)]
struct Kept {
    cache: meta::Cache,
    /// How large it was when it was last measured, in bytes.
    size: usize,
    /// How many bytes were searched since then: each adds a state at most.
    since: usize,
}

impl Kept {
    fn new(regex: &meta::Regex) -> Self {
        Self { cache: regex.create_cache(), size: 0, since: 0 }
    }
}

/// What a probe found.
enum Probed {
    Nothing,
    /// A match; where it starts is known only if groups are wanted.
    Found(Span),
    GaveUp,
}

/// How patterns are read: bytes, `.` matches a line feed, `^` and `$` match at every line.
pub(in super::super) fn syntax() -> syntax::Config {
    syntax::Config::new().unicode(false).utf8(false).dot_matches_new_line(true).multi_line(true)
}

impl Linear {
    pub(super) fn new(pattern: &str) -> Result<Self, OperatorError> {
        let config = meta::Config::new()
            .utf8_empty(false)
            .nfa_size_limit(Some(PATTERN_SIZE_LIMIT))
            .hybrid_cache_capacity(PATTERN_CACHE_LIMIT);
        let built = meta::Regex::builder().syntax(syntax()).configure(config).build(pattern);
        let regex = built.map_err(|error| {
            if error.size_limit().is_some() {
                return super::too_large();
            }
            let (message, offset) = match error.syntax_error() {
                Some(regex_syntax::Error::Parse(error)) => (error.kind().to_string(), Some(error.span().start.offset)),
                Some(regex_syntax::Error::Translate(error)) => {
                    (error.kind().to_string(), Some(error.span().start.offset))
                }
                _ => (error.to_string(), None),
            };
            OperatorError { message: format!("the regular expression is invalid: {message}"), help: None, offset }
        })?;
        let by_prefix = regex.is_accelerated() && has_fast_prefix(pattern);
        let states = regex.memory_usage() / STATE_SIZE;
        let starts = [const { OnceLock::new() }; ABSENT.len()];
        let cache = Mutex::new(None);
        Ok(Self { regex, cache, by_prefix, states, pattern: pattern.into(), starts, probe: OnceLock::new() })
    }

    /// Builds a piece of what searches of long values would have to wait for; `false` if there is nothing to build any more.
    pub(super) fn prepare(&self, piece: usize) -> bool {
        match self.starts.get(piece) {
            Some(starts) => starts.get().is_none() && !self.by_prefix && self.starts(piece).is_some(),
            None if self.probe.get().is_some() || !self.is_costly(PREPARED_LENGTH) => false,
            None => self.probe.get_or_init(|| Probe::new(&self.pattern)).is_some(),
        }
    }

    /// The memory of all automata that grows with the values that were searched, in bytes.
    pub(super) fn cached(&self) -> usize {
        let general =
            self.cache.try_lock().ok().and_then(|kept| Some(kept.as_ref()?.cache.memory_usage())).unwrap_or(0);
        let starts: usize = self.built_starts().map(Starts::cached).sum();
        general + starts + self.built_probe().map_or(0, Probe::cached)
    }

    /// Releases that memory: the automata begin anew.
    pub(super) fn forget(&self) {
        if let Ok(mut kept) = self.cache.try_lock() {
            *kept = None;
        }
        self.built_starts().for_each(Starts::forget);
        if let Some(probe) = self.built_probe() {
            probe.forget();
        }
    }

    /// Each that was built, once.
    fn built_starts(&self) -> impl Iterator<Item = &Starts> {
        let built = |place: usize| self.starts.get(place)?.get()?.as_ref();
        let own = move |place: &usize| {
            !built(*place).zip(built(place + 1)).is_some_and(|(one, other)| Arc::ptr_eq(one, other))
        };
        (0..ABSENT.len()).filter(own).filter_map(built).map(Arc::as_ref)
    }

    fn built_probe(&self) -> Option<&Probe> {
        self.probe.get()?.as_ref()
    }

    /// The spans of the first match from `at` on: all groups or, faster, only that there is one. What it costs is added
    /// to the effort.
    pub(super) fn search(&self, value: &[u8], at: usize, groups: bool, effort: &mut Effort) -> Option<Spans> {
        let mut input = Input::new(value).range(at..);
        effort.charge(SEARCH);
        match self.first(value, at, &mut effort.cost) {
            Some(Found::Nothing) => return None,
            Some(Found::Match(start, end)) if !groups => return whole(start, end),
            Some(Found::Match(start, _)) => input = input.range(start..).anchored(Anchored::Yes),
            Some(Found::Open(start)) => input = input.range(start..),
            None => {}
        }
        if self.is_costly(input.get_span().len()) {
            match self.probe(&input, groups, effort) {
                Probed::Nothing => return None,
                Probed::Found(span) if !groups => return whole(span.start, span.end),
                Probed::Found(span) => input = input.span(span).anchored(Anchored::Yes),
                Probed::GaveUp if !self.may_simulate(input.get_span().len(), effort) => {
                    effort.limited = true;
                    return None;
                }
                Probed::GaveUp => {}
            }
            if input.get_anchored().is_anchored() && !self.may_group(input.get_span().len(), effort) {
                return whole(input.start(), input.end());
            }
        } else if groups && self.has_groups() && self.groups_cost(input.get_span().len()) > effort.left() {
            // What is left may not suffice for the groups of so long a match: first it is found out how long it is.
            let span = self.span(&input, effort)?;
            if !self.may_group(span.len(), effort) {
                return whole(span.start, span.end);
            }
            input = input.span(span).anchored(Anchored::Yes);
        }
        self.general(&input, groups, effort)
    }

    /// Whether the remaining effort suffices for the groups of a match of this length, if the pattern has any; else
    /// records that a limit was exceeded.
    fn may_group(&self, length: usize, effort: &mut Effort) -> bool {
        let may = !self.has_groups() || self.groups_cost(length) <= effort.left();
        effort.limited |= !may;
        may
    }

    /// The first match as a whole.
    fn span(&self, input: &Input<'_>, effort: &mut Effort) -> Option<Span> {
        // Forward to the end, and back to the start.
        effort.charge(units(input.get_span().len(), 2 * BYTE));
        let found = match self.cache.try_lock() {
            Ok(mut kept) => {
                let kept = kept.get_or_insert_with(|| Kept::new(&self.regex));
                self.regex.search_with(&mut kept.cache, input)
            }
            Err(_) => self.regex.search(input),
        };
        found.map(|found| found.span())
    }

    /// Whether the pattern has groups besides the whole: these take a simulation of the NFA on what matched.
    fn has_groups(&self) -> bool {
        self.regex.group_info().slot_len() > 2
    }

    /// Units of work to find the groups of a match of this length.
    fn groups_cost(&self, length: usize) -> u64 {
        // States are counted by the memory that they take, which is half as much in a VM of 32 bits.
        let states = self.states * size_of::<u64>() / size_of::<usize>();
        let state = if states.saturating_mul(length) > MARKED { STATE_AT_ONCE } else { STATE };
        GROUP_BYTE.max(units(states, state)).saturating_mul(units(length, 1))
    }

    /// Whether what is left suffices for a simulation of the NFA, which is charged then.
    fn may_simulate(&self, length: usize, effort: &mut Effort) -> bool {
        let steps = self.states.saturating_mul(length);
        let cost = units(steps, SIMULATED);
        let may = steps <= SIMULATION_CEILING && cost <= effort.left();
        if may {
            effort.charge(cost);
        }
        may
    }

    /// A search of the general engine.
    fn general(&self, input: &Input<'_>, groups: bool, effort: &mut Effort) -> Option<Spans> {
        // More slots than the pattern has would overrun the table of the simulation of the NFA.
        let known = self.regex.group_info().slot_len().min(2 * MAX_CAPTURES);
        let mut slots: [Option<NonMaxUsize>; 2 * MAX_CAPTURES] = [None; 2 * MAX_CAPTURES];
        let slots = slots.get_mut(..known)?;
        // Where another thread searches for the same, this one takes a cache of which nothing is known.
        let mut kept = match self.cache.try_lock() {
            Ok(kept) => Some(kept),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        };
        let mut known = kept.as_mut().map(|kept| kept.get_or_insert_with(|| Kept::new(&self.regex)));
        let found = match (&mut known, groups) {
            (Some(kept), false) => self.regex.search_half_with(&mut kept.cache, &input.clone().earliest(true)),
            (None, false) => self.regex.search_half(&input.clone().earliest(true)),
            (Some(kept), true) => {
                self.regex.search_slots_with(&mut kept.cache, input, slots).map(|pattern| HalfMatch::new(pattern, 0))
            }
            (None, true) => self.regex.search_slots(input, slots).map(|pattern| HalfMatch::new(pattern, 0)),
        };
        let found =
            found.and_then(|half| if groups { Some(spans(slots)) } else { whole(input.start(), half.offset()) });
        let first = found.and_then(|spans| spans.first().copied().flatten());
        let seen = first.map_or(input.end(), |(_, end)| end).saturating_sub(input.start());
        effort.charge(units(seen, BYTE));
        if groups && self.has_groups() {
            effort.charge(self.groups_cost(first.map_or(0, |(start, end)| end.saturating_sub(start))));
        }
        if let Some(kept) = known {
            kept.since = kept.since.saturating_add(seen);
            if kept.since >= MEASURED {
                kept.since = 0;
                let grown = kept.cache.memory_usage();
                let before = std::mem::replace(&mut kept.size, grown);
                if grown > GROWN {
                    effort.charge(units(grown.saturating_sub(before.max(GROWN)), GROWTH));
                }
                if grown < before {
                    effort.charge(units(grown, GROWTH) + units(seen, THRASHED));
                }
            }
        }
        found
    }

    /// The result for a long value from the positions where a match can begin; `None` if the general engine is the faster one.
    fn first(&self, value: &[u8], at: usize, cost: &mut u64) -> Option<Found> {
        let rest = value.get(at..).filter(|rest| rest.len() >= BRIEF && !self.by_prefix)?;
        let has = |byte: &u8| memchr::memchr(*byte, rest).is_some();
        let absent = ABSENT.iter().position(|absent| !absent.iter().any(has))?;
        Some(self.starts(absent)?.search(value, at, cost))
    }

    /// Where a match can begin in values without some bytes, by their place in [`ABSENT`].
    fn starts(&self, place: usize) -> Option<&Starts> {
        let build = || {
            // Most patterns have no part that needs these bytes: they share what is made for the bytes behind.
            let same = place + 1 < ABSENT.len() && !needs(&self.pattern, absent_beside(place));
            match same {
                true => self.shared_starts(place + 1),
                false => Starts::new(&self.pattern, ABSENT.get(place).copied().unwrap_or_default()).map(Arc::new),
            }
        };
        self.starts.get(place)?.get_or_init(build).as_deref()
    }

    fn shared_starts(&self, place: usize) -> Option<Arc<Starts>> {
        self.starts(place)?;
        self.starts.get(place)?.get()?.clone()
    }

    /// Whether simulating the NFA on this many bytes would take too long.
    fn is_costly(&self, length: usize) -> bool {
        self.states.saturating_mul(length) > SIMULATION_LIMIT
    }

    fn probe(&self, input: &Input<'_>, groups: bool, effort: &mut Effort) -> Probed {
        let Some(probe) = self.probe.get_or_init(|| Probe::new(&self.pattern)) else { return Probed::GaveUp };
        effort.charge(units(input.get_span().len(), PROBED));
        let mut built = 0;
        let found = probe.search(&self.pattern, input, groups, &mut built);
        effort.charge(units(built, GROWTH));
        match found {
            Ok(None) => Probed::Nothing,
            Ok(Some(span)) => Probed::Found(span),
            Err(GaveUp) => Probed::GaveUp,
        }
    }
}

/// Whether each match of a pattern begins with one of few literals. The general engine searches for these as fast as it can.
/// Where literals are inside or at the end of matches it searches backwards from each of them, which takes hundreds of
/// instructions for each byte of a value that is full of them.
fn has_fast_prefix(pattern: &str) -> bool {
    let Ok(hir) = syntax::parse_with(pattern, &syntax()) else { return false };
    let mut prefixes = literal::Extractor::new().kind(literal::ExtractKind::Prefix).extract(&hir);
    prefixes.optimize_for_prefix_by_preference();
    let literals = prefixes.literals().unwrap_or_default();
    Prefilter::new(MatchKind::LeftmostFirst, literals).is_some_and(|prefilter| prefilter.is_fast())
}

/// The bytes of an entry of [`ABSENT`] that the next one lacks.
fn absent_beside(place: usize) -> u8 {
    let of = |place: usize| ABSENT.get(place).copied().unwrap_or_default();
    of(place).iter().copied().find(|byte| !of(place + 1).contains(byte)).unwrap_or_default()
}

/// The groups of a match.
fn spans(slots: &[Option<NonMaxUsize>]) -> Spans {
    let mut spans = Spans::default();
    let (pairs, _) = slots.as_chunks::<2>();
    for (span, pair) in spans.iter_mut().zip(pairs) {
        *span = match *pair {
            [Some(start), Some(end)] => Some((start.get(), end.get())),
            _ => None,
        };
    }
    spans
}

/// A match of which no groups are known.
fn whole(start: usize, end: usize) -> Option<Spans> {
    let mut spans = Spans::default();
    *spans.first_mut()? = Some((start, end));
    Some(spans)
}

fn units(count: usize, each: u64) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX).saturating_mul(each)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_inside_of_matches_are_no_fast_way() {
        assert!(has_fast_prefix("select.*?from"));
        for inside in ["(?:^|[/;])\\.{2,3}[/;]", "[a-z]+javascript"] {
            assert!(!has_fast_prefix(inside), "{inside}");
        }
        // Full of the literal, and without a match: the places where one can begin decide.
        let linear = Linear::new("(?:^|[/;])\\.{2,3}[/;]").unwrap();
        assert!(linear.regex.is_accelerated());
        assert_eq!(linear.first(&b"..,....*".repeat(100), 0, &mut 0), Some(Found::Nothing));
    }
}
