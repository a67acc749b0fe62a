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
    /// The last bucket with a request before the silence, and the first one behind it; 0 for none.
    from: u64,
    until: u64,
    /// The last bucket with any request before its end: a few buckets with stray requests are a part of the silence.
    stray: u64,
}

/// The silence that all workers of the node know of.
pub(crate) struct NodeSilence {
    /// Its key in shared data: guards with other buckets have another one.
    key: String,
    known: Cell<Silence>,
}

impl Silence {
    /// The same with a request in a bucket. More than `least` buckets without one are a silence.
    fn with(self, bucket: u64, least: u64) -> Self {
        let passed = bucket.saturating_sub(self.last);
        if self.last.saturating_sub(bucket) > BEHIND {
            // The clock was put back: these numbers come again.
            Self { last: bucket, ..Self::default() }
        } else if passed > least.saturating_add(1) {
            let goes_on = self.until != 0 && self.last.saturating_sub(self.until) <= least;
            let from = if goes_on { self.from } else { self.last };
            Self { last: bucket, from, until: bucket, stray: self.last }
        } else {
            Self { last: self.last.max(bucket), ..self }
        }
    }

    /// How many buckets of the silence are behind this one.
    pub(crate) fn behind(&self, bucket: u64) -> u64 {
        self.until.saturating_sub(bucket.max(self.from)).saturating_sub(1)
    }

    /// The first bucket behind a silence in which the records of callers have ended; 0 if there was none. Stray requests are none of it: a
    /// small site has nothing else.
    pub(crate) fn forgotten_until(&self, limits: &Limits) -> u64 {
        let passed = self.until.saturating_sub(self.stray);
        // The last requests may have been counted a little earlier than they came.
        let lasts = passed.saturating_add(BEHIND) >= limits.idle_buckets();
        if lasts { self.until } else { 0 }
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        let mut numbers = bytes.as_chunks::<8>().0.iter().map(|number| u64::from_le_bytes(*number));
        Some(Self { last: numbers.next()?, from: numbers.next()?, until: numbers.next()?, stray: numbers.next()? })
    }

    fn encode(self) -> Vec<u8> {
        [self.last, self.from, self.until, self.stray].iter().flat_map(|number| number.to_le_bytes()).collect()
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
            let first = || Silence { last: bucket, ..Silence::default() };
            let after = before.map_or_else(first, |before| before.with(bucket, u64::from(limits.warmup)));
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
