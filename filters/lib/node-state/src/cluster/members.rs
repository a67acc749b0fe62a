//! Sets with a cap, of the members of this node and of the others.

use crate::SharedData;
use crate::keyed::{Change, Keyed};
use crate::sets::{MAX_MEMBERS, Membership, last_byte};
use crate::windows::MAX_SLICES;

/// What the losses of all such tables are counted under.
const LOSSES: &str = "cluster.sets";

/// [`Sets`](crate::Sets) whose members are those of this node and those of all other nodes, under hashes that all nodes have in
/// common ([`ClusterKey`](crate::ClusterKey)). A set takes 26 bytes, and 9 for each member.
#[derive(Debug, Clone)]
pub struct ClusterSets {
    name: String,
    cap: u16,
    max_keys: u32,
    slice: u64,
    slices: u8,
}

/// A set after an insertion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Joined {
    /// Whether the member is in the set, and since when.
    pub membership: Membership,
    /// How many members the set has, of all nodes.
    pub size: u16,
    /// Whether other nodes have something to learn: the member is new on this node, or its time begins anew.
    pub news: bool,
}

/// A member: its hash of 56 bits, the number of the slice in which it was inserted last, and whether this node did so.
struct Member {
    hash: u64,
    slice: u64,
    own: bool,
}

/// The bytes of a member: seven of its hash, the last of its slice, and whether it is this node's.
const BYTES: usize = 9;

struct Members {
    newest: u64,
    members: Vec<Member>,
}

impl ClusterSets {
    /// Sets of at most `cap` members (1 to [`MAX_MEMBERS`]) that stay for `slices` slices (1 to [`MAX_SLICES`]) of `slice`
    /// milliseconds, with room for `max_keys` sets (1 to [`MAX_KEYS`](crate::MAX_KEYS)). Values out of bounds are set to the
    /// nearest bound. `name` is the prefix of the keys in shared data, unique on the node.
    #[must_use]
    pub fn new(name: String, cap: u16, slice: u64, slices: u8, max_keys: u32) -> Self {
        let (cap, slices) = (cap.clamp(1, MAX_MEMBERS), slices.clamp(1, MAX_SLICES));
        Self { name, cap, max_keys, slice: slice.max(1), slices }
    }

    fn table(&self) -> Keyed<'_> {
        let lifetime = self.slice.saturating_mul(u64::from(self.slices) + 1);
        Keyed::named(&self.name, LOSSES, self.max_keys, 8 + BYTES * usize::from(self.cap), lifetime)
    }

    /// Adds a member to the set under `key`. The last value is whether that was not stored, because other workers wrote first at
    /// each of sixteen tries.
    pub fn insert(&self, data: &dyn SharedData, key: u64, member: u64, now: u64) -> (Joined, bool) {
        let edited = self.table().update_hashed(data, key, now, weight, |value| {
            let mut set = self.read(value.unwrap_or_default(), now);
            let (membership, news) = set.join(member, set.newest, true, self.cap);
            let joined = Joined { membership, size: set.size(), news };
            (joined, if news { self.put(&set) } else { Change::Keep })
        });
        (edited.result, edited.lost)
    }

    /// Takes over members of other nodes, each with the number of the slice in which it was inserted last. A full set takes none.
    pub fn learn(&self, data: &dyn SharedData, key: u64, members: &[(u64, u64)], now: u64) {
        self.table().update_hashed(data, key, now, weight, |value| {
            let mut set = self.read(value.unwrap_or_default(), now);
            let mut news = false;
            for (member, slice) in members {
                // Neither one that has left nor one of a clock that is far ahead; a little ahead counts as now.
                if slice.abs_diff(set.newest) <= u64::from(self.slices) {
                    news |= set.join(*member, (*slice).min(set.newest), false, self.cap).1;
                }
            }
            ((), if news { self.put(&set) } else { Change::Keep })
        });
    }

    /// Whether the set under `key` has a member, and how many it has.
    #[must_use]
    pub fn contains(&self, data: &dyn SharedData, key: u64, member: u64, now: u64) -> (bool, u16) {
        let set = self.read(&self.table().get_hashed(data, key, now).unwrap_or_default(), now);
        (set.members.iter().any(|known| known.hash == member), set.size())
    }

    /// This node's members of a set, each with the number of the slice in which it was inserted last.
    #[must_use]
    pub fn own(&self, data: &dyn SharedData, key: u64, now: u64) -> Vec<(u64, u64)> {
        self.read(&self.table().get_hashed(data, key, now).unwrap_or_default(), now).own()
    }

    /// How many parts the table has, for [`ClusterSets::keys`].
    #[must_use]
    pub fn parts(&self) -> u32 {
        self.table().shards()
    }

    /// The keys in a part of the table whose sets have members of this node.
    #[must_use]
    pub fn keys(&self, data: &dyn SharedData, part: u32, now: u64) -> Vec<u64> {
        let live = self.table().live_in(data, part, now).into_iter();
        live.filter(|(_, value)| !self.read(value, now).own().is_empty()).map(|(key, _)| key).collect()
    }

    fn put(&self, set: &Members) -> Change {
        let end = set.newest.saturating_add(u64::from(self.slices) + 1).saturating_mul(self.slice);
        Change::Put { value: set.encode(), until: end }
    }

    /// The members that are left at `now`.
    fn read(&self, value: &[u8], now: u64) -> Members {
        let (now, slices) = (now / self.slice, u64::from(self.slices));
        let stored = value.split_first_chunk::<8>().map(|(newest, members)| (u64::from_le_bytes(*newest), members));
        let Some((newest, members)) = stored.filter(|(newest, _)| newest.saturating_sub(now) <= slices) else {
            return Members { newest: now, members: Vec::new() };
        };
        let current = newest.max(now);
        let member = |[a, b, c, d, e, f, g, at, own]: &[u8; BYTES]| {
            // No member in the value is older than all slices: the byte says which slice it is.
            let ago = u64::from(last_byte(newest).wrapping_sub(*at));
            let hash = u64::from_le_bytes([*a, *b, *c, *d, *e, *f, *g, 0]);
            Member { hash, slice: newest.saturating_sub(ago), own: *own != 0 }
        };
        let members = members.as_chunks::<BYTES>().0.iter().map(member);
        Members { newest: current, members: members.filter(|member| current - member.slice <= slices).collect() }
    }
}

impl Members {
    /// The second value is whether the entry has changed.
    fn join(&mut self, hash: u64, slice: u64, own: bool, cap: u16) -> (Membership, bool) {
        if let Some(known) = self.members.iter_mut().find(|known| known.hash == hash) {
            let news = known.slice < slice || (own && !known.own);
            known.slice = known.slice.max(slice);
            known.own |= own;
            return (Membership::Known, news);
        }
        if self.members.len() >= usize::from(cap) {
            return (Membership::Full, false);
        }
        self.members.push(Member { hash, slice, own });
        (Membership::Added, true)
    }

    fn size(&self) -> u16 {
        u16::try_from(self.members.len()).unwrap_or(u16::MAX)
    }

    fn own(&self) -> Vec<(u64, u64)> {
        self.members.iter().filter(|member| member.own).map(|member| (member.hash, member.slice)).collect()
    }

    fn encode(&self) -> Vec<u8> {
        let mut bytes = self.newest.to_le_bytes().to_vec();
        for Member { hash, slice, own } in &self.members {
            let [a, b, c, d, e, f, g, _] = hash.to_le_bytes();
            let [at, ..] = slice.to_le_bytes();
            bytes.extend_from_slice(&[a, b, c, d, e, f, g, at, u8::from(*own)]);
        }
        bytes
    }
}

/// Larger sets outlast smaller ones.
fn weight(value: &[u8]) -> u64 {
    value.len() as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MemorySharedData;
    use crate::testing;

    const NOW: u64 = 1_700_000_000_000;
    const SLICE: u64 = NOW / 100;

    fn sets(cap: u16) -> ClusterSets {
        ClusterSets::new("objects".to_owned(), cap, 100, 16, 100)
    }

    fn joined(membership: Membership, size: u16, news: bool) -> (Joined, bool) {
        (Joined { membership, size, news }, false)
    }

    #[test]
    fn members_of_all_nodes_fill_the_set_and_leave_with_their_time() {
        let (sets, data) = (sets(4), MemorySharedData::default());
        assert_eq!(sets.insert(&data, 1, 10, NOW), joined(Membership::Added, 1, true));
        assert_eq!(sets.insert(&data, 1, 10, NOW), joined(Membership::Known, 1, false));
        sets.learn(&data, 1, &[(20, SLICE), (30, SLICE - 5), (40, SLICE - 99)], NOW);
        assert_eq!(sets.contains(&data, 1, 20, NOW), (true, 3));
        assert_eq!(sets.own(&data, 1, NOW), [(10, SLICE)]);
        assert_eq!(sets.insert(&data, 1, 20, NOW), joined(Membership::Known, 3, true), "now it is this node's too");
        assert_eq!(sets.insert(&data, 1, 50, NOW), joined(Membership::Added, 4, true));
        assert_eq!(sets.insert(&data, 1, 60, NOW), joined(Membership::Full, 4, false));
        sets.learn(&data, 1, &[(70, SLICE)], NOW);
        assert_eq!(sets.contains(&data, 1, 70, NOW), (false, 4));
        // The one that another node has seen five slices ago leaves first: after sixteen, and the rest of its own.
        assert_eq!(sets.contains(&data, 1, 30, NOW + 1_199), (true, 4));
        assert_eq!(sets.contains(&data, 1, 30, NOW + 1_200), (false, 3));
        assert_eq!(sets.contains(&data, 1, 20, NOW + 1_699), (true, 3));
        assert_eq!(sets.contains(&data, 1, 20, NOW + 1_700), (false, 0));
    }

    #[test]
    fn what_is_learned_twice_changes_nothing_and_a_later_time_stands() {
        let (sets, data) = (sets(4), MemorySharedData::default());
        for learned in [(20, SLICE - 3), (20, SLICE - 3), (20, SLICE - 8)] {
            sets.learn(&data, 1, &[learned], NOW);
            assert_eq!(sets.contains(&data, 1, 20, NOW + 1_300), (true, 1));
            assert_eq!(sets.contains(&data, 1, 20, NOW + 1_400), (false, 0));
        }
        sets.learn(&data, 1, &[(20, SLICE + 1), (30, SLICE + 99)], NOW);
        assert_eq!(sets.contains(&data, 1, 20, NOW + 1_600), (true, 1));
        assert_eq!(sets.contains(&data, 1, 30, NOW), (false, 1), "a clock that is far ahead");
        assert!(sets.own(&data, 1, NOW).is_empty());
    }

    #[test]
    fn no_interleaving_has_more_members_than_the_cap() {
        for seed in 0..20 {
            let added = testing::run(seed, 5, |data, worker| {
                let member = |step: u64| step * 10 + worker as u64 % 2;
                let insert = |step| sets(20).insert(data, 1, member(step), NOW);
                (0..30).map(insert).filter(|(joined, lost)| joined.membership == Membership::Added && !lost).count()
            });
            assert_eq!(added.iter().sum::<usize>(), 20, "seed {seed}");
        }
    }

    #[test]
    fn keys_are_found_part_by_part_without_those_of_others() {
        let (sets, data) = (sets(4), MemorySharedData::default());
        for key in 0..50 {
            sets.insert(&data, key, 5, NOW);
        }
        sets.learn(&data, 1_000, &[(1, SLICE)], NOW);
        let mut keys: Vec<u64> = (0..sets.parts()).flat_map(|part| sets.keys(&data, part, NOW)).collect();
        keys.sort_unstable();
        assert_eq!(keys, (0..50).collect::<Vec<_>>());
    }
}
