//! What plugins of routes and of the global chain name by id, read from their configuration.
//!
//! The compiler says what else is wrong with a plugin; here it is only asked whether the entities exist, so that one of
//! them is not deleted under a plugin that needs it.

use serde_json::{Map, Value};

use super::plugins::{self, ALL, PRESET_CLASSES, Plugin};
use super::{FieldProblem, References};
use kit::reference;
use kit::token;

/// The entities that a plugin names and that do not exist. Pointers are relative to the plugin.
pub(super) fn missing(plugin: &str, config: &Map<String, Value>, refs: &dyn References) -> Vec<FieldProblem> {
    let mut problems = Vec::new();
    let own = plugins::by_name(plugin).into_iter().flat_map(|plugin| plugin.references);
    let is_preset = PRESET_CLASSES.contains(&plugin);
    let of_preset = ALL.iter().filter(|_| is_preset).flat_map(|plugin| plugin.preset.references);
    for (field, collection) in own.chain(of_preset) {
        let pointer = format!("/config/{}", token(field));
        match config.get(*field) {
            Some(Value::String(id)) if !id.is_empty() => problems.extend(reference(refs, collection, id, pointer)),
            Some(Value::Array(ids)) => {
                for (index, id) in ids.iter().enumerate().filter_map(|(index, id)| Some((index, id.as_str()?))) {
                    problems.extend(reference(refs, collection, id, format!("{pointer}/{index}")));
                }
            }
            _ => {}
        }
    }
    problems
}

/// The longest ban that gateways may order because of a plugin in a chain, in seconds; of a preset, because of what it lays down.
pub(super) fn longest_ban(plugin: &str, config: &Map<String, Value>) -> Option<u64> {
    let laid_down = |plugin: &'static Plugin| match plugin.preset.lay_down?(config).ok()?.0? {
        Value::Object(config) => plugin.longest_ban?(&config),
        _ => None,
    };
    if PRESET_CLASSES.contains(&plugin) {
        return plugins::active().filter_map(laid_down).max();
    }
    plugins::by_name(plugin)?.longest_ban?(config)
}

/// The keys of a route's metadata that name an entity for some plugin, with the collection.
pub(super) fn route_metadata() -> impl Iterator<Item = (&'static str, &'static str)> {
    ALL.iter().flat_map(|plugin| plugin.route_metadata).copied()
}
