//! What plugins of routes and of the global chain name by id, read from their configuration.
//!
//! The compiler says what else is wrong with a plugin; here it is only asked whether the entities exist, so that one of
//! them is not deleted under a plugin that needs it.

use serde_json::{Map, Value};

use super::entity::reference;
use super::problem::token;
use super::{
    ApiContract, BotPolicy, Entity, FieldProblem, HoneypotPolicy, MalwareScanner, References, SvcBouncer, ThreatFeed,
    ThreatPolicy, WafConfig,
};

/// The key of a route's metadata that names its API contract.
pub(super) const CONTRACT_KEY: &str = "svc-api-contract";

/// The classes of a plugin, and which of its fields names an entity, or a list of them, of which collection.
type Named = (&'static [&'static str], &'static [(&'static str, &'static str)]);

const NAMED: &[Named] = &[
    (&["Waf", "SvcWaf", "IncomingRequestValidatorSvcWaf", "waf"], &[("ref", WafConfig::COLLECTION)]),
    (
        &["SvcThreatGate", "IncomingRequestValidatorSvcThreatGate", "threat-gate"],
        &[("policy", ThreatPolicy::COLLECTION)],
    ),
    (
        &["SvcThreatResponse", "IncomingRequestValidatorSvcThreatResponse", "threat-response"],
        &[("policy", ThreatPolicy::COLLECTION)],
    ),
    (&["SvcBotGuard", "IncomingRequestValidatorSvcBotGuard", "bot-guard"], &[("policy", BotPolicy::COLLECTION)]),
    (&["SvcHoneypot", "IncomingRequestValidatorSvcHoneypot", "honeypot"], &[("policy", HoneypotPolicy::COLLECTION)]),
    (
        &["SvcIpReputation", "IncomingRequestValidatorSvcIpReputation", "ip-reputation"],
        &[("feeds", ThreatFeed::COLLECTION), ("bouncers", SvcBouncer::COLLECTION)],
    ),
    (&["SvcApiContract", "api-contract"], &[("contract", ApiContract::COLLECTION)]),
    (&["SvcUploadGuard", "upload-guard"], &[("scanner", MalwareScanner::COLLECTION)]),
    (
        &[
            "SecuritySuitePreset",
            "SvcSecuritySuitePreset",
            "preset",
            "SecuritySuiteGlobalPreset",
            "SvcSecuritySuiteGlobalPreset",
        ],
        &[
            ("threat_policy", ThreatPolicy::COLLECTION),
            ("waf_config", WafConfig::COLLECTION),
            ("bot_policy", BotPolicy::COLLECTION),
            ("honeypot_policy", HoneypotPolicy::COLLECTION),
            ("api_contract_id", ApiContract::COLLECTION),
            ("uploads_scanner", MalwareScanner::COLLECTION),
        ],
    ),
];

/// The entities that a plugin names and that do not exist. Pointers are relative to the plugin.
pub(super) fn missing(plugin: &str, config: &Map<String, Value>, refs: &dyn References) -> Vec<FieldProblem> {
    let mut problems = Vec::new();
    for (field, collection) in
        NAMED.iter().filter(|(classes, _)| classes.contains(&plugin)).flat_map(|(_, named)| *named)
    {
        let pointer = format!("/config/{}", token(field));
        match config.get(*field) {
            Some(Value::String(id)) if !id.is_empty() => problems.extend(reference(refs, collection, id, pointer)),
            Some(Value::Array(ids)) => {
                for (index, id) in ids.iter().enumerate().filter_map(|(index, id)| Some((index, id.as_str()?))) {
                    problems.extend(reference(refs, collection, id, format!("{pointer}/{index}")));
                }
            }
            _ => {}
        }
    }
    problems
}
