//! Whom bans, the allowlist and the ledger are about.

use std::fmt;
use std::net::IpAddr;

use ipnet::{IpNet, Ipv6Net};
pub use tables::canonical;

/// The longest value of an identity, in bytes: gateways replace longer ones by a fingerprint.
const MAX_VALUE: usize = 128;

/// The widths of IPv6 networks that gateways look up by a key of their own, in bits, narrowest first. So there may be as many
/// bans on them as on addresses: those that a caller of IPv6 is known by, and those that a run of neighbours is banned as.
pub const OWN_KEYS: [u8; 3] = [64, 56, 48];

/// The width of the IPv6 networks that callers are known by where nothing else is said, in bits.
pub const IPV6_PREFIX: u8 = 64;

/// An identity, or a range of addresses: `ip:192.0.2.1`, `ip:192.0.2.0/24`, `apikey:<id>`, `user:<name>`,
/// `ja4:<fingerprint>`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Identity {
    kind: &'static str,
    value: String,
    range: Option<IpNet>,
}

/// Why a text is no identity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdentityError {
    /// The beginning of the text.
    text: String,
    problem: IdentityProblem,
}

/// What is wrong with the text of an identity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum IdentityProblem {
    /// It has no kind.
    NoIdentity,
    /// Its kind is not known.
    Kind,
    /// Its value is empty, too long or has control characters.
    Value,
    /// Its value is neither an address nor a range.
    Address,
    /// It is the range of all addresses.
    Everything,
    /// Its value is no JA4.
    Fingerprint,
}

impl Identity {
    /// Reads a reference. Addresses come out as gateways write them: IPv4 in IPv6 as IPv4 (mapped, or by a translator: see
    /// [`canonical`]), ranges from their first address.
    ///
    /// # Errors
    ///
    /// What is wrong with it, for people.
    pub fn parse(text: &str) -> Result<Identity, IdentityError> {
        use IdentityProblem::{Address, Everything, Fingerprint, Kind, NoIdentity, Value};
        let wrong = |problem| IdentityError { text: text.chars().take(MAX_VALUE).collect(), problem };
        let (kind, value) = text.split_once(':').ok_or_else(|| wrong(NoIdentity))?;
        let kind = ["ip", "apikey", "user", "ja4"].into_iter().find(|known| *known == kind);
        let kind = kind.ok_or_else(|| wrong(Kind))?;
        if value.is_empty() || value.len() > MAX_VALUE || value.chars().any(char::is_control) {
            return Err(wrong(Value));
        }
        if kind == "ja4" && !snapshot::is_ja4(value.as_bytes()) {
            return Err(wrong(Fingerprint));
        }
        if kind != "ip" {
            return Ok(Identity { kind, value: value.to_owned(), range: None });
        }
        if let Ok(address) = value.parse::<IpAddr>() {
            return Ok(Identity { kind, value: canonical(address).to_string(), range: None });
        }
        let range = value.parse::<IpNet>().map_err(|_| wrong(Address))?;
        let range = translated(range).trunc();
        if range.prefix_len() == range.max_prefix_len() {
            return Ok(Identity { kind, value: canonical(range.addr()).to_string(), range: None });
        }
        if range.prefix_len() == 0 {
            return Err(wrong(Everything));
        }
        Ok(Identity { kind, value: range.to_string(), range: Some(range) })
    }

    /// `ip`, `apikey`, `user` or `ja4`.
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

    /// The identity of a client by its address: an address of IPv4, the network of `prefix` bits around one of IPv6.
    /// Any other identity, and a range, is itself.
    #[must_use]
    pub fn charged(self, prefix: u8) -> Identity {
        match self.network_v6() {
            Some(address) if !self.is_range() => Identity::of_network_v6(address, prefix).unwrap_or(self),
            _ => self,
        }
    }

    /// The network of so many bits around one of IPv6; `None` where it is wider already.
    #[must_use]
    pub fn of_network_v6(network: Ipv6Net, prefix: u8) -> Option<Identity> {
        if prefix > network.prefix_len() || prefix == 0 {
            return None;
        }
        let network = Ipv6Net::new(network.addr(), prefix).ok()?.trunc();
        if prefix == network.max_prefix_len() {
            return Some(Identity { kind: "ip", value: network.addr().to_string(), range: None });
        }
        Some(Identity { kind: "ip", value: network.to_string(), range: Some(IpNet::V6(network)) })
    }

    /// The network that an identity of IPv6 is; an address is one of 128 bits.
    #[must_use]
    pub fn network_v6(&self) -> Option<Ipv6Net> {
        match (self.range, self.address()) {
            (Some(IpNet::V6(network)), _) => Some(network),
            (None, Some(IpAddr::V6(address))) => Ipv6Net::new(address, 128).ok(),
            _ => None,
        }
    }

    /// The addresses that it is: a range, or one of the full width. `None` for every other kind.
    #[must_use]
    pub fn network(&self) -> Option<IpNet> {
        self.range.or_else(|| self.address().map(IpNet::from))
    }

    /// Whether it is a network of IPv6 that gateways look up by a key of its own.
    #[must_use]
    pub fn has_own_key(&self) -> bool {
        matches!(self.range, Some(IpNet::V6(network)) if OWN_KEYS.contains(&network.prefix_len()))
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

/// IPv4 addresses that are written as IPv6 are IPv4, see [`canonical`].
fn translated(range: IpNet) -> IpNet {
    let (IpNet::V6(network), IpAddr::V4(address)) = (range, canonical(range.addr())) else { return range };
    let prefix = network.prefix_len().checked_sub(96);
    prefix.and_then(|prefix| IpNet::new(address.into(), prefix).ok()).unwrap_or(range)
}

impl fmt::Display for IdentityError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.problem {
            IdentityProblem::NoIdentity => "is not an identity",
            IdentityProblem::Kind => "is of no known kind",
            IdentityProblem::Value => "has no value of 1 to 128 bytes without control characters",
            IdentityProblem::Address => "has neither an address nor a CIDR",
            IdentityProblem::Everything => "is every address there is",
            IdentityProblem::Fingerprint => "has no JA4, such as `t13d1516h2_8daaf6152771_02713d6af862`",
        };
        let text = self.text.escape_debug();
        write!(
            f,
            "`{text}` {what}; expected `ip:<address>`, `ip:<CIDR>`, `apikey:<id>`, `user:<name>` or `ja4:<fingerprint>`"
        )
    }
}

impl std::error::Error for IdentityError {}

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
        let ja4 = "ja4:t13d1516h2_8daaf6152771_02713d6af862";
        assert_eq!((key(ja4).as_str(), Identity::parse(ja4).unwrap().kind()), (ja4, "ja4"));
        assert!(Identity::parse("ja4:t13d1516h2_*_*").unwrap_err().to_string().contains("has no JA4"));
        assert_eq!(key("ip:::ffff:192.0.2.1"), "ip:192.0.2.1");
        assert_eq!(key("ip:64:ff9b::c000:201"), "ip:192.0.2.1");
        assert_eq!(key("ip:64:ff9b::192.0.2.77/120"), "ip:192.0.2.0/24");
        assert_eq!(key("ip:64:ff9b::192.0.2.77/128"), "ip:192.0.2.77");
        assert!(Identity::parse("ip:64:ff9b::/96").unwrap_err().to_string().contains("every address"));
        assert_eq!(key("ip:2001:DB8:0::1"), "ip:2001:db8::1");
        assert_eq!(key("ip:192.0.2.77/24"), "ip:192.0.2.0/24");
        assert_eq!(key("ip:192.0.2.77/32"), "ip:192.0.2.77");
        assert_eq!(key("ip:::ffff:192.0.2.77/120"), "ip:192.0.2.0/24");
        let long = format!("user:{}", "x".repeat(129));
        for bad in ["", "192.0.2.1", "ip:", "ip:x", "ip:0.0.0.0/0", "host:a", "user:", "user:a\nb", long.as_str()] {
            assert!(Identity::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_caller_of_ipv6_is_known_by_its_network() {
        let charged = |text: &str, prefix| Identity::parse(text).unwrap().charged(prefix).key();
        assert_eq!(charged("ip:2001:db8:1:2:3::4", 64), "ip:2001:db8:1:2::/64");
        assert_eq!(charged("ip:2001:db8:1:2ff::4", 56), "ip:2001:db8:1:200::/56");
        for (same, prefix) in [
            ("ip:2001:db8:1:2:3::4", 128),
            ("ip:192.0.2.1", 64),
            ("ip:2001:db8:1:2::/64", 48),
            ("ip:2001:db8::/32", 64),
            ("user:ada", 64),
        ] {
            assert_eq!(charged(same, prefix), same);
        }
        assert_eq!(charged("ip:::ffff:192.0.2.1", 64), "ip:192.0.2.1");
        assert_eq!(charged("ip:64:ff9b::192.0.2.1", 64), "ip:192.0.2.1");
        let own = |text: &str| Identity::parse(text).unwrap().has_own_key();
        assert!(own("ip:2001:db8::/64") && own("ip:2001:db8::/56") && own("ip:2001:db8::/48"));
        assert!(!own("ip:2001:db8::/47") && !own("ip:2001:db8::1") && !own("ip:10.0.0.0/8"));
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
