//! Entries under hashed keys: what windows and sets lie in.
//!
//! The shards of a [`crate::Table`] hold whole keys, chosen by a hash that anyone can compute. Here a key is its keyed hash of
//! 64 bits: an entry costs 18 bytes beside its value however long the key is, and no client can tell which keys share a
//! shard, nor find two keys with one counter.

use crate::SharedData;
use crate::cas::{self, Edited};
use crate::memory::Losses;

/// The most keys that a table can be made for.
pub const MAX_KEYS: u32 = 1 << 20;

/// How many entries a shard has at most.
const ENTRIES: usize = 32;

/// How many keys of its maximum a table plans for in each shard of 32: hashing fills shards unevenly, and with a quarter of
/// the places spare fewer than one key in a hundred finds its shard full.
const PLANNED: u32 = 24;

/// The bytes of an entry beside its value.
const HEAD: usize = 18;

/// The most bytes of a full shard whose entries are large, unless even four entries are more.
const SHARD_BYTES: usize = 16 * 1024;

/// Entries under hashed keys, in shards.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Keyed<'n> {
    name: &'n str,
    /// What its losses are counted under.
    losses: &'static str,
    shards: u32,
    per_shard: usize,
    /// The longest that an entry lives after an update, in milliseconds.
    lifetime: u64,
}

/// What an update makes of an entry.
pub(crate) enum Change {
    Keep,
    Put {
        value: Vec<u8>,
        /// In milliseconds since the Unix epoch.
        until: u64,
    },
    Remove,
}

#[derive(Clone, Copy)]
struct Stored<'a> {
    hash: u64,
    until: u64,
    value: &'a [u8],
}

impl Keyed<'static> {
    /// A table with room for `max_keys` keys (1 to [`MAX_KEYS`]) with values of up to `max_value` bytes.
    pub(crate) const fn new(name: &'static str, max_keys: u32, max_value: usize, lifetime: u64) -> Self {
        Self::named(name, name, max_keys, max_value, lifetime)
    }
}

impl<'n> Keyed<'n> {
    /// The same for a name that is not known before the program runs; its losses are counted under `losses`.
    pub(crate) const fn named(
        name: &'n str,
        losses: &'static str,
        max_keys: u32,
        max_value: usize,
        lifetime: u64,
    ) -> Self {
        let fit = SHARD_BYTES / (max_value + HEAD);
        let per_shard = if fit < 4 {
            4
        } else if fit > ENTRIES {
            ENTRIES
        } else {
            fit
        };
        let keys = if max_keys > MAX_KEYS { MAX_KEYS } else { max_keys };
        #[allow(clippy::cast_possible_truncation, reason = "at most 32")]
        let planned = per_shard as u32 * PLANNED / ENTRIES as u32;
        let shards = keys.div_ceil(planned);
        Self { name, losses, shards: if shards == 0 { 1 } else { shards }, per_shard, lifetime }
    }

    /// The most entries that the table ever has.
    #[cfg(test)]
    pub(crate) fn capacity(&self) -> usize {
        usize::try_from(self.shards).unwrap() * self.per_shard
    }

    /// The name of the table.
    pub(crate) const fn name(&self) -> &'n str {
        self.name
    }

    /// The value of the live entry under `key`.
    pub(crate) fn get(&self, data: &dyn SharedData, key: &[u8], now: u64) -> Option<Vec<u8>> {
        self.get_hashed(data, self.hash(data, key), now)
    }

    /// The same for the hash of a key.
    pub(crate) fn get_hashed(&self, data: &dyn SharedData, hash: u64, now: u64) -> Option<Vec<u8>> {
        let (bytes, _) = data.get(&self.shard(self.shard_of(hash)))?;
        Entries(&bytes).find(|entry| entry.hash == hash && self.lives(*entry, now)).map(|entry| entry.value.to_vec())
    }

    /// Replaces the entry under `key` by what `change` makes of its value, atomically over all workers. In a full shard the
    /// entry with the least `weight` gives way, among those of equal weight the one that ends first: a flood of new keys
    /// pushes out its own keys rather than the counter of a client that has been counted for long.
    pub(crate) fn update<R>(
        &self,
        data: &dyn SharedData,
        key: &[u8],
        now: u64,
        weight: impl Fn(&[u8]) -> u64,
        change: impl FnMut(Option<&[u8]>) -> (R, Change),
    ) -> Edited<R> {
        self.update_hashed(data, self.hash(data, key), now, weight, change)
    }

    /// The same for the hash of a key.
    pub(crate) fn update_hashed<R>(
        &self,
        data: &dyn SharedData,
        hash: u64,
        now: u64,
        weight: impl Fn(&[u8]) -> u64,
        mut change: impl FnMut(Option<&[u8]>) -> (R, Change),
    ) -> Edited<R> {
        let shard = self.shard(self.shard_of(hash));
        let Edited { result: (result, evicted), lost } = cas::edit(data, &shard, |bytes| {
            let found = self.find(bytes, hash, now);
            let (result, change) = change(found.value);
            let put = match change {
                Change::Keep => return ((result, 0), None),
                Change::Remove if found.value.is_none() => return ((result, 0), None),
                Change::Remove => None,
                Change::Put { value, until } => Some((value, until)),
            };
            let put = put.as_ref().map(|(value, until)| Stored { hash, until: *until, value });
            let room = self.per_shard.saturating_sub(usize::from(put.is_some()));
            if found.all_live && found.others <= room {
                return ((result, 0), Some(join(found.around, put)));
            }
            let mut others: Vec<Stored<'_>> = found.around.into_iter().flat_map(Entries).collect();
            others.retain(|entry| self.lives(*entry, now));
            let evicted = make_room(&mut others, room, &weight);
            ((result, evicted), Some(encode(others.into_iter().chain(put))))
        });
        data.memory()
            .note(self.losses, Losses { lost_updates: u64::from(lost), evicted: if lost { 0 } else { evicted } });
        Edited { result, lost }
    }

    /// Looks for the live entry of a hash.
    fn find<'a>(&self, bytes: &'a [u8], hash: u64, now: u64) -> Found<'a> {
        let mut found = Found { value: None, around: [bytes, &[]], others: 0, all_live: true };
        let mut entries = Entries(bytes);
        loop {
            let from = bytes.len() - entries.0.len();
            let Some(entry) = entries.next() else { break };
            if !self.lives(entry, now) {
                found.all_live = false;
            } else if entry.hash == hash && found.value.is_none() {
                found.value = Some(entry.value);
                found.around = [bytes.get(..from).unwrap_or_default(), entries.0];
            } else {
                found.others += 1;
            }
        }
        found.all_live &= entries.0.is_empty();
        found
    }

    /// An end further away than any update sets one was written by a clock that has since been put back: such an entry would
    /// outlive its window by as much.
    fn lives(&self, entry: Stored<'_>, now: u64) -> bool {
        entry.until > now && entry.until - now <= self.lifetime.saturating_mul(2)
    }

    /// How many shards the table has.
    pub(crate) const fn shards(&self) -> u32 {
        if self.shards == 0 { 1 } else { self.shards }
    }

    /// The hashes of the live keys in a shard, with their values.
    pub(crate) fn live_in(&self, data: &dyn SharedData, shard: u32, now: u64) -> Vec<(u64, Vec<u8>)> {
        let Some((bytes, _)) = data.get(&self.shard(u64::from(shard))) else { return Vec::new() };
        let live = Entries(&bytes).filter(|entry| self.lives(*entry, now));
        live.map(|entry| (entry.hash, entry.value.to_vec())).collect()
    }

    fn hash(&self, data: &dyn SharedData, key: &[u8]) -> u64 {
        data.memory().secret(data).hash(self.name, key)
    }

    fn shard_of(&self, hash: u64) -> u64 {
        hash % u64::from(self.shards())
    }

    /// The key of a shard in shared data.
    fn shard(&self, number: u64) -> String {
        format!("{}/{number}", self.name)
    }
}

/// Where an entry is in its shard.
struct Found<'a> {
    /// The value of the live entry.
    value: Option<&'a [u8]>,
    /// What lies before it and behind it.
    around: [&'a [u8]; 2],
    /// How many other entries live.
    others: usize,
    /// Whether all of the shard is live entries.
    all_live: bool,
}

/// Removes entries until so many are left; how many it removed.
fn make_room(entries: &mut Vec<Stored<'_>>, most: usize, weight: &impl Fn(&[u8]) -> u64) -> u64 {
    let mut removed = 0;
    while entries.len() > most {
        let lightest = entries.iter().enumerate().min_by_key(|(_, entry)| (weight(entry.value), entry.until));
        let Some((place, _)) = lightest else { break };
        entries.swap_remove(place);
        removed += 1;
    }
    removed
}

/// Every whole entry: the hash, the end (u64 each), the length of the value (u16), the value; little endian. A damaged tail
/// ends the list, and is left over.
struct Entries<'a>(&'a [u8]);

impl<'a> Iterator for Entries<'a> {
    type Item = Stored<'a>;

    fn next(&mut self) -> Option<Stored<'a>> {
        let (hash, rest) = self.0.split_first_chunk::<8>()?;
        let (until, rest) = rest.split_first_chunk::<8>()?;
        let (length, rest) = rest.split_first_chunk::<2>()?;
        let (value, rest) = rest.split_at_checked(usize::from(u16::from_le_bytes(*length)))?;
        self.0 = rest;
        Some(Stored { hash: u64::from_le_bytes(*hash), until: u64::from_le_bytes(*until), value })
    }
}

impl Stored<'_> {
    fn size(&self) -> usize {
        HEAD + self.value.len()
    }

    /// A value that is too long for its length is left out.
    fn write(&self, to: &mut Vec<u8>) {
        let Ok(length) = u16::try_from(self.value.len()) else { return };
        to.extend_from_slice(&self.hash.to_le_bytes());
        to.extend_from_slice(&self.until.to_le_bytes());
        to.extend_from_slice(&length.to_le_bytes());
        to.extend_from_slice(self.value);
    }
}

/// Entries as they lie in a shard, and one more.
fn join(entries: [&[u8]; 2], more: Option<Stored<'_>>) -> Vec<u8> {
    let [before, behind] = entries;
    let mut bytes = Vec::with_capacity(before.len() + behind.len() + more.map_or(0, |entry| entry.size()));
    bytes.extend_from_slice(before);
    bytes.extend_from_slice(behind);
    more.iter().for_each(|entry| entry.write(&mut bytes));
    bytes
}

fn encode<'a>(entries: impl Iterator<Item = Stored<'a>> + Clone) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(entries.clone().map(|entry| entry.size()).sum());
    entries.for_each(|entry| entry.write(&mut bytes));
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MemorySharedData;

    const TABLE: Keyed<'static> = Keyed::new("t", 1, 8, 1000);

    fn put(data: &MemorySharedData, key: &[u8], weight: u8, now: u64, until: u64) {
        let edited = TABLE.update(
            data,
            key,
            now,
            |value| u64::from(value[0]),
            |_| ((), Change::Put { value: vec![weight], until }),
        );
        assert!(!edited.lost);
    }

    #[test]
    fn a_full_shard_gives_up_the_lightest_then_what_ends_first() {
        let data = MemorySharedData::default();
        for key in 0..32_u8 {
            put(&data, &[key], if key < 2 { 1 } else { 9 }, 0, if key == 1 { 500 } else { 600 });
        }
        put(&data, b"next", 1, 0, 600);
        assert!(TABLE.get(&data, &[0], 0).is_some() && TABLE.get(&data, &[1], 0).is_none());
        put(&data, b"heavy", 9, 0, 600);
        assert!(TABLE.get(&data, &[31], 0).is_some());
        assert_eq!(data.memory().take_losses(), [("t", Losses { lost_updates: 0, evicted: 2 })]);
        assert_eq!(data.memory().take_losses(), []);
    }

    #[test]
    fn an_end_beyond_any_lifetime_is_not_believed() {
        let data = MemorySharedData::default();
        put(&data, b"k", 1, 900_000, 901_000);
        assert!(TABLE.get(&data, b"k", 899_500).is_some(), "clocks of two workers may differ");
        assert!(TABLE.get(&data, b"k", 901_000).is_none());
        assert!(TABLE.get(&data, b"k", 1000).is_none(), "the clock was put back");
    }

    #[test]
    fn a_damaged_shard_is_read_as_far_as_it_goes() {
        let data = MemorySharedData::default();
        put(&data, b"k", 7, 0, 10);
        let (mut bytes, _) = data.get("t/0").unwrap();
        bytes.extend_from_slice(&[1, 2, 3]);
        data.set("t/0", &bytes, None).unwrap();
        assert_eq!(TABLE.get(&data, b"k", 0), Some(vec![7]));
        data.set("t/0", &bytes[..10], None).unwrap();
        assert_eq!(TABLE.get(&data, b"k", 0), None);
        put(&data, b"k", 8, 0, 10);
        assert_eq!(TABLE.get(&data, b"k", 0), Some(vec![8]));
    }

    #[test]
    fn a_table_at_its_planned_size_loses_fewer_than_one_key_in_a_hundred() {
        let table = Keyed::new("planned", 48_000, 8, 1000);
        let data = MemorySharedData::default();
        for key in 0..48_000_u32 {
            table.update(&data, &key.to_le_bytes(), 0, |_| 1, |_| ((), Change::Put { value: vec![1], until: 1000 }));
        }
        let lost = data.memory().take_losses().first().map_or(0, |(_, losses)| losses.evicted);
        let kept = (0..48_000_u32).filter(|key| table.get(&data, &key.to_le_bytes(), 0).is_some()).count();
        assert_eq!(kept as u64 + lost, 48_000, "each loss is counted");
        assert!(lost < 480, "{lost}");
    }

    #[test]
    fn large_values_make_small_shards() {
        assert_eq!(Keyed::new("t", 1000, 8, 1).per_shard, 32);
        assert_eq!(Keyed::new("t", 1000, 1000, 1).per_shard, 16);
        assert_eq!(Keyed::new("t", 1000, 8200, 1).per_shard, 4);
        assert_eq!(Keyed::new("t", u32::MAX, 8, 1).capacity(), 1_398_112);
        assert_eq!(Keyed::new("t", 0, 8, 1).capacity(), 32);
    }
}
