//! The control-plane side: the collection of policies, how one is compiled, the verification of crawlers, and the console's endpoints.

mod compile;
mod directories;
mod fetching;
mod fingerprints;
mod guard;
mod known;
mod operations;
mod policy;
mod ranges;
mod robots;
mod settings;
mod signature;
mod verify;

use std::sync::Arc;

use kit::{Kind, Plugin, Section, SettingsKind};
use serde::Deserialize;
use serde_json::json;

pub use fingerprints::{BotFingerprints, FingerprintPolicyRule, KnownPair};
pub use policy::{BotAction, BotPolicy, BotRule};
pub use settings::BotSettings;
pub use signature::{BotCategory, BotSignature, KeyDirectoryType};

/// `SvcBotGuard`: bots, known by their user agents and verified by reverse DNS, published addresses and signatures.
pub const PLUGIN: Plugin = Plugin {
    name: crate::PLUGIN.name,
    title: "bot guard",
    documentation: include_str!("../docs.md"),
    classes: &["SvcBotGuard", "IncomingRequestValidatorSvcBotGuard"],
    order: 110,
    kinds: &[Kind::of::<BotPolicy>()],
    references: &[("policy", "bot-policies")],
    preset: Section {
        switch: Some("bots"),
        fields: &["bot_policy"],
        references: &[("bot_policy", "bot-policies")],
        index: 2.0,
        lay_down: Some(|config| {
            let fields: Fields = Section::read(config, &["bots", "bot_policy"])?;
            // Where no policy is named, none is missed: presets lay it down by default.
            Ok((fields.bots.then(|| json!({ "policy": fields.bot_policy })), None))
        }),
    },
    settings: &[SettingsKind::of::<BotSettings>("The verification of crawlers by reverse DNS, for the bot guard.")],
    operations: operations::OPERATIONS,
    counted_once: &[crate::fingerprint::SIGHTINGS],
    compile: Some(compile::compile),
    runtime: Some(|| Arc::new(verify::Verification::default())),
    gather: Some(|sources| {
        Box::pin(async {
            tokio::join!(
                ranges::gather(sources.clone()),
                directories::gather(sources.clone()),
                fingerprints::gather(sources.clone()),
                verify::gather(sources)
            );
        })
    }),
    ..Plugin::NONE
};

/// What it reads of a preset's configuration.
#[derive(Deserialize)]
#[serde(default)]
struct Fields {
    bots: bool,
    bot_policy: Option<String>,
}

impl Default for Fields {
    fn default() -> Fields {
        Fields { bots: true, bot_policy: None }
    }
}

#[cfg(test)]
mod tests;
