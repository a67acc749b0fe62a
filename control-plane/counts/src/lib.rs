//! What nodes count together: the part of each node, and the sums that the others get.
//!
//! Each node sends what it has counted in each slice of time, as a number and not as an addition, and gets the sums of all
//! others for the keys that it has counted as well. The numbers of a slice only grow, so a message that comes twice or late
//! changes nothing, and after a restart of the control plane all of them come again. Everything is in memory, in bounds, and ends
//! with its window; what a node has counted does not end with its link.
//!
//! A node speaks for itself alone: its part is kept apart from those of others, and has a cap in each slice.

mod group;
mod node;
mod part;
mod state;
#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use snapshot::{COUNT_KEY, CountGroup, CountsDown, CountsUp, KeyCount, KeyMembers};
use tokio::sync::watch;

use self::state::State;

/// How many keys go down in one message: some milliseconds of a worker's time.
pub const KEYS_PER_MESSAGE: usize = 500;
/// The most keys that are taken of one message.
const MAX_KEYS_UP: usize = 8192;
/// How many members of a set count as one key of a message.
const MEMBERS_OF_A_KEY: usize = 32;
/// The most batches that are taken of one message; a worker sends one of each group.
const MAX_BATCHES: usize = 64;
/// How much time is between two sweeps that make room for a group, in milliseconds.
const SWEEP_MILLIS: u64 = 1000;
/// How long a group stays after its node has last named it, before it gives way to a new one of the node, in milliseconds.
const SPARE_MILLIS: u64 = 10_000;
/// Within how long after the begin of a link its worker has named what it counts, in milliseconds.
const INTRODUCED_MILLIS: u64 = 60_000;
/// The most groups of all nodes together, and of one node.
const MAX_GROUPS: (usize, usize) = (256, 32);
/// The most nodes whose counts are kept: as many as the control plane keeps the status of.
const MAX_NODES: usize = 10_000;
/// What all parts take at most, and those of one node: a part of a window takes one, that of a set one more for each four members.
/// Beyond, the lightest part of the node that has most gives way, among those of one weight the one that ends first.
const ROOM: Room = Room { all: 1 << 18, of_node: 1 << 16 };
/// The most changes that wait for one node.
const MAX_PENDING: usize = 1 << 18;
/// Of how many starts of its gateway the counts of one node are kept.
const MAX_INCARNATIONS: usize = 4;

#[derive(Clone, Copy, Debug)]
struct Room {
    all: u64,
    of_node: u64,
}

/// The counts of all nodes.
pub struct Counts {
    state: Mutex<State>,
    key: [u8; COUNT_KEY],
    /// See [`CountsDown::instance`].
    instance: u64,
    clock: Box<dyn Fn() -> u64 + Send + Sync>,
}

/// Who asks, and for which key.
#[derive(Clone, Copy, Debug)]
pub struct Asking<'a> {
    /// The node.
    pub node: &'a str,
    /// See [`CountsUp::incarnation`].
    pub incarnation: u64,
    /// What is counted.
    pub group: &'a CountGroup,
}

impl Counts {
    /// No counts. `key` is the secret of the hashes that nodes have in common, the same for as long as the store is, and `instance`
    /// a number that no earlier process has had. The time, in milliseconds since the Unix epoch, comes from `clock`.
    #[must_use]
    pub fn new(key: [u8; COUNT_KEY], instance: u64, clock: impl Fn() -> u64 + Send + Sync + 'static) -> Self {
        Self { state: Mutex::new(State::new(ROOM)), key, instance, clock: Box::new(clock) }
    }

    /// What a worker is told first.
    #[must_use]
    pub fn greeting(&self) -> CountsDown {
        let (now_millis, key) = ((self.clock)(), self.key.to_vec());
        CountsDown { now_millis, key, instance: self.instance, ..CountsDown::default() }
    }

    /// A link of a node has begun: what changes with each count that the node is to learn. `None` if there are too many nodes.
    pub fn linked(&self, node: &str, link: u64) -> Option<watch::Receiver<()>> {
        self.lock().linked(node, link, (self.clock)())
    }

    /// A link of a node has ended. What was sent on it may be lost: another link of the node gets all of it again.
    pub fn unlinked(&self, node: &str, link: u64) {
        self.lock().unlinked(node, link);
    }

    /// Takes what a node has counted.
    pub fn take(&self, node: &str, up: &CountsUp) {
        self.lock().take(node, up, (self.clock)());
    }

    /// What a node is to learn next, at most [`KEYS_PER_MESSAGE`] keys; `None` if nothing waits, or another link of the node gets it.
    #[must_use]
    pub fn news(&self, node: &str, link: u64) -> Option<CountsDown> {
        let now_millis = (self.clock)();
        let batches = self.lock().news(node, link, KEYS_PER_MESSAGE)?;
        Some(CountsDown { now_millis, batches, ..CountsDown::default() })
    }

    /// Takes a node's own count of a key, and answers the counts of all others. `None` if it cannot be taken: an invalid group, too
    /// many of them, a clock that is far ahead.
    #[must_use]
    pub fn count_now(&self, asking: Asking<'_>, own: &KeyCount) -> Option<KeyCount> {
        let mut state = self.lock();
        let now = (self.clock)();
        let (group, by) = state.taken_by(asking, now)?;
        state.take_count(group, by, own, now)?;
        Some(state.others(group, by, own.key).unwrap_or(KeyCount { key: own.key, ..KeyCount::default() }))
    }

    /// Takes a node's own count of a key of a budget, and answers how much all nodes have taken without asking.
    #[must_use]
    pub fn taken_unasked(&self, asking: Asking<'_>, own: &KeyCount) -> Option<u64> {
        let mut state = self.lock();
        let now = (self.clock)();
        let (group, by) = state.taken_by(asking, now)?;
        state.take_count(group, by, own, now)?;
        Some(state.unasked(group, own.key, now))
    }

    /// Notes what all nodes have taken of a budget by asking: the slices with their sums.
    pub fn note_taken(&self, group: &CountGroup, key: u64, sums: &[(u64, u32)]) {
        let Some(newest) = sums.iter().map(|(slice, _)| *slice).max() else { return };
        let mut counts = vec![0; group.slices as usize + 1];
        for (slice, sum) in sums {
            if let Some(count) = usize::try_from(newest - slice).ok().and_then(|ago| counts.get_mut(ago)) {
                *count = *sum;
            }
        }
        self.lock().note_count(group, &KeyCount { key, newest, counts }, (self.clock)());
    }

    /// Takes a node's own members of a set, and answers those of all nodes.
    #[must_use]
    pub fn members(&self, asking: Asking<'_>, own: &KeyMembers) -> Option<Vec<u64>> {
        let mut state = self.lock();
        let now = (self.clock)();
        let (group, by) = state.taken_by(asking, now)?;
        state.take_members(group, by, own, now);
        Some(state.all_members(group, own.key, now))
    }

    /// Notes which members are in a set by asking, each with the slice in which it was inserted last.
    pub fn note_members(&self, group: &CountGroup, key: u64, members: &[(u64, u64)]) {
        let (members, slices) = members.iter().copied().unzip();
        self.lock().note_members(group, &KeyMembers { key, members, slices }, (self.clock)());
    }

    /// Forgets what has left its window, groups that nodes do not count any more, and nodes that are gone.
    pub fn sweep(&self) {
        self.lock().sweep((self.clock)());
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Counts").field("instance", &self.instance).finish_non_exhaustive()
    }
}
