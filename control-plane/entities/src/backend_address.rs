//! The addresses that a backend may have: what a gateway can connect to or look up.

use std::net::{IpAddr, Ipv6Addr};

/// The longest host name, in bytes (RFC 1035, section 2.3.4).
const MAX_LENGTH: usize = 253;
/// The longest label of a host name, in bytes.
const MAX_LABEL: usize = 63;

/// What may be written.
pub(super) const EXPECTED: &str =
    "a host name (RFC 1123, such as `shop.internal`), an IPv4 or an IPv6 address, without port, brackets and scheme";

/// Why a text is no address of a backend; `None` where it is one. An underscore is taken although RFC 1123 has none:
/// names of containers have it. So is the dot at the end of an absolute name.
pub(super) fn problem(address: &str) -> Option<&'static str> {
    if address.parse::<IpAddr>().is_ok() {
        return None;
    }
    if address.contains("://") || address.contains('/') {
        return Some("it is a URL or has a path");
    }
    if let Some(bare) = address.strip_prefix('[') {
        let is_address = bare.strip_suffix(']').is_some_and(|inner| inner.parse::<Ipv6Addr>().is_ok());
        return Some(if is_address { "it has brackets" } else { "it has a port, or is no IPv6 address" });
    }
    if address.contains(':') {
        return Some("it has a port, which belongs into `port`, or is no IPv6 address");
    }
    let name = address.strip_suffix('.').unwrap_or(address);
    if name.is_empty() {
        return Some("it names no host");
    }
    if name.len() > MAX_LENGTH {
        return Some("it has more than 253 characters");
    }
    if !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-_".contains(&byte)) {
        return Some("it has a character that no host name has");
    }
    for label in name.split('.') {
        if label.is_empty() {
            return Some("a part between two dots is empty");
        }
        if label.len() > MAX_LABEL {
            return Some("a part of it has more than 63 characters");
        }
        if label.starts_with('-') || label.ends_with('-') {
            return Some("a part of it begins or ends with a hyphen");
        }
    }
    // RFC 1123, section 2.1: a name whose last part is a number would be read as an address.
    let last = name.rsplit('.').next().unwrap_or_default();
    last.bytes().all(|byte| byte.is_ascii_digit()).then_some("it ends with a number and is no IPv4 address")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_and_names_are_taken() {
        let label = "a".repeat(MAX_LABEL);
        for address in [
            "127.0.0.1",
            "::1",
            "2001:db8::7",
            "::ffff:192.0.2.1",
            "localhost",
            "shop.internal",
            "shop.default.svc.cluster.local.",
            "my_service",
            "1and1.example",
            "3scale",
            "xn--caf-dma.test",
            "a-b.c",
            label.as_str(),
        ] {
            assert_eq!(problem(address), None, "{address}");
        }
    }

    #[test]
    fn everything_else_is_refused_with_its_reason() {
        for (address, reason) in [
            ("", "no host"),
            (".", "no host"),
            ("127.0.0.1:80", "port"),
            ("shop.internal:80", "port"),
            ("1:2:3", "port"),
            ("[::1]", "brackets"),
            ("[::1]:80", "port"),
            ("http://shop.internal", "URL"),
            ("shop.internal/a", "URL"),
            ("256.1.1.1", "IPv4"),
            ("1.2.3", "IPv4"),
            ("01.2.3.4", "IPv4"),
            ("80", "IPv4"),
            ("shop.7", "IPv4"),
            ("1.2.3.4.", "IPv4"),
            ("-x", "hyphen"),
            ("a.b-", "hyphen"),
            ("a..b", "empty"),
            (".a", "empty"),
            ("a b", "character"),
            ("caf\u{e9}.test", "character"),
            ("user@host", "character"),
            ("fe80::1%eth0", "port"),
        ] {
            assert!(problem(address).is_some_and(|found| found.contains(reason)), "{address}: {:?}", problem(address));
        }
        assert!(problem(&"a".repeat(MAX_LABEL + 1)).is_some_and(|found| found.contains("63")));
        assert!(problem(&"a.".repeat(130)).is_some_and(|found| found.contains("253")));
    }
}
