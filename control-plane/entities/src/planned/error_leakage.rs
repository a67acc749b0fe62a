//! `SvcErrorLeakageGuard`: stack traces and errors of databases in responses.

use kit::{Plugin, Section};

pub(super) const PLUGIN: Plugin = Plugin {
    name: "error-leakage",
    title: "error leakage guard",
    classes: &["SvcErrorLeakageGuard"],
    order: 400,
    preset: Section { switch: Some("error_leakage"), fields: &["error_leakage_mode"], ..Section::NONE },
    categories: &["leakage"],
    ..Plugin::NONE
};
