//! All exchanges of a WAF step, whether a rule matched or not.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

use seclang::Transaction;

use super::messages::{MAX_SCORE, ScoreCount, Totals};
use crate::signals::inbound_score;

/// What a step has counted since its timer ran. An exchange without a match costs one addition.
#[derive(Debug, Default)]
pub(crate) struct Counted {
    requests: Cell<u64>,
    matched: Cell<u64>,
    would_block: Cell<u64>,
    scores: RefCell<BTreeMap<u32, u64>>,
    /// Requests whose parameters were looked at since the timer ran.
    looked: Cell<u32>,
    /// What decides which of the others are.
    dice: Cell<u32>,
}

/// The requests of a second whose parameters are looked at, if there are so many, and of how many others one is: 32.
const LOOKS: u32 = 8;
const OTHERS: u32 = 5;

impl Counted {
    /// Counts an exchange.
    pub(super) fn exchange(&self) {
        self.requests.set(self.requests.get().saturating_add(1));
    }

    /// Counts that a rule that is logged matched in it.
    pub(super) fn matched(&self, transaction: &Transaction, would_block: bool) {
        self.matched.set(self.matched.get().saturating_add(1));
        self.would_block.set(self.would_block.get().saturating_add(u64::from(would_block)));
        // Whole numbers; at most as many as are told apart.
        let score = inbound_score(transaction).unwrap_or(0.0).clamp(0.0, f64::from(MAX_SCORE)) as u32;
        if score > 0
            && let Ok(mut scores) = self.scores.try_borrow_mut()
        {
            let requests = scores.entry(score).or_default();
            *requests = requests.saturating_add(1);
        }
    }

    /// Whether the parameters of a request are to be looked at: those of a few in each second, and of one of 32 others.
    pub(super) fn looks(&self) -> bool {
        let looked = self.looked.get();
        if looked < LOOKS {
            self.looked.set(looked + 1);
            return true;
        }
        // No secret: which requests are looked at changes what is learned, not what is refused.
        let dice = self.dice.get().wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        self.dice.set(dice);
        dice >> (u32::BITS - OTHERS) == 0
    }

    /// What was counted, which begins again; `None` where nothing was.
    pub(super) fn take(&self, config: &str) -> Option<Totals> {
        // What follows does not depend on what was before.
        self.looked.set(0);
        self.dice.set(0);
        let requests = self.requests.take();
        let scores = self.scores.try_borrow_mut().map(|mut scores| std::mem::take(&mut *scores)).unwrap_or_default();
        let scores = scores.into_iter().map(|(score, requests)| ScoreCount { score, requests }).collect();
        let (matched, would_block) = (self.matched.take(), self.would_block.take());
        (requests > 0).then(|| Totals { config: config.to_owned(), requests, matched, would_block, scores })
    }
}

/// Adds to what a worker has counted of one config.
pub(super) fn add(known: &mut Totals, more: Totals) {
    known.requests = known.requests.saturating_add(more.requests);
    known.matched = known.matched.saturating_add(more.matched);
    known.would_block = known.would_block.saturating_add(more.would_block);
    for ScoreCount { score, requests } in more.scores {
        match known.scores.binary_search_by_key(&score, |one| one.score) {
            Ok(place) => {
                if let Some(one) = known.scores.get_mut(place) {
                    one.requests = one.requests.saturating_add(requests);
                }
            }
            Err(place) => known.scores.insert(place, ScoreCount { score, requests }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn totals_add_up_by_score() {
        let scored = |scores: &[(u32, u64)]| Totals {
            config: "shop".to_owned(),
            requests: 3,
            matched: 2,
            would_block: 1,
            scores: scores.iter().map(|(score, requests)| ScoreCount { score: *score, requests: *requests }).collect(),
        };
        let mut known = scored(&[(5, 1), (10, 2)]);
        add(&mut known, scored(&[(3, 7), (10, 1), (20, 1)]));
        let scores: Vec<(u32, u64)> = known.scores.iter().map(|one| (one.score, one.requests)).collect();
        assert_eq!((known.requests, known.matched, known.would_block), (6, 4, 2));
        assert_eq!(scores, [(3, 7), (5, 1), (10, 3), (20, 1)]);
    }

    #[test]
    fn what_was_counted_is_taken_once() {
        let counted = Counted::default();
        assert_eq!(counted.take("shop"), None);
        counted.exchange();
        counted.exchange();
        assert_eq!(counted.take("shop").map(|totals| totals.requests), Some(2));
        assert_eq!(counted.take("shop"), None);
    }

    #[test]
    fn parameters_of_a_few_requests_and_of_one_of_many_are_looked_at() {
        let counted = Counted::default();
        let looks = |times: usize| (0..times).filter(|_| counted.looks()).count();
        assert_eq!(looks(8), 8);
        let more = looks(32_000);
        assert!((700..1300).contains(&more), "{more}");
        counted.take("shop");
        assert_eq!(looks(8), 8);
    }
}
