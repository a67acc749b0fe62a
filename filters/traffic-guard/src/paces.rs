//! The paces of all keys, shared by the workers of a node.

use std::cell::{Cell, RefCell};
use std::collections::HashSet;
use std::rc::Rc;

use exchange::Host;
use node_state::{Records, Sketch, edit};

use crate::held::{Due, Held};
use crate::messages::Dimension;
use crate::pace::{BEHIND, LONGEST_IDLE, Limits, Moment, Pace, Turn};
use crate::silence::NodeSilence;

/// The places of a row of the sketch: 2 MiB.
const WIDTH: u32 = 1 << 16;
/// How long the sketch counts, in milliseconds.
const SKETCH_MILLIS: u32 = 10_000;
/// The share of its floor from which on a caller is watched.
const ENTRY: f64 = 0.25;
/// The most dimensions of routes that a worker notes to have seen; of more, it asks the node again.
const MAX_NOTED: usize = 4096;

/// The paces of all keys.
pub(crate) struct Paces {
    limits: Limits,
    records: Records,
    /// Answers for callers that are too slow to have a place among the records.
    sketch: Sketch,
    /// The dimensions of routes that this worker has noted as watched.
    noted: RefCell<HashSet<(u8, Rc<str>)>>,
    /// What the node has still to count.
    held: Held,
    /// When the node had no request at all.
    silence: NodeSilence,
    /// The bucket in which this guard began to work.
    begun: Cell<Option<u64>>,
}

impl Paces {
    pub(crate) fn new(limits: Limits, max_keys: u32) -> Self {
        Self {
            limits,
            records: Records::new("traffic.paces", max_keys, Pace::BYTES + 1, LONGEST_IDLE),
            sketch: Sketch::new("traffic.sketch", WIDTH, SKETCH_MILLIS as u64),
            noted: RefCell::default(),
            held: Held::default(),
            silence: NodeSilence::new(&limits),
            begun: Cell::default(),
        }
    }

    /// The guard is at work: from now on it sees the callers of all its routes, also of those that none has asked for yet.
    pub(crate) fn begin(&self, host: &dyn Host) {
        if self.begun.get().is_none() {
            self.begun.set(Some(self.limits.bucket(host.now())));
        }
    }

    /// Notes since when the node watches callers of a route in a dimension: since the guard is at work, but not for longer than it has
    /// seen such callers at all. A database of networks may come later than the traffic, and then no network was slow before.
    fn note(&self, dimension: Dimension, route: &Rc<str>, host: &dyn Host) {
        let Ok(mut noted) = self.noted.try_borrow_mut() else { return };
        let of_worker = (dimension as u8, Rc::clone(route));
        if noted.contains(&of_worker) {
            return;
        }
        let now = self.limits.bucket(host.now());
        let first = earliest(&self.dimension_key(dimension), now, now, host);
        let since = first.map(|first| first.max(self.begun.get().unwrap_or(now)).min(now));
        let stored = since.and_then(|since| earliest(&self.watched_key(dimension, route), since, now, host));
        // Without the note its callers are unknown, and it is noted another time.
        if stored.is_some() {
            if noted.len() >= MAX_NOTED {
                noted.clear();
            }
            noted.insert(of_worker);
        }
    }

    /// Whether callers of a route were watched for long enough that one without a record is known to have been slow.
    fn is_watched(&self, dimension: Dimension, route: &Rc<str>, host: &dyn Host) -> bool {
        let since = host.shared().get(&self.watched_key(dimension, route)).and_then(|(value, _)| read_number(&value));
        // A silence that outlasts the records has the node begin to watch anew.
        let anew = self.silence.last(&self.limits, host).anew;
        let passed = since.and_then(|since| self.limits.bucket(host.now()).checked_sub(since.max(anew)));
        passed.is_some_and(|passed| passed >= u64::from(self.limits.warmup))
    }

    fn watched_key(&self, dimension: Dimension, route: &str) -> String {
        format!("traffic.watched/{}/{}/{route}", self.limits.millis, dimension as u8)
    }

    fn dimension_key(&self, dimension: Dimension) -> String {
        format!("traffic.seen/{}/{}", self.limits.millis, dimension as u8)
    }

    /// A key with its dimension in front, and the length of its buckets: guards with other buckets count apart. With one pace for both,
    /// each would begin it anew, and a caller of both would never have a pace.
    fn full(&self, dimension: Dimension, key: &[u8]) -> Vec<u8> {
        [&[dimension as u8], self.limits.millis.to_le_bytes().as_slice(), key].concat()
    }

    /// Counts `by` requests of a key; `None` for a caller that is too slow to be watched. `route` is the id of the route of the
    /// requests, `floor` is in requests per second.
    pub(crate) fn count(
        &self,
        (dimension, key): (Dimension, &[u8]),
        (by, route): (u32, &Rc<str>),
        floor: f64,
        host: &dyn Host,
    ) -> Option<Moment> {
        let now = host.now();
        self.begin(host);
        self.silence.heard(&self.limits, host);
        let full = self.full(dimension, key);
        let floor_in_bucket = self.limits.in_bucket(floor);
        let by = match self.held.keep(&full, by, &self.limits, now) {
            Ok(moment) => return moment,
            Err(Some(due)) if due.bucket == self.limits.bucket(now) => by.saturating_add(due.count),
            Err(due) => {
                due.into_iter().for_each(|due| self.settle(&full, due, floor_in_bucket, host));
                by
            }
        };
        let moment = self.count_now((dimension, &full), (by, route), floor, host);
        self.held.counted(&full, moment.as_ref(), &self.limits, now);
        moment
    }

    /// Lets the node count what was held back for long enough, of keys with these floors in requests per second.
    pub(crate) fn settle_all(&self, floor: impl Fn(u8) -> f64, host: &dyn Host) {
        for (key, due) in self.held.take_due(host.now()) {
            let kind = key.first().copied().unwrap_or_default();
            self.settle(&key, due, self.limits.in_bucket(floor(kind)), host);
        }
    }

    /// Far from a threshold this changes no surge. What a worker settles late is no sign of a clock that was put back.
    fn settle(&self, full: &[u8], due: Due, floor: f64, host: &dyn Host) {
        let now = self.limits.bucket(host.now());
        let bucket = due.bucket.clamp(now.saturating_sub(BEHIND), now);
        if self.add((full, None), (due.count, bucket), floor, host).is_none() {
            self.sketch.add(host.shared(), full, due.count, host.now());
        }
    }

    /// The pace of a key without a further request: the buckets that are over are closed. `None` for a key without a record.
    pub(crate) fn look(&self, (dimension, key): (Dimension, &[u8]), floor: f64, host: &dyn Host) -> Option<Moment> {
        let full = self.full(dimension, key);
        let bucket = self.limits.bucket(host.now());
        self.add((&full, None), (0, bucket), self.limits.in_bucket(floor), host)
    }

    fn count_now(
        &self,
        (dimension, full): (Dimension, &[u8]),
        (by, route): (u32, &Rc<str>),
        floor: f64,
        host: &dyn Host,
    ) -> Option<Moment> {
        let (limits, now) = (&self.limits, host.now());
        let (bucket, in_bucket) = (limits.bucket(now), limits.in_bucket(floor));
        let add = |first| self.add((full, first), (by, bucket), in_bucket, host);
        if dimension == Dimension::Route {
            // There are as many as operators have made: each has a record, and learns its pace before anything is a surge.
            return add(Some(Pace::new(limits, bucket, 0, false)));
        }
        self.note(dimension, route, host);
        if let Some(moment) = add(None) {
            return Some(moment);
        }
        let entry = (floor * ENTRY * f64::from(SKETCH_MILLIS) / 1000.0).max(1.0);
        let counted = self.sketch.add(host.shared(), full, by, now).total;
        if f64::from(counted) < entry {
            return None;
        }
        // It was too slow until now, so this is all that it can have had in this bucket. A cast of a float saturates.
        let so_far = (in_bucket * ENTRY) as u32;
        add(Some(Pace::new(limits, bucket, so_far, self.is_watched(dimension, route, host))))
    }

    /// Counts requests of a key with its dimension in front. A key without a record gets `first`; `None` if there is none either.
    fn add(
        &self,
        (key, first): (&[u8], Option<Pace>),
        (by, bucket): (u32, u64),
        floor: f64,
        host: &dyn Host,
    ) -> Option<Moment> {
        let (limits, now) = (&self.limits, host.now());
        let kind = key.first().copied().unwrap_or_default();
        let idle = match kind == Dimension::Route as u8 {
            true => LONGEST_IDLE,
            false => limits.idle_buckets().saturating_mul(u64::from(limits.millis)),
        };
        let (until, silence) = (now.saturating_add(idle), self.silence.last(limits, host));
        let updated = self.records.update(host.shared(), key, now, weight, |known| {
            let known = known.and_then(|value| Pace::decode(value.split_first()?.1)).or(first);
            let Some(pace) = known else { return (None, None) };
            let moment = pace.add_after(&silence, (by, bucket), limits, floor);
            (Some(moment), Some(([&[kind], moment.pace.encode().as_slice()].concat(), until)))
        });
        // What was not stored is told by the next request.
        updated.result.map(|moment| if updated.lost { Moment { turn: Turn::None, ..moment } } else { moment })
    }
}

/// What a record counts against others for a place: routes never give way to callers.
fn weight(record: &[u8]) -> u64 {
    match record.split_first() {
        Some((kind, _)) if *kind == Dimension::Route as u8 => u64::MAX,
        Some((_, pace)) => Pace::decode(pace).map_or(0, |pace| pace.weight()),
        None => 0,
    }
}

/// Keeps the earlier of a bucket and the one that all workers share under a key, which is none that is still to come: the one that stands.
fn earliest(key: &str, bucket: u64, now: u64, host: &dyn Host) -> Option<u64> {
    edit(host.shared(), key, |known| {
        let known = read_number(known);
        let stands = known.filter(|known| *known <= now).map_or(bucket, |known| known.min(bucket));
        (stands, (known != Some(stands)).then(|| stands.to_le_bytes().to_vec()))
    })
}

fn read_number(bytes: &[u8]) -> Option<u64> {
    bytes.first_chunk().map(|number| u64::from_le_bytes(*number))
}
