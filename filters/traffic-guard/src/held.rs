//! Requests that a worker has counted and the node has not yet.
//!
//! Far from a surge it does not matter at once whether a key has one request more. A worker keeps a few of them for a short time, so
//! that not every request reads and writes what all workers share.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;

use crate::pace::{Limits, Moment, Turn};

/// The most keys of which a worker keeps requests.
const MAX_KEYS: usize = 2048;
/// The share of what is left until a surge that a worker keeps at most: all workers together keep no surge from being seen.
const SHARE: f64 = 1.0 / 32.0;
/// The share of what a key has already, while its pace is learned: nothing is a surge by then.
const LEARNING_SHARE: f64 = 1.0 / 16.0;
/// The most requests of a caller that is too slow for a record.
const OF_SLOW: u32 = 3;
/// How long it keeps them, as a part of a bucket. A key that is fast has used up its share before.
const PARTS: u32 = 4;

/// What is kept of all keys.
#[derive(Default)]
pub(crate) struct Held {
    keys: RefCell<HashMap<Vec<u8>, Kept>>,
    /// The bucket in which room was last made: a flood of new keys must not go through all of them for each.
    swept: Cell<u64>,
}

#[derive(Debug, Clone, Copy)]
struct Kept {
    /// The pace when the node has counted last; `None` of a caller that is too slow to be watched.
    moment: Option<Moment>,
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
    pub(crate) fn keep(&self, key: &[u8], by: u32, limits: &Limits, now: u64) -> Result<Option<Moment>, Option<Due>> {
        let Ok(mut keys) = self.keys.try_borrow_mut() else { return Err(None) };
        let Some(kept) = keys.get_mut(key) else { return Err(None) };
        let more = kept.count.saturating_add(by);
        let in_time = now < kept.until && limits.bucket(now) == kept.bucket;
        if !in_time || more > kept.most {
            let due = Due { count: kept.count, bucket: kept.bucket };
            kept.count = 0;
            return Err((due.count > 0).then_some(due));
        }
        kept.count = more;
        Ok(kept.moment.map(|mut moment| {
            moment.pace.count = moment.pace.count.saturating_add(more);
            moment
        }))
    }

    /// The node has counted a key: how many requests may be kept from now on.
    pub(crate) fn counted(&self, key: &[u8], moment: Option<&Moment>, limits: &Limits, now: u64) {
        let Ok(mut keys) = self.keys.try_borrow_mut() else { return };
        let most = moment.map_or(OF_SLOW, |moment| most(moment, limits));
        if most == 0 {
            keys.remove(key);
            return;
        }
        let bucket = limits.bucket(now);
        if keys.len() >= MAX_KEYS && !keys.contains_key(key) {
            // Of keys without a request for a while little is kept, and a surge is far: it is left out.
            if self.swept.replace(bucket) != bucket {
                keys.retain(|_, kept| kept.bucket == bucket);
            }
            if keys.len() >= MAX_KEYS {
                return;
            }
        }
        let until = now.saturating_add(u64::from(limits.millis / PARTS));
        let moment = moment.map(|moment| Moment { turn: Turn::None, ..*moment });
        let kept = Kept { moment, count: 0, most, bucket, until };
        match keys.get_mut(key) {
            Some(known) => *known = kept,
            None => drop(keys.insert(key.to_vec(), kept)),
        }
    }

    /// All that the node has to count because of the time.
    pub(crate) fn take_due(&self, now: u64) -> Vec<(Vec<u8>, Due)> {
        let Ok(mut keys) = self.keys.try_borrow_mut() else { return Vec::new() };
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

/// How many requests of a key a worker may keep.
fn most(moment: &Moment, limits: &Limits) -> u32 {
    let pace = &moment.pace;
    let share = match pace.is_learned(limits) {
        true => (moment.threshold - f64::from(pace.count)) * SHARE,
        false => f64::from(pace.count) * LEARNING_SHARE,
    };
    // A cast of a float saturates.
    if pace.since == 0 { share as u32 } else { 0 }
}
