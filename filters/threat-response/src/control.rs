//! The control-plane side: how the plugin is called and configured.

use kit::{Acts, Kind, Plugin, Section, SettingsKind};
use maze::MazeSettings;
use policies::{ChallengeProvider, ThreatPolicy};
use prost::Message as _;
use serde::Deserialize;
use serde_json::json;
use snapshot::TierAction;

use crate::ThreatResponseStep;

/// `SvcThreatResponse`: reads the score and acts on it.
pub const PLUGIN: Plugin = Plugin {
    name: crate::PLUGIN.name,
    title: "threat response",
    documentation: include_str!("../docs.md"),
    classes: &["SvcThreatResponse", "IncomingRequestValidatorSvcThreatResponse"],
    order: 300,
    kinds: &[Kind::of::<ThreatPolicy>(), Kind::of::<ChallengeProvider>()],
    references: &[("policy", "threat-policies")],
    preset: Section {
        switch: Some("response"),
        index: 900.0,
        lay_down: Some(|config| {
            let fields: Fields = Section::read(config, &["response", "threat_policy"])?;
            Ok((fields.response.then(|| json!({ "policy": fields.threat_policy })), None))
        }),
        ..Section::NONE
    },
    settings: &[SettingsKind::of::<MazeSettings>(
        "The pages of the action `maze` of bot rules and tiers, and what they may cost.",
    )],
    acts: Acts::Score,
    compile: Some(|config, context| {
        let policy = policies::of_config(config, context, true)?;
        let shows = policy.tiers.iter().any(|tier| tier.action() == TierAction::Maze);
        let maze = shows.then(|| context.settings::<MazeSettings>().limits());
        Ok(Some(ThreatResponseStep { policy: Some(policy), maze }.encode_to_vec()))
    }),
    as_companion: Some(without_keys),
    ..Plugin::NONE
};

/// What it reads of a preset's configuration.
#[derive(Deserialize)]
#[serde(default)]
struct Fields {
    response: bool,
    threat_policy: Option<String>,
}

impl Default for Fields {
    fn default() -> Self {
        Self { response: true, threat_policy: None }
    }
}

/// A threat response that only answers for refusals presents no challenge: its filter is not to have the keys.
fn without_keys(config: &[u8]) -> Vec<u8> {
    let Ok(mut step) = ThreatResponseStep::decode(config) else { return config.to_vec() };
    if let Some(policy) = &mut step.policy {
        policy.challenge = None;
    }
    step.encode_to_vec()
}
