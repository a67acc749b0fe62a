//! What goes up the node link, and what comes down.

use node_state::{Holder, Lease, SharedData};
use snapshot::{CountBatch, CountsDown, CountsUp};

use super::node::{Change, Cluster, Worker};
use super::{Shared, Table};

/// How much goes up at once: well below what a worker may take from its requests.
const KEYS: usize = 1000;
const BYTES: usize = 64 * 1024;
/// The most messages on their way: a control plane that does not keep up is sent no more.
const MESSAGES: usize = 16;
/// The worker that sends all counts of the node to a new process of the control plane.
const TELLER: Lease = Lease { name: "svc.counts.teller", millis: 10_000 };

/// How far all counts of the node were sent.
#[derive(Debug, Clone, Copy)]
pub(super) struct Walk {
    /// To which process of the control plane.
    instance: u64,
    group: usize,
    part: u32,
}

/// Takes what the control plane sent on the worker's link. The first message of a link has the key of all nodes.
pub fn learn(data: &dyn SharedData, down: &CountsDown, now: u64) {
    let worker = Worker::of(data);
    let cluster = worker.change(data, now, |cluster| cluster.follow(&down.key, down.now_millis, now));
    if !down.key.is_empty() {
        worker.send_again();
        worker.instance.set(Some(down.instance));
        worker.introduces.set(true);
    }
    taken(&worker, data, down.taken, now);
    for batch in &down.batches {
        let Some(described) = &batch.group else { continue };
        let find = || worker.groups.borrow().iter().find(|known| known.described == *described).cloned();
        let shared = find().or_else(|| {
            worker.find_groups(data, now);
            find()
        });
        if let Some(shared) = shared {
            shared.learn(data, batch, cluster.time(now));
        }
    }
}

/// The control plane has taken the messages up to this number.
fn taken(worker: &Worker, data: &dyn SharedData, number: u64, now: u64) {
    let mut sent = worker.sent.borrow_mut();
    while sent.messages.pop_front_if(|(first, _)| *first <= number).is_some() {}
    let Some((instance, _)) = sent.last_of_all.take_if(|(_, last)| *last <= number) else { return };
    drop(sent);
    worker.change(data, now, |cluster| cluster.told = instance);
    TELLER.release(data, worker.id(data), now);
}

/// The worker's link has ended.
pub fn lost(data: &dyn SharedData) {
    let worker = Worker::of(data);
    worker.instance.set(None);
    worker.send_again();
}

/// Whether something waits that is worth a link.
#[must_use]
pub fn wait(data: &dyn SharedData) -> bool {
    let worker = Worker::of(data);
    worker.introduces.get() || !worker.changes.borrow().is_empty()
}

/// What goes up next on a link that is open; a bounded part of what waits, `None` if nothing does.
#[must_use]
pub fn news(data: &dyn SharedData, now: u64) -> Option<CountsUp> {
    let worker = Worker::of(data);
    let instance = worker.instance.get()?;
    if worker.sent.borrow().messages.len() >= MESSAGES {
        return None;
    }
    let cluster = worker.cluster(data, now);
    let mut news = News { up: CountsUp { incarnation: cluster.incarnation, ..CountsUp::default() }, ..News::default() };
    if worker.introduces.replace(false) {
        // Those of other workers as well: the node is taken to count no group that is not named.
        worker.find_groups(data, now);
        news.up.batches = worker.groups.borrow().iter().map(|shared| shared.batch()).collect();
    }
    tell_changes(&worker, data, cluster.time(now), &mut news);
    let last = cluster.told != instance && tell_all(&worker, data, (instance, now), cluster, &mut news);
    let News { mut up, changes, .. } = news;
    if up.batches.is_empty() && up.dropped == 0 && !last {
        return None;
    }
    let mut sent = worker.sent.borrow_mut();
    sent.number = sent.number.saturating_add(1);
    up.number = sent.number;
    if last {
        sent.last_of_all = Some((instance, up.number));
    }
    sent.messages.push_back((up.number, changes));
    Some(up)
}

/// A message could not be sent: what it has is sent again.
pub fn put_back(data: &dyn SharedData, up: &CountsUp) {
    let worker = Worker::of(data);
    worker.introduces.set(true);
    worker.send_again();
    let mut changes = worker.changes.borrow_mut();
    changes.dropped = changes.dropped.saturating_add(up.dropped);
}

/// A message that is made.
#[derive(Default)]
struct News {
    up: CountsUp,
    changes: Vec<Change>,
    bytes: usize,
}

impl News {
    fn has_room(&self) -> bool {
        self.changes.len() < KEYS && self.bytes < BYTES
    }

    /// Adds what the node has of a key.
    fn tell(&mut self, shared: &Shared, data: &dyn SharedData, change: Change, now: u64) {
        let (_, key, member) = change;
        let known = |batch: &CountBatch| batch.group.as_ref() == Some(&shared.described);
        let place = self.up.batches.iter().position(known).unwrap_or_else(|| {
            self.up.batches.push(shared.batch());
            self.up.batches.len().saturating_sub(1)
        });
        if let Some(batch) = self.up.batches.get_mut(place) {
            self.bytes = self.bytes.saturating_add(shared.tell(data, (key, member), now, batch));
        }
        self.changes.push(change);
    }
}

fn tell_changes(worker: &Worker, data: &dyn SharedData, now: u64, news: &mut News) {
    let mut changes = worker.changes.borrow_mut();
    news.up.dropped = std::mem::take(&mut changes.dropped);
    let groups = worker.groups.borrow();
    while news.has_room() {
        let Some(change) = changes.pop() else { return };
        // What was counted in one that has given way has left its window.
        if let Some(shared) = groups.get(change.0) {
            news.tell(shared, data, change, now);
        }
    }
}

/// A new process of the control plane knows nothing: one worker sends it all counts of the node, part by part. Whether this is the
/// last part.
fn tell_all(
    worker: &Worker,
    data: &dyn SharedData,
    (instance, now): (u64, u64),
    cluster: Cluster,
    news: &mut News,
) -> bool {
    if !matches!(TELLER.hold(data, worker.id(data), now), Holder::This { .. }) {
        return false;
    }
    if worker.sent.borrow().last_of_all.is_some() {
        return false;
    }
    let begun = (*worker.walk.borrow()).filter(|walk| walk.instance == instance);
    let mut at = begun.unwrap_or_else(|| {
        worker.find_groups(data, now);
        Walk { instance, group: 0, part: 0 }
    });
    let groups = worker.groups.borrow();
    let time = cluster.time(now);
    // Empty parts cost a read each.
    let mut reads = KEYS;
    while news.has_room() && reads > 0 {
        let Some((number, shared)) = groups.at(at.group) else {
            *worker.walk.borrow_mut() = None;
            return true;
        };
        let (keys, parts) = match &shared.table {
            Table::Counts(windows) => (windows.keys(data, at.part, time), windows.parts()),
            Table::Members(sets) => (sets.keys(data, at.part, time), sets.parts()),
        };
        keys.into_iter().for_each(|key| news.tell(shared, data, (number, key, 0), time));
        reads = reads.saturating_sub(1);
        at.part = at.part.saturating_add(1);
        if at.part >= parts {
            (at.group, at.part) = (at.group.saturating_add(1), 0);
        }
    }
    *worker.walk.borrow_mut() = Some(at);
    false
}
