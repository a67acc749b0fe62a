//! What rules do for requests, and why some do nothing.

use seclang::{Coverage, EngineMode, Program};

use super::config::Crs;
use waf_presets::ENGINE_SOURCE;

/// Why the rules of a WAF protect nothing; `None` where they do.
pub(super) fn idle_rules(coverage: &Coverage) -> Option<String> {
    match (coverage.mode, coverage.switched_off_by) {
        (EngineMode::Off, Some(id)) => Some(format!("the rule {id} switches the rule engine off for every request")),
        (EngineMode::Off, None) => Some("`SecRuleEngine Off` switches the rule engine off".to_owned()),
        _ if !coverage.detects => {
            let why = "there are none, or others remove or skip them";
            Some(format!("no rule that runs looks at requests: {why}"))
        }
        _ => None,
    }
}

/// What is said of options of the core rule set that nothing reads.
pub(super) const CRS_IGNORED: &str =
    "the crs options have no effect: nothing imports the core rule set with `@import_preset crs`";

/// A score that hardly any attack reaches: a rule of the core rule set adds 5 at most.
const OUT_OF_REACH: u32 = 100;

/// What is said of anomaly thresholds that hardly anything reaches, with the field.
pub(super) fn out_of_reach(crs: &Crs) -> impl Iterator<Item = (&'static str, String)> {
    let thresholds = [
        ("/crs/inbound_anomaly_threshold", crs.inbound_anomaly_threshold, "request"),
        ("/crs/outbound_anomaly_threshold", crs.outbound_anomaly_threshold, "response"),
    ];
    thresholds.into_iter().filter(|(_, threshold, _)| *threshold > OUT_OF_REACH).map(|(field, threshold, what)| {
        let matches = threshold.div_ceil(5);
        (
            field,
            format!(
                "a {what} is denied only where {matches} rules match it: a match adds 5 to the anomaly score at most"
            ),
        )
    })
}

/// What the rules of a program do for requests.
pub(super) fn of(program: &Program) -> Coverage {
    program.coverage(&[ENGINE_SOURCE])
}

/// What is said of rules that do not read bodies.
pub(super) const NO_BODIES: &str = "request bodies are not inspected (`SecRequestBodyAccess Off`)";
