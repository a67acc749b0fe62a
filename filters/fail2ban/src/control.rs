//! The control-plane side: the configuration of the plugin, and its fields in a preset.

mod config;
mod counter_key;
mod duration;
mod guard;

use kit::{Context, FieldProblem, Plugin, Section};
use prost::Message as _;
use serde::Deserialize;
use serde_json::{Map, Value, json};

pub use config::{Fail2BanConfig, UrlRule};
use guard::Fail2BanGuard;

/// `SvcFail2Ban`: bans callers whose requests fail too often.
pub const PLUGIN: Plugin = Plugin {
    name: crate::PLUGIN.name,
    title: "fail2ban",
    documentation: include_str!("../docs.md"),
    classes: &["SvcFail2Ban"],
    order: 130,
    preset: Section {
        switch: Some("fail2ban"),
        fields: &["fail2ban_dry_run"],
        index: 4.0,
        lay_down: Some(|config| {
            let fields: Fields = Section::read(config, &["fail2ban", "fail2ban_dry_run"])?;
            let dry_run = fields.fail2ban_dry_run.unwrap_or(true);
            Ok((fields.fail2ban.then(|| json!({ "dry_run": dry_run })), None))
        }),
        ..Section::NONE
    },
    categories: &["fail2ban"],
    longest_ban: Some(|config| Some(Fail2BanConfig::read(config).ok()?.longest_ban_millis().div_ceil(1000))),
    compile: Some(compile),
    ..Plugin::NONE
};

/// What it reads of a preset's configuration.
#[derive(Deserialize, Default)]
#[serde(default)]
struct Fields {
    fail2ban: bool,
    fail2ban_dry_run: Option<bool>,
}

fn compile(config: &Map<String, Value>, context: &mut Context<'_>) -> Result<Option<Vec<u8>>, Vec<FieldProblem>> {
    let config = Fail2BanConfig::read(config)?;
    let step = config.step();
    let shared = !step.key.iter().any(|part| counter_key::tells_callers_apart(part.place()));
    context.guards.push(Box::new(Fail2BanGuard { bans: !step.dry_run, shared_key: shared }));
    Ok(Some(step.encode_to_vec()))
}

#[cfg(test)]
mod tests;
