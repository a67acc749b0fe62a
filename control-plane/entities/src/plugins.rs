//! Every plugin of the suite, as the registry of `filters/preset` has them.

use std::sync::LazyLock;

pub use kit::{Plugin, Section};

/// Every plugin, in the order of a full preset: access, request, response.
pub static ALL: LazyLock<Vec<&'static Plugin>> = LazyLock::new(|| {
    let mut all: Vec<&Plugin> = preset::CONTROL.to_vec();
    all.sort_by_key(|plugin| plugin.order);
    all
});

/// The names of the preset, which stands for the plugins that its configuration selects.
pub const PRESET_CLASSES: [&str; 5] = [
    "SecuritySuitePreset",
    "SvcSecuritySuitePreset",
    "preset",
    "SecuritySuiteGlobalPreset",
    "SvcSecuritySuiteGlobalPreset",
];

/// The plugin of that name or class, whether this release has it or not.
#[must_use]
pub fn by_name(name: &str) -> Option<&'static Plugin> {
    ALL.iter().find(|plugin| plugin.is_called(name)).copied()
}

/// The plugins of this release, in the order of a full preset.
pub fn active() -> impl Iterator<Item = &'static Plugin> + Clone {
    ALL.iter().copied().filter(|plugin| plugin.is_active())
}

/// The names of the filters of this release: the preset, and one for each plugin.
pub(super) fn filters() -> impl Iterator<Item = &'static str> + Clone {
    std::iter::once("preset").chain(active().map(|plugin| plugin.name))
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;
    use crate::registry;

    #[test]
    fn each_word_means_one_plugin_and_each_collection_exists() {
        let (mut words, mut fields, mut settings, mut collections) =
            (BTreeSet::new(), BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
        for plugin in ALL.iter() {
            for word in plugin.classes.iter().chain([&plugin.name]) {
                assert!(words.insert(*word) && !PRESET_CLASSES.contains(word), "{word}");
            }
            assert!(plugin.preset.all().all(|field| fields.insert(field)), "{}", plugin.name);
            assert!(plugin.settings.iter().all(|kind| settings.insert(kind.field)), "{}", plugin.name);
            let named = plugin.references.iter().chain(plugin.preset.references).chain(plugin.route_metadata);
            for (_, collection) in named {
                assert!(registry::by_collection(collection).is_some(), "{collection}");
            }
            for (field, _) in plugin.preset.references {
                assert!(plugin.preset.fields.contains(field), "{field}");
            }
        }
        assert!(registry::KINDS.iter().all(|kind| collections.insert(kind.collection)), "{collections:?}");
    }

    #[test]
    fn operations_have_paths_ids_and_schemas_of_their_own() {
        let (mut words, mut schemas) = (BTreeSet::new(), BTreeMap::new());
        for operation in ALL.iter().flat_map(|plugin| plugin.operations) {
            assert!(operation.path.starts_with('/') && words.insert(operation.path), "{}", operation.path);
            assert!(words.insert(operation.id), "{}", operation.id);
            let refusal = operation.refusal.map(|refusal| refusal.schema);
            for named in [operation.body.schema].into_iter().chain(refusal).chain(operation.schemas.iter().copied()) {
                let schema = (named.schema)();
                assert_eq!(schemas.entry(named.name).or_insert_with(|| schema.clone()), &schema, "{}", named.name);
            }
        }
        assert!(words.len() >= 4, "{words:?}");
    }

    #[test]
    fn the_registry_has_both_sides_of_each_plugin() {
        let filters: Vec<&str> = preset::REGISTRY.iter().map(|definition| definition.name).collect();
        let control: Vec<&str> = preset::CONTROL.iter().map(|plugin| plugin.name).collect();
        assert_eq!(filters, control);
        for plugin in ALL.iter() {
            assert_eq!(plugin.is_active(), control.contains(&plugin.name), "{}", plugin.name);
        }
    }
}
