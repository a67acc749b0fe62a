//! `SvcUploadGuard`: the content of uploaded files.

use super::plugin::{Plugin, Section};

pub(super) const PLUGIN: Plugin = Plugin {
    name: "upload-guard",
    title: "upload guard",
    classes: &["SvcUploadGuard"],
    collections: &["malware-scanners"],
    references: &[("scanner", "malware-scanners")],
    preset: Section {
        switch: Some("uploads"),
        fields: &["uploads_mode", "uploads_allowed_extensions", "uploads_scanner", "uploads_scan_failure_action"],
        references: &[("uploads_scanner", "malware-scanners")],
    },
    categories: &["upload"],
};
