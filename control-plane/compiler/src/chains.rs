//! The chains of all routes, before they are divided among filters.

use std::collections::BTreeMap;

use serde_json::{Map, Value};
use snapshot::Step;

use super::compiled::CompileProblem;
use super::expand;
use super::guards::Guard;
use super::plugins::{self, Context};
use super::rules::RuleCompiler;
use super::settings::Settings;
use super::steps::{Chain, Chains, PluginUse, Steps};
use super::view::{Memory, View};
use entities::plugins::{PRESET_CLASSES, by_name};
use entities::{Entity, EntitySet, FieldProblem, GlobalConfig, Item, Protocol, Route, ThreatPolicy, did_you_mean};

/// The plugins of a chain in their order.
#[derive(Default)]
struct Listed {
    placed: Vec<Placed>,
    /// What presets say of the WAF that they do not lay down.
    guards: Vec<Guard>,
}

/// A plugin with the place in the document that names it.
struct Placed {
    used: PluginUse,
    pointer: String,
}

impl Chains {
    /// Compiles every plugin of every enabled route and of the global chain.
    pub(super) fn compile(
        set: &EntitySet,
        rules: &RuleCompiler,
        settings: &Settings,
        memory: &mut Memory<Steps>,
        problems: &mut Vec<CompileProblem>,
    ) -> Self {
        let mut chains = Self::default();
        let mut note = |collection, id: &str, found: Vec<FieldProblem>| {
            let all = found.into_iter().map(|problem| CompileProblem { collection, id: id.to_owned(), problem });
            problems.extend(all);
        };
        let found = memory.get(GlobalConfig::COLLECTION, GlobalConfig::ID, set, |view| {
            steps(validators(view.global()), view, rules, settings)
        });
        match found {
            Ok(steps) => chains.global = steps,
            Err(found) => note(GlobalConfig::COLLECTION, GlobalConfig::ID, found),
        }
        let mut names: BTreeMap<String, Vec<&Item<Route>>> = BTreeMap::new();
        for route in set.all::<Route>().filter(|route| route.enabled) {
            let name = route.envoy_route_name(&route.head).to_owned();
            let label = if route.head.name.is_empty() { route.head.id.clone() } else { route.head.name.clone() };
            let namesakes = names.entry(name.clone()).or_default();
            // Where no gateway has both, each finds its own.
            if namesakes.iter().any(|other| meet(route, other)) {
                let message = format!("another route has the Envoy route name `{name}` already");
                note(Route::COLLECTION, &route.head.id, vec![FieldProblem::new("/envoy_route", message)]);
                continue;
            }
            namesakes.push(route);
            let no_grpc = route.backend.as_ref().is_some_and(|backend| backend.protocol == Protocol::Http1);
            let found = memory.get(Route::COLLECTION, &route.head.id, set, |view| {
                let Some(route) = view.get::<Route>(&route.head.id) else { return Ok(Steps::default()) };
                steps(route_plugins(route), view, rules, settings)
            });
            match found {
                Ok(steps) => {
                    let (id, groups) = (route.head.id.clone(), route.groups.clone());
                    chains.routes.push(Chain { name, id, label, groups, no_grpc, steps });
                }
                Err(found) => note(Route::COLLECTION, &route.head.id, found),
            }
        }
        chains
    }
}

/// Whether some gateway has both routes.
fn meet(one: &Route, other: &Route) -> bool {
    one.groups.is_empty() || other.groups.is_empty() || one.groups.iter().any(|group| other.groups.contains(group))
}

fn steps(
    listed: Result<Listed, Vec<FieldProblem>>,
    view: &View<'_>,
    rules: &RuleCompiler,
    settings: &Settings,
) -> Result<Steps, Vec<FieldProblem>> {
    let Listed { placed: listed, guards } = listed?;
    let waf_block_weight = waf_block_weight(&listed, view);
    let mut steps = Steps { guards, ..Steps::default() };
    let mut problems = Vec::new();
    for Placed { used, pointer } in listed {
        let Some(kind) = plugins::by_name(&used.plugin) else {
            problems.push(unknown_plugin(&used.plugin, &pointer));
            continue;
        };
        let Steps { parts, largest_body, largest_request, warnings, guards, .. } = &mut steps;
        let mut context =
            Context { view, rules, settings, waf_block_weight, parts, largest_body, largest_request, warnings, guards };
        match (kind.compile)(&used.config, &mut context) {
            Ok(Some(config)) => steps.list.push(Step {
                plugin: kind.name.to_owned(),
                include: used.include,
                exclude: used.exclude,
                config,
                on_refusal_only: false,
            }),
            Ok(None) => {}
            Err(found) => problems.extend(found.into_iter().map(|problem| problem.under(&format!("{pointer}/config")))),
        }
    }
    if problems.is_empty() { Ok(steps) } else { Err(problems) }
}

/// The plugins of a route in the order in which they run: by index, those without one last.
fn route_plugins(route: &Item<Route>) -> Result<Listed, Vec<FieldProblem>> {
    let used = route.plugins.iter().enumerate().filter(|(_, plugin)| plugin.enabled).map(|(number, plugin)| Placed {
        used: PluginUse {
            plugin: plugin.plugin.clone(),
            include: plugin.include.clone(),
            exclude: plugin.exclude.clone(),
            index: plugin.plugin_index,
            config: plugin.config.clone(),
        },
        pointer: format!("/plugins/{number}"),
    });
    let mut listed = expanded(used)?;
    listed.placed.sort_by(|a, b| match (a.used.index, b.used.index) {
        (Some(a), Some(b)) => a.total_cmp(&b),
        (a, b) => a.is_none().cmp(&b.is_none()),
    });
    Ok(listed)
}

/// The validators of the global chain in their listed order.
fn validators(global: &Item<GlobalConfig>) -> Result<Listed, Vec<FieldProblem>> {
    let listed = global.incoming_request_validators.iter().enumerate().filter(|(_, validator)| validator.enabled);
    expanded(listed.map(|(number, validator)| Placed {
        used: PluginUse {
            plugin: validator.plugin.clone(),
            include: validator.include.clone(),
            exclude: validator.exclude.clone(),
            index: None,
            config: validator.config.clone(),
        },
        pointer: format!("/incoming_request_validators/{number}"),
    }))
}

/// Presets give way to what they lay down.
fn expanded(listed: impl Iterator<Item = Placed>) -> Result<Listed, Vec<FieldProblem>> {
    let mut all = Listed::default();
    let mut problems = Vec::new();
    for placed in listed {
        if !PRESET_CLASSES.contains(&placed.used.plugin.as_str()) {
            all.placed.push(placed);
            continue;
        }
        match expand::expand(&placed.used.config) {
            Ok(mut uses) => {
                problems.extend(scope(&mut uses, &placed));
                all.guards.extend(expand::without_waf(&placed.used.config));
                all.placed.extend(uses.into_iter().map(|used| Placed { used, pointer: placed.pointer.clone() }));
            }
            Err(problem) => problems.push(problem.under(&format!("{}/config", placed.pointer))),
        }
    }
    if problems.is_empty() { Ok(all) } else { Err(problems) }
}

/// Gives the plugins of a preset the paths of its entry, beside those of its configuration: what either excludes is
/// excluded. Two lists of inclusions would have to be met both, which patterns cannot say.
fn scope(uses: &mut [PluginUse], placed: &Placed) -> Option<FieldProblem> {
    for used in uses {
        used.exclude.extend(placed.used.exclude.iter().cloned());
        if used.include.is_empty() {
            used.include.clone_from(&placed.used.include);
        } else if !placed.used.include.is_empty() {
            let problem =
                FieldProblem::new(format!("{}/include", placed.pointer), "its configuration has `include` too");
            return Some(problem.expected("`include` here or in `config`"));
        }
    }
    None
}

/// What a WAF block weighs on a chain: what the policy of its threat response says, else the default.
fn waf_block_weight(listed: &[Placed], view: &View<'_>) -> f64 {
    let response = listed
        .iter()
        .find(|placed| plugins::by_name(&placed.used.plugin).is_some_and(|kind| kind.name == "threat-response"));
    let id = response.and_then(|placed| policy_of(&placed.used.config));
    let policy = plugins::policy(id, view).ok();
    policy.map_or(ThreatPolicy::default().waf_block_weight, |policy| policy.waf_block_weight)
}

fn policy_of(config: &Map<String, Value>) -> Option<&str> {
    config.get("policy")?.as_str()
}

fn unknown_plugin(name: &str, pointer: &str) -> FieldProblem {
    // The name is right where a later release has the plugin.
    let slip = did_you_mean(name, plugins::names()).filter(|_| by_name(name).is_none());
    let suggestion = slip.map_or(String::new(), |known| format!("; did you mean `{known}`?"));
    let known: Vec<&str> = plugins::names().collect();
    FieldProblem::new(format!("{pointer}/plugin"), format!("this release has no plugin `{name}`{suggestion}"))
        .expected(format!("one of {}", known.join(", ")))
}
