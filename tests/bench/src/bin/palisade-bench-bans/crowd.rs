//! Whom the benchmark bans, and who calls.

use std::net::{Ipv4Addr, Ipv6Addr};

/// What bans are given as their reason: as long as a tier's.
pub(crate) const REASON: &str = "score 60 reaches tier 0 of policy `main`";

/// The address of a number, in 10.0.0.0/8: spread, so that none is beside the one before.
pub(crate) fn banned(number: u32) -> Ipv4Addr {
    Ipv4Addr::from(0x0a00_0000 | number.wrapping_mul(0x9e37_79b1) >> 8)
}

/// The same in IPv6.
pub(crate) fn banned_v6(number: u32) -> Ipv6Addr {
    Ipv6Addr::from(0x2001_0db8_0000_0000_0000_0000_0000_0000 | u128::from(number.wrapping_mul(0x9e37_79b1)))
}

/// An address that nobody bans.
pub(crate) fn clean(number: u32) -> Ipv4Addr {
    Ipv4Addr::from(0xc612_0000 | number.wrapping_mul(0x9e37_79b1) >> 16)
}

/// The same in IPv6.
pub(crate) fn clean_v6(number: u32) -> Ipv6Addr {
    Ipv6Addr::from(0x2001_0db9_0000_0000_0000_0000_0000_0000 | u128::from(number.wrapping_mul(0x9e37_79b1)))
}

/// A range of a length that differs from number to number: /17 to /28 of IPv4, /40 to /64 of IPv6. None holds a clean address.
pub(crate) fn range(number: u32) -> String {
    if number.is_multiple_of(2) {
        let net = ipnet::Ipv4Net::new(
            Ipv4Addr::from(0x0b00_0000 | number.wrapping_mul(0x9e37_79b1) >> 8),
            17 + (number / 2 % 12) as u8,
        );
        return net.map(|net| net.trunc().to_string()).unwrap_or_default();
    }
    let first = 0x2001_0dc0_0000_0000_0000_0000_0000_0000 | u128::from(number.wrapping_mul(0x9e37_79b1)) << 64;
    let net = ipnet::Ipv6Net::new(Ipv6Addr::from(first), 40 + (number / 2 % 25) as u8);
    net.map(|net| net.trunc().to_string()).unwrap_or_default()
}

/// An address within [`range`] of that number.
pub(crate) fn within(number: u32) -> String {
    range(number).split('/').next().unwrap_or_default().to_owned()
}

/// The keys of so many bans, ranges among them.
pub(crate) fn keys(bans: u32, ranges: u32, v6: bool) -> Vec<String> {
    let one = |number: u32| match v6 {
        true => format!("ip:{}", banned_v6(number)),
        false => format!("ip:{}", banned(number)),
    };
    (0..ranges).map(|number| format!("ip:{}", range(number))).chain((ranges..bans).map(one)).collect()
}

/// The ban of that number where real gateways are asked: of an address, and one of [`NAMED`] of a user, because many users may
/// call on one connection.
pub(crate) fn mixed(number: u32) -> String {
    if number.is_multiple_of(NAMED) { format!("user:{}", user(number)) } else { format!("ip:{}", banned(number)) }
}

/// See [`mixed`].
pub(crate) const NAMED: u32 = 100;

/// The user of that number.
pub(crate) fn user(number: u32) -> String {
    format!("user-{number}")
}
