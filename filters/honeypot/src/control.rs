//! The control-plane side: the collection of policies, and how one is compiled.

pub(crate) mod compile;
mod guard;
mod policy;

use kit::{Kind, Plugin, Section};
use serde::Deserialize;
use serde_json::json;

pub use policy::{Canary, CanaryPlace, DECOYS, HoneypotAction, HoneypotPolicy};

/// `IncomingRequestValidatorSvcHoneypot`: decoy paths and canaries.
pub const PLUGIN: Plugin = Plugin {
    name: crate::PLUGIN.name,
    title: "honeypot",
    documentation: include_str!("../docs.md"),
    classes: &["IncomingRequestValidatorSvcHoneypot", "SvcHoneypot"],
    order: 50,
    kinds: &[Kind::of::<HoneypotPolicy>()],
    references: &[("policy", "honeypot-policies")],
    preset: Section {
        fields: &["honeypot_policy"],
        references: &[("honeypot_policy", "honeypot-policies")],
        index: 0.5,
        lay_down: Some(|config| {
            let fields: Fields = Section::read(config, &["honeypot_policy"])?;
            Ok((fields.honeypot_policy.map(|policy| json!({ "policy": policy })), None))
        }),
        ..Section::NONE
    },
    categories: &["honeypot"],
    compile: Some(compile::compile),
    ..Plugin::NONE
};

/// What it reads of a preset's configuration.
#[derive(Deserialize, Default)]
#[serde(default)]
struct Fields {
    honeypot_policy: Option<String>,
}

#[cfg(test)]
mod tests;
