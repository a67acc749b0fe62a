//! What rules do for requests, and why some do nothing.

use seclang::{Coverage, EngineMode, Program};

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

/// What the rules of a program do for requests.
pub(super) fn of(program: &Program) -> Coverage {
    program.coverage(&[ENGINE_SOURCE])
}

/// What is said of rules that do not read bodies.
pub(super) const NO_BODIES: &str = "request bodies are not inspected (`SecRequestBodyAccess Off`)";
