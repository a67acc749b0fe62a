//! `SvcObjectGuard`: consumers that read more objects than they should.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use kit::checks::within;
use kit::{FieldProblem, Plugin, Section, Settings, SettingsKind};

pub(super) const PLUGIN: Plugin = Plugin {
    name: "object-guard",
    title: "object guard",
    classes: &["SvcObjectGuard"],
    order: 250,
    preset: Section {
        switch: Some("objects"),
        fields: &["objects_mode", "objects_paths", "objects_budget"],
        ..Section::NONE
    },
    categories: &["objects"],
    settings: &[SettingsKind::of::<ObjectSettings>("Limits of the object guard.")],
    ..Plugin::NONE
};

/// Limits of the object guard.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct ObjectSettings {
    /// The most pairs of a consumer and a kind of object that a node watches; `max-keys` is accepted as well, 1 to 1000000. Default 20000.
    #[serde(alias = "max-keys")]
    #[schemars(range(min = 1, max = 1_000_000))]
    pub max_keys: u32,
}

impl Default for ObjectSettings {
    fn default() -> ObjectSettings {
        ObjectSettings { max_keys: 20_000 }
    }
}

impl Settings for ObjectSettings {
    const FIELD: &'static str = "objects";

    fn check(&self) -> Vec<FieldProblem> {
        let found = [within("/max_keys", self.max_keys, 1..=1_000_000)];
        found.into_iter().flatten().collect()
    }
}
