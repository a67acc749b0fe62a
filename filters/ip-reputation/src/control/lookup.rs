//! An address as the feeds have it, for the console.

use std::net::IpAddr;

use feeds::AddressSet;
use kit::{Item, View};
use serde_json::{Value, json};

use super::bouncers::Row;
use super::runtime::Reputation;
use super::{MAX_BOUNCERS, MAX_FEEDS, SourceAction, SvcBouncer, ThreatFeed};

/// The most that hits add up to.
const MAX_SCORE: f64 = 100.0;

/// A feed or a bouncer that has an address.
struct Hit<'a> {
    kind: &'static str,
    id: &'a str,
    name: &'a str,
    tag: String,
    weight: f64,
    blocks: bool,
    range: (IpAddr, IpAddr),
}

/// The verdict of all enabled feeds and bouncers on an address. It reads all of their lists.
pub(super) fn verdict(address: IpAddr, view: &View<'_>, runtime: &Reputation) -> Value {
    let address = address.to_canonical();
    let feeds = view.all::<ThreatFeed>().filter(|feed| feed.enabled).take(MAX_FEEDS);
    let feeds = feeds.filter_map(|feed| of_feed(address, feed, runtime));
    let bouncers = view.all::<SvcBouncer>().filter(|bouncer| bouncer.enabled).take(MAX_BOUNCERS);
    let found: Vec<Hit<'_>> =
        feeds.chain(bouncers.filter_map(|bouncer| of_bouncer(address, bouncer, runtime))).collect();
    let hits = found.iter().map(|hit| {
        let (first, last) = hit.range;
        json!({
            "kind": hit.kind,
            "source_id": hit.id,
            "source_name": hit.name,
            "tag": hit.tag,
            "weight": number(hit.weight),
            "blocking": hit.blocks,
            "detail": if first == last { first.to_string() } else { format!("{first}-{last}") },
        })
    });
    let mut tags: Vec<String> = Vec::new();
    for hit in found.iter().filter(|hit| hit.weight > 0.0 || hit.blocks) {
        for tag in [hit.tag.clone(), format!("reputation:{}", hit.id)] {
            if !tags.contains(&tag) {
                tags.push(tag);
            }
        }
    }
    let score: f64 = found.iter().map(|hit| hit.weight.round()).sum();
    json!({
        "ip": address.to_string(),
        "score": number(score.min(MAX_SCORE)),
        "blocking": found.iter().any(|hit| hit.blocks),
        "tags": tags,
        "hits": hits.collect::<Vec<_>>(),
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
        range: listed(address, feed, runtime)?,
    })
}

fn of_bouncer<'a>(address: IpAddr, bouncer: &'a Item<SvcBouncer>, runtime: &Reputation) -> Option<Hit<'a>> {
    let shown = runtime.bouncer(&bouncer.head.id);
    let is_hit = |row: &&Row| row.first <= address && address <= row.last && row.first.is_ipv4() == address.is_ipv4();
    // A ban counts before what is milder.
    let row = shown.rows.iter().filter(is_hit).max_by_key(|row| row.ban)?;
    Some(Hit {
        kind: "bouncer",
        id: &bouncer.head.id,
        name: &bouncer.head.name,
        tag: bouncer.tag(),
        weight: bouncer.weight,
        blocks: bouncer.action == SourceAction::Block && row.ban,
        range: (row.first, row.last),
    })
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
