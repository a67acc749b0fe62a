//! The bans that are in force on a node.

use crate::{Conflict, SharedData, Table, Update};

/// Up to 131,072 bans; beyond that a full shard gives up the ban that ends first.
const BANS: Table = Table { name: "svc.bans", shards: 256, entries_per_shard: 512 };

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

/// The ban on an identity (`ip:192.0.2.1`) that is in force at `now`, in milliseconds since the Unix epoch.
#[must_use]
pub fn standing(data: &dyn SharedData, key: &str, now: u64) -> Option<Ban> {
    let entry = BANS.get(data, key.as_bytes(), now)?;
    Some(Ban { until: entry.expires_at, reason: String::from_utf8_lossy(&entry.value).into_owned() })
}

/// Puts a ban in force until the given time, in place of any that stands; a time that is over lifts it.
///
/// # Errors
///
/// [`Conflict`] where other workers were faster every time.
pub fn apply(data: &dyn SharedData, key: &str, until: u64, reason: &str, now: u64) -> Result<(), Conflict> {
    let reason = reason.as_bytes().get(..MAX_REASON).unwrap_or(reason.as_bytes());
    BANS.update(data, key.as_bytes(), now, |_| {
        if until > now { Update::Put(reason.to_vec(), until) } else { Update::Remove }
    })
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
}
