//! Ranges of addresses as a worker looks through them.

use std::cell::RefCell;
use std::net::IpAddr;

use ipnet::IpNet;

use crate::SharedData;

/// What a worker has made of the lists of ranges in shared data: one index for each table.
#[derive(Debug, Default)]
pub struct RangeCache {
    indexes: RefCell<Vec<(&'static str, Index)>>,
}

/// The bytes of one range in a list: the prefix's length, whether it is IPv6, the first address, the expiry.
const RECORD: usize = 26;

/// A range until its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Range {
    pub(crate) net: IpNet,
    pub(crate) expires_at: u64,
}

/// Ranges in an order in which those around an address are found without looking at the others.
#[derive(Debug, Default)]
struct Index {
    /// The token of the list's version that this was made from; 0 for none.
    version: u32,
    rows: Vec<Row>,
}

#[derive(Debug)]
struct Row {
    /// Whether it is IPv6, its first and its last address.
    at: (bool, u128, u128),
    range: Range,
    /// The row of the narrowest range around this one.
    around: Option<usize>,
}

impl RangeCache {
    /// The live ranges of a table around an address, the narrowest first. `list` and `version` are keys of shared data: where
    /// the ranges are, and what is written after each change of them.
    pub(crate) fn around(
        &self,
        data: &dyn SharedData,
        list: &'static str,
        version: &str,
        address: IpAddr,
        now: u64,
    ) -> Vec<IpNet> {
        // All that a request costs where no range was ever put into the table.
        let Some((_, token)) = data.get(version) else {
            return Vec::new();
        };
        let mut indexes = self.indexes.borrow_mut();
        let place = indexes.iter().position(|(known, _)| *known == list).unwrap_or_else(|| {
            indexes.push((list, Index::default()));
            indexes.len() - 1
        });
        let Some((_, index)) = indexes.get_mut(place) else {
            return Vec::new();
        };
        if index.version != token {
            // The token is older than the list: a change in between is read again, and never missed.
            let bytes = data.get(list).map_or_else(Vec::new, |(bytes, _)| bytes);
            *index = Index::new(token, decode(&bytes));
        }
        index.around(address, now)
    }
}

impl Index {
    fn new(version: u32, ranges: impl Iterator<Item = Range>) -> Self {
        let mut rows: Vec<Row> = ranges.map(|range| Row { at: bounds(range.net), range, around: None }).collect();
        // Of those that begin alike the widest comes first: whatever is around a range stands before it.
        rows.sort_unstable_by(|one, other| (one.at.0, one.at.1, other.at.2).cmp(&(other.at.0, other.at.1, one.at.2)));
        let mut open: Vec<(usize, (bool, u128, u128))> = Vec::new();
        for (place, row) in rows.iter_mut().enumerate() {
            while open.pop_if(|(_, at)| at.0 != row.at.0 || at.2 < row.at.1).is_some() {}
            row.around = open.last().map(|(place, _)| *place);
            open.push((place, row.at));
        }
        Self { version, rows }
    }

    fn around(&self, address: IpAddr, now: u64) -> Vec<IpNet> {
        let address = number(address);
        let mut found = Vec::new();
        // The last range that begins at or before the address, and whatever is around that one: no other can have it.
        let mut next = self.rows.partition_point(|row| (row.at.0, row.at.1) <= address).checked_sub(1);
        while let Some(row) = next.and_then(|place| self.rows.get(place)) {
            if row.at.0 == address.0 && row.at.2 >= address.1 && row.range.expires_at > now {
                found.push(row.range.net);
            }
            next = row.around;
        }
        found
    }
}

/// The ranges of a list; a damaged record is left out.
pub(crate) fn decode(bytes: &[u8]) -> impl Iterator<Item = Range> {
    bytes.as_chunks::<RECORD>().0.iter().filter_map(|record| {
        let (prefix, rest) = record.split_first_chunk::<2>()?;
        let (first, expires_at) = rest.split_first_chunk::<16>()?;
        let [length, v6] = *prefix;
        let first = u128::from_le_bytes(*first);
        let address =
            if v6 == 1 { IpAddr::from(first.to_be_bytes()) } else { u32::try_from(first).ok()?.to_be_bytes().into() };
        let net = IpNet::new(address, length).ok()?;
        Some(Range { net, expires_at: u64::from_le_bytes(expires_at.try_into().ok()?) })
    })
}

pub(crate) fn encode(ranges: &[Range]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(ranges.len().saturating_mul(RECORD));
    for range in ranges {
        let (v6, first, _) = bounds(range.net);
        bytes.extend_from_slice(&[range.net.prefix_len(), u8::from(v6)]);
        bytes.extend_from_slice(&first.to_le_bytes());
        bytes.extend_from_slice(&range.expires_at.to_le_bytes());
    }
    bytes
}

fn bounds(net: IpNet) -> (bool, u128, u128) {
    let (v6, first) = number(net.network());
    (v6, first, number(net.broadcast()).1)
}

fn number(address: IpAddr) -> (bool, u128) {
    match address {
        IpAddr::V4(address) => (false, u128::from(u32::from(address))),
        IpAddr::V6(address) => (true, u128::from(address)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(net: &str, expires_at: u64) -> Range {
        Range { net: net.parse().unwrap(), expires_at }
    }

    #[test]
    fn what_is_found_is_what_looking_at_all_of_them_finds() {
        // Nested, beside each other, equal beginnings, both ends of the space, both families.
        let nets = [
            "10.0.0.0/8",
            "10.0.0.0/16",
            "10.0.0.0/24",
            "10.0.1.0/24",
            "10.255.0.0/16",
            "192.0.2.0/25",
            "0.0.0.0/1",
            "255.255.255.255/32",
            "128.0.0.0/2",
            "::/1",
            "2001:db8::/32",
            "2001:db8::/64",
            "2001:db8:1::/48",
            "::ffff:0:0/96",
            "ffff::/16",
        ];
        let ranges: Vec<Range> = nets.iter().zip(1..).map(|(net, ends)| range(net, 100 + ends)).collect();
        let index = Index::new(1, decode(&encode(&ranges)));
        let addresses = [
            "10.0.0.1",
            "10.0.1.1",
            "10.0.2.1",
            "10.255.9.9",
            "10.254.0.0",
            "9.9.9.9",
            "192.0.2.1",
            "192.0.2.128",
            "191.255.255.255",
            "255.255.255.255",
            "0.0.0.0",
            "::",
            "::1",
            "2001:db8::1",
            "2001:db8:0:1::",
            "2001:db8:1::9",
            "::ffff:1.2.3.4",
            "8000::",
            "ffff:ffff::",
        ];
        for now in [0, 104, 112, 200] {
            for address in addresses {
                let address: IpAddr = address.parse().unwrap();
                let mut expected: Vec<IpNet> = ranges
                    .iter()
                    .filter(|range| range.expires_at > now && range.net.contains(&address))
                    .map(|range| range.net)
                    .collect();
                expected.sort_unstable_by_key(|net| std::cmp::Reverse(net.prefix_len()));
                assert_eq!(index.around(address, now), expected, "{address} at {now}");
            }
        }
    }

    #[test]
    fn a_damaged_list_is_read_as_far_as_it_goes() {
        let mut bytes = encode(&[range("10.0.0.0/8", 5), range("2001:db8::/32", 6)]);
        bytes.extend_from_slice(&[40, 0, 1, 2, 3]);
        assert_eq!(decode(&bytes).count(), 2);
        bytes[0] = 77;
        assert_eq!(decode(&bytes).collect::<Vec<_>>(), [range("2001:db8::/32", 6)]);
    }
}
