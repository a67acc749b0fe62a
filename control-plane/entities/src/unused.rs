//! What of an entity only plugins of later releases would use, and what is said of it.

use serde_json::{Map, Value};

use super::plugins::{self, ALL, PRESET_CLASSES, Plugin};
use super::{AnyEntity, FieldProblem};
use kit::{SettingsKind, token};

/// What all of these messages begin with.
const NOT_ACTIVE: &str = "not active yet";

/// What is said of a collection that nothing in this release uses; `None` if something does. For its description and its
/// entities alike.
#[must_use]
pub fn collection_note(collection: &str) -> Option<String> {
    let has = |plugin: &&&Plugin| plugin.kinds.iter().any(|kind| kind.collection == collection);
    let plugin = ALL.iter().filter(|plugin| !plugin.is_active()).find(has)?;
    Some(format!("{NOT_ACTIVE}: this release has {}, and nothing else uses these entities", lacking(plugin)))
}

/// What is said of settings of a plugin; `None` if this release reads them.
pub(super) fn settings_note(plugin: &Plugin, settings: &SettingsKind) -> Option<String> {
    let part = match settings.lacking {
        _ if !plugin.is_active() => lacking(plugin),
        Some(part) => format!("no {part}"),
        None => return None,
    };
    Some(format!("{NOT_ACTIVE}: this release has {part}"))
}

/// What is said of settings of a plugin that were changed.
pub(super) fn of_settings(plugin: &Plugin, settings: &SettingsKind) -> Option<FieldProblem> {
    let note = settings_note(plugin, settings)?;
    let message =
        format!("{note}, and nothing reads these settings; do not rely on them; their defaults end this warning");
    Some(FieldProblem::new(format!("/{}", settings.field), message))
}

/// What of an entity has not the effect that it seems to have, for a warning: what this release does not use, where it is not
/// switched off, and what is read as something other than it says.
#[must_use]
pub fn of_entity(collection: &str, entity: &dyn AnyEntity) -> Vec<FieldProblem> {
    let unused = entity.is_enabled().then(|| of_collection(collection).into_iter().chain(entity.unused()));
    unused.into_iter().flatten().chain(entity.misread()).collect()
}

/// What is said of an entity of such a collection.
fn of_collection(collection: &str) -> Option<FieldProblem> {
    let note = collection_note(collection)?;
    let message = format!("{note}; do not rely on it; `enabled: false` ends this warning");
    Some(FieldProblem::new("/enabled", message))
}

/// What is said of the configuration of a plugin of a route or of the global chain. Pointers are relative to the plugin.
pub(super) fn in_plugin(class: &str, config: &Map<String, Value>) -> Vec<FieldProblem> {
    let found = match plugins::by_name(class) {
        _ if PRESET_CLASSES.contains(&class) => in_preset(config),
        // One that this release does not have is refused by the compiler.
        Some(plugin) if plugin.is_active() => inert(plugin, config),
        _ => Vec::new(),
    };
    found.into_iter().map(|problem| problem.under("/config")).collect()
}

/// What is said of fields of a plugin that have no effect yet.
fn inert(plugin: &Plugin, config: &Map<String, Value>) -> Vec<FieldProblem> {
    let is_set = |field: &str| match config.get(field) {
        None | Some(Value::Null | Value::Bool(false)) => false,
        Some(Value::Array(list)) => !list.is_empty(),
        Some(_) => true,
    };
    let set = plugin.inert.iter().filter(|(field, _)| is_set(field));
    let told = set.map(|(field, part)| {
        let message = format!(
            "{NOT_ACTIVE}: this release has no {part}, and `{field}` has no effect; do not rely on it; without it there is no \
             warning"
        );
        FieldProblem::new(format!("/{}", token(field)), message)
    });
    told.collect()
}

/// What is said of the configuration of a preset, once for each plugin: fields that are set, in a section that is not
/// switched off.
#[must_use]
pub fn in_preset(config: &Map<String, Value>) -> Vec<FieldProblem> {
    in_sections(ALL.iter().copied(), config)
}

/// The same for the sections of some plugins.
fn in_sections(plugins: impl Iterator<Item = &'static Plugin>, config: &Map<String, Value>) -> Vec<FieldProblem> {
    let is_set =
        |field: &str| config.get(field).is_some_and(|value| !matches!(value, Value::Null | Value::Bool(false)));
    let mut found = Vec::new();
    for plugin in plugins.filter(|plugin| !plugin.is_active()) {
        let section = &plugin.preset;
        if section.switch.is_some_and(|switch| config.get(switch) == Some(&Value::Bool(false))) {
            continue;
        }
        let set: Vec<&str> = section.all().filter(|field| is_set(field)).collect();
        let Some(first) = set.first() else { continue };
        let names = set.iter().map(|field| format!("`{field}`")).collect::<Vec<_>>().join(", ");
        let mend = match section.switch {
            Some(switch) => format!("without it, or with `{switch}: false`, there is no warning"),
            None => "without it there is no warning".to_owned(),
        };
        let message = format!(
            "{NOT_ACTIVE}: this release has {}, and {names} has no effect; do not rely on it; {mend}",
            lacking(plugin)
        );
        found.push(FieldProblem::new(format!("/{}", token(first)), message));
    }
    found
}

/// What is said of a key of a route's metadata that names an entity for a plugin of a later release.
pub(super) fn of_metadata(key: &str, pointer: String) -> Option<FieldProblem> {
    let names = |plugin: &&&Plugin| plugin.route_metadata.iter().any(|(own, _)| *own == key);
    let plugin = ALL.iter().filter(|plugin| !plugin.is_active()).find(names)?;
    let message = format!(
        "{NOT_ACTIVE}: this release has {}; do not rely on it; without it there is no warning",
        lacking(plugin)
    );
    Some(FieldProblem::new(pointer, message))
}

/// What is said of a category that no event of this release has.
pub(super) fn of_category(category: &str, pointer: String) -> Option<FieldProblem> {
    let plugin = ALL.iter().find(|plugin| !plugin.is_active() && plugin.categories.contains(&category))?;
    let message = format!(
        "{NOT_ACTIVE}: this release has {}, and no event has the category `{category}`; do not rely on it; without it \
         there is no warning",
        lacking(plugin)
    );
    Some(FieldProblem::new(pointer, message))
}

fn lacking(plugin: &Plugin) -> String {
    format!("no {} (`{}`)", plugin.title, plugin.class())
}

#[cfg(test)]
mod tests {
    use kit::Section;
    use serde_json::json;

    use super::*;

    /// One that this release does not have.
    const PLANNED: Plugin = Plugin {
        name: "planned",
        title: "planned guard",
        classes: &["SvcPlannedGuard"],
        preset: Section { switch: Some("planned"), fields: &["planned_mode", "planned_paths"], ..Section::NONE },
        ..Plugin::NONE
    };

    fn found(config: Value) -> Vec<(String, String)> {
        let Value::Object(config) = config else { panic!("no object") };
        in_preset(&config).into_iter().map(|problem| (problem.pointer, problem.message)).collect()
    }

    #[test]
    fn a_section_without_its_plugin_is_told_once() {
        let told = |config: Value| {
            let problems = in_sections([&PLANNED].into_iter(), config.as_object().unwrap()).into_iter();
            problems.map(|problem| (problem.pointer, problem.message)).collect::<Vec<_>>()
        };
        let all = told(json!({ "planned": true, "planned_mode": "x", "planned_paths": null }));
        assert_eq!(all.len(), 1, "{all:?}");
        assert_eq!(all[0].0, "/planned");
        for part in ["not active yet", "SvcPlannedGuard", "`planned`, `planned_mode`", "do not rely"] {
            assert!(all[0].1.contains(part), "{}", all[0].1);
        }
        assert!(!all[0].1.contains("planned_paths"), "a field that is null is not set");
        assert_eq!(told(json!({ "planned_mode": "x" }))[0].0, "/planned_mode", "on its own as well");
        assert_eq!(told(json!({ "planned": false, "planned_mode": "x" })), [], "it is switched off");
        assert_eq!(told(json!({})), []);
    }

    #[test]
    fn sections_of_active_plugins_are_silent_and_the_others_are_not() {
        for plugin in ALL.iter() {
            for field in plugin.preset.all() {
                assert_eq!(found(json!({ field: true })).is_empty(), plugin.is_active(), "{field}");
            }
            for kind in plugin.kinds {
                assert_eq!(collection_note(kind.collection).is_none(), plugin.is_active(), "{}", kind.collection);
            }
            for category in plugin.categories {
                assert_eq!(of_category(category, String::new()).is_none(), plugin.is_active(), "{category}");
            }
        }
        for active in ["waf-configs", "waf-rulesets", "threat-policies", "challenge-providers", "alert-rules", "routes"]
        {
            assert_eq!(collection_note(active), None);
        }
    }
}
