//! Counts of an unlimited number of keys in a fixed room.
//!
//! This is a count-min sketch. Space-saving, the other usual one, keeps the keys that came up most and forgets the others
//! ([`Top`](crate::Top) is that); it cannot answer for a key that it does not hold. A limit needs an answer for every key, in a
//! room that no number of keys can exhaust, and an error on one side only: count-min never reports less than there was.

use crate::SharedData;
use crate::cas::{self, Edited};
use crate::memory::Losses;
use crate::windows::Counted;

/// The most places in a row of a sketch.
pub const MAX_WIDTH: u32 = 1 << 16;

/// The rows. The chance that all of them are off by more than the usual error is e^-4, 2 %.
const ROWS: usize = 4;

/// The columns of one block: a block of two generations is 2 KiB, one value of shared data, so that an addition is one read
/// and one write, and atomic.
const COLUMNS: usize = 64;

/// The places of one generation of a block, and their bytes.
const CELLS: usize = ROWS * COLUMNS;
const GENERATION: usize = 4 * CELLS;

/// At most how often each of any number of keys came up in the last minutes or hours, over all workers of the node.
///
/// A key has one place in each of four rows, which it shares with other keys; its count is at most its smallest place. So a
/// count is never too small (unless additions were lost), and too large by up to three times the number of all events over
/// the width, except for one key in fifty. Choose a width of at least ten times the number of events over the error that
/// does not matter.
///
/// A count stays for `millis`, and for up to as long again. A clock that is behind counts into the newest generation; one that
/// was put back by more than `millis` begins anew.
#[derive(Debug, Clone, Copy)]
pub struct Sketch {
    name: &'static str,
    blocks: u32,
    millis: u64,
}

/// The bytes of a block: the number of the current generation (u64), the places of it and then those of the one before (u32
/// each); little endian.
struct Block {
    generation: u64,
    cells: Vec<u8>,
}

impl Sketch {
    /// A sketch with `width` places in a row (64 to [`MAX_WIDTH`], rounded up to a multiple of 64), 32 bytes each. Values out of
    /// bounds are set to the nearest bound. `name` is the prefix of its keys in shared data, unique on the node.
    #[must_use]
    pub const fn new(name: &'static str, width: u32, millis: u64) -> Self {
        let width = if width > MAX_WIDTH { MAX_WIDTH } else { width };
        let blocks = width.div_ceil(COLUMNS as u32);
        Self { name, blocks: if blocks == 0 { 1 } else { blocks }, millis: if millis == 0 { 1 } else { millis } }
    }

    /// Adds `by` to the count of `key`.
    pub fn add(&self, data: &dyn SharedData, key: &[u8], by: u32, now: u64) -> Counted {
        let (name, places) = self.places(data, key);
        let Edited { result: total, lost } = cas::edit(data, &name, |bytes| {
            let mut block = self.read(bytes, now);
            // Only places that would be too small grow: others stay as exact as they are.
            let wanted = block.least(0, &places).saturating_add(by);
            for place in places {
                block.raise(place, wanted);
            }
            (block.count(&places), Some(block.encode()))
        });
        data.memory().note(self.name, Losses { lost_updates: u64::from(lost), evicted: 0 });
        Counted { total, lost }
    }

    /// At most how often `key` came up.
    #[must_use]
    pub fn get(&self, data: &dyn SharedData, key: &[u8], now: u64) -> u32 {
        let (name, places) = self.places(data, key);
        data.get(&name).map_or(0, |(bytes, _)| self.read(&bytes, now).count(&places))
    }

    /// The key of the block in shared data, and the places of the key in it.
    fn places(&self, data: &dyn SharedData, key: &[u8]) -> (String, [usize; ROWS]) {
        let [a, b, c, d, block @ ..] = data.memory().secret(data).hash(self.name, key).to_le_bytes();
        let block = u32::from_le_bytes(block) % self.blocks.max(1);
        let mut row = 0;
        let places = [a, b, c, d].map(|column| {
            row += 1;
            (row - 1) * COLUMNS + usize::from(column) % COLUMNS
        });
        (format!("{}/{block}", self.name), places)
    }

    /// The block as it is at `now`.
    fn read(&self, bytes: &[u8], now: u64) -> Block {
        let now = now / self.millis;
        let fresh = || Block { generation: now, cells: vec![0; 2 * GENERATION] };
        let Some((generation, cells)) = bytes.split_first_chunk::<8>() else { return fresh() };
        let generation = u64::from_le_bytes(*generation);
        let Some((current, before)) =
            cells.split_at_checked(GENERATION).filter(|(_, before)| before.len() == GENERATION)
        else {
            return fresh();
        };
        match now.checked_sub(generation) {
            None if generation - now > 1 => fresh(),
            None | Some(0) => Block { generation, cells: [current, before].concat() },
            Some(1) => Block { generation: now, cells: [&[0; GENERATION], current].concat() },
            Some(_) => fresh(),
        }
    }
}

impl Block {
    fn count(&self, places: &[usize; ROWS]) -> u32 {
        self.least(0, places).saturating_add(self.least(CELLS, places))
    }

    /// The smallest count in these places of the generation that begins at the given cell.
    fn least(&self, generation: usize, places: &[usize; ROWS]) -> u32 {
        let (cells, _) = self.cells.as_chunks::<4>();
        let counts = places.iter().filter_map(|place| cells.get(generation + place));
        counts.map(|cell| u32::from_le_bytes(*cell)).min().unwrap_or(0)
    }

    /// Raises a place of the current generation to this count at least.
    fn raise(&mut self, place: usize, count: u32) {
        let (cells, _) = self.cells.as_chunks_mut::<4>();
        if let Some(cell) = cells.get_mut(place) {
            *cell = u32::from_le_bytes(*cell).max(count).to_le_bytes();
        }
    }

    fn encode(&self) -> Vec<u8> {
        [&self.generation.to_le_bytes(), self.cells.as_slice()].concat()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::MemorySharedData;
    use crate::testing::{self, Random};

    const NOW: u64 = 1_700_000_000_000;

    #[test]
    fn counts_are_never_too_small_and_seldom_much_too_large() {
        let sketch = Sketch::new("paths", 1024, 60_000);
        let data = MemorySharedData::default();
        let mut random = Random(3);
        let mut exact: BTreeMap<u64, u32> = BTreeMap::new();
        for _ in 0..100_000 {
            // Few keys often, many keys seldom: 20,000 different ones.
            let bits = random.below(14) + 1;
            let key = random.below(1 << bits) * 20_000 / (1 << bits);
            *exact.entry(key).or_default() += 1;
            let counted = sketch.add(&data, &key.to_le_bytes(), 1, NOW);
            assert!(!counted.lost && counted.total >= exact[&key]);
        }
        let off = |key: u64, count: u32| sketch.get(&data, &key.to_le_bytes(), NOW) - count;
        let far_off = exact.iter().filter(|(key, count)| off(**key, **count) > 3 * 100_000 / 1024).count();
        assert!(far_off * 50 < exact.len(), "{far_off} of {}", exact.len());
        let never_seen = (1_000_000..1_001_000_u64).filter(|key| off(*key, 0) > 300).count();
        assert!(never_seen < 20, "{never_seen}");
    }

    #[test]
    fn a_count_stays_for_its_time_and_at_most_twice_that() {
        let sketch = Sketch::new("paths", 64, 1000);
        let data = MemorySharedData::default();
        let mut random = Random(9);
        for round in 0..500_u32 {
            let key = [round as u8, (round >> 8) as u8, 7];
            let at = NOW + u64::from(round) * 10_000 + random.below(1000);
            sketch.add(&data, &key, 5, at);
            assert!(sketch.get(&data, &key, at + 1000) >= 5);
            assert_eq!(sketch.get(&data, &key, at + 2000), 0);
        }
    }

    #[test]
    fn a_million_keys_take_no_more_room_than_a_thousand() {
        let sketch = Sketch::new("flood", 640, 1000);
        let data = MemorySharedData::default();
        for key in 0..1_000_000_u32 {
            sketch.add(&data, &key.to_le_bytes(), 1, NOW);
        }
        let blocks: Vec<usize> =
            (0..11).filter_map(|block| data.get(&format!("flood/{block}"))).map(|(bytes, _)| bytes.len()).collect();
        assert_eq!(blocks, [8 + 2 * GENERATION; 10]);
        assert_eq!(data.memory().take_losses(), []);
    }

    #[test]
    fn bounds_torn_values_and_clocks_that_are_put_back_are_survived() {
        let data = MemorySharedData::default();
        for sketch in [Sketch::new("a", 0, 0), Sketch::new("b", u32::MAX, u64::MAX)] {
            assert_eq!(sketch.add(&data, b"k", u32::MAX, u64::MAX).total, u32::MAX);
            assert_eq!(sketch.add(&data, b"k", 1, u64::MAX).total, u32::MAX);
        }
        let sketch = Sketch::new("c", 64, 1000);
        data.set("c/0", b"torn", None).unwrap();
        sketch.add(&data, b"k", 2, NOW);
        assert_eq!(sketch.add(&data, b"k", 1, NOW - 900).total, 3);
        assert_eq!(sketch.add(&data, b"k", 1, NOW).total, 4);
        sketch.add(&data, b"k", 1, NOW + 3_600_000);
        assert_eq!(sketch.get(&data, b"k", NOW), 0);
        assert_eq!(sketch.add(&data, b"k", 1, NOW).total, 1);
    }

    #[test]
    fn workers_that_interleave_lose_no_count_that_they_do_not_report() {
        let sketch = Sketch::new("race", 64, 60_000);
        for seed in 0..40 {
            let counted = testing::run(seed, 6, |data, worker| {
                let stored = (0..30).filter(|_| !sketch.add(data, b"k", 1, NOW + worker as u64).lost).count();
                (stored, sketch.get(data, b"k", NOW))
            });
            let stored: usize = counted.iter().map(|(stored, _)| stored).sum();
            assert_eq!(counted.iter().map(|(_, total)| *total as usize).max(), Some(stored), "seed {seed}");
        }
    }
}
