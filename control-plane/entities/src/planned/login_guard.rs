//! `SvcLoginGuard`: stuffing, spraying and takeover of accounts.

use kit::{Plugin, Section};

pub(super) const PLUGIN: Plugin = Plugin {
    name: "login-guard",
    title: "login guard",
    classes: &["SvcLoginGuard"],
    order: 240,
    preset: Section { switch: Some("login"), fields: &["login_paths"], ..Section::NONE },
    categories: &["login"],
    ..Plugin::NONE
};
