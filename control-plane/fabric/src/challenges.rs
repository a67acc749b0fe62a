//! What the control plane does for challenges: it keeps the root of keys and which puzzles were spent, and verifies the tokens
//! of widgets.

mod verify;

use std::sync::Arc;
use std::time::Duration;

use snapshot::{AnswerWord, SpendPuzzle};

use base::clock;
use kit::ChallengeRoot;
use store::{Store, StoreError};

pub use verify::Verifier;

/// The document that holds the root of keys.
const ROOT: &str = "challenge-root";
/// The longest id of a puzzle, in bytes.
const MAX_ID: usize = 64;
/// The longest that a spent puzzle is kept, in milliseconds: no challenge can be solved for longer than a day.
const MAX_KEPT: u64 = 2 * 86_400_000;
/// How much longer than its time a spent puzzle is kept, in milliseconds: the clocks of nodes differ.
const GRACE: u64 = 300_000;
/// How often spent puzzles that have expired are deleted.
const SWEEP: Duration = Duration::from_secs(60);

/// The root of keys in a store; made where there is none yet.
///
/// # Errors
///
/// What the store reports, also where its document is none, or the system gives no random bytes.
pub async fn root(store: &dyn Store) -> Result<ChallengeRoot, StoreError> {
    let failed = |detail: &str| StoreError::Failed { path: ROOT.into(), detail: detail.to_owned() };
    let kept = match store.document(ROOT).await? {
        Some(kept) => kept,
        None => {
            let mut bytes = [0; 32];
            getrandom::fill(&mut bytes).map_err(|error| failed(&error.to_string()))?;
            store.document_put_first(ROOT, bytes.to_vec()).await?
        }
    };
    let bytes = kept.try_into().map_err(|_| failed("the root of challenge keys in the store is not 32 bytes long"))?;
    Ok(ChallengeRoot::new(bytes))
}

/// Whether this is the first time that a puzzle is spent. The answer is durable before it is given.
pub async fn spend(store: &dyn Store, puzzle: &SpendPuzzle, now: u64) -> AnswerWord {
    let (answer, outcome) = match puzzle.id.len() {
        1..=MAX_ID => match store.puzzle_spend(&puzzle.id, puzzle.until_millis.min(now.saturating_add(MAX_KEPT))).await
        {
            Ok(true) => (AnswerWord::Yes, "first"),
            Ok(false) => (AnswerWord::No, "spent"),
            Err(error) => {
                tracing::error!(%error, "spending a puzzle failed");
                (AnswerWord::Unknown, "failed")
            }
        },
        _ => (AnswerWord::Unknown, "failed"),
    };
    metrics::counter!("palisade_link_puzzles_total", "outcome" => outcome).increment(1);
    answer
}

/// Deletes spent puzzles that have expired, periodically while this control plane leads.
pub async fn sweep(store: Arc<dyn Store>) {
    let mut ticks = tokio::time::interval(SWEEP);
    loop {
        ticks.tick().await;
        if !*store.leads().borrow() {
            continue;
        }
        match store.puzzles_sweep(clock::now_millis().saturating_sub(GRACE)).await {
            Ok(_) => {}
            Err(StoreError::Closed) => return,
            Err(error) => tracing::warn!(%error, "deleting expired puzzles failed"),
        }
    }
}
