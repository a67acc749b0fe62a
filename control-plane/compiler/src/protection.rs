//! Protection that is off although its configuration was accepted.
//!
//! Each entity of a chain may be right by itself and the chain still let every attack pass: a WAF config whose rules were
//! removed, a preset that names none, a policy without a tier that acts. While a chain is compiled, each plugin notes what
//! it will do ([`Guard`]); [`gaps`] looks at the chains as requests pass them.

use std::collections::BTreeMap;

use seclang::{Coverage, EngineMode, Program};

use super::guards::{Guard, PolicyGuard, WafGuard};
use super::presets::ENGINE_SOURCE;
use super::steps::{Chains, Steps};

/// The routes that a warning names; of the rest it gives the number.
const NAMED_ROUTES: usize = 3;

impl PolicyGuard {
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
pub fn idle_rules(coverage: &Coverage) -> Option<String> {
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

/// What is said of options of the core rule set that nothing reads.
pub const CRS_IGNORED: &str =
    "the crs options have no effect: nothing imports the core rule set with `@import_preset crs`";

/// What the rules of a program do for requests.
pub(super) fn coverage(program: &Program) -> Coverage {
    program.coverage(&[ENGINE_SOURCE])
}

/// What is said of rules that do not read bodies.
pub const NO_BODIES: &str = "request bodies are not inspected (`SecRequestBodyAccess Off`)";

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
