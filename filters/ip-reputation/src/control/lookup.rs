//! An address as the feeds have it, for the console.

use std::net::IpAddr;

use feeds::AddressSet;
use kit::{Item, View};
use serde_json::{Value, json};

use super::runtime::Reputation;
use super::{MAX_FEEDS, SourceAction, ThreatFeed};

/// The most that hits add up to.
const MAX_SCORE: f64 = 100.0;

/// The verdict of all enabled feeds on an address. It reads all of their lists.
pub(super) fn verdict(address: IpAddr, view: &View<'_>, runtime: &Reputation) -> Value {
    let address = address.to_canonical();
    let feeds = view.all::<ThreatFeed>().filter(|feed| feed.enabled).take(MAX_FEEDS);
    let found = feeds.filter_map(|feed| Some((feed, listed(address, feed, runtime)?)));
    let found: Vec<(&Item<ThreatFeed>, (IpAddr, IpAddr))> = found.collect();
    let blocks = |feed: &ThreatFeed| feed.action == SourceAction::Block;
    let hits = found.iter().map(|(feed, (first, last))| {
        json!({
            "kind": "feed",
            "source_id": feed.head.id,
            "source_name": feed.head.name,
            "tag": feed.tag(&feed.head),
            "weight": number(feed.weight),
            "blocking": blocks(feed),
            "detail": if first == last { first.to_string() } else { format!("{first}-{last}") },
        })
    });
    let mut tags: Vec<String> = Vec::new();
    for (feed, _) in found.iter().filter(|(feed, _)| feed.weight > 0.0 || blocks(feed)) {
        for tag in [feed.tag(&feed.head), format!("reputation:{}", feed.head.id)] {
            if !tags.contains(&tag) {
                tags.push(tag);
            }
        }
    }
    let score: f64 = found.iter().map(|(feed, _)| feed.weight.round()).sum();
    json!({
        "ip": address.to_string(),
        "score": number(score.min(MAX_SCORE)),
        "blocking": found.iter().any(|(feed, _)| blocks(feed)),
        "tags": tags,
        "hits": hits.collect::<Vec<_>>(),
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
