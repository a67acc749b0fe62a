//! One address for each host.

use std::net::{IpAddr, Ipv4Addr};

/// The address that a host is known by: an address of IPv6 that stands for one of IPv4 is that one.
///
/// These are IPv4-mapped addresses (`::ffff:192.0.2.1`) and those under the prefix by which translators write IPv4
/// (`64:ff9b::192.0.2.1`, RFC 6052: NAT64, SIIT-DC). Behind a translator all hosts of IPv4 are within one /64: as IPv6, they
/// would be one caller.
#[must_use]
#[inline]
pub fn canonical(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V6(six) => match six.segments() {
            [0, 0, 0, 0, 0, 0xffff, high, low] | [0x64, 0xff9b, 0, 0, 0, 0, high, low] => {
                Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low)).into()
            }
            _ => address,
        },
        IpAddr::V4(_) => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_for_an_address_of_ipv4_is_that_address() {
        let of = |text: &str| canonical(text.parse().unwrap()).to_string();
        for four in ["192.0.2.1", "::ffff:192.0.2.1", "64:ff9b::192.0.2.1", "64:ff9b::c000:201"] {
            assert_eq!(of(four), "192.0.2.1");
        }
        // Other prefixes have the address elsewhere, or none.
        for six in ["2001:db8::c000:201", "64:ff9b:1::c000:201", "64:ff9b::1:c000:201", "64:ff9c::c000:201", "::1"] {
            assert_eq!(of(six), six);
        }
        assert_eq!((of("64:ff9b::"), of("64:ff9b::ffff:ffff")), ("0.0.0.0".into(), "255.255.255.255".into()));
    }
}
