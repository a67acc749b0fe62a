//! What fail2ban will do in a chain.

use std::any::Any;

use kit::Guard;

/// What it will do.
#[derive(Debug)]
pub(super) struct Fail2BanGuard {
    /// It bans, and does not only report.
    pub(super) bans: bool,
    /// All callers have the same key.
    pub(super) shared_key: bool,
}

impl Guard for Fail2BanGuard {
    fn gaps(&self, before: &[&dyn Guard], behind: &[&dyn Guard]) -> Vec<String> {
        let mut gaps = Vec::new();
        if self.bans && !before.iter().chain(behind).any(|guard| guard.refuses_banned()) {
            gaps.push("no threat gate refuses the callers that fail2ban bans".to_owned());
        }
        if self.shared_key {
            let gap = "the `counter_key` of fail2ban does not tell callers apart, so one is banned for the failures of others";
            gaps.push(gap.to_owned());
        }
        gaps
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
