//! `SvcThreatGate`: refuses callers under a standing ban.

use super::plugin::{Plugin, Section};

pub(super) const PLUGIN: Plugin = Plugin {
    name: "threat-gate",
    title: "threat gate",
    classes: &["SvcThreatGate", "IncomingRequestValidatorSvcThreatGate"],
    references: &[("policy", "threat-policies")],
    preset: Section {
        switch: Some("gate"),
        fields: &["threat_policy"],
        references: &[("threat_policy", "threat-policies")],
    },
    ..Plugin::NONE
};
