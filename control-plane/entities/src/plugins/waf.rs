//! `SvcWaf`: the rule engine.

use super::plugin::{Plugin, Section};

pub(super) const PLUGIN: Plugin = Plugin {
    name: "waf",
    title: "WAF",
    classes: &["SvcWaf", "Waf", "IncomingRequestValidatorSvcWaf"],
    references: &[("ref", "waf-configs")],
    preset: Section { switch: Some("waf"), fields: &["waf_config"], references: &[("waf_config", "waf-configs")] },
    ..Plugin::NONE
};
