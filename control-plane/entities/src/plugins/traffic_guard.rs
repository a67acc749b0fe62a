//! `SvcTrafficGuard`: surges of routes, sources, consumers and networks.

use super::plugin::{Plugin, Section};

pub(super) const PLUGIN: Plugin = Plugin {
    name: "traffic-guard",
    title: "traffic guard",
    classes: &["SvcTrafficGuard"],
    preset: Section { switch: Some("traffic"), fields: &["traffic_sensitivity"], ..Section::NONE },
    categories: &["traffic"],
    ..Plugin::NONE
};
