//! What a bot guard of a chain will do.

use std::any::Any;

use kit::{Entity as _, Guard};

use super::BotPolicy;

/// What a bot guard will do.
#[derive(Debug)]
pub(super) enum BotGuardOf {
    /// It acts by a policy. `fingerprints`: it looks at TLS fingerprints, among others.
    Policy { id: String, fingerprints: bool },
    /// The policy that it names is disabled.
    Disabled(String),
    /// The policy that it names knows no bots, leaves unknown ones alone and serves nothing.
    Empty(String),
    /// No policy is enabled, and none is named. `laid_down`: a preset has added it by default, which is fine.
    None { laid_down: bool },
}

impl Guard for BotGuardOf {
    fn gaps(&self, _before: &[&dyn Guard], _behind: &[&dyn Guard]) -> Vec<String> {
        match self {
            BotGuardOf::Disabled(id) => vec![format!("the bot policy `{id}` is disabled")],
            BotGuardOf::Empty(id) => {
                vec![format!("the bot policy `{id}` has no signatures and gives unknown bots no weight")]
            }
            BotGuardOf::None { laid_down: false } => vec!["no bot policy is enabled".to_owned()],
            BotGuardOf::Policy { .. } | BotGuardOf::None { laid_down: true } => Vec::new(),
        }
    }

    fn needs_fingerprints(&self) -> bool {
        matches!(self, BotGuardOf::Policy { fingerprints: true, .. })
    }

    fn entity(&self) -> Option<(&'static str, &str)> {
        match self {
            BotGuardOf::Policy { id, .. } | BotGuardOf::Disabled(id) | BotGuardOf::Empty(id) => {
                Some((BotPolicy::COLLECTION, id))
            }
            BotGuardOf::None { .. } => None,
        }
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
