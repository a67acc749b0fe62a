//! Sets with a cap, one for each key.

use crate::SharedData;
use crate::keyed::{Change, Keyed};

/// The most members that a set can be made for.
pub const MAX_MEMBERS: u16 = 1024;

/// How many parts of its lifetime the age of a member is known in.
const SLICES: u64 = 16;

/// Which different things were seen with each key within the last minutes or hours, over all workers of the node: the user
/// names that an address tried, the objects that a client read. A set has a cap; a full one takes no new member.
///
/// A member stays for `millis` after it was last inserted, and for up to a sixteenth of that more. It takes 8 bytes: the age,
/// and 56 bits of its keyed hash, so that the chance that a new member is mistaken for a known one is below one in 10^13.
///
/// When there are more keys than planned for, the smallest sets give way ([`WorkerMemory::take_losses`] counts them). For
/// clocks that are put back, the rules of [`Windows`](crate::Windows) hold.
///
/// [`WorkerMemory::take_losses`]: crate::WorkerMemory::take_losses
#[derive(Debug, Clone, Copy)]
pub struct Sets {
    table: Keyed<'static>,
    cap: u16,
    /// A part of the lifetime, in milliseconds.
    slice: u64,
}

/// What an insertion found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Membership {
    /// The member is new, and in the set.
    Added,
    /// The member was in the set. Its time begins anew.
    Known,
    /// The member is new, and the set is full: it was not added.
    Full,
}

/// A set after an insertion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Inserted {
    /// Whether the member is in the set, and since when.
    pub membership: Membership,
    /// How many members the set has.
    pub size: u16,
    /// Whether the insertion was not stored, because other workers wrote first at each of sixteen tries.
    pub lost: bool,
}

/// The newest slice in which a member was inserted, and the members: seven bytes of the hash and the slice's last byte.
struct Members {
    newest: u64,
    members: Vec<[u8; 8]>,
}

impl Sets {
    /// Sets of at most `cap` members (1 to [`MAX_MEMBERS`]) that stay for `millis` milliseconds, with room for `max_keys` sets
    /// (1 to [`MAX_KEYS`](crate::MAX_KEYS)). Values out of bounds are set to the nearest bound. `name` is the prefix of the
    /// keys in shared data, unique on the node.
    #[must_use]
    pub const fn new(name: &'static str, cap: u16, millis: u64, max_keys: u32) -> Self {
        let cap = if cap == 0 {
            1
        } else if cap > MAX_MEMBERS {
            MAX_MEMBERS
        } else {
            cap
        };
        let slice = if millis == 0 { 1 } else { millis.div_ceil(SLICES) };
        Self { table: Keyed::new(name, max_keys, 8 + 8 * cap as usize, slice.saturating_mul(SLICES + 1)), cap, slice }
    }

    /// Adds a member to the set under `key`.
    pub fn insert(&self, data: &dyn SharedData, key: &[u8], member: &[u8], now: u64) -> Inserted {
        let print = self.print(data, member);
        let edited = self.table.update(
            data,
            key,
            now,
            |value| value.len() as u64,
            |value| {
                let mut set = self.read(value.unwrap_or_default(), now);
                let age = last_byte(set.newest);
                let full = set.members.len() >= usize::from(self.cap);
                let membership = match set.members.iter_mut().find(|known| known.first_chunk() == Some(&print)) {
                    Some([.., at]) if *at == age => return ((Membership::Known, set.size()), Change::Keep),
                    Some([.., at]) => {
                        *at = age;
                        Membership::Known
                    }
                    None if full => {
                        return ((Membership::Full, set.size()), Change::Keep);
                    }
                    None => {
                        let [a, b, c, d, e, f, g] = print;
                        set.members.push([a, b, c, d, e, f, g, age]);
                        Membership::Added
                    }
                };
                ((membership, set.size()), Change::Put { value: set.encode(), until: self.end(set.newest) })
            },
        );
        let (membership, size) = edited.result;
        Inserted { membership, size, lost: edited.lost }
    }

    /// Whether the set under `key` has this member.
    #[must_use]
    pub fn contains(&self, data: &dyn SharedData, key: &[u8], member: &[u8], now: u64) -> bool {
        let print = self.print(data, member);
        let value = self.table.get(data, key, now).unwrap_or_default();
        self.read(&value, now).members.iter().any(|known| known.first_chunk() == Some(&print))
    }

    /// How many members the set under `key` has.
    #[must_use]
    pub fn size(&self, data: &dyn SharedData, key: &[u8], now: u64) -> u16 {
        self.table.get(data, key, now).map_or(0, |value| self.read(&value, now).size())
    }

    /// Removes the set under `key`. False if that was lost to other workers.
    pub fn clear(&self, data: &dyn SharedData, key: &[u8], now: u64) -> bool {
        !self.table.update(data, key, now, |value| value.len() as u64, |_| ((), Change::Remove)).lost
    }

    fn print(&self, data: &dyn SharedData, member: &[u8]) -> [u8; 7] {
        let [print @ .., _] = data.memory().secret(data).hash(self.table.name(), member).to_le_bytes();
        print
    }

    /// The members that are left at `now`.
    fn read(&self, value: &[u8], now: u64) -> Members {
        let now = now / self.slice;
        let stored = value.split_first_chunk::<8>().map(|(newest, members)| (u64::from_le_bytes(*newest), members));
        let Some((newest, members)) = stored.filter(|(newest, _)| newest.saturating_sub(now) <= SLICES) else {
            return Members { newest: now, members: Vec::new() };
        };
        let passed = now.saturating_sub(newest);
        // No member in the value is older than all slices: the byte says which slice it is.
        let age = |[.., at]: &[u8; 8]| u64::from(last_byte(newest).wrapping_sub(*at)).saturating_add(passed);
        let members = members.as_chunks::<8>().0.iter().filter(|member| age(member) <= SLICES).copied().collect();
        Members { newest: newest.max(now), members }
    }

    fn end(&self, slice: u64) -> u64 {
        slice.saturating_add(SLICES + 1).saturating_mul(self.slice)
    }
}

impl Members {
    fn size(&self) -> u16 {
        u16::try_from(self.members.len()).unwrap_or(u16::MAX)
    }

    fn encode(&self) -> Vec<u8> {
        let mut value = Vec::with_capacity(8 + 8 * self.members.len());
        value.extend_from_slice(&self.newest.to_le_bytes());
        value.extend_from_slice(self.members.as_flattened());
        value
    }
}

pub(crate) fn last_byte(slice: u64) -> u8 {
    let [last, ..] = slice.to_le_bytes();
    last
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::MemorySharedData;
    use crate::testing::{self, Random};

    const NOW: u64 = 1_700_000_000_000;

    fn inserted(membership: Membership, size: u16) -> Inserted {
        Inserted { membership, size, lost: false }
    }

    #[test]
    fn a_full_set_knows_its_members_and_takes_no_other() {
        let sets = Sets::new("objects", 3, 1600, 100);
        let data = MemorySharedData::default();
        let insert = |member: &[u8], after| sets.insert(&data, b"client", member, NOW + after);
        assert_eq!(insert(b"a", 0), inserted(Membership::Added, 1));
        assert_eq!(insert(b"a", 1), inserted(Membership::Known, 1));
        assert_eq!(insert(b"b", 200), inserted(Membership::Added, 2));
        assert_eq!(insert(b"c", 400), inserted(Membership::Added, 3));
        assert_eq!(insert(b"d", 500), inserted(Membership::Full, 3));
        assert_eq!(insert(b"b", 600), inserted(Membership::Known, 3));
        assert!(sets.contains(&data, b"client", b"a", NOW + 1600));
        // `a` has left: there is room for one.
        assert_eq!(insert(b"d", 1700), inserted(Membership::Added, 3));
        assert!(!sets.contains(&data, b"client", b"a", NOW + 1700));
        assert_eq!((sets.size(&data, b"client", NOW + 1700), sets.size(&data, b"other", NOW + 1700)), (3, 0));
        assert!(sets.clear(&data, b"client", NOW + 1700));
        assert_eq!(insert(b"a", 1700), inserted(Membership::Added, 1));
    }

    #[test]
    fn random_insertions_agree_with_a_map_of_members() {
        for seed in 0..40 {
            let cap = [1, 7, 60, 1024][seed as usize % 4];
            let sets = Sets::new("random", cap, 1600, 100);
            let data = MemorySharedData::default();
            let mut random = Random(seed);
            // The last insertion of each member, in slices of 100 ms.
            let mut model: BTreeMap<u64, u64> = BTreeMap::new();
            let mut now = NOW;
            for _ in 0..2000 {
                now += random.below(20) + random.below(300) / 299 * 30_000;
                model.retain(|_, at| now / 100 - *at <= 16);
                let member = random.below(u64::from(cap) * 2);
                let expected = match model.contains_key(&member) {
                    true => Membership::Known,
                    false if model.len() < usize::from(cap) => Membership::Added,
                    false => Membership::Full,
                };
                if expected != Membership::Full {
                    model.insert(member, now / 100);
                }
                let found = sets.insert(&data, b"k", &member.to_le_bytes(), now);
                assert_eq!(found, inserted(expected, model.len() as u16), "seed {seed}");
            }
        }
    }

    #[test]
    fn a_clock_that_is_behind_neither_loses_members_nor_makes_them_stay() {
        let sets = Sets::new("objects", 10, 1600, 100);
        let data = MemorySharedData::default();
        sets.insert(&data, b"k", b"a", NOW);
        assert_eq!(sets.insert(&data, b"k", b"b", NOW - 900), inserted(Membership::Added, 2));
        assert_eq!(sets.insert(&data, b"k", b"a", NOW - 1500), inserted(Membership::Known, 2));
        assert_eq!(sets.size(&data, b"k", NOW + 1700), 0);
        sets.insert(&data, b"k", b"c", NOW + 3_600_000);
        assert_eq!(sets.size(&data, b"k", NOW), 0, "the clock was put back by an hour");
        assert_eq!(sets.insert(&data, b"k", b"a", NOW), inserted(Membership::Added, 1));
    }

    #[test]
    fn a_million_members_and_a_million_keys_keep_to_their_room() {
        let sets = Sets::new("flood", 120, 60_000, 100);
        let data = MemorySharedData::default();
        for member in 0..1_000_000_u32 {
            sets.insert(&data, b"enumerator", &member.to_le_bytes(), NOW);
        }
        assert_eq!(sets.size(&data, b"enumerator", NOW), 120);
        for key in 0..1_000_000_u32 {
            sets.insert(&data, &key.to_le_bytes(), b"member", NOW);
        }
        assert_eq!(sets.size(&data, b"enumerator", NOW), 120, "larger sets outlast smaller ones");
        let kept = (0..1_000_000_u32).filter(|key| sets.size(&data, &key.to_le_bytes(), NOW) > 0).count();
        assert!(kept < sets.table.capacity());
        assert_eq!(data.memory().take_losses()[0].1.evicted, 1_000_000 - kept as u64);
    }

    #[test]
    fn no_interleaving_admits_more_members_than_the_cap() {
        let sets = Sets::new("race", 50, 60_000, 1);
        for seed in 0..40 {
            let added = testing::run(seed, 6, |data, worker| {
                let mut added = 0;
                for step in 0..40_u64 {
                    // Some members come from several workers at once.
                    let member = if step % 2 == 0 { step } else { step * 100 + worker as u64 };
                    let inserted = sets.insert(data, b"k", &member.to_le_bytes(), NOW);
                    assert!(inserted.size <= 50);
                    added += u32::from(inserted.membership == Membership::Added && !inserted.lost);
                }
                added
            });
            assert_eq!(added.iter().sum::<u32>(), 50, "seed {seed}");
        }
    }
}
