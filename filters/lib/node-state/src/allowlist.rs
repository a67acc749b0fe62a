//! The identities that a node never bans, nor refuses for a ban that stands.

use crate::ranged::{MAX_RANGES, Ranged};
use crate::{Conflict, SharedData, Table};

/// The control plane keeps fewer than fit, so that no entry is pushed out.
const ALLOWED: Ranged = Ranged {
    exact: Table { name: "svc.allowed", shards: 128, entries_per_shard: 512 },
    ranges: Table { name: "svc.allowed_ranges", shards: 1, entries_per_shard: MAX_RANGES },
};

/// Whether an identity (`ip:192.0.2.1`), or the range of its address, is on the allowlist at `now`, in milliseconds since
/// the Unix epoch.
#[must_use]
pub fn covers(data: &dyn SharedData, key: &str, now: u64) -> bool {
    ALLOWED.get(data, key, now).is_some()
}

/// Puts an identity or a range on the allowlist until the given time; a time that is over takes it off.
///
/// # Errors
///
/// [`Conflict`] where other workers were faster every time.
pub fn apply(data: &dyn SharedData, key: &str, until: u64, now: u64) -> Result<(), Conflict> {
    ALLOWED.put(data, key, &[], until, now)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MemorySharedData;

    #[test]
    fn identities_and_ranges_are_covered_until_their_end() {
        let data = MemorySharedData::default();
        apply(&data, "user:a/b", 100, 0).unwrap();
        apply(&data, "ip:192.0.2.0/24", 100, 0).unwrap();
        assert!(covers(&data, "user:a/b", 99) && !covers(&data, "user:a", 99));
        assert!(covers(&data, "ip:192.0.2.200", 99) && !covers(&data, "ip:192.0.3.1", 99));
        assert!(!covers(&data, "ip:192.0.2.200", 100));
        apply(&data, "ip:192.0.2.0/24", 0, 1).unwrap();
        assert!(!covers(&data, "ip:192.0.2.200", 2));
    }
}
