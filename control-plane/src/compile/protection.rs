//! Protection that is off although its configuration was accepted.
//!
//! Each entity of a chain may be right by itself and the chain still let every attack pass: a WAF config whose rules were
//! removed, a preset that names none, a policy without a tier that acts. While a chain is compiled, each plugin notes what
//! it will do ([`Guard`]); [`gaps`] looks at the chains as requests pass them.

use std::collections::BTreeMap;

use seclang::{Coverage, EngineMode, Program};
use snapshot::{Policy, TierAction};

use super::chains::{Chains, Steps};
use super::presets::ENGINE_SOURCE;

/// The routes that a warning names; of the rest it gives the number.
const NAMED_ROUTES: usize = 3;

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
    id: String,
    /// The id of the policy that is named, where it is disabled and the built-in one used in its place.
    disabled: Option<String>,
    /// The policy only records; its name says so.
    dry_run: bool,
    /// Some score has an action other than `log`.
    acts: bool,
    /// No address is left that the exemptions do not cover, of IPv4 or of IPv6.
    exempts_all: bool,
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

    fn gaps(&self, found: &mut Vec<String>) {
        if let Some(named) = &self.disabled {
            let instead = "the built-in policy is used in its place, which enforces nothing";
            found.push(format!("the threat policy `{named}` is disabled: {instead}"));
        }
        if self.exempts_all {
            found.push(format!("the exemptions of the threat policy `{}` cover every address", self.id));
        }
    }
}

/// What is off in the chain of each route, or in the global chain where there is no route; each with the routes that have
/// it.
pub(super) fn gaps(chains: &Chains) -> Vec<String> {
    let mut found: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    let nothing = Steps::default();
    let alone = chains.routes.is_empty().then_some(("", &nothing));
    let routes = chains.routes.iter().map(|chain| (chain.id.as_str(), &*chain.steps)).chain(alone);
    for (id, own) in routes {
        let chain: Vec<&Guard> = chains.global.guards.iter().chain(&own.guards).collect();
        for gap in of_chain(&chain) {
            let routes = found.entry(gap).or_default();
            if !id.is_empty() && !routes.contains(&id) {
                routes.push(id);
            }
        }
    }
    found.into_iter().map(|(gap, routes)| format!("{}: {gap}", place(&routes))).collect()
}

/// Why the rules of a WAF protect nothing; `None` where they do.
pub(crate) fn idle_rules(coverage: &Coverage) -> Option<String> {
    match (coverage.mode, coverage.switched_off_by) {
        (EngineMode::Off, Some(id)) => Some(format!("the rule {id} switches the rule engine off for every request")),
        (EngineMode::Off, None) => Some("`SecRuleEngine Off` switches the rule engine off".to_owned()),
        _ if !coverage.detects => {
            let why = "there are none, or others remove or skip them";
            Some(format!("no rule that runs looks at requests: {why}"))
        }
        _ => None,
    }
}

/// What the rules of a program do for requests.
pub(crate) fn coverage(program: &Program) -> Coverage {
    program.coverage(&[ENGINE_SOURCE])
}

/// What is said of rules that do not read bodies.
pub(crate) const NO_BODIES: &str = "request bodies are not inspected (`SecRequestBodyAccess Off`)";

fn of_chain(chain: &[&Guard]) -> Vec<String> {
    let mut found = Vec::new();
    let (mut has_waf, mut wants_waf, mut declines_waf, mut has_response) = (false, false, false, false);
    for (at, guard) in chain.iter().enumerate() {
        match guard {
            Guard::Waf(waf) => {
                has_waf = true;
                let is_response = |guard: &&&Guard| matches!(guard, Guard::Response(_));
                let before = chain.iter().take(at).any(|guard| is_response(&guard));
                let behind = chain.iter().skip(at + 1).any(|guard| is_response(&guard));
                waf.gaps(before, behind, &mut found);
            }
            Guard::Gate(policy) => policy.gaps(&mut found),
            Guard::Response(policy) => {
                has_response = true;
                policy.gaps(&mut found);
                if policy.disabled.is_none() && !policy.dry_run && !policy.acts {
                    found.push(format!("no tier of the threat policy `{}` does more than log", policy.id));
                }
            }
            Guard::PresetWithoutWaf => wants_waf = true,
            Guard::PresetDeclinesWaf => declines_waf = true,
        }
    }
    if !has_waf && (wants_waf || (has_response && !declines_waf)) {
        let why = "the preset names no `waf_config`, or there is no `SvcWaf`";
        found.push(format!("no WAF inspects requests: {why}"));
    }
    found
}

impl WafGuard {
    /// `before` and `behind`: whether a threat response stands there.
    fn gaps(&self, before: bool, behind: bool, found: &mut Vec<String>) {
        let id = &self.config;
        let Some(coverage) = &self.coverage else {
            found.push(format!("the WAF config `{id}` is disabled"));
            return;
        };
        if self.crs_ignored {
            let why = "its rules do not import the core rule set (`@import_preset crs`)";
            found.push(format!("the `crs` options of the WAF config `{id}` have no effect: {why}"));
        }
        if let Some(why) = idle_rules(coverage) {
            found.push(format!("the WAF config `{id}` inspects nothing: {why}"));
            return;
        }
        if self.inspects_bodies && !coverage.request_bodies {
            found.push(format!("in the WAF config `{id}` {NO_BODIES}"));
        }
        let monitors = !self.block || coverage.mode == EngineMode::DetectionOnly;
        if before && !behind {
            let why = "the threat response runs before it, give it a higher `plugin_index`";
            found.push(format!("nothing acts on what the WAF config `{id}` finds and does not refuse: {why}"));
        } else if !(monitors || coverage.denies || behind && self.contributes) {
            let why = "no rule denies, and no threat response behind it takes its signals";
            found.push(format!("nothing acts on what the WAF config `{id}` finds: {why}"));
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

fn place(routes: &[&str]) -> String {
    let named: Vec<String> = routes.iter().take(NAMED_ROUTES).map(|id| format!("`{id}`")).collect();
    match (routes, routes.len().saturating_sub(NAMED_ROUTES)) {
        ([], _) => "the global chain".to_owned(),
        ([_], _) => format!("route {}", named.join(", ")),
        (_, 0) => format!("routes {}", named.join(", ")),
        (_, more) => format!("routes {} and {more} more", named.join(", ")),
    }
}

#[cfg(test)]
mod tests;
