//! Which addresses are not for outside.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::{IpNet, Ipv4Net, Ipv6Net};

const fn v4(a: u8, b: u8, c: u8, prefix: u8) -> Ipv4Net {
    Ipv4Net::new_assert(Ipv4Addr::new(a, b, c, 0), prefix)
}

const fn v6(a: u16, b: u16, c: u16, prefix: u8) -> Ipv6Net {
    Ipv6Net::new_assert(Ipv6Addr::new(a, b, c, 0, 0, 0, 0, 0), prefix)
}

/// By the registry of special-purpose addresses.
const V4: [(Ipv4Net, &str); 16] = [
    (v4(0, 0, 0, 8), "an unspecified address"),
    (v4(10, 0, 0, 8), "a private address"),
    (v4(100, 64, 0, 10), "a shared address of a provider's network"),
    (v4(127, 0, 0, 8), "a loopback address"),
    (v4(169, 254, 0, 16), "a link-local address"),
    (v4(172, 16, 0, 12), "a private address"),
    (v4(192, 0, 0, 24), "a reserved address"),
    (v4(192, 0, 2, 24), "an address for documentation"),
    (v4(192, 88, 99, 24), "a reserved address"),
    (v4(192, 168, 0, 16), "a private address"),
    (v4(198, 18, 0, 15), "an address for benchmarks"),
    (v4(198, 51, 100, 24), "an address for documentation"),
    (v4(203, 0, 113, 24), "an address for documentation"),
    (v4(224, 0, 0, 4), "a multicast address"),
    (v4(240, 0, 0, 4), "a reserved address"),
    // One address that every machine at one large provider sees its platform at, though it is a public one.
    (Ipv4Net::new_assert(Ipv4Addr::new(168, 63, 129, 16), 32), "an address of a cloud's own platform"),
];

const V6: [(Ipv6Net, &str); 8] = [
    (v6(0x2001, 0xdb8, 0, 32), "an address for documentation"),
    (v6(0x3fff, 0, 0, 20), "an address for documentation"),
    (v6(0x2001, 0, 0, 23), "a reserved address"),
    (v6(0xfc00, 0, 0, 7), "a unique local address"),
    (v6(0xfe80, 0, 0, 10), "a link-local address"),
    (v6(0xfec0, 0, 0, 10), "a site-local address"),
    (v6(0xff00, 0, 0, 8), "a multicast address"),
    (v6(0x64, 0xff9b, 1, 48), "a private address"),
];

/// Loopback addresses and those of private networks of IPv4. Unique local addresses of IPv6 are not among them: clouds give out
/// credentials at some.
pub const PRIVATE: [IpNet; 5] = [
    IpNet::V4(v4(127, 0, 0, 8)),
    IpNet::V4(v4(10, 0, 0, 8)),
    IpNet::V4(v4(172, 16, 0, 12)),
    IpNet::V4(v4(192, 168, 0, 16)),
    IpNet::V6(Ipv6Net::new_assert(Ipv6Addr::LOCALHOST, 128)),
];

/// All that was given out for the Internet.
const GLOBAL_V6: Ipv6Net = v6(0x2000, 0, 0, 3);

/// What `address` is for, where it is not one of the Internet: `a private address`, `a loopback address`, ... An IPv6 address
/// that stands for one of IPv4 (mapped, NAT64, 6to4) is judged as that.
#[must_use]
pub fn special_use(address: IpAddr) -> Option<&'static str> {
    match address {
        IpAddr::V4(address) => special_v4(address),
        IpAddr::V6(address) => match embedded(address) {
            Some(inner) => special_v4(inner),
            None => special_v6(address),
        },
    }
}

/// Whether `address`, or the one of IPv4 that it stands for, is in one of `nets`.
pub(super) fn within(nets: &[IpNet], address: IpAddr) -> bool {
    let inner = match address {
        IpAddr::V6(address) => embedded(address).map(IpAddr::V4),
        IpAddr::V4(_) => None,
    };
    nets.iter().any(|net| net.contains(&address) || inner.is_some_and(|inner| net.contains(&inner)))
}

fn special_v4(address: Ipv4Addr) -> Option<&'static str> {
    V4.iter().find(|(net, _)| net.contains(&address)).map(|(_, what)| *what)
}

fn special_v6(address: Ipv6Addr) -> Option<&'static str> {
    if address.is_loopback() {
        return Some("a loopback address");
    }
    if address.is_unspecified() {
        return Some("an unspecified address");
    }
    let known = V6.iter().find(|(net, _)| net.contains(&address)).map(|(_, what)| *what);
    known.or_else(|| (!GLOBAL_V6.contains(&address)).then_some("a reserved address"))
}

/// The address of IPv4 that a packet to `address` ends up at.
fn embedded(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let [a, b, c, d, e, f, high, low] = address.segments();
    let join = |high: u16, low: u16| Ipv4Addr::from(u32::from(high) << 16 | u32::from(low));
    match (a, b, c, d, e, f) {
        (0, 0, 0, 0, 0, 0xffff) => Some(join(high, low)),
        // In the place of the oldest form are :: and ::1 as well.
        (0, 0, 0, 0, 0, 0) if high != 0 => Some(join(high, low)),
        (0x64, 0xff9b, 0, 0, 0, 0) => Some(join(high, low)),
        (0x2002, ..) => Some(join(b, c)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn what(address: &str) -> Option<&'static str> {
        special_use(address.parse().unwrap())
    }

    #[test]
    fn every_class_is_known() {
        for (what_it_is, addresses) in [
            ("an unspecified address", "0.0.0.0 0.1.2.3 :: ::ffff:0.0.0.0"),
            ("a private address", "10.0.0.0 10.255.255.255 172.16.0.1 172.31.255.255 192.168.1.1 64:ff9b:1::1"),
            ("a shared address of a provider's network", "100.64.0.1 100.127.255.255 100.100.100.200"),
            ("a loopback address", "127.0.0.1 127.255.255.254 ::1"),
            ("a link-local address", "169.254.169.254 169.254.0.1 fe80::1 febf::1"),
            (
                "a reserved address",
                "192.0.0.8 192.88.99.1 240.0.0.1 255.255.255.255 2001::1 2001:1ff::1 100::1 4000::1 5f00::1",
            ),
            ("an address for documentation", "192.0.2.1 198.51.100.1 203.0.113.255 2001:db8::1 3fff:fff::1"),
            ("an address for benchmarks", "198.18.0.1 198.19.255.255"),
            ("a multicast address", "224.0.0.1 239.255.255.255 ff02::1"),
            ("a unique local address", "fc00::1 fd00:ec2::254"),
            ("a site-local address", "fec0::1"),
            ("an address of a cloud's own platform", "168.63.129.16"),
        ] {
            for address in addresses.split(' ') {
                assert_eq!(what(address), Some(what_it_is), "{address}");
            }
        }
    }

    #[test]
    fn addresses_of_the_internet_are_none_of_them() {
        for address in [
            "1.1.1.1",
            "9.255.255.255",
            "11.0.0.0",
            "100.63.255.255",
            "100.128.0.0",
            "126.255.255.255",
            "128.0.0.1",
            "169.253.255.255",
            "169.255.0.0",
            "172.15.255.255",
            "172.32.0.0",
            "192.0.1.1",
            "192.167.255.255",
            "198.20.0.0",
            "223.255.255.255",
            "168.63.129.17",
            "2606:4700::1111",
            "2001:200::1",
            "2620:fe::fe",
        ] {
            assert_eq!(what(address), None, "{address}");
        }
    }

    #[test]
    fn an_address_that_stands_for_another_is_judged_as_that() {
        for form in ["::ffff:10.0.0.5", "64:ff9b::10.0.0.5", "::10.0.0.5", "2002:a00:5::1"] {
            assert_eq!(what(form), Some("a private address"), "{form}");
            let (net, other): (IpNet, IpNet) = ("10.0.0.0/8".parse().unwrap(), "192.168.0.0/16".parse().unwrap());
            assert!(within(&[other, net], form.parse().unwrap()), "{form}");
            assert!(!within(&[other], form.parse().unwrap()), "{form}");
        }
        assert_eq!(what("::ffff:169.254.169.254"), Some("a link-local address"));
        assert_eq!(what("64:ff9b::7f00:1"), Some("a loopback address"));
        assert_eq!((what("64:ff9b::808:808"), what("2002:808:808::1"), what("::ffff:8.8.8.8")), (None, None, None));
    }
}
