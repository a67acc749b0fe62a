//! The pace of one key: how many requests it has in a bucket, and how many are usual.
//!
//! The usual pace is the average of the closed buckets, in which newer ones count more; while there are few, their mean. Buckets of a surge
//! are left out, so that a flood does not become usual. A pace that varies by chance, such as that of a few people who ask for whole pages at
//! once, has room for that: its usual distance from the average is learned as well.

use crate::silence::Silence;

/// How long a surge lasts before its pace is learned after all, in milliseconds: traffic that has grown for good is no alarm for ever.
const LONGEST_SURGE: u64 = 6 * 3_600_000;
/// By how many buckets a clock may be behind: another worker's, or that of requests which were held back. By more it was put back.
pub(crate) const BEHIND: u64 = 2;
/// How many times its usual distance above the average a bucket is to be expected, and by how much more at most the threshold of a pace that
/// varies is: five times the usual pace is a surge all the same where the factor is 3.
const DISTANCES: f64 = 10.0;
const MOST_ROOM: f64 = 1.65;

/// How many times as long as it is learned a key without a request is kept: by then its usual pace is close to 0.
const IDLE: u64 = 4;
/// The longest that a key without a request is kept, in milliseconds.
pub(crate) const LONGEST_IDLE: u64 = 86_400_000;

/// How paces are learned and judged.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Limits {
    /// How many times the usual pace is a surge.
    pub(crate) factor: f64,
    /// The length of a bucket in milliseconds.
    pub(crate) millis: u32,
    /// Over how many buckets the usual pace is averaged.
    pub(crate) learning: u32,
    /// How many buckets are learned before anything is a surge.
    pub(crate) warmup: u32,
}

/// The pace of one key.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Pace {
    /// The length of its buckets in milliseconds.
    millis: u32,
    /// The number of the bucket that is counted.
    bucket: u64,
    /// The requests in it.
    pub(crate) count: u32,
    /// The requests in the bucket before.
    pub(crate) before: u32,
    /// How many requests in a bucket are usual.
    pub(crate) usual: f64,
    /// How far from that a bucket usually is.
    distance: f64,
    /// How many buckets were learned.
    learned: u32,
    /// The bucket in which a surge began; 0 for none.
    pub(crate) since: u64,
    /// The most requests in a bucket of the surge.
    peak: u32,
    /// What led to the surge was told.
    told: bool,
}

/// A pace with a request.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Moment {
    /// The pace.
    pub(crate) pace: Pace,
    /// Above how many requests in a bucket a surge begins.
    pub(crate) threshold: f64,
    /// What this request has changed.
    pub(crate) turn: Turn,
}

/// What a request changes in a surge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Turn {
    /// Nothing.
    None,
    /// The surge began.
    Begins,
    /// The first whole bucket of the surge is over.
    GoesOn,
    /// The surge is over.
    Ends {
        /// How long it has lasted, in buckets.
        buckets: u64,
        /// The most requests that a bucket of it had.
        peak: u32,
        /// The bucket in which it began.
        since: u64,
    },
}

impl Limits {
    /// The number of the bucket of a time.
    pub(crate) fn bucket(&self, now: u64) -> u64 {
        now / u64::from(self.millis.max(1))
    }

    /// For how many buckets a caller without a request is kept.
    pub(crate) fn idle_buckets(&self) -> u64 {
        let longest = LONGEST_IDLE / u64::from(self.millis.max(1));
        u64::from(self.learning).saturating_mul(IDLE).min(longest)
    }

    /// Requests in a bucket at a pace in requests per second.
    pub(crate) fn in_bucket(&self, per_second: f64) -> f64 {
        per_second * f64::from(self.millis) / 1000.0
    }

    /// Above how many requests in a bucket a surge of a pace begins, where so many are the floor.
    fn threshold(&self, pace: &Pace, floor: f64) -> f64 {
        let steady = (self.factor * pace.usual.max(floor)).max(1.0);
        let expected = pace.usual + DISTANCES * pace.distance;
        steady.max(expected.min(MOST_ROOM * steady))
    }

    /// The share of a new bucket in the average, once enough are learned.
    fn share(&self) -> f64 {
        2.0 / (f64::from(self.learning) + 1.0)
    }
}

impl Pace {
    /// The bytes of an encoded pace.
    pub(crate) const BYTES: usize = 53;

    /// The pace of a key that has had no request so far: in the current bucket, `count` are counted. `history` says whether earlier
    /// ones would have been noticed, so that none is usual.
    pub(crate) fn new(limits: &Limits, bucket: u64, count: u32, history: bool) -> Self {
        let learned = if history { limits.learning.max(limits.warmup) } else { 0 };
        Self { millis: limits.millis, bucket, count, learned, ..Self::default() }
    }

    /// Whether enough was learned for a surge.
    pub(crate) fn is_learned(&self, limits: &Limits) -> bool {
        self.learned >= limits.warmup
    }

    /// Counts requests on a node that was never silent.
    #[cfg(test)]
    pub(crate) fn add(self, by: u32, bucket: u64, limits: &Limits, floor: f64) -> Moment {
        self.add_after(&Silence::default(), (by, bucket), limits, floor)
    }

    /// Counts `by` requests in a bucket. `floor` is the least that is taken for usual, in requests in a bucket; `silence` is when the
    /// node had no request at all.
    pub(crate) fn add_after(
        mut self,
        silence: &Silence,
        (by, bucket): (u32, u64),
        limits: &Limits,
        floor: f64,
    ) -> Moment {
        let mut turn = self.pass(bucket, silence, limits, floor);
        self.count = self.count.saturating_add(by);
        let threshold = limits.threshold(&self, floor);
        if self.since != 0 {
            self.peak = self.peak.max(self.count);
            if !self.told && self.bucket >= self.since.saturating_add(2) {
                self.told = true;
                turn = Turn::GoesOn;
            }
        } else if turn == Turn::None && self.is_learned(limits) && f64::from(self.count) > threshold {
            (self.since, self.peak, self.told, turn) = (self.bucket.max(1), self.count, false, Turn::Begins);
        }
        Moment { pace: self, threshold, turn }
    }

    /// Goes on to a bucket: those before it are closed.
    fn pass(&mut self, bucket: u64, silence: &Silence, limits: &Limits, floor: f64) -> Turn {
        // Buckets of another length would count other numbers, and a clock that was put back far begins anew.
        if self.millis != limits.millis || self.bucket.saturating_sub(bucket) > u64::from(limits.learning) {
            *self = Self::new(limits, bucket, 0, false);
            return Turn::None;
        }
        // Buckets come a second time: what they have counted is no part of them, while what is usual has not changed.
        if self.bucket.saturating_sub(bucket) > BEHIND {
            return self.put_back(bucket);
        }
        // A clock that is a little behind counts into the current bucket.
        let passed = bucket.saturating_sub(self.bucket);
        if passed == 0 {
            return Turn::None;
        }
        let threshold = limits.threshold(self, floor);
        let calm = f64::from(self.count) <= threshold || passed > 1;
        let length = self.bucket.saturating_sub(self.since);
        let is_new_pace = length.saturating_mul(u64::from(limits.millis)) > LONGEST_SURGE;
        let mut turn = Turn::None;
        let in_surge = self.since != 0;
        if in_surge && calm {
            // The bucket that was calm is not one of the surge.
            let buckets = length.saturating_add(u64::from(passed > 1 && f64::from(self.count) > threshold));
            turn = Turn::Ends { buckets, peak: self.peak, since: self.since };
            self.since = 0;
        }
        if !in_surge || is_new_pace || f64::from(self.count) <= threshold {
            self.learn(f64::from(self.count), threshold, limits);
        }
        if silence.anew > self.bucket {
            // By now another pace may be usual, as in the morning after a night: it is learned anew.
            *self = Self::new(limits, bucket, 0, false);
            return turn;
        }
        let silent = silence.behind(self.bucket);
        self.learn_idle(passed.saturating_sub(1).saturating_sub(silent), limits);
        self.before = if passed == 1 { self.count } else { 0 };
        (self.count, self.bucket) = (0, bucket);
        turn
    }

    /// Goes back to a bucket with a clock that was put back. A surge is over: how long it has lasted is not known any more.
    fn put_back(&mut self, bucket: u64) -> Turn {
        let (since, peak) = (self.since, self.peak);
        let buckets = self.bucket.saturating_sub(since);
        (self.bucket, self.count, self.before, self.since) = (bucket, 0, 0, 0);
        if since == 0 { Turn::None } else { Turn::Ends { buckets, peak, since } }
    }

    /// Takes a bucket into the average.
    fn learn(&mut self, count: f64, threshold: f64, limits: &Limits) {
        let count = if self.learned >= limits.warmup { count.min(threshold) } else { count };
        let share = limits.share().max(1.0 / (f64::from(self.learned) + 1.0));
        self.distance += share * ((count - self.usual).abs() - self.distance);
        self.usual += share * (count - self.usual);
        self.learned = self.learned.saturating_add(1);
    }

    /// Takes buckets without a request into the average.
    fn learn_idle(&mut self, buckets: u64, limits: &Limits) {
        let buckets = u32::try_from(buckets).unwrap_or(u32::MAX);
        let until_average = (limits.learning.saturating_add(1) / 2).saturating_sub(self.learned);
        let in_mean = buckets.min(until_average);
        // As long as it is a mean, the shares of zeros multiply to a fraction; the distances add up to nearly a logarithm.
        let (learned, all) = (f64::from(self.learned), f64::from(self.learned) + f64::from(in_mean));
        if in_mean > 0 {
            let grown = (all / learned.max(1.0)).ln().max(0.0);
            self.distance = (self.distance + self.usual * grown) * learned / all;
            self.usual *= learned / all;
        }
        let rest = i32::try_from(buckets.saturating_sub(in_mean)).unwrap_or(i32::MAX);
        if rest > 0 {
            let stays = (1.0 - limits.share()).max(0.0);
            let gone = f64::from(rest) * limits.share() * stays.powi(rest.saturating_sub(1));
            self.distance = self.distance * stays.powi(rest) + self.usual * gone;
            self.usual *= stays.powi(rest);
        }
        self.learned = self.learned.saturating_add(buckets);
    }

    /// How many times the threshold the current bucket, or the one before in a surge, has.
    pub(crate) fn times(&self, threshold: f64) -> f64 {
        f64::from(self.count.max(self.before)) / threshold
    }

    /// What a key counts against others for a place in the table: keys in a surge stay, then those with the highest usual pace.
    pub(crate) fn weight(&self) -> u64 {
        // A cast of a float saturates.
        let usual = (self.usual * 16.0) as u64;
        usual.min(1 << 40) | if self.since == 0 { 0 } else { 1 << 41 }
    }

    /// The pace as bytes, little endian.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let Self { millis, bucket, count, before, usual, distance, learned, since, peak, told } = self;
        let mut bytes = Vec::with_capacity(Self::BYTES);
        for number in [millis, count, before, learned, peak] {
            bytes.extend_from_slice(&number.to_le_bytes());
        }
        for number in [*bucket, usual.to_bits(), distance.to_bits(), *since] {
            bytes.extend_from_slice(&number.to_le_bytes());
        }
        bytes.push(u8::from(*told));
        bytes
    }

    /// Reads a pace; `None` for bytes that are none.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let (small, rest) = bytes.split_first_chunk::<20>()?;
        let (large, told) = rest.split_first_chunk::<32>()?;
        let [told] = told else { return None };
        let mut small = small.as_chunks::<4>().0.iter().map(|number| u32::from_le_bytes(*number));
        let mut large = large.as_chunks::<8>().0.iter().map(|number| u64::from_le_bytes(*number));
        let (millis, count, before) = (small.next()?, small.next()?, small.next()?);
        let (learned, peak) = (small.next()?, small.next()?);
        let (bucket, usual, distance) = (large.next()?, f64::from_bits(large.next()?), f64::from_bits(large.next()?));
        let since = large.next()?;
        let is_number = usual.is_finite() && distance.is_finite() && usual >= 0.0 && distance >= 0.0;
        let pace = Self { millis, bucket, count, before, usual, distance, learned, since, peak, told: *told != 0 };
        is_number.then_some(pace)
    }
}
