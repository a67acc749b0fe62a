//! Whom bans, the allowlist and the ledger are about.

use std::fmt;
use std::net::IpAddr;

use ipnet::IpNet;

/// The longest value of an identity, in bytes: gateways replace longer ones by a fingerprint.
const MAX_VALUE: usize = 128;

/// An identity, or a range of addresses: `ip:192.0.2.1`, `ip:192.0.2.0/24`, `apikey:<id>`, `user:<name>`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Identity {
    kind: &'static str,
    value: String,
    range: Option<IpNet>,
}

impl Identity {
    /// Reads a reference. Addresses come out as gateways write them: IPv4 in IPv6 as IPv4, ranges from their first address.
    ///
    /// # Errors
    ///
    /// What is wrong with it, for people.
    pub fn parse(text: &str) -> Result<Identity, String> {
        let shown = || text.chars().take(MAX_VALUE).collect::<String>().escape_debug().to_string();
        let wrong = |what: &str| {
            format!("`{}` {what}; expected `ip:<address>`, `ip:<CIDR>`, `apikey:<id>` or `user:<name>`", shown())
        };
        let (kind, value) = text.split_once(':').ok_or_else(|| wrong("is no identity"))?;
        let kind = ["ip", "apikey", "user"].into_iter().find(|known| *known == kind);
        let kind = kind.ok_or_else(|| wrong("is of no known kind"))?;
        if value.is_empty() || value.len() > MAX_VALUE || value.chars().any(char::is_control) {
            return Err(wrong("has no value of 1 to 128 bytes without control characters"));
        }
        if kind != "ip" {
            return Ok(Identity { kind, value: value.to_owned(), range: None });
        }
        if let Ok(address) = value.parse::<IpAddr>() {
            return Ok(Identity { kind, value: address.to_canonical().to_string(), range: None });
        }
        let range = value.parse::<IpNet>().map_err(|_| wrong("has neither an address nor a CIDR"))?.trunc();
        if range.prefix_len() == range.max_prefix_len() {
            return Ok(Identity { kind, value: range.addr().to_canonical().to_string(), range: None });
        }
        if range.prefix_len() == 0 {
            return Err(wrong("is every address there is"));
        }
        Ok(Identity { kind, value: range.to_string(), range: Some(range) })
    }

    /// `ip`, `apikey` or `user`.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        self.kind
    }

    /// Which one.
    #[must_use]
    pub fn value(&self) -> &str {
        &self.value
    }

    /// The identity as one string, such as `ip:192.0.2.1`.
    #[must_use]
    pub fn key(&self) -> String {
        self.to_string()
    }

    /// Whether it is a range of addresses.
    #[must_use]
    pub fn is_range(&self) -> bool {
        self.range.is_some()
    }

    /// Whether `other` is this identity, or within this range.
    #[must_use]
    pub fn covers(&self, other: &Identity) -> bool {
        match (self.range, other.range) {
            (None, _) => self == other,
            (Some(range), Some(other)) => range.contains(&other),
            (Some(range), None) => other.address().is_some_and(|address| range.contains(&address)),
        }
    }

    fn address(&self) -> Option<IpAddr> {
        (self.kind == "ip").then(|| self.value.parse().ok()).flatten()
    }
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.kind, self.value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identities_are_read_and_written_as_gateways_write_them() {
        let key = |text: &str| Identity::parse(text).unwrap().key();
        for same in ["ip:192.0.2.1", "ip:2001:db8::1", "apikey:a:b", "user:ada@example.com", "ip:10.0.0.0/8"] {
            assert_eq!(key(same), same);
        }
        assert_eq!(key("ip:::ffff:192.0.2.1"), "ip:192.0.2.1");
        assert_eq!(key("ip:2001:DB8:0::1"), "ip:2001:db8::1");
        assert_eq!(key("ip:192.0.2.77/24"), "ip:192.0.2.0/24");
        assert_eq!(key("ip:192.0.2.77/32"), "ip:192.0.2.77");
        let long = format!("user:{}", "x".repeat(129));
        for bad in ["", "192.0.2.1", "ip:", "ip:x", "ip:0.0.0.0/0", "host:a", "user:", "user:a\nb", long.as_str()] {
            assert!(Identity::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_range_covers_what_is_in_it() {
        let read = |text: &str| Identity::parse(text).unwrap();
        let range = read("ip:10.0.0.0/8");
        assert!(range.covers(&read("ip:10.1.2.3")) && range.covers(&read("ip:10.1.0.0/16")) && range.covers(&range));
        assert!(!range.covers(&read("ip:11.0.0.1")) && !range.covers(&read("user:10.1.2.3")));
        assert!(!read("ip:10.1.0.0/16").covers(&range) && !read("ip:10.1.2.3").covers(&range));
    }
}
