//! Who makes up a surge: the sources, networks, paths and user agents with the most requests in it.

use exchange::{Exchange, Host};
use node_state::Top;

/// How long the weight of a request takes to halve, in milliseconds.
const HALVED_AFTER: u64 = 60_000;
/// The rankings, each over all surges of the node.
const RANKINGS: [(&str, Top); 4] = [
    ("sources", Top::new("traffic.sources", RANKS, HALVED_AFTER)),
    ("networks", Top::new("traffic.networks", RANKS, HALVED_AFTER)),
    ("paths", Top::new("traffic.paths", RANKS, HALVED_AFTER)),
    ("user agents", Top::new("traffic.agents", RANKS, HALVED_AFTER)),
];
const RANKS: u16 = 64;
/// How many of each an event names.
const NAMED: usize = 3;
/// One request in so many of a surge is ranked, with their weight.
const SAMPLED: u32 = 4;

/// A surge in the rankings.
pub(crate) type SurgeId = [u8; 8];

/// The id of a surge of a key that began in the given bucket. It only tells the surges of a node apart.
pub(crate) fn surge_id(dimension: u8, key: &[u8], since: u64) -> SurgeId {
    let bytes = since.to_le_bytes().into_iter().chain([dimension]).chain(key.iter().copied());
    let fnv = |hash: u64, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    bytes.fold(0xcbf2_9ce4_8422_2325, fnv).to_le_bytes()
}

/// Whether the request with this number in its bucket is ranked. The numbers are mixed: callers often take turns, and every fourth request
/// could always be the same one's.
pub(crate) fn is_sampled(number: u32) -> bool {
    (number.wrapping_mul(0x9e37_79b1) >> 16).is_multiple_of(SAMPLED)
}

/// Ranks a request of a surge. `network` is the one of the caller.
pub(crate) fn rank(surge: SurgeId, network: &str, exchange: &Exchange, host: &dyn Host) {
    let request = &exchange.request;
    let source = exchange.caller.network().unwrap_or_default();
    let path: &[u8] = if exchange.target_is_secret { b"(hidden)" } else { request.path_only() };
    let agent = request.headers.get("user-agent").unwrap_or(b"(none)");
    for ((_, ranking), value) in RANKINGS.iter().zip([source.as_bytes(), network.as_bytes(), path, agent]) {
        ranking.offer(host.shared(), &[surge.as_slice(), value].concat(), SAMPLED, host.now());
    }
}

/// The first of each ranking in a surge, for people; empty if none was ranked.
pub(crate) fn named(surge: SurgeId, host: &dyn Host) -> String {
    let mut text = String::new();
    for (name, ranking) in &RANKINGS {
        let ranked = ranking.list(host.shared(), host.now());
        let of_surge = ranked.iter().filter_map(|ranked| Some((ranked.key.strip_prefix(&surge)?, ranked.count)));
        let of_surge: Vec<String> =
            of_surge.take(NAMED).map(|(value, count)| format!("{} ({count})", shown(value))).collect();
        if !of_surge.is_empty() {
            text.push_str(if text.is_empty() { "" } else { "; " });
            text.push_str(&format!("{name} {}", of_surge.join(", ")));
        }
    }
    text
}

/// Bytes of a request as text on one line.
fn shown(value: &[u8]) -> String {
    String::from_utf8_lossy(value).chars().map(|char| if char.is_control() { '?' } else { char }).collect()
}
