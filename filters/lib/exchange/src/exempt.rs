//! Addresses that skip the threat fabric.

use std::net::IpAddr;

use ipnet::IpNet;
use tables::canonical;

/// The exemptions of a policy.
#[derive(Debug, Clone, Default)]
pub struct Exemptions(Vec<IpNet>);

impl Exemptions {
    /// Reads addresses and CIDRs.
    ///
    /// # Errors
    ///
    /// The entry that is neither.
    pub fn new(entries: &[String]) -> Result<Self, String> {
        let read = |entry: &String| {
            let text = entry.trim();
            let net = text.parse::<IpNet>().or_else(|_| text.parse::<IpAddr>().map(IpNet::from));
            net.map(translated).map_err(|_| format!("the exemption `{entry}` is neither an address nor a CIDR"))
        };
        entries.iter().map(read).collect::<Result<_, _>>().map(Self)
    }

    /// Whether one entry exempts every address of a network.
    #[must_use]
    pub fn cover_network(&self, network: &IpNet) -> bool {
        self.0.iter().any(|net| net.contains(network))
    }

    /// Whether an address is exempt; text that is no address is not.
    #[must_use]
    pub fn cover(&self, ip: &str) -> bool {
        !self.0.is_empty() && ip.parse::<IpAddr>().is_ok_and(|ip| self.0.iter().any(|net| net.contains(&ip)))
    }
}

/// IPv4 addresses that are written as IPv6 are IPv4, as those of callers are. But the prefix of translators as a whole
/// (`64:ff9b::/96`) is not: who exempts that does not mean all of IPv4. No caller is known by an address in it.
fn translated(net: IpNet) -> IpNet {
    let (IpNet::V6(network), IpAddr::V4(address)) = (net, canonical(net.addr())) else { return net };
    let prefix = match (network.prefix_len().checked_sub(96), network.addr().to_ipv4_mapped()) {
        (None, _) | (Some(0), None) => return net,
        (Some(prefix), _) => prefix,
    };
    IpNet::new(address.into(), prefix).unwrap_or(net)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_and_networks_are_exempt_and_nothing_else() {
        let exempt = Exemptions::new(&["192.0.2.0/24".into(), "2001:db8::1".into()]).unwrap();
        assert!(exempt.cover("192.0.2.200") && exempt.cover("2001:db8::1"));
        assert!(Exemptions::new(&["::ffff:192.0.2.0/120".into()]).unwrap().cover("192.0.2.9"));
        let translated = Exemptions::new(&["64:ff9b::192.0.2.0/120".into(), "64:ff9b::198.51.100.1".into()]).unwrap();
        assert!(translated.cover("192.0.2.9") && translated.cover("198.51.100.1") && !translated.cover("192.0.3.9"));
        let whole = Exemptions::new(&["64:ff9b::/96".into(), "64:ff9b::/64".into()]).unwrap();
        assert!(!whole.cover("192.0.2.9"), "it is not all of IPv4");
        let covered = |network: &str| exempt.cover_network(&network.parse().unwrap());
        assert!(covered("192.0.2.128/25") && covered("192.0.2.0/24") && covered("2001:db8::1/128"));
        assert!(!covered("192.0.2.0/23") && !covered("2001:db8::/64") && !covered("0.0.0.0/0"));
        assert!(!exempt.cover("192.0.3.1") && !exempt.cover("2001:db8::2") && !exempt.cover(""));
        assert!(Exemptions::new(&["office".into()]).unwrap_err().contains("`office`"));
    }
}
