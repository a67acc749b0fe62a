//! Literals with the packed searcher of `aho-corasick`.

use aho_corasick::packed::{Config, MatchKind, Searcher};
use aho_corasick::{AhoCorasick, Span};

/// A set of literals, each known by its place in the list.
#[derive(Debug)]
pub struct Literals(Kind);

#[derive(Debug)]
enum Kind {
    Packed(Searcher),
    /// On processors without the instructions.
    Automaton(Option<AhoCorasick>),
}

impl Literals {
    /// Literals of at least [`MIN_LITERAL`](super::MIN_LITERAL) bytes, at most [`MAX_LITERALS`](super::MAX_LITERALS); none of
    /// them begins with another.
    #[must_use]
    pub fn new(literals: &[&[u8]]) -> Self {
        let packed = Config::new().match_kind(MatchKind::LeftmostFirst).builder().extend(literals).build();
        Self(packed.map_or_else(|| Kind::Automaton(AhoCorasick::new(literals).ok()), Kind::Packed))
    }

    /// Calls `visit` with each occurrence: the literal, and where it begins. Literals may overlap. Goes on at the place that
    /// `visit` returns, or behind the beginning where that is later.
    pub fn each(&self, text: &[u8], mut visit: impl FnMut(usize, usize) -> usize) {
        let mut at = 0;
        while at < text.len() {
            let span = Span { start: at, end: text.len() };
            let found = match &self.0 {
                Kind::Packed(searcher) => searcher.find_in(text, span),
                Kind::Automaton(automaton) => {
                    automaton.as_ref().and_then(|automaton| automaton.find(aho_corasick::Input::new(text).span(span)))
                }
            };
            let Some(found) = found else { return };
            at = visit(found.pattern().as_usize(), found.start()).max(found.start() + 1);
        }
    }
}
