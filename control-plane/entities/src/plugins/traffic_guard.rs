//! `SvcTrafficGuard`: surges of routes, sources, consumers and networks.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::plugin::{Plugin, Section};
use super::settings::Settings;
use crate::FieldProblem;
use crate::limits::within;

pub(super) const PLUGIN: Plugin = Plugin {
    name: "traffic-guard",
    title: "traffic guard",
    classes: &["SvcTrafficGuard"],
    preset: Section { switch: Some("traffic"), fields: &["traffic_sensitivity"], ..Section::NONE },
    categories: &["traffic"],
    ..Plugin::NONE
};

/// Limits of the traffic guard.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct TrafficSettings {
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
    fn plugin(&self) -> &'static Plugin {
        &PLUGIN
    }

    fn field(&self) -> &'static str {
        "traffic"
    }

    fn check(&self) -> Vec<FieldProblem> {
        let found = [within("/max_keys", self.max_keys, 1..=5_000_000)];
        found.into_iter().flatten().collect()
    }

    fn is_default(&self) -> bool {
        *self == TrafficSettings::default()
    }
}
