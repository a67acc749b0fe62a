//! What the IP reputation of a chain will do.

use std::any::Any;

use kit::Guard;

use super::{MAX_BOUNCERS, MAX_FEEDS};

/// What it will do.
#[derive(Debug, Default)]
pub(super) struct ReputationGuard {
    /// The feeds that it names and that are disabled.
    pub(super) disabled: Vec<String>,
    /// The feeds that are left out because too many are enabled.
    pub(super) left_out: Vec<String>,
    /// The bouncers that it names and that are disabled.
    pub(super) disabled_bouncers: Vec<String>,
    /// The bouncers that are left out because too many are enabled.
    pub(super) bouncers_left_out: Vec<String>,
    /// The bouncers with decisions on networks, where there is no database of networks.
    pub(super) without_networks: Vec<String>,
    /// The bouncers with decisions on countries, where there is no geolocation database.
    pub(super) without_countries: Vec<String>,
    /// It was asked for, and there is no feed, no bouncer and no zone at all.
    pub(super) idle: bool,
}

impl Guard for ReputationGuard {
    fn gaps(&self, _before: &[&dyn Guard], _behind: &[&dyn Guard]) -> Vec<String> {
        let mut gaps: Vec<String> = Vec::new();
        gaps.extend(self.disabled.iter().map(|id| format!("the threat feed `{id}` is disabled")));
        let left_out = |id| format!("the threat feed `{id}` is not used: {MAX_FEEDS} others before it are enabled");
        gaps.extend(self.left_out.iter().map(left_out));
        gaps.extend(self.disabled_bouncers.iter().map(|id| format!("the bouncer `{id}` is disabled")));
        let left_out = |id| format!("the bouncer `{id}` is not used: {MAX_BOUNCERS} others before it are enabled");
        gaps.extend(self.bouncers_left_out.iter().map(left_out));
        gaps.extend(self.without_networks.iter().map(|id| {
            format!("the bouncer `{id}` has decisions on networks, which match nothing without an ASN database")
        }));
        gaps.extend(self.without_countries.iter().map(|id| {
            format!("the bouncer `{id}` has decisions on countries, which match nothing without a geolocation database")
        }));
        if self.idle {
            gaps.push(
                "no threat feed, no bouncer and no DNS blocklist is enabled, so the IP reputation does nothing"
                    .to_owned(),
            );
        }
        gaps
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
