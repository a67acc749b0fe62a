//! What the plugins of a chain will do, as it is noted while the chain is compiled.

use std::any::Any;
use std::fmt::Debug;

/// What one plugin of a chain will do. The compiler asks the guards of each chain, as requests pass it, what is off although every
/// entity was accepted: a rule set without rules, a policy without a tier that acts.
pub trait Guard: Any + Debug + Send + Sync {
    /// What is off, each in a sentence without its end. `before` and `behind` are the guards of the chain in front of this one and
    /// behind it.
    fn gaps(&self, before: &[&dyn Guard], behind: &[&dyn Guard]) -> Vec<String>;

    /// Whether the plugin acts on the score of a request.
    fn acts_on_score(&self) -> bool {
        false
    }

    /// Whether the plugin refuses callers that are banned.
    fn refuses_banned(&self) -> bool {
        false
    }

    /// Whether the plugin judges callers by TLS fingerprints, which not every listener computes.
    fn needs_fingerprints(&self) -> bool {
        false
    }

    /// The entity that says what it does, by collection and id.
    fn entity(&self) -> Option<(&'static str, &str)> {
        None
    }

    /// For the way back to the type.
    fn as_any(&self) -> &dyn Any;
}
