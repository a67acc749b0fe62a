//! Who stands behind matches, as numbers that are the same on all nodes: distinct callers and networks are counted by them. Events name
//! callers in the clear, so that nothing is hidden by a key.

use std::collections::BTreeSet;
use std::net::IpAddr;

use exchange::Exchange;
use snapshot::content_hash;

use super::messages::MAX_SUSPECTS;
use crate::PLUGIN;

/// The callers with other signs that a worker remembers, at most.
const MAX_REMEMBERED: usize = 4096;

/// A caller: the identity in the higher half of the number, so that the smallest numbers are of all networks alike, and the network of its
/// address in the lower one.
pub(super) fn caller(exchange: &Exchange) -> u64 {
    let identity = exchange.caller.identity().map(|identity| identity.key()).unwrap_or_default();
    let network = exchange.caller.ip.parse::<IpAddr>().map(network).unwrap_or_default();
    u64::from(half(identity.as_bytes())) << 32 | u64::from(half(&network))
}

/// What one operator has as a rule: 24 bits of an address of IPv4, 48 of one of IPv6.
fn network(address: IpAddr) -> Vec<u8> {
    match address.to_canonical() {
        IpAddr::V4(address) => address.octets().into_iter().take(3).collect(),
        IpAddr::V6(address) => address.octets().into_iter().take(6).collect(),
    }
}

fn half(bytes: &[u8]) -> u32 {
    let [a, b, c, d, ..] = content_hash(bytes);
    u32::from_le_bytes([a, b, c, d])
}

/// Whether something else than a WAF has found the exchange bad: a feed, a trap, a bot, a guess of passwords.
pub(super) fn has_signs(exchange: &Exchange) -> bool {
    let signals = exchange.score.signals();
    signals.iter().any(|signal| signal.kind != PLUGIN.name && signal.effective_weight() > 0.0)
}

/// Callers with other signs: what they send teaches nothing.
#[derive(Debug, Default)]
pub(super) struct Suspects {
    known: BTreeSet<u64>,
    /// Those that are not reported yet.
    fresh: BTreeSet<u64>,
}

impl Suspects {
    /// Remembers one. Where there are too many, some are forgotten.
    pub(super) fn add(&mut self, caller: u64) {
        if self.known.insert(caller) {
            self.fresh.insert(caller);
            if self.known.len() > MAX_REMEMBERED
                && let Some(first) = self.known.pop_first()
            {
                self.fresh.remove(&first);
            }
        }
    }

    /// Those of the next report.
    pub(super) fn take(&mut self) -> Vec<u64> {
        let some: Vec<u64> = self.fresh.iter().copied().take(MAX_SUSPECTS).collect();
        for one in &some {
            self.fresh.remove(one);
        }
        some
    }

    pub(super) fn is_empty(&self) -> bool {
        self.fresh.is_empty()
    }
}
