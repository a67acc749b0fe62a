//! Which combinations of patterns the paths of a template match: decided for all of its paths, not for samples.
//!
//! The template and each set of patterns is an automaton; their product is searched, one representative for bytes that no
//! automaton tells apart. What is found has the shortest path that shows it.

use std::collections::{BTreeSet, HashMap};

use regex_automata::Anchored;
use regex_automata::hybrid::LazyStateID;
use regex_automata::hybrid::dfa::{Cache, DFA};
use regex_automata::nfa::thompson;
use regex_automata::util::start;

use crate::facts::syntax_config;
use crate::template::{Positions, Template};

/// The states of one search, at most.
const MAX_STATES: usize = 20_000;
/// The states of all searches of a route, at most.
const MAX_TOTAL: usize = 5_000_000;
/// The memory of one automaton, in bytes.
const CACHE: usize = 4 << 20;
/// The size of one automaton before it is made deterministic, in bytes.
const NFA_SIZE: usize = 4 << 20;

/// The characters of paths, those first that read best.
const CHARACTERS: &[u8] = b"abcdefghijklmnopqrstuvwxyz0123456789-_ABCDEFGHIJKLMNOPQRSTUVWXYZ./~!$&'()*+,;=:@%";

/// Sets of patterns; a path matches a set if it matches one of its patterns.
pub(crate) struct Scopes {
    sets: Vec<Automaton>,
    states: usize,
}

/// What some paths of a template match.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Matching {
    /// For each set, whether they match it.
    pub(crate) sets: Vec<bool>,
    /// One of them.
    pub(crate) path: String,
}

/// The search would take too long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Undecided;

struct Automaton {
    dfa: DFA,
    cache: Cache,
    start: LazyStateID,
}

/// Where one automaton is.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Standing {
    Open(LazyStateID),
    Matched,
    Failed,
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct State {
    template: Positions,
    shadows: Vec<Positions>,
    sets: Vec<Standing>,
}

// === impl Scopes ===

impl Scopes {
    /// Compiles sets of patterns.
    ///
    /// # Errors
    /// A pattern does not compile, or they are too large together.
    pub(crate) fn new(sets: &[&[String]]) -> Result<Scopes, Undecided> {
        let sets = sets.iter().map(|patterns| Automaton::new(patterns)).collect::<Result<_, _>>()?;
        Ok(Scopes { sets, states: 0 })
    }

    /// Every combination of sets that some path of `template` matches which none of `shadows` has.
    ///
    /// # Errors
    /// The search takes too long.
    pub(crate) fn of(&mut self, template: &Template, shadows: &[&Template]) -> Result<Vec<Matching>, Undecided> {
        let alphabet = self.alphabet(template, shadows);
        let first = State {
            template: template.start(),
            shadows: shadows.iter().map(|shadow| shadow.start()).collect(),
            sets: self.sets.iter().map(|set| Standing::Open(set.start)).collect(),
        };
        // Each state with the one before it and the byte between them.
        let mut states: Vec<(State, usize, u8)> = vec![(first.clone(), 0, 0)];
        let mut known: HashMap<State, ()> = HashMap::from([(first, ())]);
        let (mut found, mut seen): (Vec<Matching>, BTreeSet<Vec<bool>>) = Default::default();
        let mut next = 0;
        while let Some((state, ..)) = states.get(next).cloned() {
            self.states += 1;
            if states.len() > MAX_STATES || self.states > MAX_TOTAL {
                return Err(Undecided);
            }
            let shadowed = || state.shadows.iter().zip(shadows).any(|(positions, shadow)| shadow.ends(positions));
            if template.ends(&state.template) && !shadowed() {
                let sets = self.end(&state.sets)?;
                if seen.insert(sets.clone()) {
                    found.push(Matching { sets, path: path_to(&states, next) });
                }
            }
            for byte in &alphabet {
                let positions = template.step(&state.template, *byte);
                if positions.is_empty() {
                    continue;
                }
                let shadows =
                    state.shadows.iter().zip(shadows).map(|(positions, shadow)| shadow.step(positions, *byte));
                let after =
                    State { template: positions, shadows: shadows.collect(), sets: self.step(&state.sets, *byte)? };
                if !known.contains_key(&after) {
                    known.insert(after.clone(), ());
                    states.push((after, next, *byte));
                }
            }
            next += 1;
        }
        Ok(found)
    }

    fn step(&mut self, sets: &[Standing], byte: u8) -> Result<Vec<Standing>, Undecided> {
        sets.iter().zip(&mut self.sets).map(|(standing, set)| set.step(*standing, byte)).collect()
    }

    fn end(&mut self, sets: &[Standing]) -> Result<Vec<bool>, Undecided> {
        sets.iter().zip(&mut self.sets).map(|(standing, set)| set.end(*standing)).collect()
    }

    /// One byte for all that no automaton tells apart.
    fn alphabet(&self, template: &Template, shadows: &[&Template]) -> Vec<u8> {
        let literal: BTreeSet<u8> = template.bytes().chain(shadows.iter().flat_map(|shadow| shadow.bytes())).collect();
        let mut seen: BTreeSet<Vec<u8>> = BTreeSet::new();
        let mut alphabet: Vec<u8> = Vec::new();
        for byte in CHARACTERS.iter().copied().chain(literal.iter().copied().filter(|byte| !CHARACTERS.contains(byte)))
        {
            let mut class: Vec<u8> = self.sets.iter().map(|set| set.dfa.byte_classes().get(byte)).collect();
            // The slash ends a segment.
            class.push(if literal.contains(&byte) || byte == b'/' { byte } else { 0 });
            if seen.insert(class) {
                alphabet.push(byte);
            }
        }
        alphabet
    }
}

/// The path to a state.
fn path_to(states: &[(State, usize, u8)], mut at: usize) -> String {
    let mut bytes = Vec::new();
    while at != 0 {
        let Some((_, before, byte)) = states.get(at) else { break };
        bytes.push(*byte);
        at = *before;
    }
    bytes.reverse();
    String::from_utf8_lossy(&bytes).into_owned()
}

// === impl Automaton ===

impl Automaton {
    fn new(patterns: &[String]) -> Result<Automaton, Undecided> {
        let config = DFA::config().cache_capacity(CACHE).skip_cache_capacity_check(true);
        let dfa = DFA::builder()
            .syntax(syntax_config())
            .thompson(thompson::Config::new().utf8(false).nfa_size_limit(Some(NFA_SIZE)))
            .configure(config)
            .build_many(patterns)
            .map_err(|_| Undecided)?;
        let mut cache = dfa.create_cache();
        let start = dfa.start_state(&mut cache, &start::Config::new().anchored(Anchored::No)).map_err(|_| Undecided)?;
        Ok(Automaton { dfa, cache, start })
    }

    fn step(&mut self, standing: Standing, byte: u8) -> Result<Standing, Undecided> {
        let Standing::Open(state) = standing else { return Ok(standing) };
        let after = self.dfa.next_state(&mut self.cache, state, byte).map_err(|_| Undecided)?;
        // The states of a cache that was cleared mean others now.
        if self.cache.clear_count() > 0 || after.is_quit() {
            return Err(Undecided);
        }
        Ok(match () {
            () if after.is_match() => Standing::Matched,
            () if after.is_dead() => Standing::Failed,
            () => Standing::Open(after),
        })
    }

    fn end(&mut self, standing: Standing) -> Result<bool, Undecided> {
        let Standing::Open(state) = standing else { return Ok(standing == Standing::Matched) };
        let after = self.dfa.next_eoi_state(&mut self.cache, state).map_err(|_| Undecided)?;
        if self.cache.clear_count() > 0 { Err(Undecided) } else { Ok(after.is_match()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(sets: &[&[&str]], template: &str, shadows: &[&str]) -> Vec<(Vec<bool>, String)> {
        let sets: Vec<Vec<String>> = sets.iter().map(|set| set.iter().map(ToString::to_string).collect()).collect();
        let sets: Vec<&[String]> = sets.iter().map(Vec::as_slice).collect();
        let shadows: Vec<Template> = shadows.iter().map(|shadow| Template::of_contract(shadow)).collect();
        let mut scopes = Scopes::new(&sets).unwrap();
        let found = scopes.of(&Template::of_contract(template), &shadows.iter().collect::<Vec<_>>()).unwrap();
        found.into_iter().map(|matching| (matching.sets, matching.path)).collect()
    }

    #[test]
    fn literal_paths_match_or_do_not() {
        assert_eq!(found(&[&["^/api/"]], "/api/users", &[]), [(vec![true], "/api/users".to_owned())]);
        assert_eq!(found(&[&["^/api/$"]], "/api/users", &[]), [(vec![false], "/api/users".to_owned())]);
        assert_eq!(found(&[&["sers$"], &["^x"]], "/api/users", &[]), [(vec![true, false], "/api/users".to_owned())]);
    }

    #[test]
    fn every_combination_of_a_template_is_found() {
        let both = found(&[&["^/users/login$"]], "/users/{id}", &[]);
        assert_eq!(both, [(vec![false], "/users/a".to_owned()), (vec![true], "/users/login".to_owned())]);
        // Another operation has that path.
        assert_eq!(
            found(&[&["^/users/login$"]], "/users/{id}", &["/users/login"]),
            [(vec![false], "/users/a".to_owned())]
        );
        assert_eq!(found(&[&["^/users/[^/]+$"]], "/users/{id}", &[]), [(vec![true], "/users/a".to_owned())]);
        let numbers = found(&[&["^/users/[0-9]+$"], &["(?i)^/USERS/"]], "/users/{id}", &[]);
        assert_eq!(numbers, [(vec![false, true], "/users/a".to_owned()), (vec![true, true], "/users/0".to_owned())]);
    }

    #[test]
    fn word_boundaries_and_ends_are_decided_at_the_end() {
        assert_eq!(found(&[&[r"\bme\b"]], "/users/me", &[]), [(vec![true], "/users/me".to_owned())]);
        assert_eq!(found(&[&["^/users/me"]], "/users/me", &[]), [(vec![true], "/users/me".to_owned())]);
        assert_eq!(found(&[&[]], "/a", &[]), [(vec![false], "/a".to_owned())]);
        assert_eq!(found(&[&[""]], "/a", &[]), [(vec![true], "/a".to_owned())]);
    }

    #[test]
    fn a_search_that_takes_too_long_ends() {
        let patterns =
            ["[ab][^c]{14}d[^e]{14}f[^g]{13}h[^i]{12}j".to_owned(), "k[^l]{14}m".to_owned(), "n[^o]{15}p".to_owned()];
        let mut scopes = Scopes::new(&[&patterns]).unwrap();
        assert_eq!(scopes.of(&Template::any(), &[]), Err(Undecided));
    }
}
