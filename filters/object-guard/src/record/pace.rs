//! How many objects that it has not read lately a consumer reads in a bucket of time, and how many are usual.

use super::bytes::{Reader, Writer};
use crate::messages::SurgeLimits;

/// How long a surge lasts before its pace is learned after all, in seconds: a consumer that has grown for good is no alarm for ever.
const LONGEST_SURGE: u64 = 6 * 3600;

/// The pace of one consumer for one kind.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Pace {
    /// The number of the bucket that is counted.
    bucket: u32,
    /// The objects in it.
    count: u32,
    /// The average of the buckets that had objects; newer ones count more.
    usual: f32,
    /// How many buckets were learned.
    learned: u16,
    /// The bucket in which a surge began; 0 for none.
    since: u32,
}

/// A surge that is on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Surge {
    /// The objects in the current bucket.
    pub(crate) count: u32,
    /// How many are usual; `None` while that is not learned.
    pub(crate) usual: Option<f64>,
    /// Above how many a surge begins.
    pub(crate) threshold: f64,
}

impl Pace {
    /// Goes on to the bucket of a time in seconds; a `new` object is counted.
    pub(crate) fn read(&mut self, new: bool, now: u32, limits: &SurgeLimits) {
        let bucket = now / limits.bucket_seconds.max(1);
        // A clock that was put back far begins anew; one that is a little behind counts into the current bucket.
        if self.bucket.saturating_sub(bucket) > limits.learning.max(1) {
            *self = Self { bucket, ..Self::default() };
        }
        if bucket > self.bucket {
            self.close(bucket, limits);
        }
        self.count = self.count.saturating_add(u32::from(new));
        if self.since == 0 && f64::from(self.count) > self.threshold(limits) {
            self.since = self.bucket.max(1);
        }
    }

    /// The surge that is on.
    pub(crate) fn surge(&self, limits: &SurgeLimits) -> Option<Surge> {
        let usual = self.is_learned(limits).then_some(f64::from(self.usual));
        (self.since != 0).then(|| Surge { count: self.count, usual, threshold: self.threshold(limits) })
    }

    fn close(&mut self, bucket: u32, limits: &SurgeLimits) {
        let calm = f64::from(self.count) <= self.threshold(limits);
        let lasted = u64::from(self.bucket.saturating_sub(self.since)) * u64::from(limits.bucket_seconds);
        if self.since == 0 || calm || lasted > LONGEST_SURGE {
            self.learn(limits);
        }
        // A whole bucket that is calm ends a surge.
        if calm || bucket - self.bucket > 1 {
            self.since = 0;
        }
        (self.bucket, self.count) = (bucket, 0);
    }

    /// Takes the bucket into the average. One without objects says nothing of the pace of a consumer that comes now and then.
    fn learn(&mut self, limits: &SurgeLimits) {
        if self.count == 0 {
            return;
        }
        let learned = f32::from(self.learned);
        let share = (2.0 / (limits.learning.max(1) as f32 + 1.0)).max(1.0 / (learned + 1.0));
        self.usual += share * (self.count as f32 - self.usual);
        self.learned = self.learned.saturating_add(1);
    }

    fn is_learned(&self, limits: &SurgeLimits) -> bool {
        u32::from(self.learned) >= limits.warmup
    }

    fn threshold(&self, limits: &SurgeLimits) -> f64 {
        match self.is_learned(limits) {
            true => (limits.factor * f64::from(self.usual)).max(f64::from(limits.floor)),
            false => f64::from(limits.ceiling),
        }
    }

    pub(crate) fn write(&self, to: &mut Writer) {
        let Self { bucket, count, usual, learned, since } = *self;
        to.u32(bucket);
        to.u32(count);
        to.u32(usual.to_bits());
        to.u16(learned);
        to.u32(since);
    }

    pub(crate) fn read_from(from: &mut Reader<'_>) -> Option<Self> {
        let (bucket, count, usual) = (from.u32()?, from.u32()?, f32::from_bits(from.u32()?));
        let (learned, since) = (from.u16()?, from.u32()?);
        (usual.is_finite() && usual >= 0.0).then_some(Self { bucket, count, usual, learned, since })
    }
}
