//! From the plugin's configuration, the feeds, the bouncers and the databases of networks to a step.

use std::net::IpAddr;

use ipnet::IpNet;
use kit::checks::{count, status, within};
use kit::{Context, Entity as _, FieldProblem, Item, typed};
use prost::Message as _;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::dnsbl::{DnsblSettings, DnsblZone, zone_key};
use super::guard::{Ids, ReputationGuard};
use super::table::{bouncer_key, class_key, key};
use super::{
    AsnCategory, AsnDatabase, DecisionScope, GeoDatabase, MAX_BOUNCERS, MAX_DATABASES, MAX_FEEDS, SourceAction,
    SvcBouncer, ThreatFeed,
};
use crate::{FeedOfStep, IpReputationStep};

/// Addresses and CIDRs that pass through, at most.
const MAX_PASSTHROUGH: usize = 1000;

/// The plugin's configuration.
#[derive(Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Config {
    mode: Mode,
    /// The sum of weights from which a request is refused; 0 for none.
    score_threshold: f64,
    status: u16,
    /// The ids of feeds; empty for all. `None` where a preset has laid it down.
    feeds: Option<Vec<String>>,
    /// The ids of bouncers; empty for all.
    bouncers: Vec<String>,
    passthrough: Vec<String>,
    /// Refusals for what feeds and bouncers say are alerts to decision services.
    report_to_bouncer: bool,
    /// The zones of DNS blocklists count.
    blocklists: bool,
}

/// Whether feeds that block refuse.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Mode {
    /// They do.
    #[default]
    Block,
    /// Every feed adds to the score alone.
    Monitor,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            mode: Mode::default(),
            score_threshold: 0.0,
            status: 403,
            feeds: Some(Vec::new()),
            bouncers: Vec::new(),
            passthrough: Vec::new(),
            report_to_bouncer: false,
            blocklists: true,
        }
    }
}

pub(super) fn compile(
    config: &Map<String, Value>,
    context: &mut Context<'_>,
) -> Result<Option<Vec<u8>>, Vec<FieldProblem>> {
    let config: Config = typed(Value::Object(config.clone())).map_err(|problem| vec![problem])?;
    let mut problems = config.check();
    let all: Vec<&Item<ThreatFeed>> = context.view.all::<ThreatFeed>().collect();
    let named = config.feeds.as_deref().unwrap_or_default();
    for (index, id) in named.iter().enumerate().filter(|(_, id)| all.iter().all(|feed| feed.head.id != **id)) {
        let message = format!("there is no threat feed `{}`", id.escape_debug());
        problems.push(FieldProblem::new(format!("/feeds/{index}"), message).expected("the id of a threat feed"));
    }
    let services: Vec<&Item<SvcBouncer>> = context.view.all::<SvcBouncer>().collect();
    let named_services = &config.bouncers;
    let is_unknown = |id: &String| services.iter().all(|bouncer| bouncer.head.id != *id);
    for (index, id) in named_services.iter().enumerate().filter(|(_, id)| is_unknown(id)) {
        let message = format!("there is no bouncer `{}`", id.escape_debug());
        problems.push(FieldProblem::new(format!("/bouncers/{index}"), message).expected("the id of a bouncer"));
    }
    if !problems.is_empty() {
        return Err(problems);
    }
    let is_meant = |feed: &&&Item<ThreatFeed>| named.is_empty() || named.contains(&feed.head.id);
    let ids = |feeds: Vec<&&Item<ThreatFeed>>| feeds.into_iter().map(|feed| &feed.head.id).collect();
    let enabled: Vec<&Item<ThreatFeed>> = all.iter().copied().filter(|feed| feed.is_enabled()).collect();
    let (used, more) = enabled.split_at(enabled.len().min(MAX_FEEDS));
    let mut feeds: Vec<FeedOfStep> = used.iter().filter(is_meant).map(|feed| of_step(feed)).collect();
    let is_service =
        |bouncer: &&&Item<SvcBouncer>| named_services.is_empty() || named_services.contains(&bouncer.head.id);
    let at_work: Vec<&Item<SvcBouncer>> = services.iter().copied().filter(|bouncer| bouncer.is_enabled()).collect();
    let (asked, not_asked) = at_work.split_at(at_work.len().min(MAX_BOUNCERS));
    let asked: Vec<&Item<SvcBouncer>> = asked.iter().filter(is_service).copied().collect();
    feeds.extend(asked.iter().map(|bouncer| of_bouncer(bouncer)));
    let settings: DnsblSettings = context.settings();
    if config.blocklists {
        feeds.extend(settings.enabled().map(of_zone));
    }
    let networks: Vec<&Item<AsnDatabase>> =
        context.view.all::<AsnDatabase>().filter(|database| database.enabled).take(MAX_DATABASES).collect();
    for database in &networks {
        feeds.extend(database.categories.iter().map(|category| of_class(&database.head.id, category)));
    }
    // Without a database, decisions on networks and countries match nothing.
    let any_places = context.view.all::<GeoDatabase>().any(|database| database.enabled);
    let (on_networks, on_countries) =
        (with_scope(&asked, DecisionScope::As), with_scope(&asked, DecisionScope::Country));
    let (by_network, by_country) =
        (!on_networks.is_empty() && !networks.is_empty(), !on_countries.is_empty() && any_places);
    let off = services.iter().filter(|bouncer| !bouncer.is_enabled() && !named_services.is_empty()).filter(is_service);
    let bouncer_ids =
        |bouncers: Vec<&&Item<SvcBouncer>>| bouncers.into_iter().map(|bouncer| &bouncer.head.id).collect();
    context.guards.push(Box::new(ReputationGuard {
        disabled_bouncers: bouncer_ids(off.collect()),
        bouncers_left_out: bouncer_ids(not_asked.iter().filter(is_service).collect()),
        disabled: match named.is_empty() {
            true => Ids::default(),
            false => ids(all.iter().filter(|feed| !feed.is_enabled()).filter(is_meant).collect()),
        },
        left_out: ids(more.iter().filter(is_meant).collect()),
        without_networks: if by_network { Ids::default() } else { on_networks },
        without_countries: if by_country { Ids::default() } else { on_countries },
        idle: feeds.is_empty() && named.is_empty() && config.feeds.is_some(),
    }));
    let step = |feeds| IpReputationStep { by_network, by_country, ..config.step(feeds, settings.wait_millis) };
    Ok((!feeds.is_empty()).then(|| step(feeds).encode_to_vec()))
}

/// The ids of bouncers with decisions of a scope.
fn with_scope(bouncers: &[&Item<SvcBouncer>], scope: DecisionScope) -> Ids {
    let found = bouncers.iter().filter(|bouncer| bouncer.scopes.contains(&scope));
    found.map(|bouncer| &bouncer.head.id).collect()
}

fn of_step(feed: &Item<ThreatFeed>) -> FeedOfStep {
    let id = feed.head.id.clone();
    FeedOfStep {
        key: key(&id),
        name: if feed.head.name.is_empty() { id.clone() } else { feed.head.name.clone() },
        tag: feed.tag(&feed.head),
        weight: feed.weight,
        blocks: feed.action == SourceAction::Block,
        id,
        ..FeedOfStep::default()
    }
}

fn of_class(database: &str, category: &AsnCategory) -> FeedOfStep {
    FeedOfStep {
        key: class_key(database, &category.name),
        id: database.to_owned(),
        name: category.name.clone(),
        tag: category.tag(),
        weight: category.weight,
        class: true,
        ..FeedOfStep::default()
    }
}

fn of_bouncer(bouncer: &Item<SvcBouncer>) -> FeedOfStep {
    let id = bouncer.head.id.clone();
    FeedOfStep {
        key: bouncer_key(&id),
        name: if bouncer.head.name.is_empty() { id.clone() } else { bouncer.head.name.clone() },
        tag: bouncer.tag(),
        weight: bouncer.weight,
        blocks: bouncer.action == SourceAction::Block,
        id,
        bouncer: true,
        ..FeedOfStep::default()
    }
}

fn of_zone(zone: &DnsblZone) -> FeedOfStep {
    let name = zone.name();
    FeedOfStep {
        key: zone_key(zone),
        id: name.clone(),
        name,
        tag: zone.tag(),
        weight: zone.weight,
        blocks: zone.action == SourceAction::Block,
        zone: true,
        ..FeedOfStep::default()
    }
}

impl Config {
    fn check(&self) -> Vec<FieldProblem> {
        let mut problems = Vec::new();
        problems.extend(within("/score_threshold", self.score_threshold, 0.0..=1000.0));
        problems.extend(status("/status", self.status));
        problems.extend(count("/passthrough", self.passthrough.len(), MAX_PASSTHROUGH));
        for (index, entry) in self.passthrough.iter().enumerate() {
            if entry.parse::<IpNet>().is_err() && entry.parse::<IpAddr>().is_err() {
                let message = format!("`{}` is neither an address nor a CIDR", entry.escape_debug());
                let problem = FieldProblem::new(format!("/passthrough/{index}"), message);
                problems.push(problem.expected("such as `192.0.2.7` or `2001:db8::/32`"));
            }
        }
        problems
    }

    fn step(self, mut feeds: Vec<FeedOfStep>, wait_millis: u32) -> IpReputationStep {
        feeds.sort_by(|one, other| one.key.cmp(&other.key));
        IpReputationStep {
            feeds,
            monitor: self.mode == Mode::Monitor,
            score_threshold: self.score_threshold,
            status: self.status.into(),
            passthrough: self.passthrough,
            report: self.report_to_bouncer,
            wait_millis,
            ..IpReputationStep::default()
        }
    }
}
