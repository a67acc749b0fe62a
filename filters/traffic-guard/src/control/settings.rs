//! Settings of the traffic guard for all gateways.

use kit::checks::within;
use kit::{FieldProblem, Settings};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Limits of the traffic guard.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct TrafficSettings {
    /// The most routes, sources, consumers and networks that a node watches; `max-keys` is accepted as well, 1 to 5000000, of which
    /// 1048576 take effect at most. Default 200000.
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
        within("/max_keys", self.max_keys, 1..=5_000_000).into_iter().collect()
    }
}
