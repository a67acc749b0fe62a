//! `global-config`: settings of all gateways.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::gateway::Gateway;
use super::groups::{self, DEFAULT_GROUP, Group};
use super::route::{path_patterns, plugin_problem};
use super::security::SecuritySettings;
use super::{Entity, FieldProblem, Head, IdentitySettings, References, plugin_refs, unused};

/// The one global configuration. It exists with these defaults before it is first written.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct GlobalConfig {
    /// Plugins that run on every request before it is routed, in this order.
    pub incoming_request_validators: Vec<Validator>,
    /// How callers are identified.
    pub identity: IdentitySettings,
    /// The listener that xDS serves.
    pub gateway: Gateway,
    /// Groups of gateways by name, at most 100: gateways whose bootstrap has the name as its `node.cluster`. All others are the
    /// default group, with the settings of `gateway`. A name has 1 to 128 of `A-Z a-z 0-9 . _ -` and is not `default`.
    pub groups: BTreeMap<String, Group>,
    /// Settings of the rule engine on every route.
    pub waf: WafSettings,
    /// Settings of the decision fabric.
    pub security: SecuritySettings,
}

/// Settings of the rule engine on every route.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct WafSettings {
    /// Whether requests pass that the engine could not evaluate, because a pattern reached its limit. Default false: if the
    /// configuration blocks, they are answered with 503. `fail-open` is accepted as well.
    #[serde(alias = "fail-open")]
    pub fail_open: bool,
}

/// A global plugin.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Validator {
    /// The plugin's class, such as `IncomingRequestValidatorSvcHoneypot`.
    pub plugin: String,
    /// Whether it runs. Default true.
    #[serde(default = "yes")]
    pub enabled: bool,
    /// The plugin's own configuration.
    #[serde(default)]
    pub config: Map<String, Value>,
    /// Regular expressions on the path; if not empty, only paths that match one are handled.
    #[serde(default)]
    pub include: Vec<String>,
    /// Regular expressions on the path; paths that match one are not handled.
    #[serde(default)]
    pub exclude: Vec<String>,
}

// === impl GlobalConfig ===

impl GlobalConfig {
    /// The id of the one global configuration.
    pub const ID: &'static str = "global-config";

    /// The names of all groups, the default group last.
    pub fn group_names(&self) -> impl Iterator<Item = &str> {
        self.groups.keys().map(String::as_str).chain([DEFAULT_GROUP])
    }

    /// Every group with the settings of its gateways, the default group last.
    pub fn gateways(&self) -> impl Iterator<Item = (&str, Gateway)> {
        let named = self.groups.iter().map(|(name, group)| (name.as_str(), group.over(&self.gateway)));
        named.chain([(DEFAULT_GROUP, self.gateway.clone())])
    }
}

impl Entity for GlobalConfig {
    const COLLECTION: &'static str = "global-config";
    const KIND: &'static str = "global-config";
    const SINGLETON: Option<&'static str> = Some(GlobalConfig::ID);

    fn check(&self, _head: &Head, refs: &dyn References) -> Vec<FieldProblem> {
        let mut problems = Vec::new();
        for (index, validator) in self.incoming_request_validators.iter().enumerate() {
            let place = format!("/incoming_request_validators/{index}");
            let missing = plugin_refs::missing(&validator.plugin, &validator.config, refs);
            problems.extend(validator.check().into_iter().chain(missing).map(|problem| problem.under(&place)));
        }
        problems.extend(self.identity.check().into_iter().map(|problem| problem.under("/identity")));
        problems.extend(self.gateway.check().into_iter().map(|problem| problem.under("/gateway")));
        problems.extend(groups::check(&self.groups));
        problems.extend(self.security.check().into_iter().map(|problem| problem.under("/security")));
        problems
    }

    fn longest_ban(&self) -> Option<u64> {
        let validators = self.incoming_request_validators.iter();
        validators.filter_map(|validator| plugin_refs::longest_ban(&validator.plugin, &validator.config)).max()
    }

    fn unused(&self, _head: &Head) -> Vec<FieldProblem> {
        let validators = self.incoming_request_validators.iter().enumerate().filter(|(_, validator)| validator.enabled);
        let found = validators.flat_map(|(index, validator)| {
            let found = unused::in_plugin(&validator.plugin, &validator.config).into_iter();
            found.map(move |problem| problem.under(&format!("/incoming_request_validators/{index}")))
        });
        let settings = self.security.unused().into_iter().map(|problem| problem.under("/security"));
        found.chain(settings).collect()
    }

    fn unused_fields() -> Vec<(String, String)> {
        SecuritySettings::unused_fields()
    }
}

// === impl Validator ===

impl Validator {
    fn check(&self) -> Vec<FieldProblem> {
        let mut problems: Vec<FieldProblem> = plugin_problem(&self.plugin).into_iter().collect();
        problems.extend(path_patterns("/include", &self.include));
        problems.extend(path_patterns("/exclude", &self.exclude));
        problems
    }
}

fn yes() -> bool {
    true
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_defaults_are_documented_ones() {
        let expected = json!({
            "incoming_request_validators": [],
            "identity": {
                "api_key_header": null, "api_key_query": null, "api_key_is_id": false, "api_keys": [], "user_header": null,
                "verified_by": [], "trusted_hops": 0, "ipv6_prefix": 64, "ipv6_widen": true,
                "tls_fingerprint": false
            },
            "gateway": {
                "address": "0.0.0.0", "port": 10000, "filters": ["preset"], "access_log": "/dev/stdout",
                "max_body_bytes": 2097152, "delivery": "full",
                "listener": {
                    "escaped_slashes": "reject", "underscore_headers": "reject", "request_trailers": "drop",
                    "request_timeout_seconds": 120, "request_headers_timeout_seconds": 10,
                    "stream_idle_timeout_seconds": 300, "connection_idle_timeout_seconds": 600,
                    "max_concurrent_streams": 100
                },
                "tls": null
            },
            "groups": {},
            "waf": {"fail_open": false},
            "security": SecuritySettings::default()
        });
        assert_eq!(serde_json::to_value(GlobalConfig::default()).unwrap(), expected);
        let open: GlobalConfig = serde_json::from_value(json!({"waf": {"fail-open": true}})).unwrap();
        assert!(open.waf.fail_open, "the name of the setting is understood as well");
    }
}
