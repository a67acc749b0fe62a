//! The bots of a policy, found in a user agent.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::rc::Rc;

use aho_corasick::Anchored;
use aho_corasick::automaton::Automaton as _;
use aho_corasick::nfa::contiguous::NFA;
use prost::Message as _;

use crate::METHOD_BYTES;
use crate::asking::Asking;
use crate::messages::{BotList, BotReaction, KnownBot};

/// The bots of a policy.
pub(crate) struct Bots {
    bots: Vec<KnownBot>,
    /// All tokens; `None` without any.
    automaton: Option<NFA>,
    /// The bot of each token, as a place in `bots`, and the length of the token.
    tokens: Vec<(usize, usize)>,
    /// Here because all routes with the policy share it.
    pub(crate) asking: Asking,
}

impl Bots {
    /// Reads a part.
    ///
    /// # Errors
    ///
    /// It is no [`BotList`], or a bot of it has an empty token, an action that is unknown here or a method of another length.
    pub(crate) fn read(bytes: &[u8]) -> Result<Rc<Self>, String> {
        let list = BotList::decode(bytes).map_err(|error| error.to_string())?;
        Self::new(list).map(Rc::new)
    }

    pub(crate) fn new(list: BotList) -> Result<Self, String> {
        let BotList { bots } = list;
        if bots.iter().any(|bot| bot.reaction() == BotReaction::Unspecified) {
            return Err("a bot has no action that this filter knows".to_owned());
        }
        if bots.iter().any(|bot| ![0, METHOD_BYTES].contains(&bot.method.len())) {
            return Err("a bot has a method of verification that this filter does not know".to_owned());
        }
        // A token of two bots is that of the first one.
        let mut known: HashMap<Vec<u8>, usize> = HashMap::new();
        let (mut patterns, mut tokens) = (Vec::new(), Vec::new());
        for (place, bot) in bots.iter().enumerate() {
            for token in bot.tokens.iter().map(|token| token.to_ascii_lowercase()) {
                if token.is_empty() {
                    return Err("an empty token is in every user agent".to_owned());
                }
                if known.insert(token.clone(), place).is_none() {
                    tokens.push((place, token.len()));
                    patterns.push(token);
                }
            }
        }
        // A table of all transitions (DFA) would take a kilobyte for each byte of a token.
        let automaton = match patterns.as_slice() {
            [] => None,
            some => Some(NFA::new(some).map_err(|error| error.to_string())?),
        };
        Ok(Self { bots, automaton, tokens, asking: Asking::default() })
    }

    /// The bot whose token in these texts is longest; of two as long the first of the policy. One pass over each text, in any case of
    /// ASCII letters.
    pub(crate) fn find<'a>(&self, texts: impl Iterator<Item = &'a [u8]>) -> Option<&KnownBot> {
        let automaton = self.automaton.as_ref()?;
        let start = automaton.start_state(Anchored::No).ok()?;
        let mut best: Option<(usize, Reverse<usize>)> = None;
        for text in texts {
            let mut state = start;
            for byte in text {
                state = automaton.next_state(Anchored::No, state, byte.to_ascii_lowercase());
                if automaton.is_match(state) {
                    // Of all tokens that end here the first is the longest; the others are its ends.
                    let pattern = automaton.match_pattern(state, 0).as_usize();
                    let found = self.tokens.get(pattern).map(|(place, length)| (*length, Reverse(*place)));
                    best = best.max(found);
                }
            }
        }
        self.bots.get(best?.1.0)
    }

    /// The bytes of the automaton.
    #[cfg(test)]
    pub(crate) fn memory(&self) -> usize {
        self.automaton.as_ref().map_or(0, |automaton| automaton.memory_usage())
    }
}
