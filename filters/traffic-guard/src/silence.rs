//! Times in which a node had no request at all, as in an outage or behind a load balancer that has taken it out.
//!
//! No caller was slow then: what is usual stands still meanwhile, so that the traffic of before is no surge when it comes back.

use std::cell::Cell;

use exchange::Host;
use node_state::edit;

use crate::pace::{BEHIND, Limits};

/// The last silence of a node, in numbers of buckets.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Silence {
    /// The newest bucket with a request.
    last: u64,
    /// The last bucket with a request before the silence, and the first one behind it; the same without a silence.
    from: u64,
    until: u64,
    /// How many times stray requests have come in the silence: they are a part of it.
    strays: u64,
    /// There was steady traffic before the silence. A small site has nothing but stray requests.
    after_traffic: bool,
    /// The first bucket behind the newest silence in which the records of callers have ended; 0 for none. What is known of callers is
    /// known since then.
    pub(crate) anew: u64,
}

/// The silence that all workers of the node know of.
pub(crate) struct NodeSilence {
    /// Its key in shared data: guards with other buckets have another one.
    key: String,
    known: Cell<Silence>,
}

impl Silence {
    /// A node whose first request is in a bucket.
    fn begin(bucket: u64) -> Self {
        Self { last: bucket, from: bucket, until: bucket, ..Self::default() }
    }

    /// The same with a request in a bucket. More than `warmup` buckets without one are a silence. Stray requests, at most `warmup` times,
    /// do not end it.
    fn with(self, bucket: u64, limits: &Limits) -> Self {
        let least = u64::from(limits.warmup);
        if self.last.saturating_sub(bucket) > BEHIND {
            // The clock was put back: these numbers come again.
            return Self::begin(bucket);
        }
        if bucket.saturating_sub(self.last) <= least.saturating_add(1) {
            return Self { last: self.last.max(bucket), ..self };
        }
        let steady = self.last.saturating_sub(self.until) > least;
        let goes_on = !steady && self.until > self.from && self.strays < least;
        let silence = if goes_on {
            Self { strays: self.strays.saturating_add(1), ..self }
        } else {
            Self { from: self.last, strays: 0, after_traffic: steady, ..self }
        };
        // The last requests may have been counted a little earlier than they came.
        let forgets = |since: u64| bucket.saturating_sub(since).saturating_add(BEHIND) >= limits.idle_buckets();
        let forgotten = forgets(self.last) || silence.after_traffic && forgets(silence.from);
        let anew = if forgotten { bucket } else { self.anew };
        Self { last: bucket, until: bucket, anew, ..silence }
    }

    /// How many buckets of the silence are behind this one.
    pub(crate) fn behind(&self, bucket: u64) -> u64 {
        self.until.saturating_sub(bucket.max(self.from)).saturating_sub(1)
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        let mut numbers = bytes.as_chunks::<8>().0.iter().map(|number| u64::from_le_bytes(*number));
        let (last, from, until) = (numbers.next()?, numbers.next()?, numbers.next()?);
        let (strays, after_traffic, anew) = (numbers.next()?, numbers.next()? != 0, numbers.next()?);
        Some(Self { last, from, until, strays, after_traffic, anew })
    }

    fn encode(self) -> Vec<u8> {
        let Self { last, from, until, strays, after_traffic, anew } = self;
        [last, from, until, strays, after_traffic.into(), anew].iter().flat_map(|number| number.to_le_bytes()).collect()
    }
}

impl NodeSilence {
    pub(crate) fn new(limits: &Limits) -> Self {
        Self { key: format!("traffic.silence/{}", limits.millis), known: Cell::default() }
    }

    /// Notes a request: the node is told once in a bucket.
    pub(crate) fn heard(&self, limits: &Limits, host: &dyn Host) {
        let (known, bucket) = (self.known.get(), limits.bucket(host.now()));
        if known.last == bucket {
            return;
        }
        let noted = edit(host.shared(), &self.key, |bytes| {
            let before = Silence::read(bytes);
            let after = before.map_or_else(|| Silence::begin(bucket), |before| before.with(bucket, limits));
            (after, (before != Some(after)).then(|| after.encode()))
        });
        // Other workers wrote first: theirs is known with the next bucket.
        self.known.set(noted.unwrap_or(Silence { last: bucket, ..known }));
    }

    /// The last silence. Without a request in this bucket another worker may know more.
    pub(crate) fn last(&self, limits: &Limits, host: &dyn Host) -> Silence {
        let known = self.known.get();
        if known.last == limits.bucket(host.now()) {
            return known;
        }
        let shared = host.shared().get(&self.key).and_then(|(bytes, _)| Silence::read(&bytes));
        shared.unwrap_or(known)
    }
}
