//! Counts in a sliding window, one for each key.

use crate::SharedData;
use crate::keyed::{Change, Keyed};

/// The most slices of a window.
pub const MAX_SLICES: u8 = 16;

/// How often something happened within the last minutes or hours, for each key, over all workers of the node.
///
/// The time is cut into slices; a count belongs to the slice in which it was added. A count stays for the length of the
/// window, and for up to one slice more: a client that reaches a limit within any window is always seen. More slices make the
/// window more exact and each key larger (30 bytes, and 4 for each slice).
///
/// When there are more keys than planned for, those with the smallest counts give way ([`WorkerMemory::take_losses`]
/// counts them), so that a client cannot push out its own high count by using many keys.
///
/// A clock that is behind the others by less than a window counts into the newest slice. A clock that was put back by more
/// begins its windows anew.
///
/// [`WorkerMemory::take_losses`]: crate::WorkerMemory::take_losses
#[derive(Debug, Clone, Copy)]
pub struct Windows {
    table: Keyed<'static>,
    /// The length of a slice in milliseconds.
    slice: u64,
    slices: u8,
}

/// A count after an addition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counted {
    /// The count in the window, with what was added.
    pub total: u32,
    /// Whether the addition was not stored, because other workers wrote first at each of sixteen tries. The total contains
    /// it; the next one does not.
    pub lost: bool,
}

/// The newest slice that was counted into, and the counts of the slices, from the newest back.
struct Window {
    newest: u64,
    counts: Vec<u32>,
}

impl Windows {
    /// Windows of `millis` milliseconds in `slices` slices (1 to [`MAX_SLICES`]), with room for `max_keys` keys (1 to
    /// [`MAX_KEYS`](crate::MAX_KEYS)). Values out of bounds are set to the nearest bound. `name` is the prefix of the keys in
    /// shared data, unique on the node (`login.failures`).
    #[must_use]
    pub const fn new(name: &'static str, millis: u64, slices: u8, max_keys: u32) -> Self {
        let slices = if slices == 0 {
            1
        } else if slices > MAX_SLICES {
            MAX_SLICES
        } else {
            slices
        };
        let slice = if millis == 0 { 1 } else { millis.div_ceil(slices as u64) };
        let lifetime = slice.saturating_mul(slices as u64 + 1);
        Self { table: Keyed::new(name, max_keys, 8 + 4 * (slices as usize + 1), lifetime), slice, slices }
    }

    /// Adds `by` to the count of `key`.
    pub fn add(&self, data: &dyn SharedData, key: &[u8], by: u32, now: u64) -> Counted {
        let edited = self.table.update(data, key, now, weight, |value| {
            let mut window = self.read(value.unwrap_or_default(), now);
            if let Some(count) = window.counts.first_mut() {
                *count = count.saturating_add(by);
            }
            (window.total(), Change::Put { value: window.encode(), until: self.end(window.newest) })
        });
        Counted { total: edited.result, lost: edited.lost }
    }

    /// The count of `key`; 0 if nothing was counted.
    #[must_use]
    pub fn get(&self, data: &dyn SharedData, key: &[u8], now: u64) -> u32 {
        self.table.get(data, key, now).map_or(0, |value| self.read(&value, now).total())
    }

    /// Sets the count of `key` to 0, as after a successful login. False if that was lost to other workers.
    pub fn clear(&self, data: &dyn SharedData, key: &[u8], now: u64) -> bool {
        !self.table.update(data, key, now, weight, |_| ((), Change::Remove)).lost
    }

    /// The window as it is at `now`.
    fn read(&self, value: &[u8], now: u64) -> Window {
        let now = now / self.slice;
        let length = usize::from(self.slices) + 1;
        let stored = value.split_first_chunk::<8>().map(|(newest, counts)| (u64::from_le_bytes(*newest), counts));
        // A newest slice that is a whole window ahead was written by a clock that has since been put back.
        let Some((newest, counts)) = stored.filter(|(newest, _)| newest.saturating_sub(now) <= u64::from(self.slices))
        else {
            return Window { newest: now, counts: vec![0; length] };
        };
        let passed = usize::try_from(now.saturating_sub(newest)).unwrap_or(usize::MAX).min(length);
        let mut shifted = vec![0; passed];
        shifted.extend(counts.as_chunks::<4>().0.iter().map(|count| u32::from_le_bytes(*count)));
        shifted.resize(length, 0);
        Window { newest: newest.max(now), counts: shifted }
    }

    /// When a count of this slice has left the window, in milliseconds since the Unix epoch.
    fn end(&self, slice: u64) -> u64 {
        slice.saturating_add(u64::from(self.slices)).saturating_add(1).saturating_mul(self.slice)
    }
}

impl Window {
    fn total(&self) -> u32 {
        self.counts.iter().fold(0, |total, count| total.saturating_add(*count))
    }

    fn encode(&self) -> Vec<u8> {
        let mut value = Vec::with_capacity(8 + 4 * self.counts.len());
        value.extend_from_slice(&self.newest.to_le_bytes());
        self.counts.iter().for_each(|count| value.extend_from_slice(&count.to_le_bytes()));
        value
    }
}

/// How much a stored window counts against others for a place.
fn weight(value: &[u8]) -> u64 {
    let counts = value.get(8..).unwrap_or_default();
    counts.as_chunks::<4>().0.iter().map(|count| u64::from(u32::from_le_bytes(*count))).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MemorySharedData;
    use crate::testing::{self, Random};

    const MINUTE: Windows = Windows::new("minute", 60_000, 6, 1000);
    const NOW: u64 = 1_700_000_000_000;

    fn total(counted: Counted) -> u32 {
        assert!(!counted.lost);
        counted.total
    }

    #[test]
    fn a_count_leaves_after_the_window_and_within_one_more_slice() {
        let data = MemorySharedData::default();
        for (after, expected) in [(0, 1), (5_000, 2), (30_000, 3), (59_999, 4), (60_000, 5)] {
            assert_eq!(total(MINUTE.add(&data, b"k", 1, NOW + after)), expected, "after {after}");
        }
        // 1,700,000,000,000 begins a slice of 10 s: its two counts go after 70 s.
        assert_eq!(MINUTE.get(&data, b"k", NOW + 69_999), 5);
        assert_eq!(MINUTE.get(&data, b"k", NOW + 70_000), 3);
        assert_eq!(MINUTE.get(&data, b"k", NOW + 129_999), 1);
        assert_eq!(MINUTE.get(&data, b"k", NOW + 130_000), 0);
        assert_eq!(MINUTE.get(&data, b"other", NOW), 0);
    }

    #[test]
    fn a_cleared_count_begins_anew() {
        let data = MemorySharedData::default();
        MINUTE.add(&data, b"k", 7, NOW);
        assert!(MINUTE.clear(&data, b"k", NOW) && MINUTE.clear(&data, b"never seen", NOW));
        assert_eq!(MINUTE.get(&data, b"k", NOW), 0);
        assert_eq!(total(MINUTE.add(&data, b"k", 1, NOW)), 1);
    }

    #[test]
    fn counts_stop_at_the_largest_number() {
        let data = MemorySharedData::default();
        MINUTE.add(&data, b"k", u32::MAX, NOW);
        MINUTE.add(&data, b"k", 5, NOW + 10_000);
        assert_eq!(MINUTE.get(&data, b"k", NOW + 10_000), u32::MAX);
    }

    #[test]
    fn bounds_are_kept_and_so_are_the_ends_of_time() {
        let data = MemorySharedData::default();
        for windows in [Windows::new("a", 0, 0, 0), Windows::new("b", u64::MAX, 255, u32::MAX)] {
            for now in [0, NOW, u64::MAX - 1] {
                let counted = windows.add(&data, b"k", 1, now);
                assert!(counted.total >= 1, "{windows:?} at {now}");
            }
        }
    }

    /// Each count with its time; none younger than the window is ever missing, none older than it and a slice is counted.
    #[test]
    fn random_counts_agree_with_a_list_of_all_of_them() {
        for (seed, slices) in (0..40).zip([1, 2, 6, 7, 16].into_iter().cycle()) {
            let windows = Windows::new("random", 1000, slices, 100);
            let slice = 1000_u64.div_ceil(u64::from(slices));
            let data = MemorySharedData::default();
            let mut random = Random(seed);
            let mut all: Vec<(u64, u64, u32)> = Vec::new();
            let mut now = NOW + random.below(1000);
            for _ in 0..400 {
                now += random.below(200) * random.below(2) + random.below(1500) / 1499 * 900;
                let (key, by) = (random.below(3), random.below(4) as u32);
                all.push((key, now, by));
                let total = total(windows.add(&data, &key.to_le_bytes(), by, now));
                let within = |length: u64| -> u32 {
                    all.iter().filter(|(k, at, _)| *k == key && at + length > now).map(|(_, _, by)| by).sum()
                };
                assert!(within(1000) <= total && total <= within(slice * u64::from(slices) + slice), "seed {seed}");
            }
        }
    }

    #[test]
    fn a_clock_that_is_behind_neither_loses_counts_nor_makes_them_stay() {
        let data = MemorySharedData::default();
        MINUTE.add(&data, b"k", 1, NOW);
        assert_eq!(total(MINUTE.add(&data, b"k", 1, NOW - 25_000)), 2, "counted into the newest slice");
        assert_eq!(total(MINUTE.add(&data, b"k", 1, NOW + 1)), 3);
        assert_eq!(MINUTE.get(&data, b"k", NOW - 30_000), 3);
        assert_eq!(MINUTE.get(&data, b"k", NOW + 70_000), 0);
        // Put back by an hour: what the wrong clock counted does not stay for an hour.
        MINUTE.add(&data, b"k", 500, NOW + 3_600_000);
        assert_eq!(MINUTE.get(&data, b"k", NOW), 0);
        assert_eq!(total(MINUTE.add(&data, b"k", 1, NOW)), 1);
    }

    #[test]
    fn a_million_keys_keep_to_their_room_and_each_loss_is_counted() {
        let windows = Windows::new("flood", 60_000, 6, 1000);
        let data = MemorySharedData::default();
        windows.add(&data, b"attacker", 50, NOW);
        for key in 0..1_000_000_u32 {
            windows.add(&data, &key.to_le_bytes(), 1, NOW + u64::from(key / 100));
        }
        let later = NOW + 10_000;
        let kept = (0..1_000_000_u32).filter(|key| windows.get(&data, &key.to_le_bytes(), later) > 0).count();
        assert_eq!(windows.get(&data, b"attacker", later), 50, "a flood of keys hides no one");
        assert!(kept < windows.table.capacity());
        let losses = data.memory().take_losses();
        assert_eq!(losses.len(), 1);
        assert_eq!((losses[0].0, losses[0].1.lost_updates), ("flood", 0));
        assert_eq!(losses[0].1.evicted, 1_000_000 - kept as u64);
    }

    #[test]
    fn workers_that_interleave_lose_no_count_that_they_do_not_report() {
        let one_shard = Windows::new("race", 60_000, 6, 1);
        for seed in 0..60 {
            let workers = 2 + (seed as usize % 7);
            let sums = testing::run(seed, workers, |data, worker| {
                let mut stored = [0; 3];
                for step in 0..30 {
                    let key = (worker + step) % 3;
                    // Clocks of workers differ a little, and one is put back now and then.
                    let now = NOW + step as u64 * 10 - (worker as u64 % 3) * 700;
                    let counted = one_shard.add(data, &[key as u8], 2, now);
                    stored[key] += if counted.lost { 0 } else { 2 };
                }
                let totals = [0_u8, 1, 2].map(|key| one_shard.get(data, &[key], NOW + 500));
                (stored, totals, data.memory().take_losses().first().map_or(0, |(_, losses)| losses.lost_updates))
            });
            let lost: u64 = sums.iter().map(|(_, _, lost)| lost).sum();
            let stored: u64 = sums.iter().flat_map(|(stored, _, _)| stored.iter().copied()).sum();
            assert_eq!(stored + 2 * lost, workers as u64 * 60, "seed {seed}");
            // Who reads last sees all: the largest of what the workers read.
            let last =
                sums.iter().map(|(_, totals, _)| totals.iter().map(|total| u64::from(*total)).sum::<u64>()).max();
            assert_eq!(last, Some(stored), "seed {seed}");
        }
    }
}
