//! What a plugin that acts by a threat policy will do.

use std::any::Any;

use kit::Guard;
use snapshot::{Policy, TierAction};

/// What a plugin that acts by a threat policy will do.
#[derive(Debug)]
pub struct PolicyGuard {
    /// The id of the policy that is used.
    id: String,
    /// The id of the policy that is named, where it is disabled and the built-in one used in its place.
    disabled: Option<String>,
    /// The policy only records; its name says so.
    dry_run: bool,
    /// Some score has an action other than `log`.
    acts: bool,
    /// No address is left that the exemptions do not cover, of IPv4 or of IPv6.
    exempts_all: bool,
    /// The plugin acts on the score.
    acts_on_score: bool,
}

impl PolicyGuard {
    /// The guard of a plugin that names `named` and got `policy`, with what it presents to callers.
    #[must_use]
    pub fn new(named: Option<&str>, policy: &Policy, acts_on_score: bool) -> Self {
        let acts = |score: f64| {
            policy.tier_at(score).is_some_and(|tier| match tier.action() {
                TierAction::Log => false,
                TierAction::Challenge => policy.challenge.is_some(),
                _ => true,
            })
        };
        Self {
            id: policy.id.clone(),
            disabled: named.filter(|named| *named != policy.id).map(str::to_owned),
            dry_run: policy.dry_run,
            acts: policy.tiers.iter().any(|tier| acts(tier.min_score)),
            exempts_all: exempts_all(&policy.exemptions),
            acts_on_score,
        }
    }
}

impl Guard for PolicyGuard {
    fn gaps(&self, _before: &[&dyn Guard], _behind: &[&dyn Guard]) -> Vec<String> {
        let mut found = Vec::new();
        if let Some(named) = &self.disabled {
            let instead = "the built-in policy is used in its place, which enforces nothing";
            found.push(format!("the threat policy `{named}` is disabled: {instead}"));
        }
        if self.exempts_all {
            found.push(format!("the exemptions of the threat policy `{}` cover every address", self.id));
        }
        if self.acts_on_score && self.disabled.is_none() && !self.dry_run && !self.acts {
            found.push(format!("no tier of the threat policy `{}` does more than log", self.id));
        }
        found
    }

    fn acts_on_score(&self) -> bool {
        self.acts_on_score
    }

    /// Of the plugins that act by a threat policy, the one that does not act on the score is the threat gate.
    fn refuses_banned(&self) -> bool {
        !self.acts_on_score
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// Whether exemptions leave no address of IPv4, or none of IPv6.
fn exempts_all(exemptions: &[String]) -> bool {
    let network = |text: &String| {
        let address = || Some(ipnet::IpNet::from(text.parse::<std::net::IpAddr>().ok()?));
        text.parse::<ipnet::IpNet>().ok().or_else(address)
    };
    let networks: Vec<ipnet::IpNet> = exemptions.iter().filter_map(network).collect();
    ipnet::IpNet::aggregate(&networks).iter().any(|network| network.prefix_len() == 0)
}
