//! What a caller proves: work that is embedded here, the wait that takes its place where there is no JavaScript, or what a
//! vendor's widget asks for.
//!
//! A caller is given a puzzle, looks for a nonce such that SHA-256 of `challenge:nonce` begins with enough zero bits, and
//! gets a clearance for it: a signed cookie. Puzzle and clearance carry all that is needed to check them, so that a node
//! keeps nothing for callers who never answer. The one thing that is kept is which puzzles were spent.

mod binding;
mod clearance;
mod flow;
mod keys;
mod location;
mod page;
mod present;
mod puzzle;
mod spent;
mod token;
mod wait;
mod work;

use snapshot::Challenge;

use keys::Keys;
use page::{Page, WidgetPage};

pub use work::{difficulty, solves};

/// The header of a submission; `{"challenge": ..., "nonce": ...}` in it, or `{"token": ..., "by": ...}`, where `by` is the id of the
/// provider and may be missing.
pub const HEADER: &str = "x-svc-challenge";

/// What callers are asked to prove, and how it is checked.
pub struct Challenges {
    settings: Challenge,
    keys: Keys,
    page: Page,
    /// Where the challenge is a widget and no work.
    widget: Option<WidgetPage>,
}

impl Challenges {
    /// The challenges of a provider; `None` where it has no key to sign with.
    #[must_use]
    pub fn new(settings: Challenge) -> Option<Self> {
        let keys = Keys::new(&settings.keys, &settings.provider)?;
        let widget = settings.widget.as_ref().map(|widget| WidgetPage::new(&settings, widget));
        Some(Self { keys, page: Page::new(&settings), widget, settings })
    }

    /// The id of the provider.
    #[must_use]
    pub fn provider(&self) -> &str {
        &self.settings.provider
    }
}

#[cfg(test)]
mod tests;
