//! Which of many networks an address is in, without a look at each.

use std::collections::HashMap;

use ipnet::IpNet;

use crate::identity::Identity;

/// Values of networks. A search costs one look for each width that occurs, not one for each network.
#[derive(Clone, Debug)]
pub struct Networks<T> {
    by_network: HashMap<IpNet, T>,
    /// The widths that occur, in bits, narrowest networks first.
    widths_v4: Vec<u8>,
    widths_v6: Vec<u8>,
}

// === impl Networks ===

impl<T> Networks<T> {
    /// The narrowest network that covers an identity, with its value; an identity that is no address or network is in none.
    #[must_use]
    pub fn over(&self, identity: &Identity) -> Option<&T> {
        let within = identity.network()?;
        let widths = if matches!(within, IpNet::V4(_)) { &self.widths_v4 } else { &self.widths_v6 };
        let widths = widths.iter().filter(|width| **width <= within.prefix_len());
        widths
            .filter_map(|width| IpNet::new(within.addr(), *width).ok())
            .find_map(|network| self.by_network.get(&network.trunc()))
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.by_network.is_empty()
    }
}

impl<T> FromIterator<(IpNet, T)> for Networks<T> {
    fn from_iter<I: IntoIterator<Item = (IpNet, T)>>(networks: I) -> Networks<T> {
        let by_network: HashMap<IpNet, T> =
            networks.into_iter().map(|(network, value)| (network.trunc(), value)).collect();
        let widths = |is_v4: bool| {
            let of_family = by_network.keys().filter(|network| matches!(network, IpNet::V4(_)) == is_v4);
            let mut widths: Vec<u8> = of_family.map(IpNet::prefix_len).collect();
            widths.sort_unstable_by(|one, other| other.cmp(one));
            widths.dedup();
            widths
        };
        let (widths_v4, widths_v6) = (widths(true), widths(false));
        Networks { by_network, widths_v4, widths_v6 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_narrowest_network_around_an_identity_is_found() {
        let names = ["10.0.0.0/8", "10.1.0.0/16", "192.0.2.0/24", "2001:db8::/32", "2001:db8:1::/64"];
        let networks: Networks<&str> = names.into_iter().map(|name| (name.parse().unwrap(), name)).collect();
        let over = |text: &str| networks.over(&Identity::parse(text).unwrap()).copied();
        for (identity, found) in [
            ("ip:10.1.2.3", Some("10.1.0.0/16")),
            ("ip:10.2.2.3", Some("10.0.0.0/8")),
            ("ip:10.1.0.0/16", Some("10.1.0.0/16")),
            ("ip:10.0.0.0/12", Some("10.0.0.0/8")),
            ("ip:10.0.0.0/7", None),
            ("ip:11.0.0.1", None),
            ("ip:::ffff:192.0.2.7", Some("192.0.2.0/24")),
            ("ip:2001:db8:1::7", Some("2001:db8:1::/64")),
            ("ip:2001:db8:1::/48", Some("2001:db8::/32")),
            ("ip:2001:db9::1", None),
            ("user:10.1.2.3", None),
        ] {
            assert_eq!(over(identity), found, "{identity}");
            let covers = |name: &&&str| {
                Identity::parse(&format!("ip:{name}")).unwrap().covers(&Identity::parse(identity).unwrap())
            };
            assert_eq!(names.iter().any(|name| covers(&name)), found.is_some(), "{identity}");
        }
        assert!(!networks.is_empty() && Networks::<u8>::from_iter([]).is_empty());
    }
}
