//! A table of identities, in which addresses may also be whole ranges (`ip:192.0.2.0/24`).
//!
//! Networks of IPv6 of the usual widths are found by their keys, as addresses are, so that there may be as many of them. All
//! other ranges are in a list.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::net::IpAddr;

use ipnet::{IpNet, Ipv6Net};

use crate::cas::{self, ATTEMPTS};
use crate::index::{Range, decode, encode};
use crate::{Conflict, Entry, SharedData, Table, Update};

/// Identities and ranges by their keys, and beside them a list of which ranges there are.
pub(crate) struct Ranged {
    pub(crate) table: Table,
    /// The key of the list of ranges in shared data.
    pub(crate) list: &'static str,
    /// The key that is written after each change of the list.
    pub(crate) version: &'static str,
    /// Whether an entry of this value never gives way to another.
    pub(crate) keeps: fn(&[u8]) -> bool,
}

/// The most ranges that a table of a node holds. Their list is read as a whole, after each change once by every worker.
pub const MAX_RANGES: usize = 4096;

/// The widths of IPv6 networks that are found by their keys, narrowest first.
const OWN_KEYS: [u8; 3] = [64, 56, 48];

/// A change of one entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Change<'a> {
    pub(crate) key: &'a str,
    pub(crate) value: Cow<'a, [u8]>,
    /// When it ends, in milliseconds since the Unix epoch; a time that is over takes it out.
    pub(crate) until: u64,
}

impl Ranged {
    /// The live entry on an identity, or on a range that its address is in; see [`Ranged::find`].
    pub(crate) fn get(&self, data: &dyn SharedData, key: &str, now: u64) -> Option<Entry> {
        self.find(data, key, now, |_| true)
    }

    /// The first such entry that is `wanted`: that of the identity, then those of its IPv6 networks with keys of their own,
    /// then those of the listed ranges, each of these the narrowest first.
    pub(crate) fn find(
        &self,
        data: &dyn SharedData,
        key: &str,
        now: u64,
        wanted: impl Fn(&Entry) -> bool,
    ) -> Option<Entry> {
        let known = |key: &str| self.table.get(data, key.as_bytes(), now).filter(&wanted);
        if let Some(entry) = known(key) {
            return Some(entry);
        }
        let address: IpAddr = key.strip_prefix("ip:")?.parse().ok()?;
        if let IpAddr::V6(address) = address {
            let networks = OWN_KEYS.into_iter().filter_map(|prefix| Ipv6Net::new(address, prefix).ok());
            if let Some(entry) = networks.filter_map(|net| known(&key_of(IpNet::V6(net.trunc())))).next() {
                return Some(entry);
            }
        }
        let around = data.memory().ranges.around(data, self.list, self.version, address, now);
        around.into_iter().find_map(|net| known(&key_of(net)))
    }

    /// Puts entries in place of those on the same identities or ranges. The keys of those that could not be put, because
    /// other workers were faster every time.
    pub(crate) fn put<'a>(
        &self,
        data: &dyn SharedData,
        changes: impl Iterator<Item = Change<'a>>,
        now: u64,
    ) -> Vec<&'a str> {
        self.put_unless(data, changes, now, |_, _| false)
    }

    /// The same, where an entry that `stands` against a change stays as it is. Other workers may put an entry meanwhile: what
    /// stands is asked of the one that the change would be written over.
    pub(crate) fn put_unless<'a>(
        &self,
        data: &dyn SharedData,
        changes: impl Iterator<Item = Change<'a>>,
        now: u64,
        stands: impl Fn(&Entry, &Change<'_>) -> bool,
    ) -> Vec<&'a str> {
        let (mut failed, mut ranges, mut keys) = (Vec::new(), Vec::new(), Vec::new());
        for change in changes {
            let range = range_of(change.key);
            let own = range.map(key_of);
            let range = range.filter(|net| !has_own_key(*net));
            match (self.put_one(data, own.as_deref().unwrap_or(change.key), &change, now, &stands), range) {
                (Err(_), _) => failed.push(change.key),
                (Ok(true), Some(net)) => {
                    ranges.push(Range { net, expires_at: change.until });
                    keys.push(change.key);
                }
                (Ok(_), _) => {}
            }
        }
        if !ranges.is_empty() && self.list(data, &ranges, now).is_err() {
            failed.extend(keys);
        }
        failed
    }

    /// False where an entry stands against the change.
    fn put_one(
        &self,
        data: &dyn SharedData,
        key: &str,
        change: &Change<'_>,
        now: u64,
        stands: &impl Fn(&Entry, &Change<'_>) -> bool,
    ) -> Result<bool, Conflict> {
        let mut put = true;
        self.table.update_keeping(data, key.as_bytes(), now, self.keeps, |known| {
            put = !known.is_some_and(|known| stands(known, change));
            if !put {
                return Update::Keep;
            }
            if change.until <= now {
                return Update::Remove;
            }
            // The other workers of the node are told the same: only the first of them writes.
            match known {
                Some(known) if known.expires_at == change.until && known.value == *change.value => Update::Keep,
                _ => Update::Put(change.value.to_vec(), change.until),
            }
        })?;
        Ok(put)
    }

    /// Brings the list of ranges up to date, and tells every worker where that changed anything.
    fn list(&self, data: &dyn SharedData, changes: &[Range], now: u64) -> Result<(), Conflict> {
        for _ in 0..ATTEMPTS {
            let (bytes, token) = cas::read(data, self.list);
            let before: Vec<Range> = decode(&bytes).collect();
            let mut live: BTreeMap<IpNet, u64> = BTreeMap::new();
            for range in before.iter().chain(changes) {
                if range.expires_at > now {
                    live.insert(range.net, range.expires_at)
                } else {
                    live.remove(&range.net)
                };
            }
            // In the order of the map: workers that are told the same make the same bytes of it.
            let mut after: Vec<Range> = live.into_iter().map(|(net, expires_at)| Range { net, expires_at }).collect();
            if after.len() > MAX_RANGES {
                // The first to end give way, as in the table, and those that may not after all others.
                after.sort_by_cached_key(|range| {
                    let entry = self.table.get(data, key_of(range.net).as_bytes(), now);
                    Reverse((entry.is_some_and(|entry| (self.keeps)(&entry.value)), range.expires_at))
                });
                after.truncate(MAX_RANGES);
                after.sort_unstable_by_key(|range| range.net);
            }
            if after == before {
                return Ok(());
            }
            if data.set(self.list, &encode(&after), Some(token)).is_ok() {
                // Whatever is written there, its token is another one.
                return data.set(self.version, &[1], None);
            }
        }
        Err(Conflict)
    }
}

/// The range that a key names; `None` for an identity.
fn range_of(key: &str) -> Option<IpNet> {
    Some(key.strip_prefix("ip:")?.parse::<IpNet>().ok()?.trunc())
}

fn has_own_key(net: IpNet) -> bool {
    matches!(net, IpNet::V6(net) if OWN_KEYS.contains(&net.prefix_len()))
}

fn key_of(net: IpNet) -> String {
    format!("ip:{net}")
}
