//! Crawlers that wait for their verification.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::IpAddr;

use crate::asking::network;
use crate::read_key;

/// The most that wait, of all gateways together. Gateways ask again for what is dropped.
const MAX_WAITING: usize = 4_096;
/// The most of one network (/24, /48) that wait and run, and that run at once: who owns a network decides how long each takes.
const MAX_OF_NETWORK: usize = 16;
const MAX_RUNNING_OF_NETWORK: usize = 2;

/// Those that wait and those that run.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    /// In front are those that were verified before: a flood of new ones must not make them unknown.
    known: VecDeque<Vec<u8>>,
    new: VecDeque<Vec<u8>>,
    /// All that wait or run.
    all: BTreeSet<Vec<u8>>,
    networks: BTreeMap<Vec<u8>, OfNetwork>,
    /// How many were dropped.
    pub(super) dropped: u64,
}

#[derive(Debug, Default)]
struct OfNetwork {
    all: usize,
    running: usize,
}

impl Waiting {
    /// Takes a key in, unless it is there, or too many are. `known` for one that was verified before.
    pub(super) fn add(&mut self, key: &[u8], address: IpAddr, known: bool) {
        if self.all.contains(key) {
            return;
        }
        let of_network = self.networks.get(&network(address)).map_or(0, |network| network.all);
        let full = if known { self.known.len() >= MAX_WAITING } else { self.new.len() >= MAX_WAITING };
        if full || of_network >= MAX_OF_NETWORK {
            self.dropped = self.dropped.saturating_add(1);
            return;
        }
        self.networks.entry(network(address)).or_default().all += 1;
        self.all.insert(key.to_vec());
        if known { &mut self.known } else { &mut self.new }.push_back(key.to_vec());
    }

    /// The next one to verify. Those of a network of which enough run go to the end of the line.
    pub(super) fn next(&mut self) -> Option<Vec<u8>> {
        let Self { known, new, networks, .. } = self;
        for line in [known, new] {
            for _ in 0..line.len() {
                let key = line.pop_front()?;
                let network = read_key(&key).map(|(_, address)| network(address)).unwrap_or_default();
                let network = networks.entry(network).or_default();
                if network.running < MAX_RUNNING_OF_NETWORK {
                    network.running += 1;
                    return Some(key);
                }
                line.push_back(key);
            }
        }
        None
    }

    /// A verification that has begun is over.
    pub(super) fn ended(&mut self, key: &[u8]) {
        self.all.remove(key);
        let Some(network) = read_key(key).map(|(_, address)| network(address)) else { return };
        if let Some(of) = self.networks.get_mut(&network) {
            of.all = of.all.saturating_sub(1);
            of.running = of.running.saturating_sub(1);
            if of.all == 0 {
                self.networks.remove(&network);
            }
        }
    }

    /// How many wait.
    pub(super) fn len(&self) -> usize {
        self.known.len() + self.new.len()
    }
}
