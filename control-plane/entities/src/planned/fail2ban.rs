//! `SvcFail2Ban`: counts the statuses of refused callers.

use kit::{Plugin, Section};

pub(super) const PLUGIN: Plugin = Plugin {
    name: "fail2ban",
    title: "fail2ban",
    classes: &["SvcFail2Ban"],
    order: 130,
    preset: Section { switch: Some("fail2ban"), fields: &["fail2ban_dry_run"], ..Section::NONE },
    categories: &["fail2ban"],
    ..Plugin::NONE
};
