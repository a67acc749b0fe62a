//! The control-plane side: the configuration of the plugin, its fields in a preset, and its settings.

mod config;
mod settings;

use kit::{Context, FieldProblem, Plugin, Section, SettingsKind};
use prost::Message as _;
use serde::Deserialize;
use serde_json::{Map, Value, json};

pub use config::TrafficGuardConfig;
pub use settings::TrafficSettings;

/// `SvcTrafficGuard`: surges of routes, sources, consumers and networks.
pub const PLUGIN: Plugin = Plugin {
    name: crate::PLUGIN.name,
    title: "traffic guard",
    documentation: include_str!("../docs.md"),
    classes: &["SvcTrafficGuard"],
    order: 140,
    preset: Section {
        switch: Some("traffic"),
        fields: &["traffic_sensitivity"],
        index: 5.0,
        lay_down: Some(|config| {
            let fields: Fields = Section::read(config, &["traffic", "traffic_sensitivity"])?;
            let surge_factor = fields.traffic_sensitivity.surge_factor();
            Ok((fields.traffic.then(|| json!({ "surge_factor": surge_factor })), None))
        }),
        ..Section::NONE
    },
    categories: &["traffic"],
    settings: &[SettingsKind::of::<TrafficSettings>("Limits of the traffic guard.")],
    compile: Some(compile),
    ..Plugin::NONE
};

/// What it reads of a preset's configuration.
#[derive(Deserialize, Default)]
#[serde(default)]
struct Fields {
    traffic: bool,
    traffic_sensitivity: Sensitivity,
}

/// How soon more traffic than usual is a surge.
#[derive(Clone, Copy, Deserialize, Default)]
#[serde(rename_all = "lowercase")]
enum Sensitivity {
    Low,
    #[default]
    Medium,
    High,
}

impl Sensitivity {
    fn surge_factor(self) -> f64 {
        match self {
            Self::Low => 5.0,
            Self::Medium => 3.0,
            Self::High => 2.0,
        }
    }
}

fn compile(config: &Map<String, Value>, context: &mut Context<'_>) -> Result<Option<Vec<u8>>, Vec<FieldProblem>> {
    let config = TrafficGuardConfig::read(config)?;
    let step = config.step(&context.settings());
    if step.dimensions.is_empty() {
        context.warnings.push("all dimensions of the traffic guard are off, so it watches nothing".to_owned());
        return Ok(None);
    }
    Ok(Some(step.encode_to_vec()))
}

#[cfg(test)]
mod tests;
