//! Records of a plugin under hashed keys.

use crate::SharedData;
use crate::cas::Edited;
use crate::keyed::{Change, Keyed};

/// A record for each of many keys, over all workers of the node.
///
/// When there are more keys than planned for, the records with the least weight give way
/// ([`WorkerMemory::take_losses`](crate::WorkerMemory::take_losses) counts them). A record takes 18 bytes beside its value, however
/// long its key is.
#[derive(Debug, Clone, Copy)]
pub struct Records(Keyed<'static>);

/// A record after an update.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Updated<R> {
    /// What the last run of the update returned.
    pub result: R,
    /// Whether the update was not stored, because other workers wrote first at each of sixteen tries.
    pub lost: bool,
}

impl Records {
    /// Room for `max_keys` records (1 to [`MAX_KEYS`](crate::MAX_KEYS)) of up to `max_value` bytes, none of which lives longer than
    /// `lifetime` milliseconds after its last update. `name` is the prefix of its keys in shared data, unique on the node. A table
    /// with other room does not find the records of the one before.
    #[must_use]
    pub const fn new(name: &'static str, max_keys: u32, max_value: usize, lifetime: u64) -> Self {
        Self(Keyed::new(name, max_keys, max_value, lifetime))
    }

    /// Replaces the record under `key` by what `change` makes of it: a value, and its end in milliseconds since the Unix epoch;
    /// `None` leaves it as it is. `change` runs again, on the newer record, each time another worker wrote first. In a full place
    /// the record with the least `weight` gives way, among those of equal weight the one that ends first.
    pub fn update<R>(
        &self,
        data: &dyn SharedData,
        key: &[u8],
        now: u64,
        weight: impl Fn(&[u8]) -> u64,
        mut change: impl FnMut(Option<&[u8]>) -> (R, Option<(Vec<u8>, u64)>),
    ) -> Updated<R> {
        let Edited { result, lost } = self.0.update(data, key, now, weight, |known| {
            let (result, put) = change(known);
            (result, put.map_or(Change::Keep, |(value, until)| Change::Put { value, until }))
        });
        Updated { result, lost }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MemorySharedData;

    const RECORDS: Records = Records::new("r", 1, 8, 1000);

    fn put(data: &MemorySharedData, key: &[u8], weight: u8) {
        let weigh = |value: &[u8]| value.first().copied().unwrap_or(0).into();
        RECORDS.update(data, key, 0, weigh, |_| ((), Some((vec![weight], 1000))));
    }

    fn get(data: &MemorySharedData, key: &[u8], now: u64) -> Option<Vec<u8>> {
        RECORDS.update(data, key, now, |_| 0, |known| (known.map(<[u8]>::to_vec), None)).result
    }

    #[test]
    fn the_lightest_records_give_way_and_each_ends() {
        let data = MemorySharedData::default();
        put(&data, b"heavy", 9);
        (0..100_u8).for_each(|key| put(&data, &[key], 1));
        assert_eq!(get(&data, b"heavy", 999), Some(vec![9]));
        assert_eq!(get(&data, b"heavy", 1000), None);
        assert!((0..100_u8).filter(|key| get(&data, &[*key], 0).is_some()).count() < 32);
    }

    #[test]
    fn workers_that_write_first_at_one_moment_lose_nothing() {
        for seed in 0..50 {
            let counts = crate::testing::run(seed, 4, |data, _| {
                let count = |known: Option<&[u8]>| known.and_then(|value| value.first().copied()).unwrap_or(0) + 1;
                RECORDS.update(data, b"k", 0, |_| 0, |known| (count(known), Some((vec![count(known)], 10)))).result
            });
            assert_eq!(counts.into_iter().max(), Some(4), "seed {seed}");
        }
    }
}
