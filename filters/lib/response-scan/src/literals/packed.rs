//! The search for keys with `aho-corasick`.

use aho_corasick::packed::{Config, MatchKind, Searcher};
use aho_corasick::{AhoCorasick, Input, Span};

use super::keys::Key;

#[derive(Debug)]
pub(super) enum Search {
    Packed(Searcher),
    /// On processors without the instructions.
    Automaton(Option<AhoCorasick>),
}

impl Search {
    pub(super) fn new(keys: &[Key]) -> Self {
        let packed = Config::new().match_kind(MatchKind::LeftmostFirst).builder().extend(keys).build();
        packed.map_or_else(|| Self::Automaton(AhoCorasick::new(keys).ok()), Self::Packed)
    }

    /// Calls `check` with each place of a key, and goes on where it says.
    pub(super) fn each(&self, text: &[u8], mut check: impl FnMut(usize) -> usize) {
        let mut start = 0;
        while start < text.len() {
            let span = Span { start, end: text.len() };
            let found = match self {
                Self::Packed(searcher) => searcher.find_in(text, span),
                Self::Automaton(automaton) => {
                    automaton.as_ref().and_then(|automaton| automaton.find(Input::new(text).span(span)))
                }
            };
            let Some(found) = found else { return };
            start = check(found.start()).max(found.start() + 1);
        }
    }
}
