//! The keys that come up most.

use std::cmp::Reverse;

use crate::SharedData;
use crate::cas;
use crate::memory::Losses;

/// The most keys that a ranking is made for.
pub const MAX_RANKS: u16 = 64;

/// The longest key, in bytes: of a longer one, the first 128 bytes are ranked.
pub const MAX_TOP_KEY: usize = 128;

/// The parts of a ranking. A key always falls into the same one, so that workers seldom write the same value at once.
const PARTS: u64 = 8;

/// The keys that came up most, over all workers of the node: clients by errors, paths by requests.
///
/// Each of eight parts keeps `n` keys by the space-saving algorithm: a new key takes the place of the one with the least count,
/// and takes over that count as its possible error. So every key with more than one n-th of the weight of its part is
/// listed, and a count is too large by at most its `error`. Counts halve every `millis`: old weight fades.
///
/// An addition reads and writes up to 10 KB. Where requests are many, sample them: offer one in ten with ten times the weight.
#[derive(Debug, Clone, Copy)]
pub struct Top {
    name: &'static str,
    n: u16,
    millis: u64,
}

/// A key in the bytes of its part.
struct Stored<'a> {
    key: &'a [u8],
    count: u64,
    error: u64,
}

/// A key of a ranking.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ranked {
    /// The key.
    pub key: Vec<u8>,
    /// Its weight, at most.
    pub count: u64,
    /// By how much the count may be too large.
    pub error: u64,
}

impl Top {
    /// A ranking of `n` keys (1 to [`MAX_RANKS`]) whose counts halve every `millis` milliseconds. Values out of bounds are set
    /// to the nearest bound. `name` is the prefix of its keys in shared data, unique on the node.
    #[must_use]
    pub const fn new(name: &'static str, n: u16, millis: u64) -> Self {
        let n = if n == 0 {
            1
        } else if n > MAX_RANKS {
            MAX_RANKS
        } else {
            n
        };
        Self { name, n, millis: if millis == 0 { 1 } else { millis } }
    }

    /// Adds `weight` to the count of `key`. False if that was lost, because other workers wrote first at each of sixteen tries.
    pub fn offer(&self, data: &dyn SharedData, key: &[u8], weight: u32, now: u64) -> bool {
        let key = key.get(..MAX_TOP_KEY).unwrap_or(key);
        let part = data.memory().secret(data).hash(self.name, key) % PARTS;
        let weight = u64::from(weight);
        let edited = cas::edit(data, &self.part(part), |bytes| {
            let (period, mut ranked) = self.read(bytes, now);
            if let Some(known) = ranked.iter_mut().find(|known| known.key == key) {
                known.count = known.count.saturating_add(weight);
            } else if ranked.len() < usize::from(self.n) {
                ranked.push(Stored { key, count: weight, error: 0 });
            } else if let Some(least) = ranked.iter_mut().min_by_key(|ranked| ranked.count) {
                let count = least.count.saturating_add(weight);
                *least = Stored { key, count, error: least.count };
            }
            ((), Some(encode(period, &ranked)))
        });
        data.memory().note(self.name, Losses { lost_updates: u64::from(edited.lost), evicted: 0 });
        !edited.lost
    }

    /// The ranking: at most `n` keys, the largest count first.
    #[must_use]
    pub fn list(&self, data: &dyn SharedData, now: u64) -> Vec<Ranked> {
        let mut ranked = Vec::new();
        for (bytes, _) in (0..PARTS).filter_map(|part| data.get(&self.part(part))) {
            let owned = |Stored { key, count, error }| Ranked { key: key.to_vec(), count, error };
            ranked.extend(self.read(&bytes, now).1.into_iter().map(owned));
        }
        ranked.sort_unstable_by(|one, other| (Reverse(one.count), &one.key).cmp(&(Reverse(other.count), &other.key)));
        ranked.truncate(usize::from(self.n));
        ranked
    }

    fn part(&self, part: u64) -> String {
        format!("{}/{part}", self.name)
    }

    /// The period that the counts are of, and the keys as they are at `now`.
    fn read<'a>(&self, bytes: &'a [u8], now: u64) -> (u64, Vec<Stored<'a>>) {
        let now = now / self.millis;
        let Some((period, rest)) = bytes.split_first_chunk::<8>() else { return (now, Vec::new()) };
        let period = u64::from_le_bytes(*period);
        // Written by a clock that has since been put back: its counts would not fade.
        if period.saturating_sub(now) > 1 {
            return (now, Vec::new());
        }
        let halves = u32::try_from(now.saturating_sub(period)).unwrap_or(u32::MAX);
        let fade = |mut ranked: Stored<'a>| {
            ranked.count = ranked.count.checked_shr(halves).filter(|count| *count > 0)?;
            // Rounded up, so that the error stays a bound.
            let odd = u64::from(halves > 0 && ranked.error > 0);
            ranked.error = ranked.error.checked_shr(halves).unwrap_or(0).saturating_add(odd).min(ranked.count);
            Some(ranked)
        };
        (period.max(now), decode(rest).take(usize::from(self.n)).filter_map(fade).collect())
    }
}

/// The period (u64), then for each key the count, the error (u64 each), the length of the key (u8), the key; little endian.
fn encode(period: u64, ranked: &[Stored<'_>]) -> Vec<u8> {
    let mut bytes = period.to_le_bytes().to_vec();
    for Stored { key, count, error } in ranked {
        let Ok(length) = u8::try_from(key.len()) else { continue };
        bytes.extend_from_slice(&count.to_le_bytes());
        bytes.extend_from_slice(&error.to_le_bytes());
        bytes.push(length);
        bytes.extend_from_slice(key);
    }
    bytes
}

fn decode(mut bytes: &[u8]) -> impl Iterator<Item = Stored<'_>> {
    std::iter::from_fn(move || {
        let (count, rest) = bytes.split_first_chunk::<8>()?;
        let (error, rest) = rest.split_first_chunk::<8>()?;
        let (length, rest) = rest.split_first()?;
        let (key, rest) = rest.split_at_checked(usize::from(*length))?;
        bytes = rest;
        Some(Stored { key, count: u64::from_le_bytes(*count), error: u64::from_le_bytes(*error) })
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::MemorySharedData;
    use crate::testing::{self, Random};

    const NOW: u64 = 1_700_000_000_000;

    fn ranked(key: &[u8], count: u64, error: u64) -> Ranked {
        Ranked { key: key.to_vec(), count, error }
    }

    #[test]
    fn few_keys_are_ranked_exactly_and_fade() {
        let top = Top::new("errors", 3, 1000);
        let data = MemorySharedData::default();
        for (key, weight) in [(b"a", 5), (b"b", 9), (b"c", 1), (b"a", 3), (b"d", 2)] {
            assert!(top.offer(&data, key, weight, NOW));
        }
        assert_eq!(top.list(&data, NOW), [ranked(b"b", 9, 0), ranked(b"a", 8, 0), ranked(b"d", 2, 0)]);
        assert_eq!(top.list(&data, NOW + 1000), [ranked(b"a", 4, 0), ranked(b"b", 4, 0), ranked(b"d", 1, 0)]);
        assert_eq!(top.list(&data, NOW + 3000), [ranked(b"a", 1, 0), ranked(b"b", 1, 0)]);
        assert_eq!(top.list(&data, NOW + 100_000), []);
        assert!(top.offer(&data, b"e", 1, NOW + 100_000));
        assert_eq!(top.list(&data, NOW + 100_000), [ranked(b"e", 1, 0)]);
    }

    #[test]
    fn heavy_keys_are_found_among_very_many_and_counts_are_bounds() {
        let top = Top::new("paths", 64, 3_600_000);
        let data = MemorySharedData::default();
        let mut random = Random(11);
        let mut exact: BTreeMap<u64, u64> = BTreeMap::new();
        for number in 0..200_000_u64 {
            // Each of ten keys has one event in a hundred, every other key one event.
            let drawn = random.below(100);
            let key = if drawn < 10 { drawn } else { 1_000_000 + number };
            *exact.entry(key).or_default() += 1;
            top.offer(&data, &key.to_le_bytes(), 1, NOW);
        }
        let list = top.list(&data, NOW);
        assert_eq!(list.len(), 64);
        for Ranked { key, count, error } in &list {
            let true_count = exact[&u64::from_le_bytes(key.as_slice().try_into().unwrap())];
            assert!(count - error <= true_count && true_count <= *count);
        }
        let first: Vec<&[u8]> = list.iter().map(|ranked| ranked.key.as_slice()).collect();
        for heavy in 0..10_u64 {
            assert!(first.contains(&heavy.to_le_bytes().as_slice()), "{heavy}");
        }
        let largest = (0..PARTS).filter_map(|part| data.get(&top.part(part))).map(|(bytes, _)| bytes.len()).max();
        assert!(largest.unwrap() <= 8 + 64 * (17 + MAX_TOP_KEY));
    }

    #[test]
    fn bounds_hold_while_counts_fade() {
        let top = Top::new("fading", 4, 100);
        for seed in 0..50 {
            let data = MemorySharedData::default();
            let mut random = Random(seed);
            // The weight of each key, halved exactly.
            let mut exact: BTreeMap<u8, f64> = BTreeMap::new();
            let mut now = NOW;
            for _ in 0..1000 {
                let passed = random.below(200) / 190 * 100;
                now += passed;
                if passed > 0 {
                    exact.values_mut().for_each(|weight| *weight /= 2.0);
                }
                let key = random.below(60) as u8;
                let weight = random.below(20) as u32;
                *exact.entry(key).or_default() += f64::from(weight);
                top.offer(&data, &[key], weight, now);
                for Ranked { key, count, error } in top.list(&data, now) {
                    let weight = exact[&key[0]];
                    assert!((count - error) as f64 <= weight, "seed {seed}");
                    // Rounding down loses less than one with each halving, two in all.
                    assert!(weight <= count as f64 + 2.0, "seed {seed}");
                }
            }
        }
    }

    #[test]
    fn long_keys_torn_values_and_clocks_that_are_put_back_are_survived() {
        let data = MemorySharedData::default();
        let top = Top::new("t", 0, 0);
        let long = vec![b'x'; 5000];
        top.offer(&data, &long, 1, NOW);
        assert_eq!(top.list(&data, NOW), [ranked(&long[..MAX_TOP_KEY], 1, 0)]);
        let top = Top::new("u", 2, 1000);
        (0..PARTS).for_each(|part| data.set(&top.part(part), &[0; 40], None).unwrap());
        top.offer(&data, b"k", 4, NOW);
        top.offer(&data, b"k", 4, NOW - 999);
        assert_eq!(top.list(&data, NOW), [ranked(b"k", 8, 0)]);
        top.offer(&data, b"k", 100, NOW + 3_600_000);
        assert_eq!(top.list(&data, NOW), []);
        top.offer(&data, b"k", 1, NOW);
        assert_eq!(top.list(&data, NOW), [ranked(b"k", 1, 0)]);
    }

    #[test]
    fn workers_that_interleave_lose_no_weight_that_they_do_not_report() {
        let top = Top::new("race", 4, 60_000);
        for seed in 0..40 {
            let stored = testing::run(seed, 6, |data, _| {
                let stored = (0..30).filter(|_| top.offer(data, b"k", 2, NOW)).count() as u64;
                (stored, top.list(data, NOW).first().map_or(0, |ranked| ranked.count))
            });
            let sum = stored.iter().map(|(stored, _)| stored * 2).sum();
            assert_eq!(stored.iter().map(|(_, count)| *count).max(), Some(sum), "seed {seed}");
        }
    }
}
