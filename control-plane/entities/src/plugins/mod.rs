//! What entities say of each plugin, those of later releases included.
//!
//! A plugin is one file here and one line in [`ALL`]. Whether this release has it is said in one place: the registry of
//! `filters/preset`. What only a plugin of a later release would use is stored and checked, and answered with a warning
//! ([`super::unused`]), so that no operator relies on it.

mod api_contract;
mod bot_guard;
mod error_leakage;
mod fail2ban;
mod honeypot;
mod ip_reputation;
mod login_guard;
mod object_guard;
mod plugin;
mod sensitive_data;
mod settings;
mod threat_gate;
mod threat_response;
mod traffic_guard;
mod upload_guard;
mod waf;

pub use api_contract::{ApiSettings, InventorySettings};
pub use ip_reputation::DnsblSettings;
pub use object_guard::ObjectSettings;
pub use plugin::{Plugin, Section};
pub use traffic_guard::TrafficSettings;

pub(crate) use settings::Settings;

/// Every plugin of the suite, in the order of a full preset: access, request, response, then those before routing.
pub const ALL: &[Plugin] = &[
    threat_gate::PLUGIN,
    bot_guard::PLUGIN,
    ip_reputation::PLUGIN,
    fail2ban::PLUGIN,
    traffic_guard::PLUGIN,
    api_contract::PLUGIN,
    waf::PLUGIN,
    upload_guard::PLUGIN,
    login_guard::PLUGIN,
    object_guard::PLUGIN,
    threat_response::PLUGIN,
    error_leakage::PLUGIN,
    sensitive_data::PLUGIN,
    honeypot::PLUGIN,
];

/// The names of the preset, which stands for the plugins that its configuration selects.
pub const PRESET_CLASSES: [&str; 5] = [
    "SecuritySuitePreset",
    "SvcSecuritySuitePreset",
    "preset",
    "SecuritySuiteGlobalPreset",
    "SvcSecuritySuiteGlobalPreset",
];

/// Collections that a part of the control plane uses which this release does not have, and that part. A part that comes
/// takes its line away.
pub(super) const PARTS: &[(&str, &str)] = &[("geo-databases", "geolocation")];

/// The plugin of that name or class, whether this release has it or not.
#[must_use]
pub fn by_name(name: &str) -> Option<&'static Plugin> {
    ALL.iter().find(|plugin| plugin.name == name || plugin.classes.contains(&name))
}

/// The names of the filters of this release: the preset, and one for each plugin.
pub(super) fn filters() -> impl Iterator<Item = &'static str> + Clone {
    std::iter::once("preset").chain(preset::REGISTRY.iter().map(|plugin| plugin.name))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn each_word_means_one_plugin_and_each_collection_exists() {
        let mut words = BTreeSet::new();
        let mut fields = BTreeSet::new();
        for plugin in ALL {
            for word in plugin.classes.iter().chain([&plugin.name]) {
                assert!(words.insert(*word) && !PRESET_CLASSES.contains(word), "{word}");
            }
            for field in plugin.preset.all() {
                assert!(fields.insert(field), "{field}");
            }
            let named = plugin.references.iter().chain(plugin.preset.references).map(|(_, collection)| collection);
            for collection in plugin.collections.iter().chain(named) {
                assert!(crate::registry::by_collection(collection).is_some(), "{collection}");
            }
            for (field, _) in plugin.preset.references {
                assert!(plugin.preset.fields.contains(field), "{field}");
            }
        }
        for definition in preset::REGISTRY {
            assert!(by_name(definition.name).is_some(), "the plugin `{}` has no file here", definition.name);
        }
    }
}
