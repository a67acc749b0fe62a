//! A node: its links, and what it is to learn.

use std::collections::BTreeSet;

use tokio::sync::watch;

use crate::part::By;
use crate::{MAX_INCARNATIONS, MAX_PENDING};

/// A node.
#[derive(Debug)]
pub(crate) struct Node {
    /// The links of its workers; the first gets what is to be learned.
    pub(crate) links: Vec<u64>,
    wake: watch::Sender<()>,
    /// The starts of its gateway; the last is the one that runs.
    pub(crate) incarnations: Vec<u64>,
    /// The groups that it counts.
    pub(crate) groups: BTreeSet<u32>,
    /// What it is to learn: group, key, and member of a set (0 otherwise).
    pub(crate) pending: BTreeSet<(u32, u64, u64)>,
    /// Its parts, the lightest first.
    pub(crate) parts: BTreeSet<Place>,
    pub(crate) units: u64,
}

/// Where a part is: its rank, group, key, and whose it is.
pub(crate) type Place = ((u8, u64), u32, u64, By);

impl Node {
    pub(crate) fn new() -> Self {
        Self {
            links: Vec::new(),
            wake: watch::Sender::new(()),
            incarnations: Vec::new(),
            groups: BTreeSet::new(),
            pending: BTreeSet::new(),
            parts: BTreeSet::new(),
            units: 0,
        }
    }

    /// Adds a link; what changes when something waits for the node.
    pub(crate) fn link(&mut self, link: u64) -> watch::Receiver<()> {
        self.links.push(link);
        let mut receiver = self.wake.subscribe();
        receiver.mark_changed();
        receiver
    }

    /// Notes that the node is to learn something; false if too much waits.
    pub(crate) fn is_to_learn(&mut self, what: (u32, u64, u64)) -> bool {
        // Without a link it has nothing that could be out of date: it gets all of it with its counts.
        if self.links.is_empty() {
            return true;
        }
        if self.pending.len() >= MAX_PENDING && !self.pending.contains(&what) {
            return false;
        }
        if self.pending.insert(what) {
            self.wake.send_replace(());
        }
        true
    }

    /// Wakes the links.
    pub(crate) fn wake(&self) {
        self.wake.send_replace(());
    }

    /// Notes a start of the gateway; the one whose counts are to be forgotten, if there are too many.
    pub(crate) fn starts(&mut self, incarnation: u64) -> Option<u64> {
        if self.incarnations.contains(&incarnation) {
            return None;
        }
        self.incarnations.push(incarnation);
        (self.incarnations.len() > MAX_INCARNATIONS).then(|| self.incarnations.remove(0))
    }
}
