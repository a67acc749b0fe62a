//! The embedded proof of work.
//!
//! A caller is given a puzzle, looks for a nonce such that SHA-256 of `challenge:nonce` begins with enough zero bits, and
//! gets a clearance for it: a signed cookie. Puzzle and clearance carry all that is needed to check them, so that a node
//! keeps nothing for callers who never answer. The one thing that is kept is which puzzles were spent.

mod binding;
mod clearance;
mod flow;
mod keys;
mod page;
mod present;
mod puzzle;
mod spent;
mod work;

use snapshot::Challenge;

use keys::Keys;
use page::Page;

pub use work::{difficulty, solves};

/// The header of a submission; `{"challenge": ..., "nonce": ...}` in it.
pub const HEADER: &str = "x-svc-challenge";

/// What callers are asked to prove, and how it is checked.
pub struct Challenges {
    settings: Challenge,
    keys: Keys,
    page: Page,
}

impl Challenges {
    /// The challenges of a provider; `None` where it has no key to sign with.
    #[must_use]
    pub fn new(settings: Challenge) -> Option<Self> {
        let keys = Keys::new(&settings.keys)?;
        Some(Self { keys, page: Page::new(&settings), settings })
    }
}

#[cfg(test)]
mod tests;
