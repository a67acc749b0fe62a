//! Protection that is off although its configuration was accepted.
//!
//! Each entity of a chain may be right by itself and the chain still let every attack pass: a WAF config whose rules were
//! removed, a preset that names none, a policy without a tier that acts. While a chain is compiled, each plugin notes what
//! it will do ([`Guard`]); [`gaps`] looks at the chains as requests pass them.

mod scope;

use std::collections::BTreeMap;

use super::steps::{Chains, Steps};
use entities::plugins;
use kit::{Acts, Guard};
use snapshot::Step;

pub(super) use scope::guard as scope_guard;

/// The routes that a warning names; of the rest it gives the number.
const NAMED_ROUTES: usize = 3;

/// What is off in the chain of each route, or in the global chain where there is no route; each with the routes that have
/// it.
pub(super) fn gaps(chains: &Chains) -> Vec<String> {
    let mut found: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    let nothing = Steps::default();
    let alone = chains.routes.is_empty().then_some(("", &nothing));
    let routes = chains.routes.iter().map(|chain| (chain.id.as_str(), &*chain.steps)).chain(alone);
    for (id, own) in routes {
        let chain: Vec<&dyn Guard> = chains.global.guards.iter().chain(&own.guards).map(|guard| &**guard).collect();
        for gap in of_chain(&chain) {
            let routes = found.entry(gap).or_default();
            // Routes come one after the other: one that is there already is the last.
            if !id.is_empty() && routes.last() != Some(&id) {
                routes.push(id);
            }
        }
    }
    found.into_iter().map(|(gap, routes)| format!("{}: {gap}", place(&routes))).collect()
}

/// Plugins with a policy that meet the requests of routes twice, once in the global chain and once in that of the route, with two
/// policies; each with the routes that have it. That is allowed. One policy in both acts once, and two that share the paths by their
/// `include` and `exclude` do not meet.
pub(super) fn doubled(chains: &Chains) -> Vec<String> {
    let warning = |plugin: &plugins::Plugin| {
        let global: Vec<&Step> = of_plugin(&chains.global, plugin).collect();
        let differs =
            |step: &Step| global.iter().any(|global| global.config != step.config && scope::meet(global, step));
        let with = chains.routes.iter().filter(|chain| of_plugin(&chain.steps, plugin).any(differs));
        let routes: Vec<&str> = with.map(|chain| chain.id.as_str()).collect();
        let title = plugin.title;
        let what = format!("two plugins {title} with different policies meet the requests");
        let where_they_are = "one is in the global chain and one in that of the route, and each acts by its own policy";
        (!routes.is_empty()).then(|| format!("{}: {what}: {where_they_are}", place(&routes)))
    };
    plugins::active().filter(|plugin| plugin.acts != Acts::No).filter_map(warning).collect()
}

fn of_plugin<'a>(steps: &'a Steps, plugin: &plugins::Plugin) -> impl Iterator<Item = &'a Step> {
    let name = plugin.name;
    steps.list.iter().filter(move |step| step.plugin == name)
}

fn of_chain(chain: &[&dyn Guard]) -> Vec<String> {
    let mut found = Vec::new();
    for (at, guard) in chain.iter().enumerate() {
        let (before, behind) = (chain.get(..at).unwrap_or_default(), chain.get(at + 1..).unwrap_or_default());
        found.extend(guard.gaps(before, behind));
    }
    found.extend(plugins::active().filter_map(|plugin| plugin.check_chain).flat_map(|check| check(chain)));
    found
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
