//! The composite: all plugins in one VM, in the order of their `plugin_index`.
//!
//! This crate is where a plugin is registered, for filters and for the control plane alike. What the preset's own configuration lays
//! down is expanded by the control plane when it compiles a snapshot, so a filter only ever sees steps.

use exchange::PluginDefinition;

/// Names the crates of plugins, one line each; an attribute such as `#[cfg(...)]` may stand in front.
macro_rules! plugins {
    ($($(#[$attribute:meta])* $plugin:ident),* $(,)?) => {
        /// Every plugin of the suite, as filters run it.
        pub const REGISTRY: &[PluginDefinition] = &[$($(#[$attribute])* $plugin::PLUGIN),*];

        /// The control-plane side of every plugin, in the same order.
        #[cfg(feature = "control")]
        pub const CONTROL: &[&kit::Plugin] = &[$($(#[$attribute])* &$plugin::control::PLUGIN),*];
    };
}

// A new plugin is its folder, its line here, and its line in this crate's Cargo.toml.
plugins! {
    api_contract,
    bot_guard,
    error_leakage,
    fail2ban,
    #[cfg(feature = "examples")]
    geo_block,
    honeypot,
    ip_reputation,
    login_guard,
    object_guard,
    query_guard,
    sensitive_data,
    threat_gate,
    threat_response,
    traffic_guard,
    upload_guard,
    waf,
}

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
