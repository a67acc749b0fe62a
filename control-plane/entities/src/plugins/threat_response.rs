//! `SvcThreatResponse`: reads the score and acts on it.

use super::plugin::{Plugin, Section};

pub(super) const PLUGIN: Plugin = Plugin {
    name: "threat-response",
    title: "threat response",
    classes: &["SvcThreatResponse", "IncomingRequestValidatorSvcThreatResponse"],
    references: &[("policy", "threat-policies")],
    preset: Section { switch: Some("response"), ..Section::NONE },
    ..Plugin::NONE
};
