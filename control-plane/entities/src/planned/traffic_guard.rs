//! `SvcTrafficGuard`: surges of routes, sources, consumers and networks.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use kit::checks::within;
use kit::{FieldProblem, Plugin, Section, Settings, SettingsKind};

pub(super) const PLUGIN: Plugin = Plugin {
    name: "traffic-guard",
    title: "traffic guard",
    classes: &["SvcTrafficGuard"],
    order: 140,
    preset: Section { switch: Some("traffic"), fields: &["traffic_sensitivity"], ..Section::NONE },
    categories: &["traffic"],
    settings: &[SettingsKind::of::<TrafficSettings>("Limits of the traffic guard.")],
    ..Plugin::NONE
};

/// Limits of the traffic guard.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct TrafficSettings {
    /// The most routes, sources, consumers and networks that a node watches; `max-keys` is accepted as well, 1 to 5000000. Default 200000.
    #[serde(alias = "max-keys")]
    #[schemars(range(min = 1, max = 5_000_000))]
    pub max_keys: u32,
}

impl Default for TrafficSettings {
    fn default() -> TrafficSettings {
        TrafficSettings { max_keys: 200_000 }
    }
}

impl Settings for TrafficSettings {
    const FIELD: &'static str = "traffic";

    fn check(&self) -> Vec<FieldProblem> {
        let found = [within("/max_keys", self.max_keys, 1..=5_000_000)];
        found.into_iter().flatten().collect()
    }
}
