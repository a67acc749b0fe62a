//! `SvcThreatResponse`: reads the score and acts on it.

use prost::Message as _;
use serde::Deserialize;
use serde_json::{Map, Value};
use snapshot::ThreatResponseStep;

use super::{Context, PluginKind};
use crate::entities::{FieldProblem, typed};

pub(super) const KIND: PluginKind = PluginKind {
    name: "threat-response",
    classes: &["SvcThreatResponse", "IncomingRequestValidatorSvcThreatResponse"],
    compile,
};

/// The plugin's configuration.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Config {
    /// A threat policy; null for the first enabled one.
    #[serde(default)]
    policy: Option<String>,
}

fn compile(config: &Map<String, Value>, context: &mut Context<'_>) -> Result<Option<Vec<u8>>, Vec<FieldProblem>> {
    let config: Config = typed(Value::Object(config.clone())).map_err(|problem| vec![problem])?;
    let policy = super::policy(config.policy.as_deref(), context.set).map_err(|problem| vec![problem])?;
    Ok(Some(ThreatResponseStep { policy: Some(super::lower(&policy)) }.encode_to_vec()))
}
