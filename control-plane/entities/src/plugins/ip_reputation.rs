//! `SvcIpReputation`: feeds, decisions of bouncers, classes of networks and DNS blocklists.

use super::plugin::{Plugin, Section};

pub(super) const PLUGIN: Plugin = Plugin {
    name: "ip-reputation",
    title: "IP reputation",
    classes: &["SvcIpReputation", "IncomingRequestValidatorSvcIpReputation"],
    collections: &["threat-feeds", "svc-bouncers", "asn-databases"],
    references: &[("feeds", "threat-feeds"), ("bouncers", "svc-bouncers")],
    preset: Section { switch: Some("reputation"), fields: &["reputation_mode"], ..Section::NONE },
    ..Plugin::NONE
};
