//! A node: its links, and what it is to learn.

use std::collections::{BTreeMap, BTreeSet};

use tokio::sync::watch;

use crate::part::By;
use crate::{INTRODUCED_MILLIS, MAX_INCARNATIONS, MAX_PENDING, SPARE_MILLIS};

/// A node.
#[derive(Debug)]
pub(crate) struct Node {
    /// The links of its workers, each with its begin in milliseconds since the Unix epoch; the first gets what is to be learned.
    links: Vec<(u64, u64)>,
    wake: watch::Sender<()>,
    /// The starts of its gateway; the last is the one that runs.
    pub(crate) incarnations: Vec<u64>,
    /// The groups that it counts.
    pub(crate) groups: BTreeMap<u32, Membership>,
    /// What it is to learn: group, key, and member of a set (0 otherwise).
    pub(crate) pending: BTreeSet<(u32, u64, u64)>,
    /// Its parts, the lightest first.
    pub(crate) parts: BTreeSet<Place>,
    pub(crate) units: u64,
}

/// What a node has in a group.
#[derive(Debug, Default)]
pub(crate) struct Membership {
    /// How many parts.
    pub(crate) parts: usize,
    /// When it has last spoken of the group, in milliseconds since the Unix epoch.
    told: u64,
}

/// Where a part is: its rank, group, key, and whose it is.
pub(crate) type Place = ((u8, u64), u32, u64, By);

impl Node {
    pub(crate) fn new() -> Self {
        Self {
            links: Vec::new(),
            wake: watch::Sender::new(()),
            incarnations: Vec::new(),
            groups: BTreeMap::new(),
            pending: BTreeSet::new(),
            parts: BTreeSet::new(),
            units: 0,
        }
    }

    /// Adds a link; what changes when something waits for the node.
    pub(crate) fn link(&mut self, link: u64, now: u64) -> watch::Receiver<()> {
        self.links.push((link, now));
        let mut receiver = self.wake.subscribe();
        receiver.mark_changed();
        receiver
    }

    /// Removes a link.
    pub(crate) fn unlink(&mut self, link: u64) {
        self.links.retain(|(known, _)| *known != link);
    }

    pub(crate) fn has_links(&self) -> bool {
        !self.links.is_empty()
    }

    /// Whether a link gets what is to be learned.
    pub(crate) fn is_served_by(&self, link: u64) -> bool {
        self.links.first().is_some_and(|(first, _)| *first == link)
    }

    /// Notes that the node speaks of a group; whether it does so for the first time.
    pub(crate) fn speaks_of(&mut self, group: u32, now: u64) -> bool {
        let is_new = !self.groups.contains_key(&group);
        self.groups.entry(group).or_default().told = now;
        is_new
    }

    /// The group that gives way to a new one: of those without a part the one that the node has not spoken of for longest. One that it
    /// has just named stays, so that groups do not push out each other in turn.
    pub(crate) fn spare(&self, now: u64) -> Option<u32> {
        let spare = |known: &Membership| known.parts == 0 && now.saturating_sub(known.told) >= SPARE_MILLIS;
        let groups = self.groups.iter().filter(|(_, known)| spare(known));
        groups.min_by_key(|(_, known)| known.told).map(|(group, _)| *group)
    }

    /// Groups without a part that the node does not count any more: its workers name all that they count at the begin of each link, and
    /// these were not named since the first of the links began.
    pub(crate) fn left(&self, now: u64) -> Vec<u32> {
        let began = self.links.iter().map(|(_, began)| *began).min().unwrap_or(u64::MAX);
        if self.has_links() && now.saturating_sub(began) < INTRODUCED_MILLIS {
            return Vec::new();
        }
        let left = |known: &Membership| known.parts == 0 && known.told < began;
        self.groups.iter().filter(|(_, known)| left(known)).map(|(group, _)| *group).collect()
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
