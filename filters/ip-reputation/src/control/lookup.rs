//! An address as all sources have it, for the console.

use std::net::IpAddr;

use exchange::canonical;
use feeds::AddressSet;
use kit::{Item, View};
use serde_json::{Value, json};

use super::bouncers::Row;
use super::dnsbl::{DnsblSettings, DnsblZone, Found, zone_key};
use super::locate::{self, Membership};
use super::runtime::Reputation;
use super::{MAX_BOUNCERS, MAX_FEEDS, SourceAction, SvcBouncer, ThreatFeed};
use crate::is_listable;

/// The kind of hits of classes of networks.
const CLASS: &str = "asn";

/// The most that hits add up to.
const MAX_SCORE: f64 = 100.0;

/// A source that has an address.
struct Hit<'a> {
    kind: &'static str,
    id: &'a str,
    name: &'a str,
    tag: String,
    weight: f64,
    blocks: bool,
    detail: String,
}

/// The verdict of all enabled sources on an address. It reads all of their lists. In a thread that may block.
pub(super) fn verdict(address: IpAddr, view: &View<'_>, runtime: &Reputation, settings: &DnsblSettings) -> Value {
    let address = canonical(address);
    let feeds = view.all::<ThreatFeed>().filter(|feed| feed.enabled).take(MAX_FEEDS);
    let feeds = feeds.filter_map(|feed| of_feed(address, feed, runtime));
    let bouncers = view.all::<SvcBouncer>().filter(|bouncer| bouncer.enabled).take(MAX_BOUNCERS);
    let names = locate::names(address, view, runtime);
    let bouncers = bouncers.filter_map(|bouncer| of_bouncer(address, &names, bouncer, runtime));
    let memberships = locate::memberships(address, view, runtime);
    let mut classes: Vec<Hit<'_>> = memberships.iter().filter_map(of_class).collect();
    // The stronger of two that agree on a class counts.
    classes.sort_by(|one, other| other.weight.total_cmp(&one.weight));
    let zones: Vec<(&DnsblZone, (String, String))> =
        settings.enabled().map(|zone| (zone, (zone.name(), zone.tag()))).collect();
    let listed = match !zones.is_empty() && is_listable(address) {
        true => runtime.listed(address).unwrap_or_default(),
        false => Found::default(),
    };
    let zones = zones.iter().filter_map(|(zone, names)| of_zone(zone, names, &listed));
    let found: Vec<Hit<'_>> = feeds.chain(bouncers).chain(classes).chain(zones).collect();
    let hits = found.iter().map(|hit| {
        json!({
            "kind": hit.kind,
            "source_id": hit.id,
            "source_name": hit.name,
            "tag": hit.tag,
            "weight": number(hit.weight),
            "blocking": hit.blocks,
            "detail": hit.detail,
        })
    });
    let (mut tags, mut score): (Vec<String>, f64) = (Vec::new(), 0.0);
    for hit in found.iter().filter(|hit| hit.weight > 0.0 || hit.blocks) {
        let is_class = hit.kind == CLASS;
        // As at a gateway: databases that agree on a class count once.
        if !(is_class && tags.contains(&hit.tag)) {
            score += hit.weight.round();
        }
        let named = (!is_class).then(|| format!("reputation:{}", hit.id));
        for tag in std::iter::once(hit.tag.clone()).chain(named) {
            if !tags.contains(&tag) {
                tags.push(tag);
            }
        }
    }
    json!({
        "ip": address.to_string(),
        "score": number(score.min(MAX_SCORE)),
        "blocking": found.iter().any(|hit| hit.blocks),
        "tags": tags,
        "hits": hits.collect::<Vec<_>>(),
        "location": locate::place(address, view, runtime),
    })
}

fn of_feed<'a>(address: IpAddr, feed: &'a Item<ThreatFeed>, runtime: &Reputation) -> Option<Hit<'a>> {
    Some(Hit {
        kind: "feed",
        id: &feed.head.id,
        name: &feed.head.name,
        tag: feed.tag(&feed.head),
        weight: feed.weight,
        blocks: feed.action == SourceAction::Block,
        detail: range(listed(address, feed, runtime)?),
    })
}

fn of_bouncer<'a>(
    address: IpAddr,
    names: &[(&str, String)],
    bouncer: &'a Item<SvcBouncer>,
    runtime: &Reputation,
) -> Option<Hit<'a>> {
    let shown = runtime.bouncer(&bouncer.head.id);
    let is_hit = |row: &&Row| row.first <= address && address <= row.last && row.first.is_ipv4() == address.is_ipv4();
    let rows = shown.rows.iter().filter(is_hit).map(|row| (row.ban, range((row.first, row.last))));
    let named = names.iter().filter_map(|(on, name)| {
        let ban = shown.named_rows.get(name)?;
        let (_, value) = name.split_once(':')?;
        Some((*ban, format!("{on} {}", value.to_ascii_uppercase())))
    });
    // A ban counts before what is milder, and of bans the one on the address.
    let (ban, detail) = rows.chain(named).reduce(|one, other| if other.0 && !one.0 { other } else { one })?;
    Some(Hit {
        kind: "bouncer",
        id: &bouncer.head.id,
        name: &bouncer.head.name,
        tag: bouncer.tag(),
        weight: bouncer.weight,
        blocks: bouncer.action == SourceAction::Block && ban,
        detail,
    })
}

/// A zone that lists an address, by what was found out of it.
fn of_zone<'a>(zone: &DnsblZone, names: &'a (String, String), found: &Found) -> Option<Hit<'a>> {
    let listing = found.listed.get(&zone_key(zone))?;
    let codes: Vec<String> = listing.codes.iter().map(ToString::to_string).collect();
    Some(Hit {
        kind: "dnsbl",
        id: &names.0,
        name: &names.0,
        tag: names.1.clone(),
        weight: zone.weight,
        blocks: zone.action == SourceAction::Block,
        detail: codes.join(", "),
    })
}

/// The class of the network of an address.
fn of_class<'a>(membership: &Membership<'a>) -> Option<Hit<'a>> {
    let Membership { database, network, range: (first, last), .. } = membership;
    let owner = network.owner.to_lowercase();
    let class = database.categories.iter().find(|category| category.has(network.number, &owner))?;
    Some(Hit {
        kind: CLASS,
        id: &database.head.id,
        name: &database.head.name,
        tag: class.tag(),
        weight: class.weight,
        blocks: false,
        detail: format!("{}: AS{} {} ({})", class.name, network.number, network.owner, range((*first, *last))),
    })
}

fn range((first, last): (IpAddr, IpAddr)) -> String {
    if first == last { first.to_string() } else { format!("{first}-{last}") }
}

/// The range of a feed that has an address.
fn listed(address: IpAddr, feed: &Item<ThreatFeed>, runtime: &Reputation) -> Option<(IpAddr, IpAddr)> {
    let state = runtime.feed(&feed.head.id);
    let list = AddressSet::from_bytes(&state.current.as_ref()?.list.bytes).ok()?;
    list.range_of(address)
}

/// A number as entities show it: whole ones without a fraction.
pub(super) fn number(number: f64) -> Value {
    kit::number::serialize(&number, serde_json::value::Serializer).unwrap_or_default()
}
