//! The preset plugin: one plugin in a route that lays down the whole chain.
//!
//! It is expanded when a snapshot is compiled, not in the filter: what a filter gets is plain steps, and a mistake in the
//! configuration is found where it is written.

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::guards::Guard;
use super::steps::PluginUse;
use entities::{FieldProblem, plugins, typed};

/// The preset's configuration (specification, "Preset route plugin configuration").
#[derive(Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Preset {
    threat_policy: Option<String>,
    waf_config: Option<String>,
    gate: bool,
    waf: bool,
    response: bool,
    include: Vec<String>,
    exclude: Vec<String>,
}

impl Default for Preset {
    fn default() -> Self {
        Self {
            threat_policy: None,
            waf_config: None,
            gate: true,
            waf: true,
            response: true,
            include: Vec::new(),
            exclude: Vec::new(),
        }
    }
}

/// What a preset's configuration says of the WAF if it lays down none.
pub(super) fn without_waf(config: &Map<String, Value>) -> Option<Guard> {
    let field = |name: &str| config.get(name).filter(|value| !value.is_null());
    match (field("waf").and_then(Value::as_bool), field("waf_config")) {
        (Some(false), _) => Some(Guard::PresetDeclinesWaf),
        (_, None) => Some(Guard::PresetWithoutWaf),
        (_, Some(_)) => None,
    }
}

/// The plugins that a preset's configuration lays down, in the fixed order of the specification.
pub(super) fn expand(config: &Map<String, Value>) -> Result<Vec<PluginUse>, FieldProblem> {
    // Fields of plugins that are not part of this release are taken, so that a configuration need not change when they
    // come, and lay down nothing; the entity that has them is answered with a warning.
    let later = |field: &str| plugins::ALL.iter().any(|plugin| !plugin.is_active() && plugin.preset.has(field));
    let mut config = config.clone();
    config.retain(|field, _| !later(field));
    let preset: Preset = typed(Value::Object(config))?;
    let mut plugins = Vec::new();
    let mut lay_down = |plugin: &'static str, index: f64, config: Value| {
        let Value::Object(config) = config else { return };
        let (include, exclude) = (preset.include.clone(), preset.exclude.clone());
        plugins.push(PluginUse { plugin: plugin.to_owned(), include, exclude, index: Some(index), config });
    };
    if preset.gate {
        lay_down("threat-gate", 1.0, json!({ "policy": preset.threat_policy }));
    }
    if let Some(config) = preset.waf_config.as_ref().filter(|_| preset.waf) {
        lay_down("waf", 1.0, json!({ "ref": config, "contribute": true }));
    }
    if preset.response {
        lay_down("threat-response", 900.0, json!({ "policy": preset.threat_policy }));
    }
    Ok(plugins)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expanded(config: Value) -> Result<Vec<(String, Option<f64>)>, FieldProblem> {
        let Value::Object(config) = config else { panic!("no object") };
        Ok(expand(&config)?.into_iter().map(|plugin| (plugin.plugin, plugin.index)).collect())
    }

    #[test]
    fn the_chain_has_the_order_of_the_specification() {
        let chain = expanded(json!({ "waf_config": "waf-config_1" })).unwrap();
        let expected = [("threat-gate", 1.0), ("waf", 1.0), ("threat-response", 900.0)];
        assert_eq!(chain, expected.map(|(name, index)| (name.to_owned(), Some(index))));
    }

    #[test]
    fn sections_are_switched_and_the_waf_needs_a_config() {
        assert_eq!(expanded(json!({ "gate": false, "response": false })).unwrap(), []);
        assert_eq!(expanded(json!({ "waf": false, "waf_config": "x", "gate": false })).unwrap().len(), 1);
        assert_eq!(expanded(json!({ "bots": true, "objects_budget": 5 })).unwrap().len(), 2);
    }

    #[test]
    fn a_wrong_field_is_named() {
        assert_eq!(expanded(json!({ "gate": "yes" })).unwrap_err().pointer, "/gate");
        assert!(expanded(json!({ "waf_confg": "x" })).unwrap_err().to_string().contains("waf_config"));
    }
}
