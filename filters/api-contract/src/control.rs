//! The control-plane side: the collection of contracts, the configuration of the plugin, and its endpoints in the console.

mod compile;
mod config;
mod entity;
mod operations;
mod report;
mod runtime;
mod settings;

use std::sync::Arc;

use kit::{Kind, Plugin, Section, SettingsKind};
use serde::Deserialize;
use serde_json::json;

pub use config::{ApiContractConfig, ApiContractMode};
pub use entity::ApiContract;
pub use settings::{ApiSettings, InventorySettings};

/// `SvcApiContract`: requests and responses beside an OpenAPI document.
pub const PLUGIN: Plugin = Plugin {
    name: crate::PLUGIN.name,
    title: "API contract check",
    documentation: include_str!("../docs.md"),
    classes: &["SvcApiContract"],
    order: 210,
    kinds: &[Kind::of::<ApiContract>()],
    references: &[("contract", "api-contracts")],
    preset: Section {
        switch: Some("api_contract"),
        fields: &["api_contract_id", "api_contract_mode"],
        references: &[("api_contract_id", "api-contracts")],
        index: 0.5,
        lay_down: Some(|config| {
            let fields: Fields = Section::read(config, &PRESET_FIELDS)?;
            let mut own = json!({ "mode": fields.api_contract_mode.unwrap_or_default() });
            if let (Some(own), Some(id)) = (own.as_object_mut(), fields.api_contract_id) {
                own.insert("contract".to_owned(), id.into());
            }
            Ok((fields.api_contract.then_some(own), None))
        }),
    },
    categories: &["api"],
    route_metadata: &[(ROUTE_KEY, "api-contracts")],
    settings: &[SettingsKind::of::<ApiSettings>("Limits of the API report.")],
    operations: operations::OPERATIONS,
    counted_once: &[crate::inventory::messages::INVENTORY, crate::inventory::messages::DRIFT],
    reports: &[report::REPORT],
    compile: Some(compile::compile),
    runtime: Some(|| Arc::new(runtime::AtWork::default())),
    gather: Some(|sources| Box::pin(runtime::gather(sources))),
    ..Plugin::NONE
};

/// The key of a route's metadata that names its contract.
pub(crate) const ROUTE_KEY: &str = "svc-api-contract";

/// The fields of [`Fields`].
const PRESET_FIELDS: [&str; 3] = ["api_contract", "api_contract_id", "api_contract_mode"];

/// What it reads of a preset's configuration.
#[derive(Deserialize, Default)]
#[serde(default)]
struct Fields {
    api_contract: bool,
    api_contract_id: Option<String>,
    api_contract_mode: Option<ApiContractMode>,
}

#[cfg(test)]
mod tests;
