//! The routes as the report lists them, with the contract that each is checked against.

use kit::EntitySource;
use serde_json::{Map, Value};

use crate::control::{ApiContractMode, Fields, PRESET_FIELDS, ROUTE_KEY};

/// The names of plugins that lay this one down.
const PRESETS: [&str; 5] = [
    "SecuritySuitePreset",
    "SvcSecuritySuitePreset",
    "preset",
    "SecuritySuiteGlobalPreset",
    "SvcSecuritySuiteGlobalPreset",
];
const CLASSES: [&str; 2] = ["SvcApiContract", "api-contract"];

/// A route.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct ReportedRoute {
    /// The entity's id.
    pub(super) id: String,
    /// Its name; the id where it has none.
    pub(super) name: String,
    /// The id of its contract.
    pub(super) contract: Option<String>,
    /// `monitor` or `enforce`, where it has a contract.
    pub(super) mode: Option<String>,
    /// Its calls are counted.
    pub(super) counted: bool,
}

/// All enabled routes, by id.
pub(super) fn routes(entities: &dyn EntitySource) -> Vec<ReportedRoute> {
    let Some(all) = entities.collection("routes") else { return Vec::new() };
    let shown = all.values().filter(|slot| slot.entity.is_enabled()).map(|slot| slot.entity.shown());
    shown.map(|route| read(&route)).collect()
}

fn read(route: &Value) -> ReportedRoute {
    let text = |field: &str| route.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
    let (id, name) = (text("id"), text("name"));
    let of_route = || Some(route.get("metadata")?.get(ROUTE_KEY)?.as_str()?.to_owned());
    let mut found = ReportedRoute { name: if name.is_empty() { id.clone() } else { name }, id, ..Default::default() };
    for plugin in route.get("plugins").and_then(Value::as_array).into_iter().flatten() {
        if plugin.get("enabled") == Some(&Value::Bool(false)) {
            continue;
        }
        let nothing = Map::new();
        let config = plugin.get("config").and_then(Value::as_object).unwrap_or(&nothing);
        let class = plugin.get("plugin").and_then(Value::as_str).unwrap_or_default();
        let (contract, mode, counted) = if CLASSES.contains(&class) {
            let own = config.get("contract").and_then(Value::as_str).map(str::to_owned);
            let mode = config.get("mode").and_then(Value::as_str).unwrap_or("monitor").to_owned();
            (own.or_else(of_route), mode, config.get("inventory") != Some(&Value::Bool(false)))
        } else if PRESETS.contains(&class) {
            let fields = kit::Section::read::<Fields>(config, &PRESET_FIELDS).unwrap_or_default();
            if !fields.api_contract {
                continue;
            }
            let enforces = fields.api_contract_mode == Some(ApiContractMode::Enforce);
            (fields.api_contract_id.or_else(of_route), if enforces { "enforce" } else { "monitor" }.to_owned(), true)
        } else {
            continue;
        };
        if found.contract.is_none() {
            found.mode = contract.is_some().then_some(mode);
            (found.contract, found.counted) = (contract, counted);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_contract_of_a_route_is_in_its_plugin_its_preset_or_its_metadata() {
        let of = |plugins: Value| {
            let route = json!({ "id": "r", "metadata": { "svc-api-contract": "meta" }, "plugins": plugins });
            let route = read(&route);
            assert_eq!(route.contract.is_some(), route.mode.is_some());
            (route.contract, route.counted)
        };
        let is = |name: &str| Some(name.to_owned());
        assert_eq!(of(json!([])), (None, false));
        assert_eq!(of(json!([{ "plugin": "SvcApiContract", "config": { "contract": "own" } }])), (is("own"), true));
        assert_eq!(of(json!([{ "plugin": "api-contract", "config": { "inventory": false } }])), (is("meta"), false));
        assert_eq!(of(json!([{ "plugin": "SvcApiContract", "enabled": false, "config": {} }])), (None, false));
        let preset = json!([{ "plugin": "SecuritySuitePreset", "config": { "api_contract": true, "api_contract_id": "own", "gate": false } }]);
        assert_eq!(of(preset), (is("own"), true));
        assert_eq!(
            of(json!([{ "plugin": "SecuritySuitePreset", "config": { "api_contract_id": "own" } }])),
            (None, false)
        );
    }
}
