//! The questions about challenges: spent puzzles and tokens of widgets.

use std::sync::Arc;

use fabric::challenges::{self, Verifier};
use snapshot::{AnswerWord, SpendPuzzle, VerifyToken, YesNo};
use store::Store;

use crate::{AnswerLimits, Answerer};

/// Spends puzzles and completed waits in a store.
pub(crate) struct Puzzles {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) clock: fn() -> u64,
}

impl Answerer for Puzzles {
    type Question = SpendPuzzle;

    // Those that run together share a commit of the store.
    const LIMITS: AnswerLimits = AnswerLimits { running: 1024, waiting: 4096 };

    async fn answer(&self, _node: &str, puzzle: SpendPuzzle) -> Option<YesNo> {
        yes_no(challenges::spend(self.store.as_ref(), &puzzle, (self.clock)()).await)
    }
}

/// Verifies tokens of widgets with their vendors.
pub(crate) struct Tokens(pub(crate) Arc<Verifier>);

impl Answerer for Tokens {
    type Question = VerifyToken;

    // The verifier has limits of its own, for each provider and each network.
    const LIMITS: AnswerLimits = AnswerLimits { running: 1024, waiting: 0 };

    async fn answer(&self, _node: &str, token: VerifyToken) -> Option<YesNo> {
        yes_no(self.0.verify(&token).await)
    }
}

fn yes_no(word: AnswerWord) -> Option<YesNo> {
    match word {
        AnswerWord::Yes => Some(YesNo { yes: true }),
        AnswerWord::No => Some(YesNo { yes: false }),
        AnswerWord::Unknown => None,
    }
}
