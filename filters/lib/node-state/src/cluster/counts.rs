//! Counts in a sliding window, of this node and of the others.

use crate::SharedData;
use crate::keyed::{Change, Keyed};
use crate::windows::MAX_SLICES;

/// What the losses of all such tables are counted under.
const LOSSES: &str = "cluster.windows";

/// [`Windows`](crate::Windows) whose counts are those of this node and those of all other nodes, under hashes that all nodes have
/// in common ([`ClusterKey`](crate::ClusterKey)). An entry takes 26 bytes, and 8 for each slice and one more.
#[derive(Debug, Clone)]
pub struct ClusterWindows {
    name: String,
    max_keys: u32,
    slice: u64,
    slices: u8,
}

/// A count in the window.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ClusterCount {
    /// Of this node.
    pub own: u32,
    /// Of all other nodes, as far as this one has learned of them.
    pub others: u32,
}

impl ClusterCount {
    /// Of all nodes.
    #[must_use]
    pub fn total(self) -> u32 {
        self.own.saturating_add(self.others)
    }
}

/// The counts of slices of time.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Slices {
    /// The number of the newest slice: milliseconds since the Unix epoch, divided by the length of a slice.
    pub newest: u64,
    /// The counts, from the newest slice back; what is missing is 0.
    pub counts: Vec<u32>,
}

/// Both parts, of equal length.
struct Entry {
    newest: u64,
    own: Vec<u32>,
    others: Vec<u32>,
}

impl ClusterWindows {
    /// Windows of `slices` slices (1 to [`MAX_SLICES`]) of `slice` milliseconds, with room for `max_keys` keys (1 to
    /// [`MAX_KEYS`](crate::MAX_KEYS)). Values out of bounds are set to the nearest bound. `name` is the prefix of the keys in
    /// shared data, unique on the node.
    #[must_use]
    pub fn new(name: String, slice: u64, slices: u8, max_keys: u32) -> Self {
        Self { name, max_keys, slice: slice.max(1), slices: slices.clamp(1, MAX_SLICES) }
    }

    fn table(&self) -> Keyed<'_> {
        let length = usize::from(self.slices) + 1;
        let lifetime = self.slice.saturating_mul(length as u64);
        Keyed::named(&self.name, LOSSES, self.max_keys, 8 + 8 * length, lifetime)
    }

    /// Adds to this node's count of a key; the count with it. The second value is whether the addition was not stored, because
    /// other workers wrote first at each of sixteen tries.
    pub fn add(&self, data: &dyn SharedData, key: u64, by: u32, now: u64) -> (ClusterCount, bool) {
        let edited = self.table().update_hashed(data, key, now, weight, |value| {
            let mut entry = self.read(value.unwrap_or_default(), now);
            if let Some(count) = entry.own.first_mut() {
                *count = count.saturating_add(by);
            }
            (entry.count(), self.put(&entry))
        });
        (edited.result, edited.lost)
    }

    /// The same, unless the total of all nodes would be above `limit`; whether it was added. A part that could not be stored was
    /// not added.
    pub fn take(&self, data: &dyn SharedData, key: u64, by: u32, limit: u64, now: u64) -> (bool, ClusterCount) {
        let edited = self.table().update_hashed(data, key, now, weight, |value| {
            let mut entry = self.read(value.unwrap_or_default(), now);
            let total = sum(&entry.own).saturating_add(sum(&entry.others));
            if total.saturating_add(u64::from(by)) > limit {
                return ((false, entry.count()), Change::Keep);
            }
            if let Some(count) = entry.own.first_mut() {
                *count = count.saturating_add(by);
            }
            ((true, entry.count()), self.put(&entry))
        });
        let (taken, count) = edited.result;
        (taken && !edited.lost, count)
    }

    /// The count of a key.
    #[must_use]
    pub fn get(&self, data: &dyn SharedData, key: u64, now: u64) -> ClusterCount {
        let value = self.table().get_hashed(data, key, now);
        value.map_or(ClusterCount::default(), |value| self.read(&value, now).count())
    }

    /// The number of the newest slice in which a key was counted, and its count there, of all nodes as far as this one knows; `None`
    /// without one. Slices leave the window from the other end, so this goes on for as long as the key is counted.
    #[must_use]
    pub fn newest(&self, data: &dyn SharedData, key: u64, now: u64) -> Option<(u64, u32)> {
        let value = self.table().get_hashed(data, key, now)?;
        let Entry { newest, own, others } = self.read(&value, now);
        let sums = own.iter().zip(&others).map(|(own, others)| own.saturating_add(*others));
        (0..=newest).rev().zip(sums).find(|(_, sum)| *sum > 0)
    }

    /// This node's part of a key; `None` if it has none.
    #[must_use]
    pub fn own(&self, data: &dyn SharedData, key: u64, now: u64) -> Option<Slices> {
        let value = self.table().get_hashed(data, key, now)?;
        self.read(&value, now).own_slices()
    }

    /// Takes over what all other nodes have counted: of each slice the larger number.
    pub fn learn(&self, data: &dyn SharedData, key: u64, others: &Slices, now: u64) {
        let current = now / self.slice;
        // A clock that is far ahead is not believed.
        if others.newest.saturating_sub(current) > u64::from(self.slices) {
            return;
        }
        self.table().update_hashed(data, key, now, weight, |value| {
            let mut entry = self.read(value.unwrap_or_default(), now).shifted(others.newest);
            let ago = usize::try_from(entry.newest.saturating_sub(others.newest)).unwrap_or(usize::MAX);
            let mut news = false;
            for (known, learned) in entry.others.iter_mut().skip(ago).zip(&others.counts) {
                news |= *learned > *known;
                *known = (*known).max(*learned);
            }
            ((), if news { self.put(&entry) } else { Change::Keep })
        });
    }

    /// How many parts the table has, for [`ClusterWindows::keys`].
    #[must_use]
    pub fn parts(&self) -> u32 {
        self.table().shards()
    }

    /// The keys in a part of the table that this node has counted.
    #[must_use]
    pub fn keys(&self, data: &dyn SharedData, part: u32, now: u64) -> Vec<u64> {
        let live = self.table().live_in(data, part, now).into_iter();
        live.filter(|(_, value)| self.read(value, now).own_slices().is_some()).map(|(key, _)| key).collect()
    }

    fn put(&self, entry: &Entry) -> Change {
        let end = entry.newest.saturating_add(u64::from(self.slices) + 1).saturating_mul(self.slice);
        Change::Put { value: entry.encode(), until: end }
    }

    /// The entry as it is at `now`.
    fn read(&self, value: &[u8], now: u64) -> Entry {
        let (now, length) = (now / self.slice, usize::from(self.slices) + 1);
        let stored = value.split_first_chunk::<8>().map(|(newest, counts)| (u64::from_le_bytes(*newest), counts));
        // A newest slice that is a whole window ahead was written by a clock that has since been put back.
        let Some((newest, counts)) = stored.filter(|(newest, _)| newest.saturating_sub(now) <= u64::from(self.slices))
        else {
            return Entry { newest: now, own: vec![0; length], others: vec![0; length] };
        };
        let mut own: Vec<u32> = counts.as_chunks::<4>().0.iter().map(|count| u32::from_le_bytes(*count)).collect();
        own.resize(2 * length, 0);
        let others = own.split_off(length);
        Entry { newest, own, others }.shifted(now)
    }
}

impl Entry {
    /// The same with the newest slice no older than this.
    fn shifted(mut self, newest: u64) -> Self {
        let length = self.own.len();
        let passed = usize::try_from(newest.saturating_sub(self.newest)).unwrap_or(usize::MAX).min(length);
        if passed > 0 {
            for counts in [&mut self.own, &mut self.others] {
                counts.splice(0..0, std::iter::repeat_n(0, passed));
                counts.truncate(length);
            }
            self.newest = newest;
        }
        self
    }

    fn count(&self) -> ClusterCount {
        let sum = |counts: &[u32]| u32::try_from(sum(counts)).unwrap_or(u32::MAX);
        ClusterCount { own: sum(&self.own), others: sum(&self.others) }
    }

    fn own_slices(mut self) -> Option<Slices> {
        while self.own.pop_if(|count| *count == 0).is_some() {}
        (!self.own.is_empty()).then_some(Slices { newest: self.newest, counts: self.own })
    }

    fn encode(&self) -> Vec<u8> {
        let counts = self.own.iter().chain(&self.others).flat_map(|count| count.to_le_bytes());
        self.newest.to_le_bytes().into_iter().chain(counts).collect()
    }
}

fn sum(counts: &[u32]) -> u64 {
    counts.iter().map(|count| u64::from(*count)).sum()
}

/// How much a stored entry counts against others for a place.
fn weight(value: &[u8]) -> u64 {
    let counts = value.get(8..).unwrap_or_default();
    counts.as_chunks::<4>().0.iter().map(|count| u64::from(u32::from_le_bytes(*count))).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MemorySharedData;
    use crate::testing;

    const NOW: u64 = 1_700_000_000_000;

    fn minute() -> ClusterWindows {
        ClusterWindows::new("minute".to_owned(), 10_000, 6, 1000)
    }

    fn slices(at: u64, counts: &[u32]) -> Slices {
        Slices { newest: at / 10_000, counts: counts.to_vec() }
    }

    fn count(own: u32, others: u32) -> ClusterCount {
        ClusterCount { own, others }
    }

    #[test]
    fn own_counts_and_those_of_others_add_up_and_leave_with_their_slices() {
        let (windows, data) = (minute(), MemorySharedData::default());
        assert_eq!(windows.add(&data, 7, 2, NOW), (count(2, 0), false));
        windows.learn(&data, 7, &slices(NOW, &[3, 0, 4]), NOW);
        assert_eq!(windows.get(&data, 7, NOW), count(2, 7));
        assert_eq!(windows.add(&data, 7, 1, NOW + 10_000).0, count(3, 7));
        assert_eq!(windows.own(&data, 7, NOW + 10_000), Some(slices(NOW + 10_000, &[1, 2])));
        // The four of 20 s before have left after the window and one slice, then what both have counted at first.
        assert_eq!(windows.get(&data, 7, NOW + 49_999), count(3, 7));
        assert_eq!(windows.get(&data, 7, NOW + 50_000), count(3, 3));
        assert_eq!(windows.get(&data, 7, NOW + 70_000), count(1, 0));
        assert_eq!(windows.get(&data, 7, NOW + 80_000), count(0, 0));
        assert_eq!(windows.own(&data, 7, NOW + 80_000), None);
        assert_eq!(windows.own(&data, 8, NOW), None);
    }

    #[test]
    fn the_newest_count_stands_until_its_slice_leaves() {
        let (windows, data) = (minute(), MemorySharedData::default());
        let slice = NOW / 10_000;
        assert_eq!(windows.newest(&data, 7, NOW), None);
        windows.add(&data, 7, 2, NOW);
        windows.learn(&data, 7, &slices(NOW, &[3, 0, 4]), NOW);
        assert_eq!(windows.newest(&data, 7, NOW), Some((slice, 5)));
        windows.add(&data, 7, 1, NOW + 30_000);
        for after in [30_000, 69_999, 70_000, 99_999] {
            assert_eq!(windows.newest(&data, 7, NOW + after), Some((slice + 3, 1)), "{after}");
        }
        assert_eq!(windows.newest(&data, 7, NOW + 100_000), None);
    }

    #[test]
    fn what_is_learned_twice_or_in_the_wrong_order_changes_nothing() {
        let (windows, data) = (minute(), MemorySharedData::default());
        for learned in [&[5, 1][..], &[5, 1], &[2], &[0, 0, 0], &[4, 1]] {
            windows.learn(&data, 1, &slices(NOW, learned), NOW);
            assert_eq!(windows.get(&data, 1, NOW), count(0, 6));
        }
        assert_eq!(windows.own(&data, 1, NOW), None, "it is not this node's");
        windows.learn(&data, 1, &slices(NOW - 10_000, &[9]), NOW);
        assert_eq!(windows.get(&data, 1, NOW), count(0, 14), "of an earlier slice");
        // A control plane whose clock is a little ahead; one that is far ahead is not believed.
        windows.learn(&data, 1, &slices(NOW + 10_000, &[1, 5]), NOW);
        assert_eq!(windows.get(&data, 1, NOW), count(0, 15));
        windows.learn(&data, 1, &slices(NOW + 3_600_000, &[9]), NOW);
        assert_eq!(windows.get(&data, 1, NOW), count(0, 15));
        windows.learn(&data, 1, &slices(NOW - 3_600_000, &[9]), NOW);
        assert_eq!(windows.get(&data, 1, NOW), count(0, 15), "long gone");
    }

    #[test]
    fn a_take_stays_within_the_limit_of_all_nodes() {
        let (windows, data) = (minute(), MemorySharedData::default());
        windows.learn(&data, 1, &slices(NOW, &[6]), NOW);
        assert_eq!(windows.take(&data, 1, 3, 10, NOW), (true, count(3, 6)));
        assert_eq!(windows.take(&data, 1, 2, 10, NOW), (false, count(3, 6)));
        assert_eq!(windows.take(&data, 1, 1, 10, NOW), (true, count(4, 6)));
        assert_eq!(windows.take(&data, 1, 1, 10, NOW), (false, count(4, 6)));
    }

    #[test]
    fn no_interleaving_takes_more_than_the_limit() {
        for seed in 0..40 {
            let taken =
                testing::run(seed, 5, |data, _| (0..30).filter(|_| minute().take(data, 1, 1, 50, NOW).0).count());
            let taken: usize = taken.iter().sum();
            // One that could not be stored at sixteen tries is not taken, though room was left.
            assert!((40..=50).contains(&taken), "seed {seed}: {taken}");
        }
    }

    #[test]
    fn keys_are_found_part_by_part_without_those_of_others() {
        let (windows, data) = (minute(), MemorySharedData::default());
        for key in 0..500 {
            windows.add(&data, key * 7919, 1, NOW);
        }
        windows.learn(&data, 3, &slices(NOW, &[1]), NOW);
        let mut keys: Vec<u64> = (0..windows.parts()).flat_map(|part| windows.keys(&data, part, NOW)).collect();
        keys.sort_unstable();
        assert_eq!(keys, (0..500).map(|key| key * 7919).collect::<Vec<_>>());
        assert_eq!(windows.keys(&data, 0, NOW + 80_000), [0_u64; 0]);
    }

    #[test]
    fn a_flood_of_keys_pushes_out_its_own() {
        let windows = ClusterWindows::new("flood".to_owned(), 10_000, 6, 1000);
        let data = MemorySharedData::default();
        windows.add(&data, 1, 50, NOW);
        for key in 2..=1_000_000 {
            windows.add(&data, key, 1, NOW);
        }
        assert_eq!(windows.get(&data, 1, NOW), count(50, 0));
        let kept = (0..windows.parts()).map(|part| windows.keys(&data, part, NOW).len()).sum::<usize>();
        let losses = data.memory().take_losses();
        assert_eq!((losses[0].0, losses[0].1.evicted), (LOSSES, 1_000_000 - kept as u64));
    }

    #[test]
    fn the_ends_of_time_and_bounds_are_kept() {
        let data = MemorySharedData::default();
        for windows in
            [ClusterWindows::new("a".into(), 0, 0, 0), ClusterWindows::new("b".into(), u64::MAX, 255, u32::MAX)]
        {
            for now in [0, NOW, u64::MAX - 1] {
                assert!(windows.add(&data, 1, u32::MAX, now).0.own >= 1);
                windows.learn(&data, 1, &Slices { newest: u64::MAX, counts: vec![u32::MAX; 99] }, now);
                windows.learn(&data, 1, &Slices { newest: 0, counts: vec![u32::MAX; 99] }, now);
                assert!(windows.get(&data, 1, now).total() >= 1);
            }
        }
    }
}
