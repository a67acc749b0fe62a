//! What a honeypot of a chain will do.

use std::any::Any;

use kit::{Entity as _, Guard};

use super::HoneypotPolicy;

/// What a honeypot will do.
#[derive(Debug)]
pub(super) struct HoneypotGuard {
    /// The id of its policy.
    pub(super) policy: String,
    /// The policy is disabled.
    pub(super) disabled: bool,
    /// It has neither paths nor canaries.
    pub(super) empty: bool,
    /// It bans.
    pub(super) bans: bool,
}

impl Guard for HoneypotGuard {
    fn gaps(&self, before: &[&dyn Guard], behind: &[&dyn Guard]) -> Vec<String> {
        let id = &self.policy;
        match () {
            () if self.disabled => vec![format!("the honeypot policy `{id}` is disabled")],
            () if self.empty => vec![format!("the honeypot policy `{id}` has neither paths nor canaries")],
            () if self.bans && !before.iter().chain(behind).any(|guard| guard.refuses_banned()) => {
                vec![format!("no threat gate refuses the callers that the honeypot policy `{id}` bans")]
            }
            () => Vec::new(),
        }
    }

    fn entity(&self) -> Option<(&'static str, &str)> {
        Some((HoneypotPolicy::COLLECTION, &self.policy))
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
