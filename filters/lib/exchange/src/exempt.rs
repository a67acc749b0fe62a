//! Addresses that skip the threat fabric.

use std::net::IpAddr;

use ipnet::IpNet;

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
            net.map(unmapped).map_err(|_| format!("the exemption `{entry}` is neither an address nor a CIDR"))
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

/// IPv4 addresses that are written as IPv6 are IPv4, as those of callers are.
fn unmapped(net: IpNet) -> IpNet {
    let IpNet::V6(network) = net else { return net };
    let mapped = network.addr().to_ipv4_mapped().zip(network.prefix_len().checked_sub(96));
    mapped.and_then(|(address, prefix)| IpNet::new(address.into(), prefix).ok()).unwrap_or(net)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_and_networks_are_exempt_and_nothing_else() {
        let exempt = Exemptions::new(&["192.0.2.0/24".into(), "2001:db8::1".into()]).unwrap();
        assert!(exempt.cover("192.0.2.200") && exempt.cover("2001:db8::1"));
        assert!(Exemptions::new(&["::ffff:192.0.2.0/120".into()]).unwrap().cover("192.0.2.9"));
        let covered = |network: &str| exempt.cover_network(&network.parse().unwrap());
        assert!(covered("192.0.2.128/25") && covered("192.0.2.0/24") && covered("2001:db8::1/128"));
        assert!(!covered("192.0.2.0/23") && !covered("2001:db8::/64") && !covered("0.0.0.0/0"));
        assert!(!exempt.cover("192.0.3.1") && !exempt.cover("2001:db8::2") && !exempt.cover(""));
        assert!(Exemptions::new(&["office".into()]).unwrap_err().contains("`office`"));
    }
}
