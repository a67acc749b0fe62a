//! `IncomingRequestValidatorSvcHoneypot`: decoy paths and canaries.

use super::plugin::{Plugin, Section};

pub(super) const PLUGIN: Plugin = Plugin {
    name: "honeypot",
    title: "honeypot",
    classes: &["IncomingRequestValidatorSvcHoneypot", "SvcHoneypot"],
    collections: &["honeypot-policies"],
    references: &[("policy", "honeypot-policies")],
    preset: Section {
        fields: &["honeypot_policy"],
        references: &[("honeypot_policy", "honeypot-policies")],
        ..Section::NONE
    },
    categories: &["honeypot"],
};
