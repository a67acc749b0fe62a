//! The identities that a node never bans, nor refuses for a ban that stands.

use std::borrow::Cow;

use crate::ranged::{Change, Ranged};
use crate::{Conflict, SharedData, Table};

/// The control plane keeps fewer than fit, so that no entry is pushed out.
const ALLOWED: Ranged = Ranged {
    table: Table { name: "svc.allow", shards: 1024, entries_per_shard: 64 },
    list: "svc.allow_ranges",
    version: "svc.allow_ranges_version",
    keeps: |_| true,
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
    let failed = apply_all(data, std::iter::once((key, until)), now);
    if failed.is_empty() { Ok(()) } else { Err(Conflict) }
}

/// The same for many entries, each with its end. The keys of those that could not be noted, because other workers were faster
/// every time.
#[must_use]
pub fn apply_all<'a>(data: &dyn SharedData, entries: impl Iterator<Item = (&'a str, u64)>, now: u64) -> Vec<&'a str> {
    ALLOWED.put(data, entries.map(|(key, until)| Change { key, value: Cow::Borrowed(&[]), until }), now)
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
