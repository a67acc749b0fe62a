//! `SvcApiContract`: requests and responses beside an OpenAPI document.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ApiContract;
use kit::checks::within;
use kit::{FieldProblem, Kind, Plugin, Section, Settings, SettingsKind};

pub(super) const PLUGIN: Plugin = Plugin {
    name: "api-contract",
    title: "API contract check",
    classes: &["SvcApiContract"],
    order: 210,
    kinds: &[Kind::of::<ApiContract>()],
    references: &[("contract", "api-contracts")],
    preset: Section {
        switch: Some("api_contract"),
        fields: &["api_contract_id", "api_contract_mode"],
        references: &[("api_contract_id", "api-contracts")],
        ..Section::NONE
    },
    categories: &["api"],
    settings: &[SettingsKind::of::<ApiSettings>("Limits of API contracts and of the API report.")],
    route_metadata: &[("svc-api-contract", "api-contracts")],
    ..Plugin::NONE
};

/// Limits of API contracts and of the API report.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct ApiSettings {
    /// The inventory of what APIs are asked for.
    pub inventory: InventorySettings,
}

/// The inventory of what APIs are asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct InventorySettings {
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
