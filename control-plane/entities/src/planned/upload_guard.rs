//! `SvcUploadGuard`: the content of uploaded files.

use crate::MalwareScanner;
use kit::{Kind, Plugin, Section};

pub(super) const PLUGIN: Plugin = Plugin {
    name: "upload-guard",
    title: "upload guard",
    classes: &["SvcUploadGuard"],
    order: 230,
    kinds: &[Kind::of::<MalwareScanner>()],
    references: &[("scanner", "malware-scanners")],
    preset: Section {
        switch: Some("uploads"),
        fields: &["uploads_mode", "uploads_allowed_extensions", "uploads_scanner", "uploads_scan_failure_action"],
        references: &[("uploads_scanner", "malware-scanners")],
        ..Section::NONE
    },
    categories: &["upload"],
    ..Plugin::NONE
};
