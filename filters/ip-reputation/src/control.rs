//! The control-plane side: the collections of feeds, bouncers and databases, how they are fetched and kept, how the plugin is configured, and the console's endpoints.

mod asn;
mod bouncer;
mod bouncers;
mod catalog;
mod compile;
mod databases;
mod dnsbl;
mod feed;
mod fetch;
mod gather;
mod geo;
mod guard;
mod keep;
mod locate;
mod lookup;
mod metrics;
mod operations;
mod push;
mod runtime;
mod state;
mod table;

use std::sync::Arc;

use kit::{Kind, Plugin, Section, SettingsKind};
use serde::Deserialize;
use serde_json::json;

pub use asn::{AsnAction, AsnCategory, AsnDatabase, AsnFormat};
pub use bouncer::{DecisionScope, SvcBouncer};
pub use dnsbl::{DnsblSettings, DnsblZone};
pub use feed::{FeedFormat, FeedOptions, FetchMethod, SourceAction, ThreatFeed};
pub use geo::GeoDatabase;
use runtime::Reputation;

/// `SvcIpReputation`: callers whose address is on a threat feed, or whom a decision service refuses.
pub const PLUGIN: Plugin = Plugin {
    name: crate::PLUGIN.name,
    title: "IP reputation",
    documentation: include_str!("../docs.md"),
    classes: &["SvcIpReputation", "IncomingRequestValidatorSvcIpReputation"],
    order: 120,
    kinds: &[Kind::of::<ThreatFeed>(), Kind::of::<SvcBouncer>(), Kind::of::<AsnDatabase>(), Kind::of::<GeoDatabase>()],
    references: &[("feeds", "threat-feeds"), ("bouncers", "svc-bouncers")],
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
    settings: &[SettingsKind::of::<DnsblSettings>("Lookups in DNS blocklists, for the IP reputation.")],
    operations: operations::OPERATIONS,
    compile: Some(compile::compile),
    runtime: Some(|| Arc::new(Reputation::default())),
    gather: Some(|sources| {
        Box::pin(async move {
            tokio::join!(
                gather::gather(sources.clone()),
                databases::gather(sources.clone()),
                bouncers::gather(sources.clone()),
                push::gather(sources.clone()),
                dnsbl::gather(sources),
            );
        })
    }),
    ..Plugin::NONE
};

/// The most enabled feeds that are used, by id. The label of an address that all of them list has room for their keys.
pub(crate) const MAX_FEEDS: usize = 64;

/// The most enabled bouncers that are used, by id: the names of all of them are the value of a country that all of them refuse.
pub(crate) const MAX_BOUNCERS: usize = 8;

/// The most enabled databases of networks that are used, and of places, by id.
pub(crate) const MAX_DATABASES: usize = 8;

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
