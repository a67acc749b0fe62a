//! `SvcBotGuard`: knows bots by their signatures and verifies them.

use super::plugin::{Plugin, Section};

pub(super) const PLUGIN: Plugin = Plugin {
    name: "bot-guard",
    title: "bot guard",
    classes: &["SvcBotGuard", "IncomingRequestValidatorSvcBotGuard"],
    collections: &["bot-policies"],
    references: &[("policy", "bot-policies")],
    preset: Section { switch: Some("bots"), fields: &["bot_policy"], references: &[("bot_policy", "bot-policies")] },
    ..Plugin::NONE
};
