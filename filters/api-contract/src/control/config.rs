//! The plugin's configuration.

use kit::{FieldProblem, checks, typed};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The largest `max_body_bytes`, in bytes: 16 MiB.
const MAX_BODY: u64 = 16 << 20;

/// Whether mismatches have consequences.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ApiContractMode {
    /// They are reported.
    #[default]
    Monitor,
    /// The request is refused.
    Enforce,
}

/// The configuration.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ApiContractConfig {
    /// The id of a contract; without one the route's metadata names it.
    pub contract: Option<String>,
    /// Whether mismatches have consequences.
    pub mode: ApiContractMode,
    /// Refusals say what does not match.
    pub expose_errors: bool,
    /// Mismatches add to the score.
    pub contribute: bool,
    /// Query parameters that are not declared are mismatches.
    pub reject_unknown_query_params: bool,
    /// The most bytes of a JSON body that are checked: 1 KiB to 16 MiB.
    pub max_body_bytes: u64,
    /// Responses are checked as well.
    pub validate_responses: bool,
    /// What a path or a method outside of the contract adds to the score: 0 to 100.
    pub unknown_path_weight: f64,
    /// What other mismatches add to the score: 0 to 100.
    pub violation_weight: f64,
    /// The API report counts calls.
    pub inventory: bool,
    /// How often the API report looks at a payload of an operation, in seconds: 1 to 86400.
    pub drift_sampling_seconds: u64,
}

impl Default for ApiContractConfig {
    fn default() -> Self {
        Self {
            contract: None,
            mode: ApiContractMode::Monitor,
            expose_errors: false,
            contribute: false,
            reject_unknown_query_params: false,
            max_body_bytes: 1 << 20,
            validate_responses: false,
            unknown_path_weight: 20.0,
            violation_weight: 30.0,
            inventory: true,
            drift_sampling_seconds: 60,
        }
    }
}

impl ApiContractConfig {
    /// Reads a configuration and checks it.
    pub(super) fn read(config: &Map<String, Value>) -> Result<Self, Vec<FieldProblem>> {
        let config: Self = typed(Value::Object(config.clone())).map_err(|problem| vec![problem])?;
        let problems: Vec<FieldProblem> = [
            checks::within("/max_body_bytes", config.max_body_bytes, 1024..=MAX_BODY),
            checks::weight("/unknown_path_weight", config.unknown_path_weight),
            checks::weight("/violation_weight", config.violation_weight),
            checks::within("/drift_sampling_seconds", config.drift_sampling_seconds, 1..=86_400),
        ]
        .into_iter()
        .flatten()
        .collect();
        if problems.is_empty() { Ok(config) } else { Err(problems) }
    }
}
