//! The IP reputation: callers whose address is on a threat feed add to the score or are refused.
//!
//! The control plane makes one table of all feeds: ranges of addresses, each labelled with the keys of the feeds that list it. A step
//! has what a hit on each of its feeds means, so steps with different feeds share the table.

#[cfg(feature = "control")]
pub mod control;
mod messages;

use std::net::IpAddr;

use exchange::{
    Build, Category, Exchange, Exemptions, Host, Plugin, PluginDefinition, RangesTable, Refusal, Role, Signal, Slot,
    Verdict,
};
use prost::Message as _;

pub use messages::{FeedOfStep, IpReputationStep};

/// The plugin.
pub const PLUGIN: PluginDefinition = PluginDefinition::new("ip-reputation", build).role(Role::Detector);

/// The table of address ranges, each labelled with the keys of the feeds that list it, with commas between them.
pub const TABLE: &str = "ip-reputation.feeds";

/// The source of its signals.
const SOURCE: &str = "reputation.feed";

/// The feeds that have signals of their own in an exchange, at most: the signals of an exchange are bounded, and other detectors need
/// theirs.
const MAX_SIGNALLED: usize = 8;

/// The tag of the one signal of all other feeds.
const OTHERS: &str = "reputation:others";

struct IpReputation {
    /// Sorted by their keys.
    feeds: Vec<FeedOfStep>,
    passthrough: Exemptions,
    monitor: bool,
    score_threshold: f64,
    status: u16,
    table: RangesTable,
}

fn build(config: &[u8], build: &mut Build<'_>) -> Result<Box<dyn Plugin>, String> {
    let step = IpReputationStep::decode(config).map_err(|error| error.to_string())?;
    let status = u16::try_from(step.status).ok().filter(|status| (200..=599).contains(status));
    let status = status.ok_or("the IP reputation refuses with something that is no status")?;
    let IpReputationStep { mut feeds, monitor, score_threshold, passthrough, .. } = step;
    feeds.sort_by(|one, other| one.key.cmp(&other.key));
    let passthrough = Exemptions::new(&passthrough)?;
    let table = build.ranges(TABLE)?;
    Ok(Box::new(IpReputation { feeds, passthrough, monitor, score_threshold, status, table }))
}

impl Plugin for IpReputation {
    fn access(&self, exchange: &mut Exchange, _slot: &mut Slot, host: &dyn Host) -> Verdict {
        // Without an address, and without the table, nothing is known of the caller: the request passes.
        let Some(address) = exchange.caller.ip.parse::<IpAddr>().ok().map(|address| address.to_canonical()) else {
            return Verdict::Pass;
        };
        let hits = self.hits(address);
        if hits.is_empty() || self.passthrough.cover(&address.to_string()) {
            return Verdict::Pass;
        }
        note_all(&hits, exchange, host);
        match self.reason(&hits) {
            Some(reason) if !self.monitor => {
                Verdict::Refuse(Refusal::new(self.status, Category::Threat, reason).scored())
            }
            _ => Verdict::Pass,
        }
    }
}

impl IpReputation {
    /// The feeds of this step that list an address and mean something.
    fn hits(&self, address: IpAddr) -> Vec<&FeedOfStep> {
        let found = self.table.read(|ranges| {
            let keys = ranges.find(address).and_then(|label| ranges.name(label)).unwrap_or_default();
            keys.split(|byte| *byte == b',').filter_map(|key| self.feed(key)).collect::<Vec<_>>()
        });
        let mut found = found.unwrap_or_default();
        found.retain(|feed| feed.blocks || feed.weight > 0.0);
        // The strongest first; feeds alike stay in the order of their keys.
        found.sort_by(|one, other| other.blocks.cmp(&one.blocks).then(other.weight.total_cmp(&one.weight)));
        found
    }

    fn feed(&self, key: &[u8]) -> Option<&FeedOfStep> {
        let place = self.feeds.binary_search_by(|feed| feed.key.as_bytes().cmp(key)).ok()?;
        self.feeds.get(place)
    }

    /// Why a caller with these hits is refused, if it is.
    fn reason(&self, hits: &[&FeedOfStep]) -> Option<String> {
        if let Some(feed) = hits.iter().find(|feed| feed.blocks) {
            return Some(format!("the caller's address is on the threat feed `{}`", feed.name));
        }
        let sum: f64 = hits.iter().map(|feed| feed.weight).sum();
        let reached = self.score_threshold > 0.0 && sum >= self.score_threshold;
        reached.then(|| format!("the threat feeds that list the caller's address weigh {sum}"))
    }
}

/// Adds the signals of all hits, the strongest first: one each, as far as there is room, and one of all others.
fn note_all(hits: &[&FeedOfStep], exchange: &mut Exchange, host: &dyn Host) {
    let (own, others) = hits.split_at_checked(MAX_SIGNALLED).unwrap_or((hits, &[]));
    for feed in own {
        note(feed, exchange, host);
    }
    if others.is_empty() {
        return;
    }
    let ids: Vec<&str> = others.iter().map(|feed| feed.id.as_str()).collect();
    exchange.score.add(Signal {
        source: SOURCE.into(),
        kind: "reputation".into(),
        // As if each were a signal: signals count as whole numbers.
        weight: others.iter().map(|feed| feed.weight.round()).sum::<f64>().min(exchange::MAX_SCORE),
        confidence: 1.0,
        tag: OTHERS.into(),
        detail: format!("the address is on {} more threat feeds: {}", ids.len(), ids.join(", ")),
        at: host.now(),
    });
}

/// Adds the signals of a hit. Events name a feed by its own tag and as `reputation:<id>`, so the second signal weighs nothing.
fn note(feed: &FeedOfStep, exchange: &mut Exchange, host: &dyn Host) {
    let named = format!("reputation:{}", feed.id);
    let mut add = |weight: f64, tag: String| {
        exchange.score.add(Signal {
            source: SOURCE.into(),
            kind: "reputation".into(),
            weight,
            confidence: 1.0,
            tag: tag.into(),
            detail: format!("the address is on the threat feed `{}`", feed.name),
            at: host.now(),
        });
    };
    add(feed.weight, feed.tag.clone());
    if feed.tag != named {
        add(0.0, named);
    }
}

#[cfg(test)]
mod tests;
