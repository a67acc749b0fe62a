//! What the control plane knows of each plugin: its names, its configuration, and how that is compiled.
//!
//! A plugin is a file here and a line in [`PLUGINS`]; its other half is a folder under `filters/` and a line in the
//! registry of `filters/preset`.

mod challenge;
mod kind;
mod policies;
mod threat_gate;
mod threat_response;
mod waf;
mod widget;

pub(super) use kind::Context;
use kind::PluginKind;
pub use policies::lower;
pub(super) use policies::policy;
pub use waf::step as waf_step;

use entities::plugins::PRESET_CLASSES;

/// Every plugin of this release.
pub(super) const PLUGINS: &[PluginKind] = &[threat_gate::KIND, threat_response::KIND, waf::KIND];

/// The plugin of that name or class.
pub(super) fn by_name(name: &str) -> Option<&'static PluginKind> {
    let plugin = entities::plugins::by_name(name)?;
    PLUGINS.iter().find(|kind| kind.name == plugin.name)
}

/// The names to show in the error on an unknown one.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    let known = PLUGINS.iter().filter_map(|kind| Some(entities::plugins::by_name(kind.name)?.class()));
    known.chain(PRESET_CLASSES.into_iter().take(1))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::expand::expand;

    /// How often a preset with these fields lays a plugin down.
    fn laid_down(plugin: &str, fields: Value) -> usize {
        let Value::Object(fields) = fields else { panic!("no object") };
        let uses = expand(&fields).unwrap_or_else(|problem| panic!("{plugin}: {problem}"));
        uses.iter().filter(|used| used.plugin == plugin).count()
    }

    #[test]
    fn a_plugin_of_this_release_is_compiled_and_laid_down_and_no_other_is() {
        let compiled: Vec<&str> = PLUGINS.iter().map(|kind| kind.name).collect();
        let registered: Vec<&str> = preset::REGISTRY.iter().map(|definition| definition.name).collect();
        assert!(registered.iter().all(|name| compiled.contains(name)), "{registered:?} {compiled:?}");
        assert!(compiled.iter().all(|name| registered.contains(name)), "{registered:?} {compiled:?}");
        for plugin in entities::plugins::ALL {
            assert_eq!(plugin.is_active(), by_name(plugin.class()).is_some(), "{}", plugin.name);
            let Some(switch) = plugin.preset.switch else { continue };
            let mut on = json!({ switch: true });
            for (field, _) in plugin.preset.references {
                on[field] = json!("x");
            }
            assert_eq!(laid_down(plugin.name, on.clone()), usize::from(plugin.is_active()), "{}", plugin.name);
            on[switch] = json!(false);
            assert_eq!(laid_down(plugin.name, on), 0, "{}", plugin.name);
        }
    }
}
