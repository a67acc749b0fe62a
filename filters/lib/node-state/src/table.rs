//! A table: keys with a value and an expiry, spread over a fixed number of shards.

use crate::cas::{self, ATTEMPTS};
use crate::codec::{MAX_FIELD, Stored, encode, entries};
use crate::{Conflict, SharedData, keyed_hash};

/// A table's name and its limits. What does not fit pushes out the entry of the shard that expires first.
#[derive(Debug, Clone, Copy)]
pub struct Table {
    /// The prefix of its keys in shared data: unique among the tables of a node.
    pub name: &'static str,
    /// How many shards it has. More shards mean less contention and shorter scans.
    pub shards: u16,
    /// The most entries that one shard holds.
    pub entries_per_shard: usize,
}

/// One key of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The key: at most 1024 bytes.
    pub key: Vec<u8>,
    /// The value: at most 1024 bytes.
    pub value: Vec<u8>,
    /// When the entry ends, in milliseconds since the Unix epoch.
    pub expires_at: u64,
}

/// What an update makes of an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Update {
    /// Leave it as it is.
    Keep,
    /// Put this value in its place, until the given time (milliseconds since the Unix epoch).
    Put(Vec<u8>, u64),
    /// Take it out.
    Remove,
}

impl Table {
    /// The live entry under `key`.
    #[must_use]
    pub fn get(&self, data: &dyn SharedData, key: &[u8], now: u64) -> Option<Entry> {
        let (bytes, _) = data.get(&self.shard_of(key))?;
        entries(&bytes).find(|entry| entry.key == key && entry.expires_at > now).map(Stored::to_entry)
    }

    /// Replaces the entry under `key` by what `change` makes of it, atomically over all workers.
    ///
    /// # Errors
    ///
    /// [`Conflict`] where other workers won every one of sixteen tries, or where key or value are over their limit.
    pub fn update(
        &self,
        data: &dyn SharedData,
        key: &[u8],
        now: u64,
        change: impl FnMut(Option<&Entry>) -> Update,
    ) -> Result<(), Conflict> {
        self.update_keeping(data, key, now, |_| false, change)
    }

    /// [`Table::update`], where an entry whose value `keeps` never gives way to another: a shard that is full of them takes
    /// more of them, and no others.
    ///
    /// # Errors
    ///
    /// As of [`Table::update`], and [`Conflict`] where there is no room.
    pub(crate) fn update_keeping(
        &self,
        data: &dyn SharedData,
        key: &[u8],
        now: u64,
        keeps: impl Fn(&[u8]) -> bool,
        mut change: impl FnMut(Option<&Entry>) -> Update,
    ) -> Result<(), Conflict> {
        if key.len() > MAX_FIELD {
            return Err(Conflict);
        }
        let shard = self.shard_of(key);
        for _ in 0..ATTEMPTS {
            let (bytes, token) = cas::read(data, &shard);
            let mut kept: Vec<Stored<'_>> = entries(&bytes).filter(|entry| entry.expires_at > now).collect();
            let place = kept.iter().position(|entry| entry.key == key);
            let known = place.and_then(|place| kept.get(place)).map(|entry| entry.to_entry());
            let put = match change(known.as_ref()) {
                Update::Keep => return Ok(()),
                Update::Remove if place.is_none() => return Ok(()),
                Update::Remove => None,
                Update::Put(value, _) if value.len() > MAX_FIELD => return Err(Conflict),
                Update::Put(value, expires_at) => Some((value, expires_at)),
            };
            if let Some(place) = place {
                kept.swap_remove(place);
            }
            if let Some((value, expires_at)) = &put {
                if !self.make_room(&mut kept, &keeps) && !keeps(value) {
                    return Err(Conflict);
                }
                kept.push(Stored { expires_at: *expires_at, key, value });
            }
            if data.set(&shard, &encode(kept.iter().copied()), Some(token)).is_ok() {
                return Ok(());
            }
        }
        Err(Conflict)
    }

    /// Whether something is due again that is done once in `silence` milliseconds for each subject, over all workers of the node; if so,
    /// it is noted. Where it cannot be noted, it is due. A subject may be of any length; a table that is asked this has no other entries.
    #[must_use]
    pub fn is_due(&self, data: &dyn SharedData, subject: &[u8], now: u64, silence: u64) -> bool {
        let key = keyed_hash(data, self.name, subject).to_le_bytes();
        let (mut known, until) = (false, now.saturating_add(silence));
        let _ = self.update(data, &key, now, |entry| {
            // One that ends later was noted before the clock was set back.
            known = entry.is_some_and(|entry| entry.expires_at <= until);
            if known { Update::Keep } else { Update::Put(Vec::new(), until) }
        });
        !known
    }

    /// False where nothing more can give way.
    fn make_room(&self, entries: &mut Vec<Stored<'_>>, keeps: &impl Fn(&[u8]) -> bool) -> bool {
        while entries.len() >= self.entries_per_shard.max(1) {
            let may_go = entries.iter().enumerate().filter(|(_, entry)| !keeps(entry.value));
            let first_to_end = may_go.min_by_key(|(_, entry)| entry.expires_at);
            match first_to_end.map(|(place, _)| place) {
                Some(place) => {
                    entries.swap_remove(place);
                }
                None => return false,
            }
        }
        true
    }

    pub(crate) fn shard_of(&self, key: &[u8]) -> String {
        // FNV-1a: only spreads the load, nothing rests on it; whole keys are compared inside a shard.
        let hash = key
            .iter()
            .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3));
        format!("{}/{}", self.name, hash % u64::from(self.shards.max(1)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MemorySharedData;

    const TABLE: Table = Table { name: "t", shards: 1, entries_per_shard: 2 };

    fn put(data: &MemorySharedData, key: &[u8], value: &[u8], now: u64, until: u64) {
        TABLE.update(data, key, now, |_| Update::Put(value.to_vec(), until)).unwrap();
    }

    #[test]
    fn an_entry_lives_until_its_end_and_no_longer() {
        let data = MemorySharedData::default();
        put(&data, b"ip:192.0.2.1", b"x", 0, 100);
        assert_eq!(TABLE.get(&data, b"ip:192.0.2.1", 99).unwrap().value, b"x");
        assert_eq!(TABLE.get(&data, b"ip:192.0.2.1", 100), None);
        assert_eq!(TABLE.get(&data, b"ip:192.0.2.2", 0), None);
    }

    #[test]
    fn a_full_shard_gives_up_what_ends_first() {
        let data = MemorySharedData::default();
        put(&data, b"a", b"", 0, 50);
        put(&data, b"b", b"", 0, 90);
        put(&data, b"c", b"", 0, 70);
        assert_eq!(TABLE.get(&data, b"a", 0), None);
        assert!(TABLE.get(&data, b"b", 0).is_some());
        assert!(TABLE.get(&data, b"c", 0).is_some());
    }

    #[test]
    fn workers_that_write_first_at_one_moment_lose_nothing() {
        for seed in 0..100 {
            let counts = crate::testing::run(seed, 4, |data, worker| {
                let key = [worker as u8 % 2];
                let count = |entry: Option<&Entry>| entry.map_or(0, |entry| entry.value[0]);
                TABLE.update(data, &key, 0, |entry| Update::Put(vec![count(entry) + 1], 10)).unwrap();
                // The last worker sees what all have written.
                [0, 1].map(|key| count(TABLE.get(data, &[key], 0).as_ref()))
            });
            assert_eq!(counts.into_iter().max(), Some([2, 2]), "seed {seed}");
        }
    }

    #[test]
    fn what_is_kept_gives_way_to_nothing() {
        let data = MemorySharedData::default();
        let put = |key: &[u8], value: &[u8], until| {
            TABLE.update_keeping(&data, key, 0, |value| value == b"keep", |_| Update::Put(value.to_vec(), until))
        };
        put(b"a", b"keep", 10).unwrap();
        put(b"b", b"", 90).unwrap();
        put(b"c", b"", 50).unwrap();
        assert!(TABLE.get(&data, b"a", 0).is_some() && TABLE.get(&data, b"b", 0).is_none());
        put(b"d", b"keep", 20).unwrap();
        assert_eq!(put(b"e", b"", 99), Err(Conflict), "there is no room");
        put(b"f", b"keep", 20).unwrap();
        assert!([&b"a"[..], b"d", b"f"].iter().all(|key| TABLE.get(&data, key, 0).is_some()));
    }

    #[test]
    fn updates_see_the_value_before_them_and_may_remove_it() {
        let data = MemorySharedData::default();
        for _ in 0..3 {
            let count = |entry: Option<&Entry>| entry.map_or(0, |entry| entry.value[0]);
            TABLE.update(&data, b"n", 0, |entry| Update::Put(vec![count(entry) + 1], 10)).unwrap();
        }
        assert_eq!(TABLE.get(&data, b"n", 0).unwrap().value, [3]);
        TABLE.update(&data, b"n", 0, |_| Update::Remove).unwrap();
        assert_eq!(TABLE.get(&data, b"n", 0), None);
    }

    #[test]
    fn what_was_done_is_due_again_after_the_silence() {
        let data = MemorySharedData::default();
        let due = |subject: &[u8], now| TABLE.is_due(&data, subject, now, 100);
        assert_eq!(
            [due(b"a", 0), due(b"a", 0), due(b"a", 99), due(b"a", 100), due(b"a", 101)],
            [true, false, false, true, false]
        );
        assert_eq!([due(b"b", 150), due(b"a", 150)], [true, false], "subjects are apart");
        let long = [b'x'; MAX_FIELD + 1];
        assert_eq!([due(&long, 150), due(&long, 150)], [true, false], "one of any length");
        // A clock that was set back makes no silence of days.
        assert_eq!([due(&long, 50), due(&long, 149), due(&long, 150)], [true, false, true]);
        let other = Table { name: "other", ..TABLE };
        assert!(other.is_due(&data, b"b", 150, 100));
    }

    #[test]
    fn a_stale_write_is_seen_and_a_damaged_shard_does_not_stop_anything() {
        let data = MemorySharedData::default();
        data.set("t/0", b"\xff\xff\xff", None).unwrap();
        let (_, token) = data.get("t/0").unwrap();
        data.set("t/0", b"other", Some(token)).unwrap();
        assert_eq!(data.set("t/0", b"late", Some(token)), Err(Conflict));
        put(&data, b"k", b"v", 0, 10);
        assert_eq!(TABLE.get(&data, b"k", 0).unwrap().value, b"v");
    }
}
