//! Settings of the object guard for all gateways.

use kit::checks::within;
use kit::{FieldProblem, Settings};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Limits of the object guard.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ObjectSettings {
    /// The most pairs of a consumer and a kind of object that a node watches; `max-keys` is accepted as well, 1 to 1000000. Default 20000.
    #[serde(alias = "max-keys")]
    #[schemars(range(min = 1, max = 1_000_000))]
    pub max_keys: u32,
}

impl Default for ObjectSettings {
    fn default() -> ObjectSettings {
        ObjectSettings { max_keys: 20_000 }
    }
}

impl Settings for ObjectSettings {
    const FIELD: &'static str = "objects";

    fn check(&self) -> Vec<FieldProblem> {
        within("/max_keys", self.max_keys, 1..=1_000_000).into_iter().collect()
    }
}
