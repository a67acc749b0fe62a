//! Whether there is anything that enforces a ban.

use super::expand;
use super::plugins::{self, PluginUse};
use crate::entities::{DEFAULT_GROUP, EntitySet, Route};

/// The plugin that enforces bans.
const GATE: &str = "threat-gate";

/// Whether some gateway has a threat gate in a chain.
///
/// # Errors
///
/// None has; with what is missing, for people.
pub(crate) fn enforces_bans(set: &EntitySet) -> Result<(), String> {
    let global = set.global();
    let everywhere = global.incoming_request_validators.iter().filter(|validator| validator.enabled);
    let everywhere = everywhere
        .map(|validator| (&validator.plugin, &validator.config))
        .any(|(plugin, config)| is_gate(plugin, config));
    let routes: Vec<_> = set
        .all::<Route>()
        .filter(|route| route.enabled)
        .filter(|route| {
            let used = route.plugins.iter().filter(|plugin| plugin.enabled);
            everywhere || used.into_iter().any(|plugin| is_gate(&plugin.plugin, &plugin.config))
        })
        .collect();
    if !everywhere && routes.is_empty() {
        let what = "no chain has a threat gate: neither an enabled route (`SecuritySuitePreset`, `SvcThreatGate`) nor the \
                    global chain";
        return Err(what.to_owned());
    }
    let names = std::iter::once(DEFAULT_GROUP).chain(global.groups.keys().map(String::as_str));
    let runs = |group: &str| {
        let filters = global.gateway_of(group).map(|gateway| gateway.filters).unwrap_or_default();
        let has = everywhere || routes.iter().any(|route| route.is_in(group));
        has && filters.iter().any(|filter| filter == "preset" || filter == GATE)
    };
    match names.into_iter().any(runs) {
        true => Ok(()),
        false => Err(format!("no gateway that has a chain with a threat gate runs the filter `{GATE}` or `preset`")),
    }
}

fn is_gate(plugin: &str, config: &serde_json::Map<String, serde_json::Value>) -> bool {
    let is = |name: &str| plugins::by_name(name).is_some_and(|kind| kind.name == GATE);
    if !expand::CLASSES.contains(&plugin) {
        return is(plugin);
    }
    let expanded: Vec<PluginUse> = expand::expand(config).unwrap_or_default();
    expanded.iter().any(|used| is(&used.plugin))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn set(entities: &[Value]) -> EntitySet {
        let folder = tempfile::tempdir().unwrap();
        for (number, entity) in entities.iter().enumerate() {
            std::fs::write(folder.path().join(format!("{number}.json")), entity.to_string()).unwrap();
        }
        EntitySet::from_dir(folder.path()).unwrap_or_else(|problems| panic!("{problems:?}"))
    }

    #[test]
    fn a_gate_is_found_wherever_it_is() {
        let route = |plugins: Value| json!({"kind": "route", "id": "r", "plugins": plugins});
        let preset = || route(json!([{"plugin": "SecuritySuitePreset", "config": {}}]));
        assert!(enforces_bans(&set(&[preset()])).is_ok());
        assert!(enforces_bans(&set(&[route(json!([{"plugin": "SvcThreatGate"}]))])).is_ok());
        let everywhere = json!([{"plugin": "IncomingRequestValidatorSvcThreatGate"}]);
        let everywhere = json!({"kind": "global-config", "incoming_request_validators": everywhere});
        assert!(enforces_bans(&set(&[everywhere])).is_ok());
        let filters = json!({"kind": "global-config", "gateway": {"filters": ["waf", "threat-response"]}});
        for none in [
            vec![],
            vec![route(json!([]))],
            vec![route(json!([{"plugin": "SecuritySuitePreset", "config": {"gate": false}}]))],
            vec![route(json!([{"plugin": "SvcThreatGate", "enabled": false}]))],
            vec![preset(), filters],
        ] {
            assert!(enforces_bans(&set(&none)).is_err(), "{none:?}");
        }
    }
}
