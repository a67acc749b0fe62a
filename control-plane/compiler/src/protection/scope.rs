//! Scopes that leave a plugin no path at all.

use std::any::Any;
use std::collections::BTreeSet;

use kit::Guard;
use regex_automata::hybrid::LazyStateID;
use regex_automata::hybrid::dfa::{Cache, DFA};
use regex_automata::util::syntax;
use regex_automata::{Input, nfa::thompson};
use snapshot::Step;

/// What memory the automaton of the patterns may take, in bytes; of patterns that need more nothing is said.
const MEMORY: usize = 4 << 20;
/// How many states of the automaton are looked at; of patterns with more nothing is said.
const STATES: usize = 2_000;

/// A plugin that handles no request because of its scope.
#[derive(Debug)]
struct NoPath(String);

/// Which of the paths that begin with `/` match some of the patterns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Matches {
    All,
    Some,
    None,
}

/// The guard of a plugin whose `include` has no path, or whose `exclude` has all; `None` where it handles some, or that cannot be said.
pub(crate) fn guard(title: &str, include: &[String], exclude: &[String]) -> Option<Box<dyn Guard>> {
    let of = |patterns: &[String]| (!patterns.is_empty()).then(|| matches(patterns)).flatten();
    // Inclusions hold in any case of letters, and as they are written.
    let any_case = include.iter().map(|pattern| format!("(?i){pattern}"));
    let included: Vec<String> = include.iter().cloned().chain(any_case).collect();
    let why = match (of(&included), of(exclude)) {
        (_, Some(Matches::All)) => format!("its `exclude` matches every path ({})", list(exclude)),
        (Some(Matches::None), _) => {
            format!("its `include` matches no path that begins with `/` ({})", list(include))
        }
        _ => return None,
    };
    Some(Box::new(NoPath(format!("the plugin {title} handles no request: {why}"))))
}

impl Guard for NoPath {
    fn gaps(&self, _before: &[&dyn Guard], _behind: &[&dyn Guard]) -> Vec<String> {
        vec![self.0.clone()]
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// The first patterns of a list.
fn list(patterns: &[String]) -> String {
    const SHOWN: usize = 3;
    let shown = patterns.iter().take(SHOWN).map(|pattern| format!("`{}`", pattern.escape_debug()));
    let more = (patterns.len() > SHOWN).then(|| format!("{} more", patterns.len() - SHOWN));
    shown.chain(more).collect::<Vec<_>>().join(", ")
}

/// Whether two steps act on some path both, by their patterns as they are written; `true` where that cannot be said.
pub(super) fn meet(one: &Step, two: &Step) -> bool {
    common_path([&one.include, &two.include], [&one.exclude, &two.exclude]).unwrap_or(true)
}

/// Whether there is a path that each list of inclusions has, where it is not empty, and no list of exclusions. `None` where there are too
/// many states.
fn common_path(include: [&[String]; 2], exclude: [&[String]; 2]) -> Option<bool> {
    let mut searches = Vec::new();
    let mut first = Vec::new();
    for (patterns, must_be_found) in
        include.map(|list| (list, true)).into_iter().chain(exclude.map(|list| (list, false)))
    {
        // What nothing is said of is no condition.
        if !patterns.is_empty() {
            let (search, at) = Search::new(patterns, must_be_found)?;
            searches.push(search);
            first.push(at);
        }
    }
    let (mut seen, mut left) = (BTreeSet::from([first.clone()]), vec![first]);
    while let Some(at) = left.pop() {
        if searches.iter().zip(&at).any(|(search, at)| search.is_lost(*at)) {
            continue;
        }
        let mut is_common = true;
        for (search, at) in searches.iter_mut().zip(&at) {
            is_common &= search.ends_well(*at)?;
        }
        if is_common {
            return Some(true);
        }
        for byte in path_bytes() {
            let pairs = searches.iter_mut().zip(&at);
            let next = pairs.map(|(search, at)| search.next(*at, byte)).collect::<Option<Vec<_>>>()?;
            if seen.insert(next.clone()) {
                left.push(next);
            }
        }
        if seen.len() > STATES {
            return None;
        }
    }
    Some(false)
}

/// The search for the patterns of a list.
struct Search {
    dfa: DFA,
    cache: Cache,
    /// One of them must be found; otherwise none of them.
    must_be_found: bool,
}

/// How far a search is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum At {
    /// A pattern was found.
    Found,
    /// None was so far.
    State(LazyStateID),
}

impl Search {
    /// The search, and how far it is behind the `/` that paths begin with.
    fn new(patterns: &[String], must_be_found: bool) -> Option<(Self, At)> {
        let dfa = automaton(patterns)?;
        let mut cache = dfa.create_cache();
        let start = dfa.start_state_forward(&mut cache, &Input::new(b"")).ok()?;
        let mut search = Self { dfa, cache, must_be_found };
        let at = search.next(At::State(start), b'/')?;
        Some((search, at))
    }

    fn next(&mut self, at: At, byte: u8) -> Option<At> {
        let At::State(state) = at else { return Some(At::Found) };
        let next = self.dfa.next_state(&mut self.cache, state, byte).ok()?;
        // A state says of the text before the last byte that it matches.
        Some(if next.is_match() { At::Found } else { At::State(next) })
    }

    /// Whether no path that goes on from here is one that is looked for.
    fn is_lost(&self, at: At) -> bool {
        match at {
            At::Found => !self.must_be_found,
            At::State(state) => self.must_be_found && state.is_dead(),
        }
    }

    /// Whether a path that ends here is one that is looked for.
    fn ends_well(&mut self, at: At) -> Option<bool> {
        let is_found = match at {
            At::Found => true,
            At::State(state) => self.dfa.next_eoi_state(&mut self.cache, state).ok()?.is_match(),
        };
        Some(is_found == self.must_be_found)
    }
}

/// The automaton of patterns, as filters compile them.
fn automaton(patterns: &[String]) -> Option<DFA> {
    DFA::builder()
        .syntax(syntax::Config::new().unicode(false).utf8(false))
        .thompson(thompson::Config::new().utf8(false).nfa_size_limit(Some(MEMORY)))
        // What was forgotten would have another number afterwards.
        .configure(DFA::config().cache_capacity(MEMORY).minimum_cache_clear_count(Some(0)))
        .build_many(patterns)
        .ok()
}

/// Walks over the states of the automaton that paths lead to. `None` where there are too many.
fn matches(patterns: &[String]) -> Option<Matches> {
    let dfa = automaton(patterns)?;
    let mut cache = dfa.create_cache();
    let start = dfa.start_state_forward(&mut cache, &Input::new(b"")).ok()?;
    let first = dfa.next_state(&mut cache, start, b'/').ok()?;
    let (mut matched, mut missed) = (false, false);
    let (mut seen, mut left) = (BTreeSet::from([first]), vec![first]);
    while let Some(state) = left.pop() {
        // A state says of the text before the last byte that it matches.
        if state.is_match() {
            matched = true;
        } else if state.is_dead() {
            missed = true;
        } else {
            let end = dfa.next_eoi_state(&mut cache, state).ok()?;
            matched |= end.is_match();
            missed |= !end.is_match();
            for byte in path_bytes() {
                let next = dfa.next_state(&mut cache, state, byte).ok()?;
                if seen.insert(next) {
                    left.push(next);
                }
            }
        }
        if matched && missed {
            return Some(Matches::Some);
        }
        if seen.len() > STATES {
            return None;
        }
    }
    Some(if missed { Matches::None } else { Matches::All })
}

/// What ordinary paths consist of. A path with other bytes is inspected whatever an `exclude` says.
fn path_bytes() -> impl Iterator<Item = u8> {
    (b'!'..=b'~').filter(|byte| !b"?#\\".contains(byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(patterns: &[&str]) -> Option<Matches> {
        matches(&patterns.iter().map(ToString::to_string).collect::<Vec<_>>())
    }

    #[test]
    fn patterns_that_match_all_paths_are_known() {
        for all in [
            &[""][..],
            &["^"],
            &["$"],
            &[".*"],
            &["^.*$"],
            &["/"],
            &["^/"],
            &["^/.*$"],
            &["(?s)^/.*"],
            &["^/?"],
            &["^/a", "^/[^a]", "^/$"],
            &["a*", "^/never$"],
        ] {
            assert_eq!(of(all), Some(Matches::All), "{all:?}");
        }
    }

    #[test]
    fn patterns_that_match_no_path_are_known() {
        for none in [&["^api/"][..], &["^$"], &["^api/", "^[a-z]+/"], &["a^"], &["$/"], &["^https?://"], &["/\\?x"]] {
            assert_eq!(of(none), Some(Matches::None), "{none:?}");
        }
    }

    #[test]
    fn of_all_others_nothing_is_said() {
        for some in [
            &["^/never$"][..],
            &["^/."],
            &["^/$"],
            &["api/"],
            &["^/($|[^a]|a[^d])"],
            &["^/.{0,100}$"],
            &[r"\.css$"],
            &["^(/|api)x"],
        ] {
            assert_eq!(of(some), Some(Matches::Some), "{some:?}");
        }
        assert_eq!(of(&["("]), None);
    }
}
