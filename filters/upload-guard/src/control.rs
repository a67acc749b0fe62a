//! The control-plane side: the configuration of the plugin, its fields in a preset, and the collection of scanners.

mod config;
mod scanner;
mod scanning;

use std::sync::Arc;

use kit::{Context, FieldProblem, Kind, Plugin, Section};
use prost::Message as _;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use snapshot::MAX_WAIT_MILLIS;

pub use config::{JsonFieldConfig, RejectAction, UploadGuardConfig, UploadMode};
pub use scanner::{IcapMode, MalwareScanner, ScannerKind};

/// `SvcUploadGuard`: names, types and archives of uploaded files.
pub const PLUGIN: Plugin = Plugin {
    name: crate::PLUGIN.name,
    title: "upload guard",
    documentation: include_str!("../docs.md"),
    classes: &["SvcUploadGuard"],
    order: 230,
    kinds: &[Kind::of::<MalwareScanner>()],
    references: &[("scanner", "malware-scanners")],
    preset: Section {
        switch: Some("uploads"),
        fields: &["uploads_mode", "uploads_allowed_extensions", "uploads_scanner", "uploads_scan_failure_action"],
        references: &[("uploads_scanner", "malware-scanners")],
        index: 2.0,
        lay_down: Some(|config| {
            let own = PLUGIN.preset.all().collect::<Vec<_>>();
            let fields: Fields = Section::read(config, &own)?;
            let extensions = fields.uploads_allowed_extensions.unwrap_or_default();
            config::check_extensions("/uploads_allowed_extensions", &extensions)?;
            let mode = fields.uploads_mode.unwrap_or_default();
            let action = fields.uploads_scan_failure_action.unwrap_or_default();
            let laid_down = json!({
                "mode": mode,
                "allowed_extensions": extensions,
                "scanner": fields.uploads_scanner,
                "scan_failure_action": action,
            });
            Ok((fields.uploads.then_some(laid_down), None))
        }),
    },
    categories: &["upload"],
    operations: scanning::OPERATIONS,
    compile: Some(compile),
    runtime: Some(|| Arc::new(scanning::Scanners::default())),
    gather: Some(|sources| Box::pin(scanning::gather(sources))),
    ..Plugin::NONE
};

/// What it reads of a preset's configuration.
#[derive(Deserialize, Default)]
#[serde(default)]
struct Fields {
    uploads: bool,
    uploads_mode: Option<UploadMode>,
    uploads_allowed_extensions: Option<Vec<String>>,
    uploads_scanner: Option<String>,
    uploads_scan_failure_action: Option<RejectAction>,
}

fn compile(config: &Map<String, Value>, context: &mut Context<'_>) -> Result<Option<Vec<u8>>, Vec<FieldProblem>> {
    let config = UploadGuardConfig::read(config)?;
    context.warnings.extend(config.warnings());
    *context.largest_body = config.body_limit.max(*context.largest_body);
    let mut step = config.step();
    if let Some(scanner) = context.view.get::<MalwareScanner>(&step.scanner).filter(|_| !step.scanner.is_empty()) {
        // The control plane answers a little before the gateway gives up, and says what is wrong.
        let millis = u32::try_from(scanner.timeout_millis).unwrap_or(u32::MAX);
        step.scan_millis = millis.saturating_add(500).min(MAX_WAIT_MILLIS);
        if !scanner.enabled {
            context.warnings.push(format!("the malware scanner `{}` is disabled, so no file is scanned", step.scanner));
            step.scanner.clear();
        } else if scanner.max_file_size < step.body_limit {
            context.warnings.push(format!(
                "the `max_file_size` of the malware scanner `{}` is below the upload guard's `body_limit`: files between the two cannot be \
                 scanned",
                step.scanner
            ));
        }
    }
    Ok(Some(step.encode_to_vec()))
}

#[cfg(test)]
mod tests;
