//! Where a match can begin at all.
//!
//! Most values hold no place where a match of a given pattern could begin. Which places could is read off the first
//! few bytes of what the pattern matches, which takes no automaton; at those places an automaton of its own, anchored
//! there, says whether there is a match, and it most often stops after a few bytes. Where that does not pay off, the
//! search is left to the general engine, from the first place on that is still open.
//!
//! Many patterns of attacks begin with a path that is optional and may run over the whole line before its backslash
//! comes; others allow for an expanded variable after each letter of a word. For values without backslashes and dollar
//! signs the automaton is made without these parts.

use std::sync::{Mutex, PoisonError};

use regex_automata::hybrid::dfa::{self, Cache, DFA};
use regex_automata::nfa::thompson::{self, NFA, State};
use regex_automata::util::look::Look;
use regex_automata::util::primitives::StateID;
use regex_automata::util::syntax;
use regex_automata::{Anchored, Input};
use regex_syntax::hir::{Class, ClassBytes, ClassBytesRange, Hir, HirKind, Repetition};

use super::super::prefilter::frequency;
use super::{ByteSet, PATTERN_SIZE_LIMIT};

/// How much the automaton of one pattern may cache, in bytes. It is meant for the few states that places without a
/// match lead to.
const CACHE_LIMIT: usize = 128 << 10;

/// How many bytes an automaton may look at in one search besides half of the value.
const STEPS: usize = 256;

/// Units of work for each byte that is looked at for a place, for each place, for each step of the automaton, for each byte
/// of states that it grows by, and for building it anew once it has grown beyond its limit.
const LOOK: u64 = 5;
const PLACE: u64 = 130;
const STEP: u64 = 12;
const GROWTH: u64 = 10;
const REBUILT: u64 = 1_000_000;

/// At how many places of usual values a match may begin for them to be worth looking for, see [`frequency`].
const COMMON: f64 = 0.12;

/// How common the first bytes of matches may be for a search to look for them alone, without those that follow.
const RARE: f64 = 0.1;

/// Into how many groups the first bytes of matches are divided; a byte of [`Table`] has a bit for each.
const GROUPS: usize = 16;

/// How many bytes of a match are looked at.
const DEPTH: usize = 4;

/// The bits of the first byte in an entry of [`Table`].
const FIRST: u64 = u64::MAX >> (64 - GROUPS);

/// For each byte, with which groups of matches it agrees as the first byte (in the lowest 16 bits) to the fourth one.
type Table = Box<[u64; 256]>;

/// The places where a match of a pattern can begin.
#[derive(Debug)]
pub(super) struct Starts {
    anywhere: Table,
    /// At the start of a line, if that makes a difference.
    at_line: Option<Table>,
    /// Whether the first bytes of matches are rare by themselves.
    rare: bool,
    automaton: DFA,
    cache: Mutex<Cache>,
}

/// What a search came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Found {
    /// There is no match.
    Nothing,
    /// The first match begins here; it has been seen at the second place.
    Match(usize, usize),
    /// No match begins before this place; whether one begins from there on would take too long to find.
    Open(usize),
}

impl Starts {
    /// The places of a pattern of the linear engine, in values without the bytes `absent`. `None` if they are too many
    /// to look for.
    pub(super) fn new(pattern: &str, absent: &[u8]) -> Option<Self> {
        let hir = syntax::parse_with(pattern, &super::syntax()).ok()?;
        let hir = if absent.is_empty() { hir } else { reduced(&hir, absent).unwrap_or_else(Hir::fail) };
        let config = thompson::Config::new()
            .utf8(false)
            .nfa_size_limit(Some(PATTERN_SIZE_LIMIT))
            .which_captures(thompson::WhichCaptures::None);
        let nfa = thompson::Compiler::new().configure(config).build_from_hir(&hir).ok()?;
        let (anywhere, at_line) = tables(&nfa)?;
        if commonness(&anywhere) > COMMON {
            return None;
        }
        let firsts = (0..=255u8).zip(anywhere.iter()).filter(|(_, entry)| **entry & FIRST != 0);
        let rare = firsts.map(|(byte, _)| frequency(byte)).sum::<f64>() < RARE;
        let lazy = dfa::Config::new()
            .cache_capacity(CACHE_LIMIT)
            .skip_cache_capacity_check(true)
            .minimum_cache_clear_count(Some(0));
        let automaton = dfa::Builder::new().configure(lazy).build_from_nfa(nfa).ok()?;
        let cache = Mutex::new(automaton.create_cache());
        let at_line = (at_line != anywhere).then_some(at_line);
        Some(Self { anywhere, at_line, rare, automaton, cache })
    }

    /// The memory of the automaton's states, in bytes.
    pub(super) fn cached(&self) -> usize {
        self.cache.try_lock().map_or(0, |cache| cache.memory_usage())
    }

    /// Releases the states.
    pub(super) fn forget(&self) {
        if let Ok(mut cache) = self.cache.try_lock() {
            *cache = self.automaton.create_cache();
        }
    }

    /// Searches for the first match from `at` on. What that costs is added to `cost`, in units of work.
    pub(super) fn search(&self, value: &[u8], at: usize, cost: &mut u64) -> Found {
        let mut anywhere = None;
        let rest = value.len().saturating_sub(at);
        let Some(mut place) = self.next(value, at, &mut anywhere) else {
            *cost += units(rest, LOOK);
            return Found::Nothing;
        };
        let mut cache = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        let most = STEPS + rest / 2;
        let mut steps = most;
        let mut places = 0;
        let before = cache.memory_usage();
        let found = self.first(&mut cache, value, &mut place, (&mut steps, &mut places), &mut anywhere);
        let seen = match found {
            Found::Nothing => rest,
            Found::Match(place, _) | Found::Open(place) => place.saturating_sub(at),
        };
        *cost += units(seen, LOOK) + units(places, PLACE) + units(most - steps, STEP);
        *cost += units(cache.memory_usage().saturating_sub(before), GROWTH);
        if matches!(found, Found::Open(_)) && steps > 0 {
            // The automaton grew beyond its limit, and is built anew.
            *cost += REBUILT;
        }
        found
    }

    /// The first match from a place on where one can begin. Counts the steps of the automaton down, and such places up.
    fn first(
        &self,
        cache: &mut Cache,
        value: &[u8],
        place: &mut usize,
        (steps, places): (&mut usize, &mut usize),
        anywhere: &mut Option<Option<usize>>,
    ) -> Found {
        loop {
            *places += 1;
            match self.match_at(cache, value, *place, steps) {
                Ok(Some(end)) => return Found::Match(*place, end),
                Ok(None) => {}
                Err(Stopped) => return Found::Open(*place),
            }
            match self.next(value, *place + 1, anywhere) {
                Some(next) => *place = next,
                None => return Found::Nothing,
            }
        }
    }

    /// The match that begins at `place`, if there is one.
    fn match_at(
        &self,
        cache: &mut Cache,
        value: &[u8],
        place: usize,
        steps: &mut usize,
    ) -> Result<Option<usize>, Stopped> {
        let input = Input::new(value).range(place..).anchored(Anchored::Yes);
        let Ok(mut state) = self.automaton.start_state_forward(cache, &input) else {
            cache.reset(&self.automaton);
            return Err(Stopped);
        };
        for (end, &byte) in value.iter().enumerate().skip(place) {
            *steps = steps.checked_sub(1).ok_or(Stopped)?;
            let Ok(next) = self.automaton.next_state(cache, state, byte) else {
                cache.reset(&self.automaton);
                return Err(Stopped);
            };
            if next.is_tagged() {
                if next.is_match() {
                    return Ok(Some(end));
                }
                if next.is_dead() {
                    return Ok(None);
                }
                if next.is_quit() {
                    return Err(Stopped);
                }
            }
            state = next;
        }
        let Ok(last) = self.automaton.next_eoi_state(cache, state) else {
            cache.reset(&self.automaton);
            return Err(Stopped);
        };
        Ok(last.is_match().then_some(value.len()))
    }

    /// The first place from `at` on. `anywhere` is the next place that need not be at the start of a line, as of an
    /// earlier call, so that values of many lines are not looked through for each line.
    fn next(&self, value: &[u8], at: usize, anywhere: &mut Option<Option<usize>>) -> Option<usize> {
        let open = match *anywhere {
            Some(None) => None,
            Some(Some(place)) if place >= at => Some(place),
            _ => {
                let place = self.scan(value, at);
                *anywhere = Some(place);
                place
            }
        };
        let Some(table) = &self.at_line else { return open };
        let limit = open.unwrap_or(value.len());
        let first = at == 0 || value.get(at - 1) == Some(&b'\n');
        let mut line = if first { Some(at) } else { next_line(value, at, limit) };
        while let Some(place) = line.filter(|place| *place < limit) {
            if begins(table, value, place) {
                return Some(place);
            }
            line = next_line(value, place, limit);
        }
        open
    }

    fn scan(&self, value: &[u8], at: usize) -> Option<usize> {
        if self.rare {
            let mut from = at;
            while let Some(first) = value.get(from..)?.iter().position(|byte| entry(&self.anywhere, *byte) & FIRST != 0)
            {
                if begins(&self.anywhere, value, from + first) {
                    return Some(from + first);
                }
                from += first + 1;
            }
            return None;
        }
        // The entry of a byte with that of the next one has a bit for each group whose first two bytes these are, and
        // one for each whose third and fourth they are. Tested for four places at a time.
        let (blocks, _) = value.get(at..)?.as_chunks::<4>();
        let (mut last, mut pairs) = (0, [0; 2]);
        let mut place = at;
        for block in blocks {
            let mut any = 0;
            for &byte in block {
                let entry = entry(&self.anywhere, byte);
                let pair = last & entry >> GROUPS;
                any |= pairs[0] & pair >> (2 * GROUPS);
                pairs = [pairs[1], pair];
                last = entry;
            }
            if any != 0 {
                let places = place.saturating_sub(DEPTH - 1).max(at)..=place;
                if let Some(found) = places.into_iter().find(|place| begins(&self.anywhere, value, *place)) {
                    return Some(found);
                }
            }
            place += block.len();
        }
        let end = place.saturating_sub(DEPTH - 1).max(at);
        (end..value.len()).find(|place| begins(&self.anywhere, value, *place))
    }
}

#[inline]
fn entry(table: &[u64; 256], byte: u8) -> u64 {
    table.get(usize::from(byte)).copied().unwrap_or(u64::MAX)
}

/// Whether a match can begin at `place`.
fn begins(table: &[u64; 256], value: &[u8], place: usize) -> bool {
    let mut groups = if place < value.len() { FIRST } else { 0 };
    for (position, byte) in value.iter().skip(place).take(DEPTH).enumerate() {
        groups &= entry(table, *byte) >> (position * GROUPS);
    }
    groups != 0
}

fn units(count: usize, each: u64) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX).saturating_mul(each)
}

/// Why an automaton did not come to an answer: it takes too long, or too much memory.
struct Stopped;

/// The start of the next line after `at`, if it is before `limit`.
fn next_line(value: &[u8], at: usize, limit: usize) -> Option<usize> {
    Some(at + memchr::memchr(b'\n', value.get(at..limit)?)? + 1)
}

/// States that take a byte, and whether a match ends before it.
#[derive(Default)]
struct Reached {
    states: Vec<StateID>,
    matched: bool,
}

/// Where a match can begin: anywhere, and at the start of a line. `None` if it can be empty.
fn tables(nfa: &NFA) -> Option<(Table, Table)> {
    let mut walk = Walk { nfa, visited: vec![0; nfa.states().len()], round: 0 };
    let anywhere = walk.closure(vec![nfa.start_anchored()], false);
    let at_line = walk.closure(vec![nfa.start_anchored()], true);
    if anywhere.matched || at_line.matched {
        return None;
    }
    Some((walk.table(&anywhere), walk.table(&at_line)))
}

/// At which share of the places of usual values a match can begin, see [`frequency`].
fn commonness(table: &[u64; 256]) -> f64 {
    let of_group = |group: usize| -> f64 {
        let at = |position: usize| -> f64 {
            let bit = position * GROUPS + group;
            let bytes = (0..=255u8).zip(table).filter(|(_, entry)| **entry >> bit & 1 == 1);
            bytes.map(|(byte, _)| frequency(byte)).sum::<f64>().min(1.0)
        };
        (0..DEPTH).map(at).product()
    };
    (0..GROUPS).map(of_group).sum()
}

/// A walk through an NFA.
struct Walk<'n> {
    nfa: &'n NFA,
    /// In which round a state was seen last.
    visited: Vec<u32>,
    round: u32,
}

impl Walk<'_> {
    fn table(&mut self, start: &Reached) -> Table {
        let mut table: Table = Box::new([0; 256]);
        let mut enter = |set: &ByteSet, group: usize, position: usize| {
            for byte in set.iter() {
                if let Some(entry) = table.get_mut(usize::from(byte)) {
                    *entry |= 1 << (position * GROUPS + group);
                }
            }
        };
        // The common bytes have groups of their own, the rest shares the last one.
        let firsts = taken(self.nfa, start);
        let mut bytes: Vec<u8> = firsts.iter().map(|byte| byte.to_ascii_lowercase()).collect();
        bytes.sort_by(|one, other| frequency(*other).total_cmp(&frequency(*one)).then(one.cmp(other)));
        bytes.dedup();
        for group in 0..GROUPS.min(bytes.len()) {
            let rest = bytes.get(group..).unwrap_or_default();
            let own = if group + 1 < GROUPS { rest.get(..1).unwrap_or_default() } else { rest };
            let mut seeds = Vec::new();
            for byte in firsts.iter().filter(|byte| own.contains(&byte.to_ascii_lowercase())) {
                enter(&ByteSet::of_bytes(&[byte]), group, 0);
                seeds.extend(step(self.nfa, start, byte));
            }
            for position in 1..DEPTH {
                let reached = self.closure(std::mem::take(&mut seeds), true);
                if reached.matched {
                    // Whatever follows the match.
                    (position..DEPTH).for_each(|position| enter(&ByteSet::default().complement(), group, position));
                    break;
                }
                enter(&taken(self.nfa, &reached), group, position);
                seeds = followers(self.nfa, &reached);
            }
        }
        table
    }

    /// What can be reached without a byte. Assertions count as true, but that a line starts only where it may.
    fn closure(&mut self, seeds: Vec<StateID>, lines: bool) -> Reached {
        let mut reached = Reached::default();
        let mut open = seeds;
        self.round += 1;
        while let Some(id) = open.pop() {
            let Some(seen) = self.visited.get_mut(id.as_usize()) else { continue };
            if std::mem::replace(seen, self.round) == self.round {
                continue;
            }
            match self.nfa.states().get(id.as_usize()) {
                Some(State::ByteRange { .. } | State::Sparse(_) | State::Dense(_)) => reached.states.push(id),
                Some(State::Look { look, next }) => {
                    if lines || !matches!(look, Look::StartLF | Look::Start) {
                        open.push(*next);
                    }
                }
                Some(State::Union { alternates }) => open.extend(alternates.iter()),
                Some(State::BinaryUnion { alt1, alt2 }) => open.extend([*alt1, *alt2]),
                Some(State::Capture { next, .. }) => open.push(*next),
                Some(State::Match { .. }) => reached.matched = true,
                Some(State::Fail) | None => {}
            }
        }
        reached
    }
}

/// The states after a byte.
fn step(nfa: &NFA, reached: &Reached, byte: u8) -> Vec<StateID> {
    let next = |id: &StateID| match nfa.states().get(id.as_usize())? {
        State::ByteRange { trans } => trans.matches_byte(byte).then_some(trans.next),
        State::Sparse(sparse) => sparse.matches_byte(byte),
        State::Dense(dense) => dense.matches_byte(byte),
        _ => None,
    };
    reached.states.iter().filter_map(next).collect()
}

/// The states after any byte.
fn followers(nfa: &NFA, reached: &Reached) -> Vec<StateID> {
    let mut next = Vec::new();
    for id in &reached.states {
        match nfa.states().get(id.as_usize()) {
            Some(State::ByteRange { trans }) => next.push(trans.next),
            Some(State::Sparse(sparse)) => next.extend(sparse.transitions.iter().map(|trans| trans.next)),
            Some(State::Dense(dense)) => next.extend(dense.transitions.iter()),
            _ => {}
        }
    }
    next
}

/// The bytes that some state takes.
fn taken(nfa: &NFA, reached: &Reached) -> ByteSet {
    let mut set = ByteSet::default();
    for id in &reached.states {
        match nfa.states().get(id.as_usize()) {
            Some(State::ByteRange { trans }) => set.insert_range(trans.start, trans.end),
            Some(State::Sparse(sparse)) => {
                sparse.transitions.iter().for_each(|trans| set.insert_range(trans.start, trans.end));
            }
            Some(State::Dense(dense)) => {
                (0..=255).filter(|&byte| dense.matches_byte(byte).is_some()).for_each(|byte| set.insert(byte));
            }
            _ => {}
        }
    }
    set
}

/// Whether a pattern has a part that matches nothing without a byte. Classes of which other bytes are left do not count:
/// values without the byte take them the same way.
pub(super) fn needs(pattern: &str, byte: u8) -> bool {
    let parsed = syntax::parse_with(pattern, &super::syntax());
    parsed.is_ok_and(|hir| needed(&hir, byte))
}

fn needed(hir: &Hir, byte: u8) -> bool {
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) | HirKind::Class(Class::Unicode(_)) => false,
        HirKind::Literal(literal) => literal.0.contains(&byte),
        HirKind::Class(Class::Bytes(class)) => {
            matches!(class.ranges(), [range] if (range.start(), range.end()) == (byte, byte))
        }
        HirKind::Repetition(repetition) => needed(&repetition.sub, byte),
        HirKind::Capture(capture) => needed(&capture.sub, byte),
        HirKind::Concat(parts) | HirKind::Alternation(parts) => parts.iter().any(|part| needed(part, byte)),
    }
}

/// The pattern for values without some bytes; `None` if it matches none of them. Groups are left out.
fn reduced(hir: &Hir, absent: &[u8]) -> Option<Hir> {
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => Some(hir.clone()),
        HirKind::Literal(literal) => (!literal.0.iter().any(|byte| absent.contains(byte))).then(|| hir.clone()),
        HirKind::Class(Class::Bytes(class)) => {
            let mut left = class.clone();
            left.difference(&ClassBytes::new(absent.iter().map(|&byte| ClassBytesRange::new(byte, byte))));
            (!left.ranges().is_empty()).then(|| Hir::class(Class::Bytes(left)))
        }
        HirKind::Class(Class::Unicode(_)) => Some(hir.clone()),
        HirKind::Repetition(repetition) => match reduced(&repetition.sub, absent) {
            Some(sub) => Some(Hir::repetition(Repetition {
                min: repetition.min,
                max: repetition.max,
                greedy: repetition.greedy,
                sub: Box::new(sub),
            })),
            None => (repetition.min == 0).then(Hir::empty),
        },
        HirKind::Capture(capture) => reduced(&capture.sub, absent),
        HirKind::Concat(parts) => {
            let parts = parts.iter().map(|part| reduced(part, absent)).collect::<Option<Vec<_>>>()?;
            Some(Hir::concat(parts))
        }
        HirKind::Alternation(branches) => {
            let branches: Vec<Hir> = branches.iter().filter_map(|branch| reduced(branch, absent)).collect();
            (!branches.is_empty()).then(|| Hir::alternation(branches))
        }
    }
}

#[cfg(test)]
mod tests;
