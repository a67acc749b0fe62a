//! The composite: all plugins in one VM, in the order of their `plugin_index`.
//!
//! This crate is where a plugin is registered. What the preset's own configuration lays down is expanded by the control
//! plane when it compiles a snapshot, so a filter only ever sees steps.

use exchange::PluginDefinition;

/// Every plugin of the suite. A new one is its folder and its line here.
pub const REGISTRY: &[PluginDefinition] = &[threat_gate::PLUGIN, threat_response::PLUGIN, waf::PLUGIN];

#[cfg(test)]
mod tests {
    use super::REGISTRY;

    #[test]
    fn names_are_unique() {
        let mut names: Vec<_> = REGISTRY.iter().map(|definition| definition.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), REGISTRY.len());
    }
}
