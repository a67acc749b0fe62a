//! What a rule engine of a chain will do, and what is off in a chain without one.

use std::any::Any;

use kit::{Entity as _, Guard};
use seclang::{Coverage, EngineMode};

use super::config::WafConfig;
use super::coverage::{NO_BODIES, idle_rules};

/// What a rule engine will do.
#[derive(Debug)]
pub(super) struct WafGuard {
    /// The id of the WAF config.
    pub(super) config: String,
    /// What its rules do; `None` where the config is disabled.
    pub(super) coverage: Option<Coverage>,
    /// Which of its lookups find nothing, and why.
    pub(super) lookups: Vec<String>,
    /// The field `block`.
    pub(super) block: bool,
    /// The field `inspect_input_body`.
    pub(super) inspects_bodies: bool,
    /// Matches become signals.
    pub(super) contributes: bool,
    /// Options of the core rule set are set, and nothing imports it.
    pub(super) crs_ignored: bool,
}

/// A preset that lays down no rule engine.
#[derive(Debug)]
pub(super) enum WithoutWaf {
    /// It has `waf: false`.
    Declined,
    /// It names no WAF config.
    Unnamed,
}

/// What is said of a chain that acts on scores and has no rule engine to make them, unless its preset declines one.
pub(super) fn lacking(chain: &[&dyn Guard]) -> Vec<String> {
    let is_waf = |guard: &&dyn Guard| guard.as_any().is::<WafGuard>();
    let preset = |guard: &&dyn Guard| {
        guard.as_any().downcast_ref::<WithoutWaf>().map(|without| matches!(without, WithoutWaf::Unnamed))
    };
    if chain.iter().any(is_waf) {
        return Vec::new();
    }
    let wanted = chain.iter().filter_map(preset).any(|unnamed| unnamed);
    let declined = chain.iter().filter_map(preset).any(|unnamed| !unnamed);
    let acted_on = chain.iter().any(|guard| guard.acts_on_score());
    match wanted || (acted_on && !declined) {
        true => vec!["no WAF inspects requests: the preset names no `waf_config`, or there is no `SvcWaf`".to_owned()],
        false => Vec::new(),
    }
}

impl Guard for WafGuard {
    fn gaps(&self, before: &[&dyn Guard], behind: &[&dyn Guard]) -> Vec<String> {
        let acts = |guards: &[&dyn Guard]| guards.iter().any(|guard| guard.acts_on_score());
        let mut found = Vec::new();
        self.find_gaps(acts(before), acts(behind), &mut found);
        found
    }

    fn entity(&self) -> Option<(&'static str, &str)> {
        Some((WafConfig::COLLECTION, &self.config))
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl Guard for WithoutWaf {
    fn gaps(&self, _before: &[&dyn Guard], _behind: &[&dyn Guard]) -> Vec<String> {
        Vec::new()
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl WafGuard {
    /// `before` and `behind`: whether a threat response stands there.
    fn find_gaps(&self, before: bool, behind: bool, found: &mut Vec<String>) {
        let id = &self.config;
        let Some(coverage) = &self.coverage else {
            found.push(format!("the WAF config `{id}` is disabled"));
            return;
        };
        if self.crs_ignored {
            let why = "its rules do not import the core rule set (`@import_preset crs`)";
            found.push(format!("the `crs` options of the WAF config `{id}` have no effect: {why}"));
        }
        if let Some(why) = idle_rules(coverage) {
            found.push(format!("the WAF config `{id}` inspects nothing: {why}"));
            return;
        }
        found.extend(self.lookups.iter().map(|why| format!("in the WAF config `{id}` {why}")));
        if self.inspects_bodies && !coverage.request_bodies {
            found.push(format!("in the WAF config `{id}` {NO_BODIES}"));
        }
        let monitors = !self.block || coverage.mode == EngineMode::DetectionOnly;
        if before && !behind {
            let why = "the threat response runs before it, give it a higher `plugin_index`";
            found.push(format!("nothing acts on what the WAF config `{id}` finds and does not refuse: {why}"));
        } else if !(monitors || coverage.denies || behind && self.contributes) {
            let why = "no rule denies, and no threat response behind it takes its signals";
            found.push(format!("nothing acts on what the WAF config `{id}` finds: {why}"));
        }
    }
}
