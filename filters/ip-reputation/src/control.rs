//! The control-plane side: the collection of feeds, how it is fetched and kept, how the plugin is configured, and the console's endpoints.

mod catalog;
mod compile;
mod dnsbl;
mod feed;
mod fetch;
mod gather;
mod guard;
mod keep;
mod lookup;
mod metrics;
mod operations;
mod runtime;
mod schedule;
mod state;
mod table;

use std::sync::Arc;

use kit::{Kind, Plugin, Section, SettingsKind};
use serde::Deserialize;
use serde_json::json;

pub use dnsbl::DnsblSettings;
pub use feed::{FeedFormat, FeedOptions, FetchMethod, SourceAction, ThreatFeed};
use runtime::Reputation;

/// `SvcIpReputation`: callers whose address is on a threat feed.
pub const PLUGIN: Plugin = Plugin {
    name: crate::PLUGIN.name,
    title: "IP reputation",
    documentation: include_str!("../docs.md"),
    classes: &["SvcIpReputation", "IncomingRequestValidatorSvcIpReputation"],
    order: 120,
    kinds: &[Kind::of::<ThreatFeed>()],
    references: &[("feeds", "threat-feeds"), ("bouncers", "svc-bouncers")],
    inert: &[("bouncers", "decision-service bouncers"), ("report_to_bouncer", "decision-service bouncers")],
    preset: Section {
        switch: Some("reputation"),
        fields: &["reputation_mode"],
        index: 3.0,
        lay_down: Some(|config| {
            let fields: Fields = Section::read(config, &["reputation", "reputation_mode"])?;
            // Without a list of feeds it is not missed where there is no feed: presets lay it down by default.
            Ok((fields.reputation.then(|| json!({ "mode": fields.reputation_mode, "feeds": null })), None))
        }),
        ..Section::NONE
    },
    settings: &[SettingsKind::of::<DnsblSettings>("Lookups in DNS blocklists, for the IP reputation.")
        .without("DNS blocklist resolver")],
    operations: operations::OPERATIONS,
    compile: Some(compile::compile),
    runtime: Some(|| Arc::new(Reputation::default())),
    gather: Some(|sources| Box::pin(gather::gather(sources))),
    ..Plugin::NONE
};

/// The most enabled feeds that are used, by id. The label of an address that all of them list has room for their keys.
pub(crate) const MAX_FEEDS: usize = 64;

/// What it reads of a preset's configuration.
#[derive(Deserialize)]
#[serde(default)]
struct Fields {
    reputation: bool,
    reputation_mode: compile::Mode,
}

impl Default for Fields {
    fn default() -> Fields {
        Fields { reputation: true, reputation_mode: compile::Mode::default() }
    }
}

#[cfg(test)]
mod tests;
