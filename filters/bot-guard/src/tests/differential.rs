//! The matcher compared with a search that tries each token at each place.

use std::cmp::Reverse;

use super::super::matcher::Bots;
use super::*;

/// The bot whose token is longest, of two as long the first.
fn naive<'a>(bots: &'a [KnownBot], text: &[u8]) -> Option<&'a str> {
    let text = text.to_ascii_lowercase();
    let has = |token: &[u8]| text.windows(token.len()).any(|window| window == token);
    let found = bots.iter().enumerate().filter_map(|(place, bot)| {
        let longest = bot.tokens.iter().filter(|token| has(&token.to_ascii_lowercase())).map(Vec::len).max()?;
        Some((longest, Reverse(place)))
    });
    found.max().map(|(_, Reverse(place))| bots[place].name.as_str())
}

/// Numbers that are the same in each run (xorshift64*).
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % end
    }

    /// A text of few letters, so that tokens overlap and are parts of others.
    fn text(&mut self, longest: usize) -> Vec<u8> {
        let letters = b"abAB\xc3-";
        (0..self.below(longest) + 1).map(|_| letters[self.below(letters.len())]).collect()
    }
}

#[test]
fn the_matcher_finds_what_a_naive_search_finds() {
    let (mut numbers, mut found) = (Numbers(0x9e37_79b9_7f4a_7c15), 0);
    for round in 0..600 {
        let count = numbers.below(12) + 1;
        let bots: Vec<KnownBot> = (0..count)
            .map(|index| {
                let tokens = (0..numbers.below(4) + 1).map(|_| numbers.text(6)).collect();
                KnownBot { tokens, ..bot(&format!("b{index}"), "ai", &[], BotReaction::Allow, 0.0) }
            })
            .collect();
        let matcher = Bots::new(BotList { bots: bots.clone(), ..BotList::default() }).unwrap();
        for _ in 0..50 {
            let text = numbers.text(24);
            let expected = naive(&bots, &text);
            let matched = matcher.find(std::iter::once(text.as_slice())).map(|found| found.bot.name.as_str());
            assert_eq!(matched, expected, "round {round}: {} in {bots:?}", text.escape_ascii());
            found += usize::from(expected.is_some());
        }
    }
    assert!((10_000..29_000).contains(&found), "both outcomes occur: {found} of 30000");
}

#[test]
fn the_largest_policy_takes_little_memory() {
    let token = |number: usize| format!("{number:04}{}", "ab".repeat(126)).into_bytes();
    let tokens: Vec<Vec<u8>> = (0..256).map(token).collect();
    let bots = tokens.chunks(64).map(|tokens| KnownBot { tokens: tokens.to_vec(), ..some_bots().remove(1) }).collect();
    let matcher = Bots::new(BotList { bots, ..BotList::default() }).unwrap();
    assert!(matcher.memory() < 4 << 20, "{} bytes", matcher.memory());
    assert!(matcher.find(std::iter::once(token(255).as_slice())).is_some());
    assert!(matcher.find(std::iter::once(&token(256)[..])).is_none());
}
