//! The bots of a policy, found in a user agent, and what the policy serves them.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::rc::Rc;

use aho_corasick::Anchored;
use aho_corasick::automaton::Automaton as _;
use aho_corasick::nfa::contiguous::NFA;
use prost::Message as _;

use crate::METHOD_BYTES;
use crate::asking::Asking;
use crate::fingerprint::KnownFingerprints;
use crate::messages::{BotList, BotReaction, KnownBot};
use crate::robots::Robots;
use crate::signing::Signing;

/// The bots of a policy.
pub(crate) struct Bots {
    bots: Vec<KnownBot>,
    /// All tokens; `None` without any.
    automaton: Option<NFA>,
    tokens: Vec<Token>,
    /// Here because all routes with the policy share it.
    pub(crate) asking: Asking,
    /// The directories with their keys, and what was verified by them.
    pub(crate) signing: Signing,
    /// What is served at /robots.txt and /llms.txt.
    pub(crate) robots_txt: Option<Vec<u8>>,
    pub(crate) llms_txt: Option<Vec<u8>>,
    /// The rules of the robots.txt that is served.
    robots: Option<Robots>,
    /// Those for agents that no token names.
    robots_of_others: Vec<usize>,
    /// The TLS fingerprints that the policy names.
    pub(crate) fingerprints: KnownFingerprints,
}

struct Token {
    /// Its bot, as a place in `bots`.
    bot: usize,
    length: usize,
    /// The groups of the robots.txt that are for it.
    robots: Vec<usize>,
}

/// A bot that a user agent names.
#[derive(Clone, Copy)]
pub(crate) struct Found<'a> {
    pub(crate) bot: &'a KnownBot,
    robots: &'a [usize],
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
        let BotList { bots, robots_txt, llms_txt, fingerprints } = list;
        let fingerprints = KnownFingerprints::new(fingerprints.unwrap_or_default())?;
        let robots = (!robots_txt.is_empty()).then(|| Robots::new(&robots_txt));
        let groups = |agent: &[u8]| robots.as_ref().map(|robots| robots.groups_of(agent)).unwrap_or_default();
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
                    tokens.push(Token { bot: place, length: token.len(), robots: groups(token.trim_ascii()) });
                    patterns.push(token);
                }
            }
        }
        // A table of all transitions (DFA) would take a kilobyte for each byte of a token.
        let automaton = match patterns.as_slice() {
            [] => None,
            some => Some(NFA::new(some).map_err(|error| error.to_string())?),
        };
        let robots_of_others = groups(b"*");
        let served = |text: Vec<u8>| (!text.is_empty()).then_some(text);
        let (robots_txt, llms_txt, asking) = (served(robots_txt), served(llms_txt), Asking::default());
        let signing = Signing::new(&bots);
        Ok(Self {
            bots,
            automaton,
            tokens,
            asking,
            signing,
            robots_txt,
            llms_txt,
            robots,
            robots_of_others,
            fingerprints,
        })
    }

    /// The bot whose token in these texts is longest; of two as long the first of the policy. One pass over each text, in any case of
    /// ASCII letters.
    pub(crate) fn find<'a>(&self, texts: impl Iterator<Item = &'a [u8]>) -> Option<Found<'_>> {
        let automaton = self.automaton.as_ref()?;
        let start = automaton.start_state(Anchored::No).ok()?;
        let mut best: Option<(usize, Reverse<usize>, usize)> = None;
        for text in texts {
            let mut state = start;
            for byte in text {
                state = automaton.next_state(Anchored::No, state, byte.to_ascii_lowercase());
                if automaton.is_match(state) {
                    // Of all tokens that end here the first is the longest; the others are its ends.
                    let pattern = automaton.match_pattern(state, 0).as_usize();
                    let found = self.tokens.get(pattern).map(|token| (token.length, Reverse(token.bot), pattern));
                    best = best.max(found);
                }
            }
        }
        let (_, place, pattern) = best?;
        Some(Found { bot: self.bots.get(place.0)?, robots: &self.tokens.get(pattern)?.robots })
    }

    /// The first bot of a directory of keys.
    pub(crate) fn of_directory(&self, directory: usize) -> Option<Found<'_>> {
        let place = self.signing.bot_of(directory)?;
        let robots = self
            .tokens
            .iter()
            .find(|token| token.bot == place)
            .map_or(self.robots_of_others.as_slice(), |token| &token.robots);
        Some(Found { bot: self.bots.get(place)?, robots })
    }

    /// Whether a bot is verified by the addresses that its owner publishes.
    pub(crate) fn has_ranges(&self) -> bool {
        self.bots.iter().any(|bot| !bot.ranges.is_empty())
    }

    /// Whether the robots.txt that is served forbids a path to a bot; `None` for an agent that no token names.
    pub(crate) fn robots_forbid(&self, found: Option<Found<'_>>, path: &[u8]) -> bool {
        let groups = found.map_or(self.robots_of_others.as_slice(), |found| found.robots);
        self.robots.as_ref().is_some_and(|robots| robots.forbid(groups, path))
    }

    /// The bytes of the automaton.
    #[cfg(test)]
    pub(crate) fn memory(&self) -> usize {
        self.automaton.as_ref().map_or(0, |automaton| automaton.memory_usage())
    }
}
