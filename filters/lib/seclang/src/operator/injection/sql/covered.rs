//! Tokens that a reading from the beginning of a value has covered and found harmless.

use super::reading::Reading;
use super::token::{Kind, Token};

/// How many consecutive tokens identify a place: those by which windows recognise a query.
const ROW: usize = 3;

/// Positions of tokens that remained adjacent after folding, in readings of values that begin with an operator, such as
/// paths. No such value continues a query, as there is no operand before the operator. A window assumes an operand and
/// cannot know that. There are at most twelve readings, of five tokens each.
#[derive(Debug, Default)]
pub(super) struct CoveredTokens(Vec<[usize; ROW]>);

impl CoveredTokens {
    /// Records the tokens of a reading from the beginning.
    pub(super) fn note(&mut self, reading: &Reading) {
        let tokens = reading.tokens.as_slice();
        if tokens.first().is_some_and(|first| first.kind == Kind::Operator) {
            self.0.extend(tokens.windows(ROW).filter_map(places));
        }
    }

    /// Whether a reading from the beginning ended with the tokens of the window behind its first one.
    pub(super) fn contains(&self, window: &Reading) -> bool {
        let behind = window.tokens.as_slice().get(1..=ROW);
        behind.and_then(places).is_some_and(|row| self.0.contains(&row))
    }
}

fn places(tokens: &[Token]) -> Option<[usize; ROW]> {
    let mut places = [0; ROW];
    for (place, token) in places.iter_mut().zip(tokens) {
        *place = token.at;
    }
    (tokens.len() == ROW).then_some(places)
}
