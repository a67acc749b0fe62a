//! The settings of the API report: what APIs are asked for, beside their contracts.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use kit::checks::within;
use kit::{FieldProblem, Settings};

/// Limits of the API report.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ApiSettings {
    /// The inventory of what APIs are asked for.
    pub inventory: InventorySettings,
}

/// The inventory of what APIs are asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct InventorySettings {
    /// The most records of the inventory on a node; `max-records` is accepted as well, 1 to 1000000. Default 20000.
    #[serde(alias = "max-records")]
    #[schemars(range(min = 1, max = 1_000_000))]
    pub max_records: u32,
}

impl Default for InventorySettings {
    fn default() -> InventorySettings {
        InventorySettings { max_records: 20_000 }
    }
}

impl Settings for ApiSettings {
    const FIELD: &'static str = "api";

    fn check(&self) -> Vec<FieldProblem> {
        let found = [within("/inventory/max_records", self.inventory.max_records, 1..=1_000_000)];
        found.into_iter().flatten().collect()
    }
}
