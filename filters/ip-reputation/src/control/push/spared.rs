//! Callers that no ban is asked for: the own network, and those on the allowlist. A ban of the service comes back to every gateway.

use std::net::IpAddr;

use base::identity::{Identity, canonical};
use ipnet::IpNet;
use kit::Sources;

/// Which callers are spared at some time.
pub(super) struct Spared {
    /// Addresses of private networks are bannable as others are.
    private: bool,
    /// `None`: the allowlist could not be read, and no ban is asked for until it can be.
    allowed: Option<Vec<IpNet>>,
}

impl Spared {
    /// As of now. `private`: bans of private addresses may be asked for.
    pub(super) async fn now(sources: &Sources, private: bool) -> Spared {
        let allowed = match sources.store.allowlist((sources.clock)()).await {
            Ok(entries) => {
                Some(entries.iter().filter_map(|entry| Identity::parse(&entry.key).ok()?.network()).collect())
            }
            Err(error) => {
                sources.trouble(&format!("alerts ask for no ban: the allowlist could not be read: {error}"));
                None
            }
        };
        Spared { private, allowed }
    }

    /// Whether no ban of this address is asked for.
    pub(super) fn has(&self, address: IpAddr) -> bool {
        let is_own = !self.private && is_private(address);
        is_own || self.allowed.as_ref().is_none_or(|allowed| allowed.iter().any(|net| net.contains(&address)))
    }
}

/// Whether an address is a private, a loopback or a link-local one (RFC 1918, 1122, 3927, 4193, 4291). IPv4 in IPv6 is judged as IPv4.
fn is_private(address: IpAddr) -> bool {
    match canonical(address) {
        IpAddr::V4(address) => address.is_private() || address.is_loopback() || address.is_link_local(),
        IpAddr::V6(address) => address.is_loopback() || address.is_unique_local() || address.is_unicast_link_local(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn private_addresses_and_entries_of_the_allowlist_are_spared() {
        let has = |private: bool, allowed: Option<&[&str]>, address: &str| {
            let allowed = allowed.map(|allowed| allowed.iter().map(|net| net.parse().unwrap()).collect());
            Spared { private, allowed }.has(address.parse().unwrap())
        };
        let own = ["10.1.2.3", "172.16.0.1", "192.168.3.4", "127.0.0.1", "169.254.1.1", "::1", "fd00::1", "fe80::1"];
        for address in own.into_iter().chain(["::ffff:10.1.2.3", "64:ff9b::10.1.2.3"]) {
            assert!(has(false, Some(&[]), address), "{address}");
            assert!(!has(true, Some(&[]), address), "{address}");
        }
        for address in ["9.255.255.255", "11.0.0.0", "172.32.0.1", "192.0.2.1", "2001:db8::1", "fec0::1"] {
            assert!(!has(false, Some(&[]), address), "{address}");
        }
        let allowed = Some(["192.0.2.0/28", "10.1.2.3/32", "2001:db8::/64"].as_slice());
        for (address, expected) in [
            ("192.0.2.15", true),
            ("192.0.2.16", false),
            ("10.1.2.3", true),
            ("10.1.2.4", false),
            ("2001:db8::5", true),
        ] {
            assert_eq!(has(true, allowed, address), expected, "{address}");
        }
        assert!(has(true, None, "192.0.2.1"), "without the allowlist no ban is asked for");
    }
}
