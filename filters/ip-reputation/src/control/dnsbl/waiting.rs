//! Addresses that wait for their lookup, and those who wait for the outcome.

use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;

use tokio::sync::oneshot;

use super::verdicts::Found;
use crate::{network, verdict_key};

/// The most that wait, of all gateways together. Gateways ask again for what is dropped.
const MAX_WAITING: usize = 4_096;
/// The most of one network (/24, /48) that wait and are looked up.
const MAX_OF_NETWORK: usize = 64;
/// The most that wait for the outcome of one lookup.
const MAX_TOLD: usize = 64;

pub(super) type Tell = oneshot::Sender<Found>;

/// Those that wait and those that are looked up.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    /// In front are those that a request waits for.
    urgent: VecDeque<IpAddr>,
    others: VecDeque<IpAddr>,
    /// All that wait or are looked up, by the key of their verdict.
    all: BTreeMap<Vec<u8>, Vec<Tell>>,
    networks: BTreeMap<Vec<u8>, usize>,
    /// How many were dropped.
    pub(super) dropped: u64,
}

impl Waiting {
    /// Takes an address in, unless too many are there.
    pub(super) fn add(&mut self, address: IpAddr, tell: Option<Tell>) {
        let key = verdict_key(address);
        if let Some(told) = self.all.get_mut(&key) {
            told.extend(tell.filter(|_| told.len() < MAX_TOLD));
            return;
        }
        let line = if tell.is_some() { &mut self.urgent } else { &mut self.others };
        let of_network = self.networks.get(&network(address)).copied().unwrap_or_default();
        if line.len() >= MAX_WAITING || of_network >= MAX_OF_NETWORK {
            self.dropped = self.dropped.saturating_add(1);
            return;
        }
        line.push_back(address);
        self.all.insert(key, tell.into_iter().collect());
        self.networks.insert(network(address), of_network + 1);
    }

    /// The next one to look up.
    pub(super) fn next(&mut self) -> Option<IpAddr> {
        self.urgent.pop_front().or_else(|| self.others.pop_front())
    }

    /// A lookup is over: those who wait for it.
    pub(super) fn ended(&mut self, address: IpAddr) -> Vec<Tell> {
        if let Some(count) = self.networks.get_mut(&network(address)) {
            *count = count.saturating_sub(1);
            if *count == 0 {
                self.networks.remove(&network(address));
            }
        }
        self.all.remove(&verdict_key(address)).unwrap_or_default()
    }

    /// How many wait.
    pub(super) fn len(&self) -> usize {
        self.urgent.len() + self.others.len()
    }
}
