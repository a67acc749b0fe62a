//! `SvcApiContract`: requests and responses beside an OpenAPI document.

use super::plugin::{Plugin, Section};

pub(super) const PLUGIN: Plugin = Plugin {
    name: "api-contract",
    title: "API contract",
    classes: &["SvcApiContract"],
    collections: &["api-contracts"],
    references: &[("contract", "api-contracts")],
    preset: Section {
        switch: Some("api_contract"),
        fields: &["api_contract_id", "api_contract_mode"],
        references: &[("api_contract_id", "api-contracts")],
        ..Section::NONE
    },
    categories: &["api"],
    ..Plugin::NONE
};
