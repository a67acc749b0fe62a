//! A table of identities, in which addresses may also be whole ranges (`ip:192.0.2.0/24`).

use std::net::IpAddr;

use ipnet::IpNet;

use crate::{Conflict, Entry, SharedData, Table, Update};

/// Identities by name, and ranges of addresses, which are looked through one by one.
pub(crate) struct Ranged {
    pub(crate) exact: Table,
    /// One shard: a range is found by looking at all of them, so there can only be a few.
    pub(crate) ranges: Table,
}

/// The most ranges that a table of a node holds.
pub(crate) const MAX_RANGES: usize = 256;

impl Ranged {
    /// The live entry on an identity, or on the range that its address is in.
    pub(crate) fn get(&self, data: &dyn SharedData, key: &str, now: u64) -> Option<Entry> {
        if let Some(entry) = self.exact.get(data, key.as_bytes(), now) {
            return Some(entry);
        }
        let address: IpAddr = key.strip_prefix("ip:")?.parse().ok()?;
        self.ranges.find(data, now, |range| range_of(range).is_some_and(|net| net.contains(&address)))
    }

    /// Puts an entry in place of the one on the same identity or range; a time that is over takes it out.
    pub(crate) fn put(
        &self,
        data: &dyn SharedData,
        key: &str,
        value: &[u8],
        until: u64,
        now: u64,
    ) -> Result<(), Conflict> {
        let table = if range_of(key.as_bytes()).is_some() { &self.ranges } else { &self.exact };
        table.update(data, key.as_bytes(), now, |_| {
            if until > now { Update::Put(value.to_vec(), until) } else { Update::Remove }
        })
    }
}

fn range_of(key: &[u8]) -> Option<IpNet> {
    std::str::from_utf8(key).ok()?.strip_prefix("ip:")?.parse().ok()
}
