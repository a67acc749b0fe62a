//! What the entities want verified, and by which resolvers.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use kit::{EntitySource, View};

use super::super::dns::{DnsName, Resolver};
use super::super::settings::address;
use super::super::signature::method;
use super::super::{BotPolicy, BotSettings};
use crate::METHOD_BYTES;

/// Where the system names its resolvers.
const SYSTEM: &str = "/etc/resolv.conf";
/// How many of them are used, as by the system itself.
const MAX_SYSTEM: usize = 3;

/// What is to be verified, and how.
#[derive(Debug, Clone, Default)]
pub(super) struct Wanted {
    /// The domains of each method that an enabled policy verifies by.
    pub(super) methods: BTreeMap<[u8; METHOD_BYTES], Arc<[DnsName]>>,
    /// The settings.
    pub(super) settings: BotSettings,
}

impl Wanted {
    pub(super) fn of(entities: &dyn EntitySource) -> Wanted {
        let mut methods = BTreeMap::new();
        let view = View::new(entities);
        for policy in view.all::<BotPolicy>().filter(|policy| policy.enabled && policy.verify_known_bots) {
            for domains in policy.signatures.iter().filter_map(super::super::BotSignature::domains) {
                let method = method(&domains);
                methods.entry(method).or_insert_with(|| {
                    domains.iter().filter_map(|domain| DnsName::vec_from_str(domain).ok()).collect::<Arc<[_]>>()
                });
            }
        }
        Wanted { methods, settings: settings(entities) }
    }

    /// Who is asked.
    pub(super) fn resolver(&self) -> Resolver {
        let named: Vec<SocketAddr> = self.settings.resolvers.iter().filter_map(|text| address(text)).collect();
        let servers = if named.is_empty() { system(std::fs::read_to_string(SYSTEM).ok().as_deref()) } else { named };
        Resolver { servers, timeout: Duration::from_millis(self.settings.timeout_millis.into()) }
    }
}

/// The settings, which are a part of an entity that this crate does not have: `security.bots` of `global-config`.
fn settings(entities: &dyn EntitySource) -> BotSettings {
    let global = entities.slot("global-config", "global-config").map(|slot| slot.entity.shown());
    let settings = global.and_then(|global| global.pointer("/security/bots").cloned());
    settings.and_then(|settings| serde_json::from_value(settings).ok()).unwrap_or_default()
}

/// The resolvers of the system; without any the one on this machine, as the system has it.
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
