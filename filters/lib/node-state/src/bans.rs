//! The bans that are in force on a node.

use crate::ranged::{MAX_RANGES, Ranged};
use crate::{Conflict, SharedData, Table};

/// Up to 131,072 bans, and 256 on ranges; beyond that a full shard gives up the ban that ends first.
const BANS: Ranged = Ranged {
    exact: Table { name: "svc.bans", shards: 256, entries_per_shard: 512 },
    ranges: Table { name: "svc.ban_ranges", shards: 1, entries_per_shard: MAX_RANGES },
};

/// The most bytes of a reason that a node keeps.
const MAX_REASON: usize = 256;

/// A ban in force.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ban {
    /// When it ends, in milliseconds since the Unix epoch.
    pub until: u64,
    /// Why, for people.
    pub reason: String,
}

/// The ban on an identity (`ip:192.0.2.1`), or on the range that its address is in, that is in force at `now`, in
/// milliseconds since the Unix epoch.
#[must_use]
pub fn standing(data: &dyn SharedData, key: &str, now: u64) -> Option<Ban> {
    let entry = BANS.get(data, key, now)?;
    Some(Ban { until: entry.expires_at, reason: String::from_utf8_lossy(&entry.value).into_owned() })
}

/// Puts a ban in force until the given time, in place of any that stands; a time that is over lifts it.
///
/// # Errors
///
/// [`Conflict`] where other workers were faster every time.
pub fn apply(data: &dyn SharedData, key: &str, until: u64, reason: &str, now: u64) -> Result<(), Conflict> {
    let reason = reason.as_bytes().get(..MAX_REASON).unwrap_or(reason.as_bytes());
    BANS.put(data, key, reason, until, now)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MemorySharedData;

    #[test]
    fn a_ban_stands_until_its_end_or_until_it_is_lifted() {
        let data = MemorySharedData::default();
        apply(&data, "ip:192.0.2.1", 100, "score 95", 0).unwrap();
        assert_eq!(standing(&data, "ip:192.0.2.1", 99), Some(Ban { until: 100, reason: "score 95".into() }));
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
        assert_eq!(standing(&data, "ip:10.255.0.1", 99), Some(Ban { until: 100, reason: "range".into() }));
        assert!(standing(&data, "ip:2001:db8::7", 99).is_some());
        assert_eq!(standing(&data, "ip:11.0.0.1", 99), None);
        assert_eq!(standing(&data, "user:10.0.0.1", 99), None);
        assert_eq!(standing(&data, "ip:10.255.0.1", 100), None);
        apply(&data, "ip:10.0.0.0/8", 0, "", 50).unwrap();
        assert_eq!(standing(&data, "ip:10.255.0.1", 51), None);
    }
}
