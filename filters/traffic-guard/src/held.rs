//! Requests that a worker has counted and the node has not yet.
//!
//! Far from a surge it does not matter at once whether a key has one request more. A worker keeps a few of them for a short time, so
//! that not every request reads and writes what all workers share.

use std::cell::RefCell;
use std::collections::HashMap;

use crate::pace::{Limits, Moment, Turn};

/// The most keys of which a worker keeps requests.
const MAX_KEYS: usize = 512;
/// The share of what is left until a surge that a worker keeps at most: all workers together keep no surge from being seen.
const SHARE: f64 = 1.0 / 32.0;
/// How long it keeps them, as a part of a bucket.
const PARTS: u32 = 40;

/// What is kept of all keys.
#[derive(Default)]
pub(crate) struct Held(RefCell<HashMap<Vec<u8>, Kept>>);

#[derive(Debug, Clone, Copy)]
struct Kept {
    /// The pace when the node has counted last.
    moment: Moment,
    /// The requests since.
    count: u32,
    /// The most of them.
    most: u32,
    /// The bucket of all of them.
    bucket: u64,
    /// When the node counts them, in milliseconds.
    until: u64,
}

/// Requests that the node counts now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Due {
    /// How many.
    pub(crate) count: u32,
    /// The bucket that they came in.
    pub(crate) bucket: u64,
}

impl Held {
    /// Keeps requests of a key, if it may: the pace with them. Otherwise what was kept of the key is due.
    pub(crate) fn keep(&self, key: &[u8], by: u32, limits: &Limits, now: u64) -> Result<Moment, Option<Due>> {
        let Ok(mut keys) = self.0.try_borrow_mut() else { return Err(None) };
        let Some(kept) = keys.get_mut(key) else { return Err(None) };
        let more = kept.count.saturating_add(by);
        let in_time = now < kept.until && limits.bucket(now) == kept.bucket;
        if !in_time || more > kept.most {
            let due = Due { count: kept.count, bucket: kept.bucket };
            kept.count = 0;
            return Err((due.count > 0).then_some(due));
        }
        kept.count = more;
        let mut moment = kept.moment;
        moment.pace.count = moment.pace.count.saturating_add(more);
        Ok(moment)
    }

    /// The node has counted a key: how many requests may be kept from now on.
    pub(crate) fn counted(&self, key: &[u8], moment: &Moment, limits: &Limits, now: u64) {
        let Ok(mut keys) = self.0.try_borrow_mut() else { return };
        // A cast of a float saturates.
        let most = ((moment.threshold - f64::from(moment.pace.count)) * SHARE) as u32;
        if moment.pace.since != 0 || most == 0 {
            keys.remove(key);
            return;
        }
        let bucket = limits.bucket(now);
        if keys.len() >= MAX_KEYS && !keys.contains_key(key) {
            // Of keys without a request for a while little is kept, and a surge is far: it is left out.
            keys.retain(|_, kept| kept.bucket == bucket);
            if keys.len() >= MAX_KEYS {
                return;
            }
        }
        let until = now.saturating_add(u64::from(limits.millis / PARTS));
        let kept = Kept { moment: Moment { turn: Turn::None, ..*moment }, count: 0, most, bucket, until };
        match keys.get_mut(key) {
            Some(known) => *known = kept,
            None => drop(keys.insert(key.to_vec(), kept)),
        }
    }

    /// All that the node has to count because of the time.
    pub(crate) fn take_due(&self, now: u64) -> Vec<(Vec<u8>, Due)> {
        let Ok(mut keys) = self.0.try_borrow_mut() else { return Vec::new() };
        let mut due = Vec::new();
        keys.retain(|key, kept| {
            if now >= kept.until && kept.count > 0 {
                due.push((key.clone(), Due { count: kept.count, bucket: kept.bucket }));
            }
            now < kept.until
        });
        due
    }
}
