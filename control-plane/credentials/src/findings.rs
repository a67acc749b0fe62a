//! The audit of all routes that there are.

use std::collections::BTreeMap;

use kit::EntitySource;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::audit::{Finding, RouteChecks, Severity};
use crate::contract::Declared;
use crate::facts::{CredentialCheck, Credentials};
use crate::schemes::words;

/// The names of presets, as far as they select a contract.
const PRESETS: [&str; 5] = [
    "SecuritySuitePreset",
    "SvcSecuritySuitePreset",
    "preset",
    "SecuritySuiteGlobalPreset",
    "SvcSecuritySuiteGlobalPreset",
];
/// The names of the check of contracts.
const CONTRACT_CHECKS: [&str; 2] = ["SvcApiContract", "api-contract"];

/// The audit of one route.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RouteAudit {
    /// The id of the route.
    pub route_id: String,
    /// Its name; the id if it has none.
    pub route_name: String,
    /// The id of its contract.
    pub contract: Option<String>,
    /// What checks credentials, wherever the route is.
    pub checks: Vec<ShownCheck>,
    /// What was found, in the order of the contract.
    pub findings: Vec<Finding>,
}

/// A check as reports show it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ShownCheck {
    /// The name of what checks, such as `envoy.filters.http.jwt_authn`.
    pub plugin: String,
    /// What it asks for and where, for people.
    pub label: String,
    /// The security schemes that it satisfies, as contracts call them.
    pub schemes: Vec<String>,
    /// The paths that are checked, as regular expressions; empty for all.
    pub include: Vec<String>,
    /// The paths that are not.
    pub exclude: Vec<String>,
    /// False where requests without a credential pass it.
    pub enforcing: bool,
}

/// How many findings there are of each severity: `summary.auth` of the API report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Operations that should be closed and are open.
    pub high: usize,
    /// Operations where the gateway and the contract ask for different things.
    pub medium: usize,
    /// Open operations of which the contract says nothing, and open routes without a contract.
    pub low: usize,
    /// What is only to be known.
    pub info: usize,
}

/// What is found on all enabled routes.
#[must_use]
pub fn findings(entities: &dyn EntitySource) -> Vec<Finding> {
    audit_routes(entities, |_| true).into_iter().flat_map(|route| route.findings).collect()
}

/// Audits the enabled routes that `wanted` has, by their id. A contract of several routes is read once.
#[must_use]
pub fn audit_routes(entities: &dyn EntitySource, wanted: impl Fn(&str) -> bool) -> Vec<RouteAudit> {
    let mut contracts: BTreeMap<String, Result<Declared, String>> = BTreeMap::new();
    let slots = entities.collection("routes").into_iter().flat_map(|routes| routes.values());
    let routes = slots.filter(|slot| slot.entity.is_enabled() && wanted(&slot.entity.head().id));
    routes.map(|slot| audit(&slot.entity.shown(), entities, &mut contracts)).collect()
}

fn audit(
    route: &Value,
    entities: &dyn EntitySource,
    contracts: &mut BTreeMap<String, Result<Declared, String>>,
) -> RouteAudit {
    let text = |field: &str| route.get(field).and_then(Value::as_str).unwrap_or_default();
    let credentials: Credentials =
        route.get("credentials").and_then(|own| serde_json::from_value(own.clone()).ok()).unwrap_or_default();
    let checks = RouteChecks::new(text("id"), &credentials);
    let contract = contract_of(route);
    let findings = match &contract {
        None => checks.alone("The route has no contract").into_iter().collect(),
        Some(id) => match contracts.entry(id.clone()).or_insert_with(|| read(entities, id)) {
            Ok(declared) => checks.beside(declared),
            Err(why) => checks.alone(&format!("The contract `{id}` cannot be used: {why}")).into_iter().collect(),
        },
    };
    let name = Some(text("name")).filter(|name| !name.is_empty()).unwrap_or_else(|| text("id"));
    RouteAudit {
        route_id: text("id").to_owned(),
        route_name: name.to_owned(),
        contract,
        checks: shown(&credentials),
        findings,
    }
}

fn read(entities: &dyn EntitySource, id: &str) -> Result<Declared, String> {
    let slot = entities.slot("api-contracts", id).ok_or("there is no such entity")?;
    if !slot.entity.is_enabled() {
        return Err("it is disabled".to_owned());
    }
    let shown = slot.entity.shown();
    let text = |field: &str| shown.get(field).and_then(Value::as_str).unwrap_or_default();
    Declared::read(text("spec"), text("base_path"))
}

/// The id of a route's contract: that of the plugin which checks it, else that of a preset, else that of the metadata.
fn contract_of(route: &Value) -> Option<String> {
    let plugins = || route.get("plugins").and_then(Value::as_array).into_iter().flatten();
    let config = |classes: &'static [&'static str]| {
        let named = |plugin: &&Value| {
            let class = plugin.get("plugin").and_then(Value::as_str).unwrap_or_default();
            classes.contains(&class) && plugin.get("enabled") != Some(&Value::Bool(false))
        };
        plugins().filter(named).filter_map(|plugin| plugin.get("config")?.as_object())
    };
    let id = |object: &Map<String, Value>, field: &str| {
        object.get(field).and_then(Value::as_str).filter(|id| !id.is_empty()).map(str::to_owned)
    };
    let preset = |config: &Map<String, Value>| {
        (config.get("api_contract") == Some(&Value::Bool(true))).then(|| id(config, "api_contract_id")).flatten()
    };
    let metadata = || id(route.get("metadata")?.as_object()?, "svc-api-contract");
    config(&CONTRACT_CHECKS)
        .find_map(|config| id(config, "contract"))
        .or_else(|| config(&PRESETS).find_map(preset))
        .or_else(metadata)
}

fn shown(credentials: &Credentials) -> Vec<ShownCheck> {
    let show = |check: &CredentialCheck, place: String| {
        let mut schemes: Vec<String> =
            check.kinds.iter().flat_map(|kind| words(*kind)).map(|word| (*word).to_owned()).collect();
        schemes.dedup();
        ShownCheck {
            plugin: check.checked_by.clone(),
            label: format!("{}{place}", check.label()),
            schemes,
            include: check.include.clone(),
            exclude: check.exclude.clone(),
            enforcing: check.mandatory,
        }
    };
    let stated = credentials.checks.iter().map(|check| show(check, String::new()));
    let envoy = credentials
        .envoy
        .iter()
        .flat_map(|place| place.checks.iter().map(move |check| show(check, format!(" in {}", place.label()))));
    stated.chain(envoy).collect()
}

// === impl Counts ===

impl Counts {
    /// Counts findings.
    #[must_use]
    pub fn of<'a>(findings: impl IntoIterator<Item = &'a Finding>) -> Counts {
        let mut counts = Counts::default();
        for finding in findings {
            match finding.severity {
                Severity::High => counts.high += 1,
                Severity::Medium => counts.medium += 1,
                Severity::Low => counts.low += 1,
                Severity::Info => counts.info += 1,
            }
        }
        counts
    }
}
