//! `IncomingRequestValidatorSvcHoneypot`: decoy paths and canaries.

use crate::HoneypotPolicy;
use kit::{Kind, Plugin, Section};

pub(super) const PLUGIN: Plugin = Plugin {
    name: "honeypot",
    title: "honeypot",
    classes: &["IncomingRequestValidatorSvcHoneypot", "SvcHoneypot"],
    order: 500,
    kinds: &[Kind::of::<HoneypotPolicy>()],
    references: &[("policy", "honeypot-policies")],
    preset: Section {
        fields: &["honeypot_policy"],
        references: &[("honeypot_policy", "honeypot-policies")],
        ..Section::NONE
    },
    categories: &["honeypot"],
    ..Plugin::NONE
};
