//! The bans that are in force on a node.
//!
//! The value of an entry is the reason. One that an operator has made begins with the byte 0xff and the time until which it is
//! theirs, and gives way to no other.

use std::borrow::Cow;

use crate::ranged::{Change, Ranged};
use crate::{Conflict, Entry, SharedData, Table};

/// More than the control plane keeps, by far: no ban is pushed out by chance. Each request reads a shard of some hundred
/// bytes; a full one gives up the ban that ends first among those that no operator made.
const BANS: Ranged = Ranged {
    table: Table { name: "svc.banned", shards: u16::MAX, entries_per_shard: 12 },
    list: "svc.banned_ranges",
    version: "svc.banned_ranges_version",
    keeps: |value| hand_until(value).0 > 0,
};

/// What the value of an operator's ban begins with: no reason does, being text.
const BY_HAND: u8 = 0xff;

/// The most bytes of a reason that a node keeps.
const MAX_REASON: usize = 256;

/// A ban in force.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ban {
    /// When it ends, in milliseconds since the Unix epoch.
    pub until: u64,
    /// Until when by an operator's hand; 0 where no operator made it.
    pub hand_until: u64,
    /// Why, for people.
    pub reason: String,
}

/// The ban on an identity (`ip:192.0.2.1`), or on the range that its address is in, that is in force at `now`, in
/// milliseconds since the Unix epoch.
#[must_use]
pub fn standing(data: &dyn SharedData, key: &str, now: u64) -> Option<Ban> {
    BANS.get(data, key, now).map(|entry| ban(&entry))
}

/// The same, of those bans alone that are an operator's at `now`.
#[must_use]
pub fn standing_by_hand(data: &dyn SharedData, key: &str, now: u64) -> Option<Ban> {
    BANS.find(data, key, now, |entry| hand_until(&entry.value).0 > now).map(|entry| ban(&entry))
}

fn ban(entry: &Entry) -> Ban {
    let (hand_until, reason) = hand_until(&entry.value);
    Ban { until: entry.expires_at, hand_until, reason: String::from_utf8_lossy(reason).into_owned() }
}

/// Until when a ban is an operator's, and its reason.
fn hand_until(value: &[u8]) -> (u64, &[u8]) {
    match value.split_first().map(|(first, rest)| (*first, rest.split_first_chunk::<8>())) {
        Some((BY_HAND, Some((until, reason)))) => (u64::from_le_bytes(*until), reason),
        _ => (0, value),
    }
}

/// A ban to put in force or to lift.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BanOf<'a> {
    /// The identity or range, such as `ip:192.0.2.1` or `ip:192.0.2.0/24`.
    pub key: &'a str,
    /// When it ends, in milliseconds since the Unix epoch; a time that is over lifts it.
    pub until: u64,
    /// Until when by an operator's hand; 0 where no operator made it.
    pub hand_until: u64,
    /// Why, for people; at most 256 bytes of it are kept.
    pub reason: &'a str,
}

/// Puts a ban not made by hand in force until the given time. One that ends no earlier stays as it is, and so does an
/// operator's; a time that is over lifts whatever stands.
///
/// # Errors
///
/// [`Conflict`] where other workers were faster every time.
pub fn apply(data: &dyn SharedData, key: &str, until: u64, reason: &str, now: u64) -> Result<(), Conflict> {
    // What a node finds by itself shortens neither what an operator has decided nor what the node has found before.
    let stands = |held: &Entry, change: &Change<'_>| {
        change.until > now && (hand_until(&held.value).0 > now || held.expires_at >= change.until)
    };
    let ban = BanOf { key, until, hand_until: 0, reason };
    let failed = BANS.put_unless(data, std::iter::once(change(ban)), now, stands);
    if failed.is_empty() { Ok(()) } else { Err(Conflict) }
}

/// A ban as it is put in force if the control plane could not record it: with the later end of this one and the one that this
/// node has, and as long an operator's as either. `None` where that changes nothing.
#[must_use]
pub fn lasting<'a>(data: &dyn SharedData, ban: BanOf<'a>, now: u64) -> Option<BanOf<'a>> {
    let Some(held) = BANS.table.get(data, ban.key.as_bytes(), now) else { return Some(ban) };
    let by_hand = hand_until(&held.value).0;
    if held.expires_at >= ban.until && by_hand >= ban.hand_until {
        return None;
    }
    Some(BanOf { until: ban.until.max(held.expires_at), hand_until: ban.hand_until.max(by_hand), ..ban })
}

/// The same for many bans, with one write for all ranges among them. The keys of those that could not be noted, because other
/// workers were faster every time.
#[must_use]
pub fn apply_all<'a>(data: &dyn SharedData, bans: impl Iterator<Item = BanOf<'a>>, now: u64) -> Vec<&'a str> {
    BANS.put(data, bans.map(change), now)
}

fn change(ban: BanOf<'_>) -> Change<'_> {
    let reason = ban.reason.as_bytes().get(..MAX_REASON).unwrap_or(ban.reason.as_bytes());
    let value = match ban.hand_until {
        0 => Cow::Borrowed(reason),
        until => Cow::Owned([&[BY_HAND], until.to_le_bytes().as_slice(), reason].concat()),
    };
    Change { key: ban.key, value, until: ban.until }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MemorySharedData;

    #[test]
    fn a_ban_stands_until_its_end_or_until_it_is_lifted() {
        let data = MemorySharedData::default();
        apply(&data, "ip:192.0.2.1", 100, "score 95", 0).unwrap();
        assert_eq!(
            standing(&data, "ip:192.0.2.1", 99),
            Some(Ban { until: 100, hand_until: 0, reason: "score 95".into() })
        );
        assert_eq!(standing(&data, "ip:192.0.2.1", 100), None);
        assert_eq!(standing(&data, "ip:192.0.2.10", 0), None);
        apply(&data, "ip:192.0.2.1", 0, "", 50).unwrap();
        assert_eq!(standing(&data, "ip:192.0.2.1", 60), None);
    }

    #[test]
    fn a_ban_on_a_range_stands_for_every_address_in_it() {
        let data = MemorySharedData::default();
        apply(&data, "ip:10.0.0.0/8", 100, "range", 0).unwrap();
        apply(&data, "ip:2001:db8::/32", 100, "six", 0).unwrap();
        assert_eq!(
            standing(&data, "ip:10.255.0.1", 99),
            Some(Ban { until: 100, hand_until: 0, reason: "range".into() })
        );
        assert!(standing(&data, "ip:2001:db8::7", 99).is_some());
        assert_eq!(standing(&data, "ip:11.0.0.1", 99), None);
        assert_eq!(standing(&data, "user:10.0.0.1", 99), None);
        assert_eq!(standing(&data, "ip:10.255.0.1", 100), None);
        apply(&data, "ip:10.0.0.0/8", 0, "", 50).unwrap();
        assert_eq!(standing(&data, "ip:10.255.0.1", 51), None);
    }

    #[test]
    fn the_ranges_of_an_operator_are_not_the_ones_that_give_way() {
        let (data, most) = (MemorySharedData::default(), u32::try_from(crate::MAX_RANGES).unwrap());
        let keys: Vec<String> = (0..=most).map(|at| format!("ip:10.{}.{}.0/25", at >> 8, at & 255)).collect();
        // The first is an operator's, and ends before all others.
        let ban = |(at, key): (u64, &'static str)| BanOf {
            key,
            until: 1000 + at,
            hand_until: u64::from(at == 0) * 1000,
            reason: "",
        };
        let leaked: Vec<&'static str> = keys.into_iter().map(|key| &*key.leak()).collect();
        let failed = apply_all(&data, (0..).zip(leaked.iter().copied()).map(ban), 0);
        assert!(failed.is_empty());
        assert!(standing(&data, "ip:10.0.0.1", 10).is_some(), "an operator's");
        assert!(standing(&data, "ip:10.0.1.1", 10).is_none(), "the next one to end");
        assert!(standing(&data, "ip:10.0.2.1", 10).is_some());
    }

    #[test]
    fn as_many_bans_as_the_control_plane_keeps_all_stand_in_small_shards() {
        let data = MemorySharedData::default();
        let keys: Vec<String> = (0..100_000_u32)
            .map(|number| match number % 3 {
                0 => format!("ip:10.{}.{}.{}", number >> 16, number >> 8 & 255, number & 255),
                1 => format!("ip:2001:db8::{number:x}"),
                _ => format!("user:user-{number}"),
            })
            .collect();
        let bans = keys.iter().map(|key| BanOf {
            key,
            until: 100,
            hand_until: 0,
            reason: "score 95 reaches tier 3 of policy `main`",
        });
        assert!(apply_all(&data, bans, 0).is_empty());
        assert!(keys.iter().all(|key| standing(&data, key, 99).is_some()));
        let largest =
            (0..u16::MAX).filter_map(|shard| data.get(&format!("svc.banned/{shard}"))).map(|(bytes, _)| bytes.len());
        assert!(largest.max().unwrap() < 1200);
    }

    #[test]
    fn a_worker_sees_ranges_that_another_has_put_and_lifted() {
        let data = MemorySharedData::default();
        let stands = |address: &str| standing(&data, address, 50);
        assert_eq!(stands("ip:192.0.2.1"), None);
        let nets: Vec<String> = (0..4000).map(|net| format!("ip:10.{}.{}.0/24", net / 256, net % 256)).collect();
        let put = |until| nets.iter().map(move |key| BanOf { key, until, hand_until: 0, reason: "range" });
        assert!(apply_all(&data, put(100), 0).is_empty());
        assert!(
            stands("ip:10.0.0.1").is_some() && stands("ip:10.15.159.255").is_some() && stands("ip:10.16.0.0").is_none()
        );
        // The narrowest speaks; where it is gone, the one around it does.
        apply(&data, "ip:10.3.0.0/16", 200, "wide", 0).unwrap();
        assert_eq!(stands("ip:10.3.7.9").unwrap().reason, "range");
        apply(&data, "ip:10.3.7.0/24", 0, "", 50).unwrap();
        assert_eq!(stands("ip:10.3.7.9").unwrap().reason, "wide");
        // A change of what nobody holds is none, and writes nothing.
        let version = data.get("svc.banned_ranges_version").unwrap().1;
        apply(&data, "ip:10.3.0.0/16", 200, "wide", 50).unwrap();
        apply(&data, "ip:10.200.0.0/16", 0, "", 50).unwrap();
        assert_eq!(data.get("svc.banned_ranges_version").unwrap().1, version);
        assert!(apply_all(&data, put(0), 50).is_empty());
        assert_eq!(stands("ip:10.0.0.1"), None);
    }

    #[test]
    fn too_many_ranges_push_out_those_that_end_first() {
        let data = MemorySharedData::default();
        let nets: Vec<String> = (0..5000).map(|net| format!("ip:10.{}.{}.0/24", net / 256, net % 256)).collect();
        let bans = nets.iter().zip(1000..).map(|(key, until)| BanOf { key, until, hand_until: 0, reason: "" });
        assert!(apply_all(&data, bans, 0).is_empty());
        assert_eq!(standing(&data, "ip:10.0.0.1", 0), None);
        assert!(standing(&data, "ip:10.19.135.1", 0).is_some());
    }

    #[test]
    fn networks_of_ipv6_are_as_many_as_addresses() {
        let data = MemorySharedData::default();
        let keys: Vec<String> =
            (0..20_000).map(|net| format!("ip:2001:db8:{:x}:{:x}::/64", net / 256, net % 256)).collect();
        let bans = keys.iter().map(|key| BanOf { key, until: 100, hand_until: 0, reason: "score 95" });
        assert!(apply_all(&data, bans, 0).is_empty());
        assert!(
            (0..20_000).all(|net| {
                standing(&data, &format!("ip:2001:db8:{:x}:{:x}::77", net / 256, net % 256), 99).is_some()
            })
        );
        assert_eq!(standing(&data, "ip:2001:db8:0:100::1", 99), None);
        apply(&data, "ip:2001:db8:aa00::/56", 100, "wider", 0).unwrap();
        apply(&data, "ip:2001:db8:bb00::/48", 100, "widest", 0).unwrap();
        assert_eq!(standing(&data, "ip:2001:db8:aa00:ff::1", 99).unwrap().reason, "wider");
        assert_eq!(standing(&data, "ip:2001:db8:bb00:ffff::1", 99).unwrap().reason, "widest");
        assert_eq!(standing(&data, "ip:2001:db8:aa00:100::1", 99), None);
        apply(&data, "ip:2001:db8:aa00::/56", 0, "", 50).unwrap();
        assert_eq!(standing(&data, "ip:2001:db8:aa00:ff::1", 51), None);
    }

    #[test]
    fn a_ban_that_nobody_could_record_shortens_none() {
        let data = MemorySharedData::default();
        let ban = |until, hand_until| BanOf { key: "user:ada", until, hand_until, reason: "by hand" };
        assert!(apply_all(&data, std::iter::once(ban(900, 500)), 0).is_empty());
        assert_eq!(lasting(&data, ban(100, 0), 1), None, "an earlier end");
        assert_eq!(lasting(&data, ban(1000, 0), 1), Some(ban(1000, 500)), "it stays the operator's");
        let other = BanOf { key: "user:bob", ..ban(100, 0) };
        assert_eq!(lasting(&data, other, 1), Some(other));
        assert_eq!(lasting(&data, ban(1000, 0), 900), Some(ban(1000, 0)), "what is over counts for nothing");
    }

    #[test]
    fn a_further_ban_of_the_node_keeps_the_later_end() {
        let data = MemorySharedData::default();
        let until = |key: &str, now| standing(&data, key, now).map(|ban| (ban.until, ban.reason));
        for (key, asked) in [
            ("user:ada", "user:ada"),
            ("ip:2001:db8:1:2::/64", "ip:2001:db8:1:2::9"),
            ("ip:10.1.0.77/16", "ip:10.1.2.3"),
        ] {
            apply(&data, key, 900, "decoy", 0).unwrap();
            apply(&data, key, 100, "score 95", 1).unwrap();
            assert_eq!(until(asked, 1), Some((900, "decoy".into())), "{key}: a shorter one");
            assert_eq!(until(asked, 100), Some((900, "decoy".into())), "{key}: past the end of the shorter one");
            apply(&data, key, 1000, "again", 2).unwrap();
            assert_eq!(until(asked, 950), Some((1000, "again".into())), "{key}: a longer one");
            // The control plane decides, and so may shorten; a lift lifts.
            let shorter = BanOf { key, until: 500, hand_until: 0, reason: "cut" };
            assert!(apply_all(&data, std::iter::once(shorter), 3).is_empty());
            assert_eq!((until(asked, 3), until(asked, 500)), (Some((500, "cut".into())), None), "{key}");
            apply(&data, key, 0, "", 4).unwrap();
            assert_eq!(until(asked, 4), None, "{key}");
            // One that has ended stands against nothing.
            apply(&data, key, 700, "new", 600).unwrap();
            assert_eq!(until(asked, 600), Some((700, "new".into())), "{key}");
        }
    }

    #[test]
    fn of_two_workers_that_ban_at_one_moment_the_later_end_stands() {
        for seed in 0..100 {
            let ends = crate::testing::run(seed, 4, |data, worker| {
                apply(data, "user:ada", 100 + worker as u64, "score 95", 0).unwrap();
                standing(data, "user:ada", 0).map(|ban| ban.until)
            });
            assert_eq!(ends.into_iter().max(), Some(Some(103)), "seed {seed}");
        }
    }

    #[test]
    fn a_ban_by_hand_says_so_and_gives_way_to_nothing_but_a_lift() {
        let data = MemorySharedData::default();
        let hand = BanOf { key: "user:ada", until: 900, hand_until: 500, reason: "by hand" };
        assert!(apply_all(&data, std::iter::once(hand), 0).is_empty());
        let held = Ban { until: 900, hand_until: 500, reason: "by hand".into() };
        assert_eq!(standing(&data, "user:ada", 1), Some(held.clone()));
        apply(&data, "user:ada", 100, "score 95", 1).unwrap();
        assert_eq!(standing(&data, "user:ada", 1), Some(held));
        // So many that its shard is full of what ends later.
        let shard = |key: &str| BANS.table.shard_of(key.as_bytes());
        let keys = (0..2_000_000).map(|number| format!("user:made-up-{number}"));
        let keys: Vec<String> = keys.filter(|key| shard(key) == shard("user:ada")).collect();
        assert!(keys.len() > 12, "{}", keys.len());
        let bans = keys.iter().map(|key| BanOf { key, until: 5000, hand_until: 0, reason: "x" });
        assert!(apply_all(&data, bans, 1).is_empty());
        assert!(standing(&data, "user:ada", 1).is_some());
        apply(&data, "user:ada", 0, "", 2).unwrap();
        assert_eq!(standing(&data, "user:ada", 3), None);
        // Around what a tier has banned there may be what an operator has.
        let hand = BanOf { key: "ip:2001:db8::/32", until: 900, hand_until: 500, reason: "by hand" };
        assert!(apply_all(&data, std::iter::once(hand), 3).is_empty());
        apply(&data, "ip:2001:db8:1:2::/64", 900, "score 95", 3).unwrap();
        let (tier, by_hand) =
            (standing(&data, "ip:2001:db8:1:2::9", 4), standing_by_hand(&data, "ip:2001:db8:1:2::9", 4));
        assert_eq!((tier.unwrap().hand_until, by_hand.unwrap().reason.as_str()), (0, "by hand"));
        assert_eq!(standing_by_hand(&data, "ip:2001:db8:1:2::9", 500), None, "no longer by hand");
    }

    #[test]
    fn ranges_are_known_by_their_first_address() {
        let data = MemorySharedData::default();
        apply(&data, "ip:192.0.2.77/24", 100, "range", 0).unwrap();
        assert!(standing(&data, "ip:192.0.2.1", 99).is_some());
        apply(&data, "ip:192.0.2.0/24", 0, "", 50).unwrap();
        assert_eq!(standing(&data, "ip:192.0.2.1", 51), None);
    }
}
