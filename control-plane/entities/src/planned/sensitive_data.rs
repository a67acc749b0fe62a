//! `SvcSensitiveDataGuard`: card numbers, keys and the like in responses.

use kit::{Plugin, Section};

pub(super) const PLUGIN: Plugin = Plugin {
    name: "sensitive-data",
    title: "sensitive data guard",
    classes: &["SvcSensitiveDataGuard"],
    order: 410,
    preset: Section {
        switch: Some("sensitive_data"),
        fields: &["sensitive_data_mode", "sensitive_data_detectors"],
        ..Section::NONE
    },
    categories: &["sensitive_data"],
    ..Plugin::NONE
};
