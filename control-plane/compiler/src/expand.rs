//! The preset plugin: one plugin in a route that lays down the whole chain.
//!
//! It is expanded when a snapshot is compiled, not in the filter: what a filter gets is plain steps, and a mistake in the
//! configuration is found where it is written.

use serde_json::{Map, Value};

use super::steps::PluginUse;
use entities::{FieldProblem, path_patterns, plugins};
use kit::{Guard, Section, unknown_field};

/// The fields that belong to no plugin.
const OWN_FIELDS: [&str; 2] = ["include", "exclude"];

/// The plugins that a preset lays down, and what they note of the chain.
#[derive(Debug, Default)]
pub(super) struct Expanded {
    /// In the order in which requests pass them, but for their index.
    pub(super) uses: Vec<PluginUse>,
    /// What plugins note that are not laid down.
    pub(super) guards: Vec<Box<dyn Guard>>,
}

/// The paths of a preset's configuration.
#[derive(serde::Deserialize, Default)]
#[serde(default)]
struct Paths {
    include: Vec<String>,
    exclude: Vec<String>,
}

/// What a preset's configuration lays down (specification, "Preset route plugin configuration"), in the fixed order of plugins.
/// Fields of plugins that are not part of this release are taken, so that a configuration need not change when they come, and lay
/// down nothing; the entity that has them is answered with a warning.
///
/// # Errors
/// A field that no plugin has, or one that is wrong.
pub(super) fn expand(config: &Map<String, Value>) -> Result<Expanded, FieldProblem> {
    let is_known =
        |field: &str| OWN_FIELDS.contains(&field) || plugins::ALL.iter().any(|plugin| plugin.preset.has(field));
    if let Some(unknown) = config.keys().find(|field| !is_known(field)) {
        let known: Vec<&str> = plugins::active().flat_map(|plugin| plugin.preset.all()).chain(OWN_FIELDS).collect();
        return Err(unknown_field(format!("/{}", kit::token(unknown)), unknown, &known));
    }
    let paths: Paths = Section::read(config, &OWN_FIELDS)?;
    let patterns = [path_patterns("/include", &paths.include), path_patterns("/exclude", &paths.exclude)];
    if let Some(problem) = patterns.into_iter().flatten().next() {
        return Err(problem);
    }
    let mut expanded = Expanded::default();
    for plugin in plugins::active() {
        let Some(lay_down) = plugin.preset.lay_down else { continue };
        let (config, guard) = lay_down(config)?;
        expanded.guards.extend(guard);
        if let Some(Value::Object(config)) = config {
            let (include, exclude) = (paths.include.clone(), paths.exclude.clone());
            let index = Some(plugin.preset.index);
            expanded.uses.push(PluginUse { plugin: plugin.name.to_owned(), include, exclude, index, config });
        }
    }
    Ok(expanded)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn expanded(config: Value) -> Result<Vec<(String, Option<f64>)>, FieldProblem> {
        let Value::Object(config) = config else { panic!("no object") };
        Ok(expand(&config)?.uses.into_iter().map(|plugin| (plugin.plugin, plugin.index)).collect())
    }

    #[test]
    fn the_chain_has_the_order_of_the_specification() {
        let chain = expanded(json!({ "waf_config": "waf-config_1" })).unwrap();
        let expected = [
            ("threat-gate", 1.0),
            ("bot-guard", 2.0),
            ("ip-reputation", 3.0),
            ("waf", 1.0),
            ("threat-response", 900.0),
        ];
        assert_eq!(chain, expected.map(|(name, index)| (name.to_owned(), Some(index))));
    }

    #[test]
    fn fail2ban_is_behind_the_ip_reputation() {
        let chain = expanded(json!({ "fail2ban": true })).unwrap();
        assert_eq!(chain[3], ("fail2ban".to_owned(), Some(4.0)));
    }

    #[test]
    fn the_traffic_guard_is_the_last_that_looks_at_the_caller() {
        let chain = expanded(json!({ "fail2ban": true, "traffic": true })).unwrap();
        assert_eq!(chain[4], ("traffic-guard".to_owned(), Some(5.0)));
    }

    #[test]
    fn a_honeypot_is_in_front_of_all_others() {
        let chain = expanded(json!({ "honeypot_policy": "traps" })).unwrap();
        let expected = [
            ("honeypot", 0.5),
            ("threat-gate", 1.0),
            ("bot-guard", 2.0),
            ("ip-reputation", 3.0),
            ("threat-response", 900.0),
        ];
        assert_eq!(chain, expected.map(|(name, index)| (name.to_owned(), Some(index))));
    }

    #[test]
    fn sections_are_switched_and_the_waf_needs_a_config() {
        let off = json!({ "gate": false, "bots": false, "reputation": false, "response": false });
        assert_eq!(expanded(off).unwrap(), []);
        assert_eq!(expanded(json!({ "waf": false, "waf_config": "x", "gate": false })).unwrap().len(), 3);
        assert_eq!(expanded(json!({ "objects": false, "objects_budget": 5 })).unwrap().len(), 4);
    }

    #[test]
    fn the_object_guard_is_between_the_login_guard_and_the_threat_response() {
        let chain = expanded(json!({ "login": true, "login_paths": ["/login"], "objects": true })).unwrap();
        let [.., login, objects, response] = chain.as_slice() else { panic!("{chain:?}") };
        assert_eq!((login.0.as_str(), response.0.as_str()), ("login-guard", "threat-response"));
        assert_eq!(*objects, ("object-guard".to_owned(), Some(4.0)));
    }

    /// How often a preset with these fields lays a plugin down.
    fn laid_down(plugin: &str, fields: Value) -> usize {
        expanded(fields)
            .unwrap_or_else(|problem| panic!("{plugin}: {problem}"))
            .iter()
            .filter(|used| used.0 == plugin)
            .count()
    }

    #[test]
    fn a_plugin_of_this_release_is_laid_down_and_no_other_is() {
        for plugin in plugins::ALL.iter() {
            let Some(switch) = plugin.preset.switch else { continue };
            let mut on = json!({ switch: true });
            for (field, _) in plugin.preset.references {
                on[field] = json!("x");
            }
            let laid = usize::from(plugin.is_active() && plugin.preset.lay_down.is_some());
            assert_eq!(laid_down(plugin.name, on.clone()), laid, "{}", plugin.name);
            on[switch] = json!(false);
            assert_eq!(laid_down(plugin.name, on), 0, "{}", plugin.name);
        }
    }

    #[test]
    fn a_wrong_field_is_named() {
        assert_eq!(expanded(json!({ "gate": "yes" })).unwrap_err().pointer, "/gate");
        for switch in ["gate", "waf", "response"] {
            assert_eq!(expanded(json!({ switch: null })).unwrap_err().pointer, format!("/{switch}"));
        }
        // What a gateway could not run would make it refuse the whole snapshot.
        for (field, wrong) in [("include", "("), ("exclude", r"\pL")] {
            assert_eq!(expanded(json!({ field: ["^/a", wrong] })).unwrap_err().pointer, format!("/{field}/1"));
        }
        assert!(expanded(json!({ "waf_confg": "x" })).unwrap_err().to_string().contains("waf_config"));
    }
}
