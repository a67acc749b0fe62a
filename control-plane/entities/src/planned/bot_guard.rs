//! `SvcBotGuard`: knows bots by their signatures and verifies them.

use crate::BotPolicy;
use kit::{Kind, Plugin, Section};

pub(super) const PLUGIN: Plugin = Plugin {
    name: "bot-guard",
    title: "bot guard",
    classes: &["SvcBotGuard", "IncomingRequestValidatorSvcBotGuard"],
    order: 110,
    kinds: &[Kind::of::<BotPolicy>()],
    references: &[("policy", "bot-policies")],
    preset: Section {
        switch: Some("bots"),
        fields: &["bot_policy"],
        references: &[("bot_policy", "bot-policies")],
        ..Section::NONE
    },
    ..Plugin::NONE
};
