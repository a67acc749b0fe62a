//! What each plugin of a chain will do, as it is noted while the chain is compiled.

use seclang::Coverage;
use snapshot::{Policy, TierAction};

/// What a plugin of a chain will do.
#[derive(Debug)]
pub(super) enum Guard {
    /// A rule engine.
    Waf(WafGuard),
    /// A threat gate.
    Gate(PolicyGuard),
    /// A threat response.
    Response(PolicyGuard),
    /// A preset that leaves the WAF to a `waf_config` that it does not name.
    PresetWithoutWaf,
    /// A preset with `waf: false`.
    PresetDeclinesWaf,
}

/// What a rule engine will do.
#[derive(Debug)]
pub(super) struct WafGuard {
    /// The id of the WAF config.
    pub(super) config: String,
    /// What its rules do; `None` where the config is disabled.
    pub(super) coverage: Option<Coverage>,
    /// The field `block`.
    pub(super) block: bool,
    /// The field `inspect_input_body`.
    pub(super) inspects_bodies: bool,
    /// Matches become signals.
    pub(super) contributes: bool,
    /// Options of the core rule set are set, and nothing imports it.
    pub(super) crs_ignored: bool,
}

/// What a plugin that acts by a threat policy will do.
#[derive(Debug)]
pub(super) struct PolicyGuard {
    /// The id of the policy that is used.
    pub(super) id: String,
    /// The id of the policy that is named, where it is disabled and the built-in one used in its place.
    pub(super) disabled: Option<String>,
    /// The policy only records; its name says so.
    pub(super) dry_run: bool,
    /// Some score has an action other than `log`.
    pub(super) acts: bool,
    /// No address is left that the exemptions do not cover, of IPv4 or of IPv6.
    pub(super) exempts_all: bool,
}

impl PolicyGuard {
    /// The guard of a plugin that names `named` and got `policy`, with what it presents to callers.
    pub(super) fn new(named: Option<&str>, policy: &Policy) -> Self {
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
        }
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
