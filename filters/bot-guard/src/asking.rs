//! Questions to the control plane about crawlers that have no verdict yet. Nothing waits for them.

use std::cell::Cell;
use std::net::IpAddr;

use exchange::{Host, Table, Update};
use prost::Message as _;

use crate::messages::CrawlerSeen;
use crate::verdict::REPORTS;

/// What this node has asked, by key, and how much it has asked about a network.
const ASKED: Table = Table { name: "svc.crawlers", shards: 1024, entries_per_shard: 48 };
/// How long an answer is waited for before the question is repeated, in milliseconds.
const REPEAT_AFTER: u64 = 30_000;
/// How long the questions about a network are counted, in milliseconds, and how many there are in that time at most: addresses of one
/// network are cheap to get, and must not crowd out others.
const NETWORK_WINDOW: u64 = 10_000;
const NETWORK_QUESTIONS: u8 = 16;
/// The most questions of a worker in a second: what a flood from everywhere costs.
const QUESTIONS_A_SECOND: u32 = 50;

/// The questions of one policy on one worker.
#[derive(Default)]
pub(crate) struct Asking {
    /// The second that is counted, and the questions in it.
    second: Cell<(u64, u32)>,
}

impl Asking {
    /// Asks for the verdict of a key, unless the node has asked already or too much is asked.
    pub(crate) fn ask(&self, key: Vec<u8>, address: IpAddr, host: &dyn Host) {
        let (now, shared) = (host.now(), host.shared());
        let second = now / 1000;
        let count = Some(self.second.get()).filter(|(counted, _)| *counted == second).map_or(0, |(_, count)| count);
        if count >= QUESTIONS_A_SECOND || ASKED.get(shared, &key, now).is_some() {
            return;
        }
        if !has_room(&network(address), now, host) {
            return;
        }
        // What its network has no room for takes nothing from the others.
        self.second.set((second, count.saturating_add(1)));
        // Two workers may have come here at once: one of them asks.
        let mut first = false;
        let noted = ASKED.update(shared, &key, now, |known| {
            first = known.is_none();
            match known {
                Some(_) => Update::Keep,
                None => Update::Put(Vec::new(), now.saturating_add(REPEAT_AFTER)),
            }
        });
        if first && noted.is_ok() {
            host.send_report(REPORTS, CrawlerSeen { key }.encode_to_vec());
        }
    }
}

/// Counts a question about a network; false where there were enough.
fn has_room(network: &[u8], now: u64, host: &dyn Host) -> bool {
    let mut room = false;
    let counted = ASKED.update(host.shared(), network, now, |known| {
        let count = known.and_then(|entry| entry.value.first().copied()).unwrap_or(0);
        let end = known.map_or(now.saturating_add(NETWORK_WINDOW), |entry| entry.expires_at);
        room = count < NETWORK_QUESTIONS;
        if room { Update::Put(vec![count.saturating_add(1)], end) } else { Update::Keep }
    });
    room && counted.is_ok()
}

/// The network of an address, the first three bytes of IPv4 and six of IPv6: shorter than every key of a verdict.
pub(crate) fn network(address: IpAddr) -> Vec<u8> {
    match address.to_canonical() {
        IpAddr::V4(address) => address.octets().into_iter().take(3).collect(),
        IpAddr::V6(address) => address.octets().into_iter().take(6).collect(),
    }
}
