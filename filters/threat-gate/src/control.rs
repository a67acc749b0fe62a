//! The control-plane side: how the plugin is called and configured.

use kit::{Acts, Plugin, Section};
use prost::Message as _;
use serde::Deserialize;
use serde_json::json;

use crate::ThreatGateStep;

/// `SvcThreatGate`: refuses callers under a standing ban.
pub const PLUGIN: Plugin = Plugin {
    name: crate::PLUGIN.name,
    title: "threat gate",
    documentation: include_str!("../docs.md"),
    classes: &["SvcThreatGate", "IncomingRequestValidatorSvcThreatGate"],
    order: 100,
    references: &[("policy", "threat-policies")],
    preset: Section {
        switch: Some("gate"),
        fields: &["threat_policy"],
        references: &[("threat_policy", "threat-policies")],
        index: 1.0,
        lay_down: Some(|config| {
            let fields: Fields = Section::read(config, &["gate", "threat_policy"])?;
            Ok((fields.gate.then(|| json!({ "policy": fields.threat_policy })), None))
        }),
    },
    acts: Acts::Bans,
    compile: Some(|config, context| {
        let policy = Some(policies::of_config(config, context, false)?);
        Ok(Some(ThreatGateStep { policy }.encode_to_vec()))
    }),
    ..Plugin::NONE
};

/// What it reads of a preset's configuration.
#[derive(Deserialize)]
#[serde(default)]
struct Fields {
    gate: bool,
    threat_policy: Option<String>,
}

impl Default for Fields {
    fn default() -> Self {
        Self { gate: true, threat_policy: None }
    }
}
