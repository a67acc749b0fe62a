//! The chains of all routes, before they are divided among filters.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde_json::Value;
use snapshot::Step;

use super::compiled::CompileProblem;
use super::expand::{self, Expanded};
use super::protection;
use super::settings::Settings;
use super::steps::{Chain, Chains, PluginUse, Steps};
use entities::plugins::{self, PRESET_CLASSES, by_name};
use entities::{Entity, EntitySet, FieldProblem, GlobalConfig, Item, Protocol, Route, did_you_mean};
use kit::{Chained, Context, Guard, Inputs, Memory, Tools, View};
use material::GatheredSet;

/// The plugins of a chain in their order.
#[derive(Default)]
struct Listed {
    placed: Vec<Placed>,
    /// What plugins note of presets that do not lay them down.
    guards: Vec<Box<dyn Guard>>,
    /// What has no effect.
    warnings: Vec<String>,
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
        gathered: &GatheredSet,
        tools: &Tools,
        settings: &Settings,
        memory: &mut Memory<Steps>,
        problems: &mut Vec<CompileProblem>,
    ) -> Self {
        let (mut chains, inputs) = (Self::default(), Inputs { entities: set, gathered });
        let mut note = |collection, id: &str, found: Vec<FieldProblem>| {
            let all = found.into_iter().map(|problem| CompileProblem { collection, id: id.to_owned(), problem });
            problems.extend(all);
        };
        let found = memory.get(GlobalConfig::COLLECTION, GlobalConfig::ID, inputs, |view| {
            steps(validators(global(view)), &BTreeMap::new(), view, tools, settings)
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
            let found = memory.get(Route::COLLECTION, &route.head.id, inputs, |view| {
                let Some(route) = view.get::<Route>(&route.head.id) else { return Ok(Steps::default()) };
                steps(route_plugins(route), &route.head.metadata, view, tools, settings)
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
    metadata: &BTreeMap<String, Value>,
    view: &View<'_>,
    tools: &Tools,
    settings: &Settings,
) -> Result<Steps, Vec<FieldProblem>> {
    let Listed { placed: listed, guards, warnings } = listed?;
    let global = global(view);
    let known = listed.iter().filter_map(|placed| Some((active(&placed.used.plugin)?, placed)));
    let chain: Vec<Chained<'_>> =
        known.map(|(plugin, placed)| Chained { plugin, config: &placed.used.config }).collect();
    let mut steps = Steps { guards, warnings, ..Steps::default() };
    let mut problems = Vec::new();
    for Placed { used, pointer } in &listed {
        let found = active(&used.plugin).and_then(|plugin| Some((plugin, plugin.compile?)));
        let Some((plugin, compile)) = found else {
            problems.push(unknown_plugin(&used.plugin, pointer));
            continue;
        };
        let Steps { parts, largest_body, largest_request, warnings, guards, .. } = &mut steps;
        let mut context = Context {
            view,
            tools,
            plugin_settings: &global.security.plugins,
            keys: &settings.challenge_root,
            fail_open: global.waf.fail_open,
            chain: &chain,
            metadata,
            parts: parts.entry(plugin.name).or_default(),
            largest_body,
            largest_request,
            warnings,
            guards,
        };
        match compile(&used.config, &mut context) {
            Ok(Some(config)) => {
                steps.guards.extend(protection::scope_guard(plugin.title, &used.include, &used.exclude));
                steps.list.push(Step {
                    plugin: plugin.name.to_owned(),
                    include: used.include.clone(),
                    exclude: used.exclude.clone(),
                    config,
                    on_refusal_only: false,
                });
            }
            Ok(None) => {}
            Err(found) => problems.extend(found.into_iter().map(|problem| problem.under(&format!("{pointer}/config")))),
        }
    }
    if problems.is_empty() { Ok(steps) } else { Err(problems) }
}

/// The global configuration as a compilation sees it.
fn global<'a>(view: &View<'a>) -> &'a Item<GlobalConfig> {
    static DEFAULT: LazyLock<Item<GlobalConfig>> = LazyLock::new(|| EntitySet::empty().global().clone());
    view.get(GlobalConfig::ID).unwrap_or_else(|| &DEFAULT)
}

/// The plugin of this release that is called so.
fn active(name: &str) -> Option<&'static plugins::Plugin> {
    by_name(name).filter(|plugin| plugin.is_active())
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
    let mut listed = expanded(used, &format!("route `{}`", route.head.id))?;
    listed.placed.sort_by(|a, b| match (a.used.index, b.used.index) {
        (Some(a), Some(b)) => a.total_cmp(&b),
        (a, b) => a.is_none().cmp(&b.is_none()),
    });
    Ok(listed)
}

/// The validators of the global chain in their listed order.
fn validators(global: &Item<GlobalConfig>) -> Result<Listed, Vec<FieldProblem>> {
    let listed = global.incoming_request_validators.iter().enumerate().filter(|(_, validator)| validator.enabled);
    let listed = listed.map(|(number, validator)| Placed {
        used: PluginUse {
            plugin: validator.plugin.clone(),
            include: validator.include.clone(),
            exclude: validator.exclude.clone(),
            index: None,
            config: validator.config.clone(),
        },
        pointer: format!("/incoming_request_validators/{number}"),
    });
    expanded(listed, "the global chain")
}

/// Presets give way to what they lay down. `place` is where they are, for warnings.
fn expanded(listed: impl Iterator<Item = Placed>, place: &str) -> Result<Listed, Vec<FieldProblem>> {
    let mut all = Listed::default();
    let mut problems = Vec::new();
    for placed in listed {
        if !PRESET_CLASSES.contains(&placed.used.plugin.as_str()) {
            all.placed.push(placed);
            continue;
        }
        match expand::expand(&placed.used.config) {
            Ok(Expanded { uses, guards }) => {
                all.warnings.extend(unused_paths(place, &placed));
                all.guards.extend(guards);
                all.placed.extend(uses.into_iter().map(|used| Placed { used, pointer: placed.pointer.clone() }));
            }
            Err(problem) => problems.push(problem.under(&format!("{}/config", placed.pointer))),
        }
    }
    if problems.is_empty() { Ok(all) } else { Err(problems) }
}

/// What is said of the paths of a preset's entry, which its plugins do not have: those of its configuration hold (specification, "Preset
/// route plugin configuration").
fn unused_paths(place: &str, placed: &Placed) -> Option<String> {
    let Placed { used, pointer } = placed;
    let fields = [("include", &used.include), ("exclude", &used.exclude)];
    let named: Vec<&str> =
        fields.into_iter().filter(|(_, patterns)| !patterns.is_empty()).map(|(name, _)| name).collect();
    let fields = named.join("` and `");
    let instead = named.iter().map(|name| format!("`{pointer}/config/{name}`")).collect::<Vec<_>>().join(" and ");
    (!named.is_empty())
        .then(|| format!("{place}, `{pointer}`: `{fields}` at the entry of a preset have no effect; use {instead}"))
}

fn unknown_plugin(name: &str, pointer: &str) -> FieldProblem {
    // The name is right where a later release has the plugin.
    let slip = did_you_mean(name, names()).filter(|_| by_name(name).is_none());
    let suggestion = slip.map_or(String::new(), |known| format!("; did you mean `{known}`?"));
    let known: Vec<&str> = names().collect();
    FieldProblem::new(format!("{pointer}/plugin"), format!("this release has no plugin `{name}`{suggestion}"))
        .expected(format!("one of {}", known.join(", ")))
}

/// The names to show in the error on an unknown one.
fn names() -> impl Iterator<Item = &'static str> {
    plugins::active().map(plugins::Plugin::class).chain(PRESET_CLASSES.into_iter().take(1))
}
