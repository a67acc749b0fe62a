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

/// A caller: half of the number is of the identity, the higher one, so that numbers in order are of all networks alike; the lower one is of the
/// network of its address, see [`network_of`].
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

/// The network of a caller, by its number.
pub(crate) fn network_of(caller: u64) -> u64 {
    caller & u64::from(u32::MAX)
}

/// Adds a caller to those that are known, which are in order and `most` at most: beyond that, networks take turns, see [`last_in_turn`].
pub(crate) fn add(callers: &mut Vec<u64>, caller: u64, most: usize) {
    if let Err(place) = callers.binary_search(&caller) {
        callers.insert(place, caller);
        if callers.len() > most
            && let Some(last) = last_in_turn(callers.iter().copied())
        {
            callers.remove(last);
        }
    }
}

/// The place of the caller that gives way where there is no room for all: networks take turns, each with its smallest number first, and the
/// last one of the longest turn goes. So the callers of one network, however many, displace those of no other; and what stays does not
/// depend on the order in which callers come.
pub(super) fn last_in_turn(callers: impl Iterator<Item = u64>) -> Option<usize> {
    let numbered = callers.enumerate().map(|(place, caller)| (network_of(caller), caller, place));
    let mut by_network: Vec<(u64, u64, usize)> = numbered.collect();
    by_network.sort_unstable();
    let (mut last, mut before, mut turn) = (None, None, 0_usize);
    for (network, caller, place) in by_network {
        turn = if before == Some(network) { turn.saturating_add(1) } else { 0 };
        before = Some(network);
        last = last.max(Some((turn, caller, place)));
    }
    last.map(|(_, _, place)| place)
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

    /// Whether a caller is among them.
    pub(super) fn contains(&self, caller: u64) -> bool {
        self.known.contains(&caller)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_takes_no_place_that_another_needs() {
        // The numbers of the flood are smaller than all others.
        let flood = (0..5_000_u64).map(|number| number << 32 | 666);
        let others = (0..6_u64).map(|network| (9_000 + network) << 32 | network);
        let mut all: Vec<u64> = flood.chain(others.clone()).collect();
        let kept = |all: &[u64]| {
            let mut callers = Vec::new();
            all.iter().for_each(|caller| add(&mut callers, *caller, 16));
            callers
        };
        let first = kept(&all);
        assert!(first.len() == 16 && first.is_sorted() && others.clone().all(|one| first.contains(&one)), "{first:x?}");
        all.reverse();
        assert_eq!(kept(&all), first, "in whatever order they come");
        assert_eq!(kept(&[7 << 32, 3 << 32, 7 << 32]), [3 << 32, 7 << 32]);
    }
}
