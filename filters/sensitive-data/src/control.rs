//! The control-plane side: the configuration of the plugin, and its fields in a preset.

mod config;

use kit::{Context, FieldProblem, Plugin, Section};
use prost::Message as _;
use serde::Deserialize;
use serde_json::{Map, Value, json};

pub use config::{CustomConfig, DetectorChoice, PatternCheck, SensitiveDataConfig, SensitiveDataMode};

/// `SvcSensitiveDataGuard`: card numbers, keys and the like in responses.
pub const PLUGIN: Plugin = Plugin {
    name: crate::PLUGIN.name,
    title: "sensitive data guard",
    documentation: include_str!("../docs.md"),
    classes: &["SvcSensitiveDataGuard"],
    order: 410,
    preset: Section {
        switch: Some("sensitive_data"),
        fields: &["sensitive_data_mode", "sensitive_data_detectors"],
        index: 2.0,
        lay_down: Some(|config| {
            let own = ["sensitive_data", "sensitive_data_mode", "sensitive_data_detectors"];
            let fields: Fields = Section::read(config, &own)?;
            let detectors = fields.sensitive_data_detectors.unwrap_or_default();
            config::check_detectors("/sensitive_data_detectors", &detectors)?;
            let mode = fields.sensitive_data_mode.unwrap_or_default();
            Ok((fields.sensitive_data.then(|| json!({ "mode": mode, "detectors": detectors })), None))
        }),
        ..Section::NONE
    },
    categories: &["sensitive_data"],
    compile: Some(compile),
    ..Plugin::NONE
};

/// What it reads of a preset's configuration.
#[derive(Deserialize, Default)]
#[serde(default)]
struct Fields {
    sensitive_data: bool,
    sensitive_data_mode: Option<SensitiveDataMode>,
    sensitive_data_detectors: Option<config::Choices>,
}

fn compile(config: &Map<String, Value>, context: &mut Context<'_>) -> Result<Option<Vec<u8>>, Vec<FieldProblem>> {
    let config = SensitiveDataConfig::read(config)?;
    let step = config.step();
    if step.detectors.is_empty() && step.custom.is_empty() {
        context.warnings.push("the sensitive data guard has no detector that is not off".to_owned());
        return Ok(None);
    }
    *context.largest_body = config.body_limit.max(*context.largest_body);
    Ok(Some(step.encode_to_vec()))
}

#[cfg(test)]
mod tests;
