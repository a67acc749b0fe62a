//! `@ipMatch` and `@ipMatchFromFile`: addresses in networks.

use std::net::IpAddr;

use ipnet::IpNet;

use super::OperatorError;

/// Networks as sorted, disjoint ranges of addresses. IPv4 is looked up where IPv6 maps it, so that `::ffff:192.0.2.1`
/// and `192.0.2.1` are one address.
#[derive(Debug, Default)]
pub(super) struct Networks {
    ranges: Vec<(u128, u128)>,
}

/// The networks of an argument, with the offset of each: separated by commas or white space.
pub(super) fn split(argument: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
    let separator = |byte: &u8| *byte == b',' || byte.is_ascii_whitespace();
    let mut offset = 0;
    argument.split(separator).filter_map(move |piece| {
        let start = offset;
        offset += piece.len() + 1;
        (!piece.is_empty()).then_some((start, piece))
    })
}

/// Refuses anything but an address or a network in CIDR notation.
pub(super) fn check(piece: &[u8], offset: Option<usize>) -> Result<(), OperatorError> {
    if network(piece).is_some() {
        return Ok(());
    }
    Err(OperatorError {
        message: format!("{} is neither an address nor a network", String::from_utf8_lossy(piece)),
        help: Some("Write for example 192.0.2.7, 192.0.2.0/24 or 2001:db8::/32.".into()),
        offset,
    })
}

fn number(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped().to_bits(),
        IpAddr::V6(address) => address.to_bits(),
    }
}

/// The first and the last address of a network.
fn network(piece: &[u8]) -> Option<(u128, u128)> {
    let text = std::str::from_utf8(piece).ok()?;
    if let Ok(address) = text.parse::<IpAddr>() {
        return Some((number(address), number(address)));
    }
    let network: IpNet = text.parse().ok()?;
    Some((number(network.network()), number(network.broadcast())))
}

impl Networks {
    /// The networks of checked pieces; the error names the first that is none.
    pub(super) fn new(pieces: &[Vec<u8>]) -> Result<Self, String> {
        let mut all = Vec::with_capacity(pieces.len());
        for piece in pieces {
            let range = network(piece);
            all.push(range.ok_or_else(|| format!("{} is no network", String::from_utf8_lossy(piece)))?);
        }
        all.sort_unstable();
        let mut ranges: Vec<(u128, u128)> = Vec::with_capacity(all.len());
        for (first, last) in all {
            match ranges.last_mut() {
                Some((_, end)) if first <= end.saturating_add(1) => *end = last.max(*end),
                _ => ranges.push((first, last)),
            }
        }
        Ok(Self { ranges })
    }

    /// Whether the value is an address in any of the networks; no other value matches.
    pub(super) fn evaluate(&self, value: &[u8]) -> bool {
        let Some(address) = std::str::from_utf8(value).ok().and_then(|text| text.trim().parse::<IpAddr>().ok()) else {
            return false;
        };
        let address = number(address);
        let after = self.ranges.partition_point(|&(first, _)| first <= address);
        after.checked_sub(1).and_then(|index| self.ranges.get(index)).is_some_and(|&(_, last)| address <= last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_addresses_up() {
        let argument = b"127.0.0.1, 10.0.0.0/8,192.0.2.77/24 2001:db8::/32,::1";
        let pieces: Vec<Vec<u8>> = split(argument).map(|(_, piece)| piece.to_vec()).collect();
        assert_eq!(pieces.len(), 5);
        assert_eq!(split(argument).map(|(offset, _)| offset).collect::<Vec<_>>(), [0, 11, 22, 36, 50]);
        let networks = Networks::new(&pieces).expect("networks");
        for inside in ["127.0.0.1", "10.1.2.3", "192.0.2.1", "2001:db8:1::1", "::1", "::ffff:10.1.2.3"] {
            assert!(networks.evaluate(inside.as_bytes()), "{inside}");
        }
        for outside in ["127.0.0.2", "11.0.0.0", "192.0.3.1", "2001:db9::1", "::2", "", "x", "10.1.2", "10.1.2.3.4"] {
            assert!(!networks.evaluate(outside.as_bytes()), "{outside}");
        }
    }

    #[test]
    fn refuses_what_is_no_network() {
        for wrong in ["1.2.3", "1.2.3.4/33", "::/129", "host", "1.2.3.4/"] {
            assert!(check(wrong.as_bytes(), Some(0)).is_err(), "{wrong}");
        }
    }
}
