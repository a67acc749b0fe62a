//! Which of many entries give way where there is no more room, so that one network cannot push out all others.

use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap};
use std::net::IpAddr;

use crate::identity::canonical;

/// Of the room, one place has a hundredth and one region a tenth before its own entries give way first. The same shares as of bans.
const SHARES: (usize, usize) = (100, 10);

/// Where an identity is from: the /24 or the /48 that it is in. All identities of another kind are of one place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Place {
    /// The first 24 bits of an address of IPv4.
    V4([u8; 3]),
    /// The first 48 bits of an address of IPv6.
    V6([u8; 6]),
    /// No address, but this kind.
    Other(&'static str),
}

/// The /16 or the /32 around a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Region {
    V4([u8; 2]),
    V6([u8; 4]),
    Other(&'static str),
}

/// A place in order: how many entries it has, and when its oldest one was seen. Of as many, the one with the oldest comes last.
type BySize = (usize, Reverse<u64>, Place);

/// Entries by place and age. Every change and every question takes a time that hardly grows with their number.
#[derive(Debug)]
pub struct Crowd<K> {
    members: HashMap<Place, BTreeSet<(u64, K)>>,
    places: BTreeSet<BySize>,
    /// The places of each region, and how many entries they have together.
    regions: HashMap<Region, (usize, BTreeSet<BySize>)>,
    sizes: BTreeSet<(usize, Region)>,
    /// Every place, by the age of its oldest entry.
    oldest: BTreeSet<(u64, Place)>,
}

// === impl Place ===

impl Place {
    /// The place of an identity by its key, such as `ip:192.0.2.1`, `ip:2001:db8::/64` or `user:ada`.
    #[must_use]
    pub fn of(key: &str) -> Place {
        let kind = key.split_once(':').map_or("", |(kind, _)| kind);
        let address = key.strip_prefix("ip:").map(|text| text.split_once('/').map_or(text, |(first, _)| first));
        match address.and_then(|address| address.parse().ok()).map(canonical) {
            Some(IpAddr::V4(address)) => {
                let [a, b, c, _] = address.octets();
                Place::V4([a, b, c])
            }
            Some(IpAddr::V6(address)) => {
                let [a, b, c, d, e, f, ..] = address.octets();
                Place::V6([a, b, c, d, e, f])
            }
            None => {
                Place::Other(["ip", "apikey", "user", "ja4"].into_iter().find(|known| *known == kind).unwrap_or(""))
            }
        }
    }

    fn region(self) -> Region {
        match self {
            Place::V4([a, b, _]) => Region::V4([a, b]),
            Place::V6([a, b, c, d, ..]) => Region::V6([a, b, c, d]),
            Place::Other(kind) => Region::Other(kind),
        }
    }
}

// === impl Crowd ===

impl<K> Default for Crowd<K> {
    fn default() -> Self {
        Crowd {
            members: HashMap::new(),
            places: BTreeSet::new(),
            regions: HashMap::new(),
            sizes: BTreeSet::new(),
            oldest: BTreeSet::new(),
        }
    }
}

impl<K: Ord + Clone> Crowd<K> {
    /// Adds an entry that was seen at `seen`; one that is there already stays.
    pub fn add(&mut self, place: Place, seen: u64, key: K) {
        self.change(place, |members| {
            members.insert((seen, key));
        });
    }

    /// Takes an entry out, if it is there.
    pub fn remove(&mut self, place: Place, seen: u64, key: K) {
        self.change(place, |members| {
            members.remove(&(seen, key));
        });
    }

    /// Takes out the entry that gives way first, where there is room for so many: the oldest one of the place that has the most, if that
    /// place or its region has more than its share, else the oldest of all.
    pub fn pop(&mut self, room: usize) -> Option<(u64, K)> {
        let (of_place, of_region) = ((room / SHARES.0).max(1), (room / SHARES.1).max(1));
        let in_region = |region: &Region| self.regions.get(region)?.1.last().map(|(_, _, place)| *place);
        let place = match (self.places.last(), self.sizes.last()) {
            (Some((count, _, place)), _) if *count > of_place => Some(*place),
            (_, Some((count, region))) if *count > of_region => in_region(region),
            _ => self.oldest.first().map(|(_, place)| *place),
        }?;
        let first = self.members.get(&place)?.first()?.clone();
        self.remove(place, first.0, first.1.clone());
        Some(first)
    }

    fn change(&mut self, place: Place, change: impl FnOnce(&mut BTreeSet<(u64, K)>)) {
        let members = self.members.entry(place).or_default();
        let before = summary(place, members);
        change(members);
        let after = summary(place, members);
        if after.is_none() {
            self.members.remove(&place);
        }
        if before == after {
            return;
        }
        let region = place.region();
        let (count, places) = self.regions.entry(region).or_default();
        self.sizes.remove(&(*count, region));
        if let Some(before) = before {
            *count = count.saturating_sub(before.0);
            places.remove(&before);
            self.places.remove(&before);
            self.oldest.remove(&(before.1.0, place));
        }
        if let Some(after) = after {
            *count += after.0;
            places.insert(after);
            self.places.insert(after);
            self.oldest.insert((after.1.0, place));
        }
        if *count > 0 {
            self.sizes.insert((*count, region));
        } else {
            self.regions.remove(&region);
        }
    }
}

/// `None` for a place without an entry.
fn summary<K: Ord>(place: Place, members: &BTreeSet<(u64, K)>) -> Option<BySize> {
    members.first().map(|(seen, _)| (members.len(), Reverse(*seen), place))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn crowd(keys: impl Iterator<Item = String>) -> Crowd<String> {
        let mut crowd = Crowd::default();
        for (key, seen) in keys.zip(1..) {
            crowd.add(Place::of(&key), seen, key);
        }
        crowd
    }

    fn size(crowd: &Crowd<String>) -> usize {
        let (members, regions) = (crowd.members.values(), crowd.regions.values());
        let all = members.map(BTreeSet::len).sum();
        assert_eq!(regions.map(|(count, _)| *count).sum::<usize>(), all);
        assert_eq!(crowd.sizes.iter().map(|(count, _)| *count).sum::<usize>(), all);
        assert_eq!((crowd.places.len(), crowd.oldest.len()), (crowd.members.len(), crowd.members.len()));
        assert_eq!(crowd.sizes.len(), crowd.regions.len());
        all
    }

    #[test]
    fn places_are_networks_as_operators_have_them() {
        assert_eq!(Place::of("ip:192.0.2.7"), Place::V4([192, 0, 2]));
        assert_eq!(Place::of("ip:64:ff9b::192.0.2.7"), Place::V4([192, 0, 2]));
        assert_eq!(Place::of("ip:2001:db8:1:2::/64"), Place::of("ip:2001:db8:1:ffff::9"));
        assert_ne!(Place::of("ip:2001:db8:1:2::/64"), Place::of("ip:2001:db8:2:2::/64"));
        assert_eq!((Place::of("user:10.0.0.1"), Place::of("ip:x")), (Place::Other("user"), Place::Other("ip")));
    }

    #[test]
    fn one_network_pushes_out_its_own_entries_alone() {
        // The first of all are the oldest. Then come networks of one /48, of many /48 within one /32, and addresses of one /16.
        let others = ["user:ada", "ip:192.0.2.1", "ip:2001:db8:1::/64"].map(str::to_owned);
        let floods: [fn(u32) -> String; 3] = [
            |at| format!("ip:2001:db9:7:{at:x}::/64"),
            |at| format!("ip:2001:db9:{at:x}::/64"),
            |at| format!("ip:10.7.{}.{}", at / 256, at % 256),
        ];
        for flood in floods {
            let mut crowd = crowd(others.clone().into_iter());
            let mut gone = Vec::new();
            for at in 0..3000 {
                if size_of(&crowd) >= 1000 {
                    gone.extend(crowd.pop(1000));
                }
                crowd.add(Place::of(&flood(at)), 10 + u64::from(at), flood(at));
            }
            assert_eq!((size(&crowd), gone.len()), (1000, 2003));
            assert!(gone.iter().all(|(seen, _)| *seen >= 10), "{}", flood(0));
            let newest = (10 + 2999, flood(2999));
            assert!(crowd.members[&Place::of(&newest.1)].contains(&newest), "the oldest of it go");
        }
    }

    fn size_of(crowd: &Crowd<String>) -> usize {
        crowd.regions.values().map(|(count, _)| *count).sum()
    }

    #[test]
    fn where_no_network_has_more_than_its_share_the_oldest_goes() {
        let mut crowd = crowd((0..1000).map(|at| format!("ip:{}.{}.0.1", 1 + at / 100, at % 100)));
        let order: Vec<u64> = (0..3).filter_map(|_| crowd.pop(1000)).map(|(seen, _)| seen).collect();
        assert_eq!(order, [1, 2, 3]);
        crowd.remove(Place::of("ip:1.3.0.1"), 4, "ip:1.3.0.1".into());
        crowd.remove(Place::of("ip:1.3.0.1"), 4, "ip:1.3.0.1".into());
        assert_eq!((crowd.pop(1000).map(|(seen, _)| seen), size(&crowd)), (Some(5), 995));
        while crowd.pop(1000).is_some() {}
        assert_eq!((size(&crowd), crowd.pop(1000)), (0, None));
    }
}
