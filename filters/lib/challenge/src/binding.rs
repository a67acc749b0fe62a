//! Whom a puzzle or a clearance holds for.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use exchange::{Exchange, canonical};
use sha2::{Digest as _, Sha256};
use snapshot::{Challenge, hex};

/// The bytes of a user agent's hash that are kept.
const UA_BYTES: usize = 16;

/// The parts of a caller that are bound; empty where they are not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Binding {
    pub(crate) ip: String,
    pub(crate) ua: String,
}

impl Binding {
    /// The caller of an exchange, as far as the provider binds it.
    pub(crate) fn of(settings: &Challenge, exchange: &Exchange) -> Self {
        let ua = || exchange.request.headers.get("user-agent").unwrap_or_default();
        Self {
            ip: if settings.bind_ip { network(&exchange.caller.ip) } else { String::new() },
            ua: if settings.bind_ua { fingerprint(ua()) } else { String::new() },
        }
    }

    /// Whether what was bound to `ip` and `ua` holds for this caller.
    pub(crate) fn admits(&self, ip: &str, ua: &str) -> bool {
        (self.ip.is_empty() || self.ip == ip) && (self.ua.is_empty() || self.ua == ua)
    }
}

/// The network of an address: callers change their address within it in the middle of a visit.
pub(crate) fn network(ip: &str) -> String {
    match ip.parse::<IpAddr>().map(canonical) {
        Ok(IpAddr::V4(ip)) => {
            let [a, b, c, _] = ip.octets();
            format!("{}/24", Ipv4Addr::new(a, b, c, 0))
        }
        Ok(IpAddr::V6(ip)) => {
            let [a, b, c, d, ..] = ip.segments();
            format!("{}/64", Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0))
        }
        // A caller without an address of its own (a pipe) is bound to what the gateway calls it.
        Err(_) => format!("={ip}"),
    }
}

fn fingerprint(ua: &[u8]) -> String {
    let hash = Sha256::digest(ua);
    hex(hash.get(..UA_BYTES).unwrap_or(&hash))
}
