//! The control-plane side: the configuration of the plugin, its fields in a preset, and its settings.

mod config;
mod settings;

use kit::{Context, FieldProblem, Plugin, Section, SettingsKind};
use prost::Message as _;
use serde::Deserialize;
use serde_json::{Map, Value, json};

pub use config::{BudgetAction, ObjectGuardConfig};
pub use settings::ObjectSettings;

/// `SvcObjectGuard`: consumers that read more objects than they should.
pub const PLUGIN: Plugin = Plugin {
    name: crate::PLUGIN.name,
    title: "object guard",
    documentation: include_str!("../docs.md"),
    classes: &["SvcObjectGuard"],
    order: 250,
    preset: Section {
        switch: Some("objects"),
        fields: &["objects_mode", "objects_paths", "objects_budget"],
        index: 4.0,
        lay_down: Some(|config| {
            let own = PLUGIN.preset.all().collect::<Vec<_>>();
            let fields: Fields = Section::read(config, &own)?;
            config::paths("/objects_paths", &fields.objects_paths).map_err(first)?;
            if let Some(problem) = config::within_budget("/objects_budget", fields.objects_budget) {
                return Err(problem);
            }
            let laid_down = json!({
                "paths": fields.objects_paths,
                // Without paths, identifiers are detected.
                "auto_detect": fields.objects_paths.is_empty(),
                "contribute": fields.objects_mode == ObjectsMode::Score,
                "budget": fields.objects_budget,
            });
            Ok((fields.objects.then_some(laid_down), None))
        }),
        ..Section::NONE
    },
    categories: &["objects"],
    settings: &[SettingsKind::of::<ObjectSettings>("Limits of the object guard.")],
    compile: Some(compile),
    ..Plugin::NONE
};

/// What it reads of a preset's configuration.
#[derive(Deserialize, Default)]
#[serde(default)]
struct Fields {
    objects: bool,
    objects_mode: ObjectsMode,
    objects_paths: Vec<Value>,
    objects_budget: u32,
}

/// What patterns do.
#[derive(Clone, Copy, Deserialize, Default, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
enum ObjectsMode {
    /// They are reported.
    #[default]
    Alert,
    /// They add to the score as well.
    Score,
}

fn compile(config: &Map<String, Value>, context: &mut Context<'_>) -> Result<Option<Vec<u8>>, Vec<FieldProblem>> {
    let config = ObjectGuardConfig::read(config)?;
    if config.paths.is_empty() && !config.auto_detect {
        let warning =
            "the object guard has no `paths` and `auto_detect` is off: it knows objects by an API contract alone";
        context.warnings.push(warning.to_owned());
    }
    Ok(Some(config.step(&context.settings())?.encode_to_vec()))
}

/// The first of several problems.
fn first(problems: Vec<FieldProblem>) -> FieldProblem {
    problems.into_iter().next().unwrap_or_else(|| FieldProblem::new("/objects_paths", "the paths are wrong"))
}

#[cfg(test)]
mod tests;
