//! What the VMs of one gateway share.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::abi::Status;
use super::clusters::Delivery;

/// The most messages that wait in one queue; the gateway has no bound, this host's memory has.
const MAX_QUEUED: usize = 100_000;

/// A gateway's shared side: clock, randomness, shared data, queues and metrics. Clones are the same node.
#[derive(Debug, Clone)]
pub struct Node {
    inner: Arc<Mutex<Inner>>,
    id: Arc<str>,
}

/// A metric's kind and value. A histogram keeps the sum of what was recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Metric {
    /// 0 for a counter, 1 for a gauge, 2 for a histogram.
    pub kind: u32,
    /// Its value.
    pub value: i64,
}

#[derive(Debug)]
struct Inner {
    /// Nanoseconds since the Unix epoch.
    now: u64,
    random: u64,
    shared: HashMap<Vec<u8>, (Vec<u8>, u32)>,
    next_cas: u32,
    queues: Vec<Queue>,
    metrics: Vec<(String, Metric)>,
    workers: u32,
    mail: VecDeque<(u32, Mail)>,
    filter_state: BTreeMap<String, Vec<u8>>,
}

#[derive(Debug)]
struct Queue {
    name: Vec<u8>,
    messages: VecDeque<Vec<u8>>,
    /// The worker that registered it last: the gateway wakes no other.
    listener: u32,
}

/// What one worker has for another.
#[derive(Debug)]
pub(crate) enum Mail {
    /// Something came into a queue.
    Queue(u32),
    /// A message of a cluster, on a stream or call of the worker, after so many milliseconds.
    Answer(u64, u32, Delivery),
}

impl Node {
    /// A node with this id (`xds.node.id`) and its clock at the given time, in milliseconds since the Unix epoch.
    #[must_use]
    pub fn new(id: &str, now_millis: u64, seed: u64) -> Self {
        let inner = Inner {
            now: now_millis.saturating_mul(1_000_000),
            random: seed,
            shared: HashMap::new(),
            next_cas: 1,
            queues: Vec::new(),
            metrics: Vec::new(),
            workers: 0,
            mail: VecDeque::new(),
            filter_state: BTreeMap::new(),
        };
        Self { inner: Arc::new(Mutex::new(inner)), id: id.into() }
    }

    /// The node's id.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The clock, in milliseconds since the Unix epoch.
    #[must_use]
    pub fn now_millis(&self) -> u64 {
        self.inner().now / 1_000_000
    }

    /// Sets the clock. Timers run when their VM is asked next; see [`super::Vm::advance`] to run them on their way.
    pub fn set_now_millis(&self, millis: u64) {
        self.inner().now = millis.saturating_mul(1_000_000);
    }

    /// Has filters in front of ours set an object of the filter state on every request from now on, such as a fingerprint.
    pub fn set_filter_state(&self, object: &str, value: &[u8]) {
        self.inner().filter_state.insert(object.to_owned(), value.to_vec());
    }

    pub(crate) fn filter_state(&self, object: &str) -> Option<Vec<u8>> {
        self.inner().filter_state.get(object).cloned()
    }

    /// A value of the shared data.
    #[must_use]
    pub fn shared_data(&self, key: &[u8]) -> Option<Vec<u8>> {
        self.inner().shared.get(key).map(|(value, _)| value.clone())
    }

    /// The keys of the shared data, sorted.
    #[must_use]
    pub fn shared_keys(&self) -> Vec<Vec<u8>> {
        let mut keys: Vec<_> = self.inner().shared.keys().cloned().collect();
        keys.sort();
        keys
    }

    /// All metrics by name.
    #[must_use]
    pub fn metrics(&self) -> BTreeMap<String, Metric> {
        self.inner().metrics.iter().cloned().collect()
    }

    pub(crate) fn now_nanos(&self) -> u64 {
        self.inner().now
    }

    pub(crate) fn random(&self, bytes: &mut [u8]) {
        let mut inner = self.inner();
        for chunk in bytes.chunks_mut(8) {
            // SplitMix64.
            inner.random = inner.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mixed = (inner.random ^ (inner.random >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            chunk.copy_from_slice(&(mixed ^ (mixed >> 31)).to_le_bytes()[..chunk.len()]);
        }
    }

    pub(crate) fn get_shared(&self, key: &[u8]) -> Option<(Vec<u8>, u32)> {
        self.inner().shared.get(key).cloned()
    }

    /// Like the gateway: 0 writes whatever is there, and a first write succeeds with any token.
    /// Whether the value is another one now.
    pub(crate) fn set_shared(&self, key: Vec<u8>, value: Vec<u8>, cas: u32) -> Result<bool, Status> {
        let mut inner = self.inner();
        if cas != 0 && inner.shared.get(&key).is_some_and(|(_, known)| *known != cas) {
            return Err(Status::CasMismatch);
        }
        let token = inner.next_cas;
        inner.next_cas = token.wrapping_add(1).max(1);
        let news = inner.shared.get(&key).is_none_or(|(known, _)| *known != value);
        inner.shared.insert(key, (value, token));
        Ok(news)
    }

    /// The number of a new worker, from 1.
    pub(crate) fn join(&self) -> u32 {
        let mut inner = self.inner();
        inner.workers += 1;
        inner.workers
    }

    /// Leaves something for a worker.
    pub(crate) fn post(&self, worker: u32, mail: Mail) {
        self.inner().mail.push_back((worker, mail));
    }

    /// Takes out the first thing for a worker.
    pub(crate) fn mail(&self, worker: u32) -> Option<Mail> {
        let mail = &mut self.inner().mail;
        let at = mail.iter().position(|(to, _)| *to == worker)?;
        mail.remove(at).map(|(_, mail)| mail)
    }

    /// The id of a queue, which is made where there is none. The worker that asked last is the one that is woken.
    pub(crate) fn register_queue(&self, name: Vec<u8>, worker: u32) -> u32 {
        let known = self.resolve_queue(&name);
        let mut inner = self.inner();
        let at = known.and_then(place).unwrap_or_else(|| {
            inner.queues.push(Queue { name, messages: VecDeque::new(), listener: worker });
            inner.queues.len() - 1
        });
        if let Some(queue) = inner.queues.get_mut(at) {
            queue.listener = worker;
        }
        u32::try_from(at + 1).unwrap_or(u32::MAX)
    }

    pub(crate) fn resolve_queue(&self, name: &[u8]) -> Option<u32> {
        let at = self.inner().queues.iter().position(|queue| queue.name == name)?;
        u32::try_from(at + 1).ok()
    }

    pub(crate) fn enqueue(&self, id: u32, message: Vec<u8>) -> Result<(), Status> {
        let mut inner = self.inner();
        let queue = place(id).and_then(|at| inner.queues.get_mut(at)).ok_or(Status::NotFound)?;
        if queue.messages.len() >= MAX_QUEUED {
            return Err(Status::InternalFailure);
        }
        queue.messages.push_back(message);
        let listener = queue.listener;
        inner.mail.push_back((listener, Mail::Queue(id)));
        Ok(())
    }

    pub(crate) fn dequeue(&self, id: u32) -> Result<Vec<u8>, Status> {
        let mut inner = self.inner();
        let queue = place(id).and_then(|at| inner.queues.get_mut(at)).ok_or(Status::NotFound)?;
        queue.messages.pop_front().ok_or(Status::Empty)
    }

    pub(crate) fn define_metric(&self, kind: u32, name: String) -> u32 {
        let mut inner = self.inner();
        let at = inner.metrics.iter().position(|(known, _)| *known == name).unwrap_or_else(|| {
            inner.metrics.push((name, Metric { kind, value: 0 }));
            inner.metrics.len() - 1
        });
        u32::try_from(at + 1).unwrap_or(u32::MAX)
    }

    /// Changes a metric; the closure gets it.
    pub(crate) fn with_metric<T>(&self, id: u32, change: impl FnOnce(&mut Metric) -> T) -> Result<T, Status> {
        let mut inner = self.inner();
        let at = place(id).ok_or(Status::NotFound)?;
        inner.metrics.get_mut(at).map(|(_, metric)| change(metric)).ok_or(Status::NotFound)
    }

    /// No critical section can leave a value half changed, so a panic in another thread's does no harm.
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Ids start at 1.
fn place(id: u32) -> Option<usize> {
    usize::try_from(id).ok()?.checked_sub(1)
}
