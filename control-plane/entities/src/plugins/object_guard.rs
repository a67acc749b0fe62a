//! `SvcObjectGuard`: consumers that read more objects than they should.

use super::plugin::{Plugin, Section};

pub(super) const PLUGIN: Plugin = Plugin {
    name: "object-guard",
    title: "object guard",
    classes: &["SvcObjectGuard"],
    preset: Section {
        switch: Some("objects"),
        fields: &["objects_mode", "objects_paths", "objects_budget"],
        ..Section::NONE
    },
    categories: &["objects"],
    ..Plugin::NONE
};
