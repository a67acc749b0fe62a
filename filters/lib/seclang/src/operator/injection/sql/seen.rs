//! What readings from the beginning of a value have seen of it and let pass.

use super::reading::Reading;
use super::token::{Kind, Token};

/// How many tokens in a row are told: those by which windows know a query.
const ROW: usize = 3;

/// Where tokens began that were left next to each other in readings of values that begin with an operator, such as paths. No
/// value that does goes on with a query: there is nothing in front of the operator. A window, which takes an operand for
/// granted, cannot know that. There are at most twelve readings, of five tokens each.
#[derive(Debug, Default)]
pub(super) struct Seen(Vec<[usize; ROW]>);

impl Seen {
    /// Takes note of the tokens of a reading from the beginning.
    pub(super) fn note(&mut self, reading: &Reading) {
        let tokens = reading.tokens.as_slice();
        if tokens.first().is_some_and(|first| first.kind == Kind::Operator) {
            self.0.extend(tokens.windows(ROW).filter_map(places));
        }
    }

    /// Whether a reading from the beginning was left with what a window has behind its first token, and knew what is in
    /// front of it.
    pub(super) fn covers(&self, window: &Reading) -> bool {
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
