//! The resolvers of the system.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// Where the system names its resolvers.
const SYSTEM: &str = "/etc/resolv.conf";
/// How many of them are used, as by the system itself.
const MAX_SYSTEM: usize = 3;

/// The resolvers that the system names, at most 3, read anew with each call; without any the one on this machine, as the system has it.
#[must_use]
pub fn system_resolvers() -> Vec<SocketAddr> {
    system(std::fs::read_to_string(SYSTEM).ok().as_deref())
}

fn system(file: Option<&str>) -> Vec<SocketAddr> {
    let lines = file.unwrap_or_default().lines().filter_map(|line| line.trim().strip_prefix("nameserver"));
    let addresses = lines.filter(|rest| rest.starts_with([' ', '\t'])).filter_map(|rest| {
        let text = rest.split_whitespace().next()?;
        // The zone of a link-local address is a name of an interface here: such resolvers are left out.
        text.parse::<IpAddr>().ok()
    });
    let servers: Vec<SocketAddr> = addresses.map(|address| SocketAddr::new(address, 53)).take(MAX_SYSTEM).collect();
    if servers.is_empty() { vec![SocketAddr::new(Ipv4Addr::LOCALHOST.into(), 53)] } else { servers }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_resolvers_of_the_system_are_read() {
        let file = "# comment\nsearch example.com\nnameserver 192.0.2.53\nnameserver\t2001:db8::53 # x\noptions ndots:1\n\
                    nameserver fe80::1%eth0\nnameservers 192.0.2.1\n nameserver 192.0.2.54\nnameserver 192.0.2.55\n";
        let found: Vec<String> = system(Some(file)).iter().map(ToString::to_string).collect();
        assert_eq!(found, ["192.0.2.53:53", "[2001:db8::53]:53", "192.0.2.54:53"]);
        for none in [None, Some(""), Some("nameserver x")] {
            assert_eq!(system(none), ["127.0.0.1:53".parse().unwrap()]);
        }
    }
}
