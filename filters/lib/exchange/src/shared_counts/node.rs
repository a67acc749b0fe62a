//! What all workers of a node know of the others, and what each of them keeps beside it.

use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeSet, VecDeque};
use std::rc::Rc;

use node_state::{ClusterKey, SharedData, edit};
use snapshot::{CountGroup, Topic};

use super::groups::{self, Groups};
use super::link::Walk;
use super::{Shared, Table};
use crate::{Ask, Host, Metric, Question};

/// The key of [`Cluster`] in shared data.
const CLUSTER: &str = "svc.counts";
/// The most changes of a worker that wait for the link.
pub(super) const MAX_CHANGES: usize = 8192;
/// How long a worker believes its copy of [`Cluster`], in milliseconds.
const COPY_MILLIS: u64 = 1000;
/// By how much the clock of the node may be off before slices follow the control plane's, in milliseconds.
const CLOCK_MILLIS: i64 = 1000;

/// What a node knows of the cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cluster {
    key: [u8; ClusterKey::BYTES],
    /// The key is that of all nodes, and no longer the node's own.
    pub(super) joined: bool,
    /// The control plane's clock is ahead by so many milliseconds.
    ahead: i64,
    /// Drawn by the first worker of the gateway.
    pub(super) incarnation: u64,
    /// The process of the control plane that has all counts of this node.
    pub(super) told: u64,
}

/// What one worker keeps.
#[derive(Default)]
pub(super) struct Worker {
    copy: Cell<Option<(Cluster, u64)>>,
    pub(super) groups: RefCell<Groups>,
    pub(super) changes: RefCell<Changes>,
    early: RefCell<Early>,
    /// The process of the control plane that this worker has a link to.
    pub(super) instance: Cell<Option<u64>>,
    /// The control plane does not know all groups of the node yet.
    pub(super) introduces: Cell<bool>,
    pub(super) walk: RefCell<Option<Walk>>,
    /// What the control plane has not taken yet.
    pub(super) sent: RefCell<Sent>,
    id: Cell<u64>,
}

/// What was counted before the node had the secret of all nodes: it is counted again under the secret.
#[derive(Default)]
pub(super) struct Early {
    counted: VecDeque<Counted>,
    bytes: usize,
}

/// One thing that was counted.
pub(super) struct Counted {
    shared: Rc<Shared>,
    key: Vec<u8>,
    member: Vec<u8>,
    by: u32,
    /// When, in milliseconds since the Unix epoch by the clock of the worker.
    at: u64,
}

/// The most bytes of keys and members that wait for the secret.
const MAX_EARLY_BYTES: usize = 1 << 20;

impl Early {
    /// False if others had to give way, the oldest first.
    fn push(&mut self, counted: Counted) -> bool {
        self.bytes = self.bytes.saturating_add(counted.bytes());
        self.counted.push_back(counted);
        let mut fits = true;
        while self.counted.len() > MAX_CHANGES || self.bytes > MAX_EARLY_BYTES {
            let Some(oldest) = self.counted.pop_front() else { break };
            self.bytes = self.bytes.saturating_sub(oldest.bytes());
            fits = false;
        }
        fits
    }
}

impl Counted {
    fn bytes(&self) -> usize {
        self.key.len().saturating_add(self.member.len())
    }
}

/// Keys that were counted since they were last sent.
#[derive(Default)]
pub(super) struct Changes {
    queue: VecDeque<Change>,
    waiting: BTreeSet<Change>,
    pub(super) dropped: u64,
}

/// Messages on their way, oldest first.
#[derive(Default)]
pub(super) struct Sent {
    /// Of the last message.
    pub(super) number: u64,
    pub(super) messages: VecDeque<(u64, Vec<Change>)>,
    /// The message with the last of all counts of the node, for this process of the control plane.
    pub(super) last_of_all: Option<(u64, u64)>,
}

/// The number of the group, the key, and of a set the member.
pub(super) type Change = (u64, u64, u64);

impl Changes {
    /// False if there is no room.
    pub(super) fn push(&mut self, change: Change) -> bool {
        if self.waiting.contains(&change) {
            return true;
        }
        if self.queue.len() >= MAX_CHANGES {
            self.dropped = self.dropped.saturating_add(1);
            return false;
        }
        self.queue.push_back(change);
        self.waiting.insert(change);
        true
    }

    pub(super) fn pop(&mut self) -> Option<Change> {
        let change = self.queue.pop_front()?;
        self.waiting.remove(&change);
        Some(change)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.queue.is_empty() && self.dropped == 0
    }

    fn clear(&mut self) {
        self.queue.clear();
        self.waiting.clear();
    }
}

impl Worker {
    pub(super) fn of(data: &dyn SharedData) -> Rc<Self> {
        data.memory().beside()
    }

    /// What was sent on a link that has ended may be lost, and is sent again.
    pub(super) fn send_again(&self) {
        let mut sent = self.sent.borrow_mut();
        let mut changes = self.changes.borrow_mut();
        for (_, message) in sent.messages.drain(..) {
            for change in message {
                changes.push(change);
            }
        }
        sent.last_of_all = None;
        *self.walk.borrow_mut() = None;
    }

    /// A number that no other worker of the node has.
    pub(super) fn id(&self, data: &dyn SharedData) -> u64 {
        if self.id.get() == 0 {
            self.id.set(data.random().max(1));
        }
        self.id.get()
    }

    /// What the node knows. The first worker draws its numbers.
    pub(super) fn cluster(&self, data: &dyn SharedData, now: u64) -> Cluster {
        match self.copy.get() {
            Some((cluster, at)) if now.abs_diff(at) < COPY_MILLIS => return cluster,
            _ => {}
        }
        self.change(data, now, |_| {})
    }

    /// Changes what the node knows.
    pub(super) fn change(&self, data: &dyn SharedData, now: u64, change: impl Fn(&mut Cluster)) -> Cluster {
        let (low, high) = (data.random().to_le_bytes(), data.random().to_le_bytes());
        let fresh = || {
            let mut key = [0; ClusterKey::BYTES];
            key.iter_mut().zip(low.iter().chain(&high)).for_each(|(byte, random)| *byte = *random);
            let incarnation = u64::from_le_bytes(low) ^ u64::from_le_bytes(high).rotate_left(32) ^ now;
            Cluster { key, joined: false, ahead: 0, incarnation, told: 0 }
        };
        let edited = edit(data, CLUSTER, |bytes| {
            let before = Cluster::read(bytes);
            let mut cluster = before.unwrap_or_else(fresh);
            change(&mut cluster);
            (cluster, (before != Some(cluster)).then(|| cluster.encode()))
        });
        let copy = self.copy.get().map(|(cluster, _)| cluster);
        let cluster = edited.or(copy).unwrap_or_else(fresh);
        if copy.is_some_and(|copy| copy.key != cluster.key) {
            // Hashes of the key before mean nothing any more.
            self.changes.borrow_mut().clear();
            self.sent.borrow_mut().messages.clear();
        }
        self.copy.set(Some((cluster, now)));
        if cluster.joined {
            self.count_again(data, cluster, now);
        }
        cluster
    }

    /// Counts under the secret of all nodes what was counted before it was there, each at its time.
    fn count_again(&self, data: &dyn SharedData, cluster: Cluster, now: u64) {
        let Early { counted, .. } = std::mem::take(&mut *self.early.borrow_mut());
        for Counted { shared, key, member, by, at } in counted {
            // What has left its window by now would come back as if it were new.
            let CountGroup { slice_millis, slices, .. } = shared.described;
            if now.saturating_sub(at) >= slice_millis.saturating_mul(slices.into()) {
                continue;
            }
            let counted = cluster.time(at);
            let key = cluster.hashes().key(&shared.scope, &key);
            let member = match &shared.table {
                Table::Counts(windows) => {
                    windows.add(data, key, by, counted);
                    0
                }
                Table::Members(sets) => {
                    let member = cluster.member(&shared, key, &member);
                    sets.insert(data, key, member, counted);
                    member
                }
            };
            if let Some(number) = self.number(data, &shared, now) {
                self.changes.borrow_mut().push((number, key, member));
            }
        }
    }

    /// The number of a group; the node knows it from then on. `None` if there are too many that are in use.
    pub(super) fn number(&self, data: &dyn SharedData, shared: &Rc<Shared>, now: u64) -> Option<u64> {
        let met = self.groups.borrow_mut().met(shared, now);
        if let Some((number, true)) = met {
            return Some(number);
        }
        match groups::note(data, &shared.described, now) {
            Some(list) => {
                self.follow(&list, Some(shared), now);
                self.groups.borrow_mut().met(shared, now).map(|(number, _)| number)
            }
            None => met.map(|(number, _)| number),
        }
    }

    /// Takes over the groups that other workers have met.
    pub(super) fn find_groups(&self, data: &dyn SharedData, now: u64) {
        self.follow(&groups::list(data), None, now);
    }

    fn follow(&self, list: &[CountGroup], shared: Option<&Rc<Shared>>, now: u64) {
        let followed = self.groups.borrow_mut().follow(list, shared, now);
        // Others that give way at the control plane are those that are not named then.
        if followed.is_new && shared.is_some() {
            self.introduces.set(true);
        }
        if followed.is_gone {
            // The places of the groups are others now.
            *self.walk.borrow_mut() = None;
        }
    }
}

/// A group on a node, for one operation.
pub(super) struct OnNode<'a> {
    pub(super) data: &'a dyn SharedData,
    /// The time of all nodes, in milliseconds since the Unix epoch.
    pub(super) now: u64,
    pub(super) cluster: Cluster,
    shared: &'a Rc<Shared>,
    worker: Rc<Worker>,
    number: Option<u64>,
}

impl Shared {
    pub(super) fn on<'a>(self: &'a Rc<Self>, host: &'a dyn Host) -> OnNode<'a> {
        let data = host.shared();
        let worker = Worker::of(data);
        let cluster = worker.cluster(data, host.now());
        let number = worker.number(data, self, host.now());
        OnNode { data, now: cluster.time(host.now()), cluster, shared: self, worker, number }
    }
}

impl OnNode<'_> {
    pub(super) fn key(&self, key: &[u8]) -> u64 {
        self.cluster.hashes().key(&self.shared.scope, key)
    }

    pub(super) fn member(&self, key: u64, member: &[u8]) -> u64 {
        self.cluster.member(self.shared, key, member)
    }

    /// A question to the control plane. Before the node has the secret of all nodes it is one that is never sent, because its hashes
    /// would be of other keys.
    pub(super) fn ask<Q: Topic>(&self, question: &Q, millis: u32) -> Ask {
        self.cluster.ask(question, millis)
    }

    /// Notes that a key was counted: the other nodes are to learn of it. `words` are the key, the member of a set, and how much was
    /// counted.
    pub(super) fn changed(&self, host: &dyn Host, (key, member): (u64, u64), words: (&[u8], &[u8], u32)) {
        let noted = if self.cluster.joined {
            self.number.is_some_and(|number| self.worker.changes.borrow_mut().push((number, key, member)))
        } else {
            let (key, member, by) = words;
            let shared = Rc::clone(self.shared);
            let counted = Counted { shared, key: key.to_vec(), member: member.to_vec(), by, at: host.now() };
            self.worker.early.borrow_mut().push(counted)
        };
        if !noted {
            host.count(Metric::CountsDropped);
        }
    }
}

impl Cluster {
    /// See [`OnNode::ask`].
    pub(super) fn ask<Q: Topic>(&self, question: &Q, millis: u32) -> Ask {
        if self.joined {
            return Ask::new(question, millis);
        }
        Ask { question: Question { topic: Cow::Borrowed(""), data: Vec::new() }, millis, body: false }
    }

    pub(super) fn hashes(&self) -> ClusterKey {
        ClusterKey::new(self.key)
    }

    /// The hash of a member; never 0, which stands for all members of a set.
    pub(super) fn member(&self, shared: &Shared, key: u64, member: &[u8]) -> u64 {
        self.hashes().member(&shared.scope, key, member).max(1)
    }

    /// The time of all nodes.
    pub(super) fn time(&self, now: u64) -> u64 {
        now.saturating_add_signed(self.ahead)
    }

    /// Takes over the key and the clock of the control plane; a difference that a slow message explains is left as it is.
    pub(super) fn follow(&mut self, key: &[u8], now_millis: u64, now: u64) {
        if let Ok(key) = key.try_into() {
            (self.key, self.joined) = (key, true);
        }
        if now_millis == 0 {
            return;
        }
        let ahead = i64::try_from(now_millis).unwrap_or(i64::MAX).saturating_sub_unsigned(now);
        if ahead.abs_diff(self.ahead) > CLOCK_MILLIS.unsigned_abs() {
            self.ahead = if ahead.unsigned_abs() > CLOCK_MILLIS.unsigned_abs() { ahead } else { 0 };
        }
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        let (key, rest) = bytes.split_first_chunk::<{ ClusterKey::BYTES }>()?;
        let (joined, rest) = rest.split_first()?;
        let (ahead, rest) = rest.split_first_chunk::<8>()?;
        let (incarnation, rest) = rest.split_first_chunk::<8>()?;
        let told = rest.first_chunk::<8>()?;
        Some(Self {
            key: *key,
            joined: *joined != 0,
            ahead: i64::from_le_bytes(*ahead),
            incarnation: u64::from_le_bytes(*incarnation),
            told: u64::from_le_bytes(*told),
        })
    }

    fn encode(&self) -> Vec<u8> {
        let numbers = [self.ahead.to_le_bytes(), self.incarnation.to_le_bytes(), self.told.to_le_bytes()];
        self.key.iter().copied().chain([u8::from(self.joined)]).chain(numbers.into_iter().flatten()).collect()
    }
}
