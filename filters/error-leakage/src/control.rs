//! The control-plane side: the configuration of the plugin, and its fields in a preset.

use kit::{Context, FieldProblem, Plugin, Section, checks, typed};
use prost::Message as _;
use response_scan::content_types_problem;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::ErrorLeakageStep;

/// The largest `body_limit`, in bytes: 4 MiB.
pub const MAX_BODY_LIMIT: u64 = 4 << 20;
/// The most entries of `content_types`.
const MAX_CONTENT_TYPES: usize = 64;

/// `SvcErrorLeakageGuard`: stack traces and errors of databases in responses.
pub const PLUGIN: Plugin = Plugin {
    name: crate::PLUGIN.name,
    title: "error leakage guard",
    documentation: include_str!("../docs.md"),
    classes: &["SvcErrorLeakageGuard"],
    order: 400,
    preset: Section {
        switch: Some("error_leakage"),
        fields: &["error_leakage_mode"],
        index: 1.0,
        lay_down: Some(|config| {
            let fields: Fields = Section::read(config, &["error_leakage", "error_leakage_mode"])?;
            let mode = fields.error_leakage_mode.unwrap_or_default();
            Ok((fields.error_leakage.then(|| json!({ "mode": mode })), None))
        }),
        ..Section::NONE
    },
    categories: &["leakage"],
    compile: Some(compile),
    ..Plugin::NONE
};

/// What is done about a response that shows an error.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LeakageMode {
    /// It is replaced.
    #[default]
    Mask,
    /// It is reported.
    Monitor,
}

/// The plugin's configuration.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ErrorLeakageConfig {
    /// What is done.
    pub mode: LeakageMode,
    /// The most bytes of a body that are inspected: 1 KiB to [`MAX_BODY_LIMIT`].
    pub body_limit: u64,
    /// Which rules are used: 1 to 4.
    pub paranoia_level: u8,
    /// The media types that are inspected; empty for texts, JSON and XML.
    pub content_types: Vec<String>,
    /// What a match adds to the score: 0 to 100.
    pub weight: f64,
    /// Whether clients get parts of texts.
    pub ranges: Ranges,
}

/// Whether clients get parts of texts (RFC 9110, section 14).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ranges {
    /// Only the whole of them: a part may cut what is looked for.
    Whole,
    /// They do, as the backend sends them, not inspected.
    #[default]
    Pass,
}

impl Default for ErrorLeakageConfig {
    fn default() -> Self {
        Self {
            mode: LeakageMode::Mask,
            body_limit: 262_144,
            paranoia_level: 1,
            content_types: Vec::new(),
            weight: 0.0,
            ranges: Ranges::Pass,
        }
    }
}

/// What it reads of a preset's configuration.
#[derive(Deserialize, Default)]
#[serde(default)]
struct Fields {
    error_leakage: bool,
    error_leakage_mode: Option<LeakageMode>,
}

fn compile(config: &Map<String, Value>, context: &mut Context<'_>) -> Result<Option<Vec<u8>>, Vec<FieldProblem>> {
    let config = read(config)?;
    *context.largest_body = config.body_limit.max(*context.largest_body);
    Ok(Some(step(config).encode_to_vec()))
}

/// Reads a configuration and checks it.
fn read(config: &Map<String, Value>) -> Result<ErrorLeakageConfig, Vec<FieldProblem>> {
    let config: ErrorLeakageConfig = typed(Value::Object(config.clone())).map_err(|problem| vec![problem])?;
    let types = config.content_types.iter().enumerate().filter_map(|(place, entry)| {
        let problem = FieldProblem::new(format!("/content_types/{place}"), content_types_problem(entry)?);
        Some(problem.expected("a media type, such as `application/json` or `text/*`"))
    });
    let problems: Vec<FieldProblem> = [
        checks::within("/body_limit", config.body_limit, 1024..=MAX_BODY_LIMIT),
        checks::within("/paranoia_level", config.paranoia_level, 1..=4),
        checks::count("/content_types", config.content_types.len(), MAX_CONTENT_TYPES),
        checks::weight("/weight", config.weight),
    ]
    .into_iter()
    .flatten()
    .chain(types)
    .collect();
    if problems.is_empty() { Ok(config) } else { Err(problems) }
}

fn step(config: ErrorLeakageConfig) -> ErrorLeakageStep {
    ErrorLeakageStep {
        monitor: config.mode == LeakageMode::Monitor,
        body_limit: config.body_limit,
        paranoia_level: config.paranoia_level.into(),
        content_types: config.content_types,
        weight: config.weight,
        pass_ranges: config.ranges == Ranges::Pass,
    }
}

#[cfg(test)]
mod tests;
