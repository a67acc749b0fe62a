//! The host names that a route may answer to: Envoy's domains.

use std::net::Ipv6Addr;

/// The longest host name, in bytes (RFC 1035, section 2.3.4).
const MAX_LENGTH: usize = 253;

/// What may be written.
pub const EXPECTED: &str = "a host name (`shop.example`), all names with an end (`*.example`, `*-shop.example`) or a \
     beginning (`shop.*`), an IPv6 address in brackets, or `*` for every host";

/// The form in which a host is kept, which is the one that requests have behind the listener: without the dot at the end
/// of an absolute name, an IPv6 address as RFC 5952 writes it.
pub(crate) fn normal(host: &str) -> String {
    let address = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    if let Some(address) = address.and_then(|text| text.parse::<Ipv6Addr>().ok()) {
        return format!("[{address}]");
    }
    // What is nothing but the dot is left for `problem` to find.
    host.strip_suffix('.').filter(|name| !name.is_empty() && !name.ends_with(['.', '*'])).unwrap_or(host).to_owned()
}

/// Why a text is no host pattern; `None` where it is one. What this accepts, Envoy accepts as the domain of a virtual host,
/// and requests can match.
pub fn problem(host: &str) -> Option<&'static str> {
    if host == "*" {
        return None;
    }
    if host.is_empty() {
        return Some("it is empty");
    }
    if host.len() > MAX_LENGTH {
        return Some("it has more than 253 characters");
    }
    if !host.is_ascii() {
        return Some("it has characters that no request has in its host; write the ASCII form of the name (`xn--...`)");
    }
    if let Some(inner) = host.strip_prefix('[') {
        let Some((address, text)) =
            inner.strip_suffix(']').and_then(|text| Some((text.parse::<Ipv6Addr>().ok()?, text)))
        else {
            return Some("what is in brackets is not an IPv6 address, or a port follows it");
        };
        // Envoy compares text, and clients send this form (RFC 5952).
        return (address.to_string() != text.to_ascii_lowercase())
            .then_some("the IPv6 address is not in its shortest form (RFC 5952), and no request has another");
    }
    let name = host.strip_prefix('*').or_else(|| host.strip_suffix('*')).unwrap_or(host);
    if name.contains('*') {
        return Some("it may have one `*`, at its beginning or at its end");
    }
    if name.contains("://") || name.contains('/') {
        return Some("it is a URL or has a path; write the host alone");
    }
    if name.parse::<Ipv6Addr>().is_ok() {
        return Some("an IPv6 address is written in brackets, as in the request");
    }
    if name.contains(':') {
        return Some("it has a port, which is not looked at: a route answers on every port of the listener");
    }
    if !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-_".contains(&byte)) {
        return Some("it has a character that no host has");
    }
    if !name.bytes().any(|byte| byte.is_ascii_alphanumeric()) {
        return Some("it names no host");
    }
    if name.contains("..") || host.starts_with('.') {
        return Some("a part between two dots is empty");
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn envoys_domains_are_hosts() {
        for host in [
            "*",
            "shop.example",
            "SHOP.example",
            "*.example",
            "*-shop.example",
            "*shop.com",
            "shop.*",
            "shop-*",
            "x",
            "127.0.0.1",
            "[2001:db8::1]",
            "[2001:DB8::A]",
            "[::1]",
            "a_b.test",
            "xn--caf-dma.test",
            "shop.example.",
            "*.a",
        ] {
            assert_eq!(problem(host), None, "{host}");
        }
    }

    #[test]
    fn hosts_are_kept_in_one_form() {
        for (written, kept) in [
            ("*", "*"),
            ("shop.example", "shop.example"),
            ("shop.example.", "shop.example"),
            ("*.example.", "*.example"),
            ("shop.*", "shop.*"),
            ("[0:0:0:0:0:0:0:1]", "[::1]"),
            ("[2001:0DB8::A]", "[2001:db8::a]"),
            ("[::FFFF:1.2.3.4]", "[::ffff:1.2.3.4]"),
            ("[::ffff:102:304]", "[::ffff:1.2.3.4]"),
            // For `problem` to find.
            (".", "."),
            ("*.", "*."),
            ("a..", "a.."),
            ("[::1", "[::1"),
        ] {
            assert_eq!(normal(written), kept, "{written}");
        }
    }

    #[test]
    fn everything_else_is_refused_with_its_reason() {
        for (host, reason) in [
            ("", "empty"),
            ("a*b", "one `*`"),
            ("*a*", "one `*`"),
            ("**", "one `*`"),
            ("shop.example:8443", "port"),
            ("*.example:80", "port"),
            ("[::1]:80", "port"),
            ("[::1", "not an IPv6"),
            ("[2001:db8:0:0::1]", "shortest"),
            ("[2001:0db8::1]", "shortest"),
            ("[2001:db8:0:0:0:0:0:1]", "shortest"),
            ("::1", "brackets"),
            ("https://shop.example", "URL"),
            ("shop.example/a", "URL"),
            ("a b", "character"),
            ("a,b", "character"),
            ("a@b", "character"),
            ("a\r\nb", "character"),
            ("caf\u{e9}.test", "xn--"),
            ("*.", "names no host"),
            ("*-", "names no host"),
            ("a..b", "empty"),
            (".a", "empty"),
        ] {
            assert!(problem(host).is_some_and(|found| found.contains(reason)), "{host}: {:?}", problem(host));
        }
        assert!(problem(&"a".repeat(254)).is_some());
    }
}
