//! The control-plane side: the configuration of the plugin, its fields in a preset, its settings, and the answers to questions about
//! passwords.

mod answers;
mod config;
mod corpus;
mod settings;

use kit::{Context, FieldProblem, Plugin, Section, SettingsKind};
use prost::Message as _;
use serde::Deserialize;
use serde_json::{Map, Value, json};

pub use config::LoginGuardConfig;
pub use settings::LoginSettings;

/// What the secret of pseudonyms is made of; no challenge provider can have this id, because of its space.
const SECRET: &str = "login guard";

/// `SvcLoginGuard`: stuffing, spraying and takeover of accounts.
pub const PLUGIN: Plugin = Plugin {
    name: crate::PLUGIN.name,
    title: "login guard",
    documentation: include_str!("../docs.md"),
    classes: &["SvcLoginGuard"],
    order: 240,
    preset: Section {
        switch: Some("login"),
        fields: &["login_paths"],
        index: 3.0,
        lay_down: Some(|config| {
            let fields: Fields = Section::read(config, &["login", "login_paths"])?;
            config::endpoints("/login_paths", &fields.login_paths).map_err(config::first)?;
            Ok((fields.login.then(|| json!({ "login_paths": fields.login_paths })), None))
        }),
        ..Section::NONE
    },
    categories: &["login"],
    settings: &[SettingsKind::of::<LoginSettings>("Breached passwords, for the login guard.")],
    compile: Some(compile),
    gather: Some(|sources| Box::pin(answers::gather(sources))),
    ..Plugin::NONE
};

/// What it reads of a preset's configuration.
#[derive(Deserialize, Default)]
#[serde(default)]
struct Fields {
    login: bool,
    login_paths: Vec<Value>,
}

fn compile(config: &Map<String, Value>, context: &mut Context<'_>) -> Result<Option<Vec<u8>>, Vec<FieldProblem>> {
    let config = LoginGuardConfig::read(config)?;
    if config.login_paths.is_empty() {
        context.warnings.push("the login guard has no `login_paths`, so it watches nothing".to_owned());
        return Ok(None);
    }
    let mut step = config.step()?;
    let settings: LoginSettings = context.settings();
    if config.breached_passwords && !settings.has_source() {
        let warning = "`breached_passwords` of the login guard has no source: `security.login` names none";
        context.warnings.push(warning.to_owned());
    } else if config.breached_passwords {
        step.breached_wait_millis = settings.wait_millis;
    }
    step.secret = context.keys.key(SECRET, 0).unwrap_or_default();
    *context.largest_body = config.body_limit.max(*context.largest_body);
    Ok(Some(step.encode_to_vec()))
}

#[cfg(test)]
mod tests;
