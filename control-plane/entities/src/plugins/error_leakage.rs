//! `SvcErrorLeakageGuard`: stack traces and errors of databases in responses.

use super::plugin::{Plugin, Section};

pub(super) const PLUGIN: Plugin = Plugin {
    name: "error-leakage",
    title: "error leakage guard",
    classes: &["SvcErrorLeakageGuard"],
    preset: Section { switch: Some("error_leakage"), fields: &["error_leakage_mode"], ..Section::NONE },
    categories: &["leakage"],
    ..Plugin::NONE
};
