//! Settings of lookups in DNS blocklists.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use kit::checks::{count, tag, weight, within};
use kit::{FieldProblem, Settings, number};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::super::SourceAction;

/// The most zones: the value of an address that all of them list has room for their keys.
pub(super) const MAX_ZONES: usize = 16;
/// The longest name of a zone, in bytes: in front of it there are up to 64 of an address.
const MAX_NAME: usize = 180;
/// The most codes of a zone.
const MAX_CODES: usize = 64;

/// Lookups in DNS blocklists, for the IP reputation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct DnsblSettings {
    /// The zones that callers are looked up in, at most 16. Default: none.
    pub zones: Vec<DnsblZone>,
    /// The resolvers that are asked, addresses with or without a port (53), at most 8. Default: none, which means those of the system
    /// that the control plane runs on (/etc/resolv.conf).
    pub resolvers: Vec<String>,
    /// How long a request waits for a verdict, in milliseconds, 0 to 2000. 0: none waits, and a verdict counts from the next request
    /// on. Default 100.
    #[schemars(range(min = 0, max = 2_000))]
    pub wait_millis: u32,
    /// The timeout of a question to a resolver in milliseconds, 1 to 30000. A question is asked twice. Default 2000.
    #[schemars(range(min = 1, max = 30_000))]
    pub timeout_millis: u32,
    /// The most addresses that are looked up in a second, 1 to 10000. Default 100.
    #[schemars(range(min = 1, max = 10_000))]
    pub lookups_per_second: u32,
    /// How long the verdict on a listed address is kept, in seconds, 1 to 86400. Default 900.
    #[schemars(range(min = 1, max = 86_400))]
    pub listed_ttl_seconds: u32,
    /// How long the verdict on an address that is not listed is kept, in seconds, 1 to 86400. Default 300.
    #[schemars(range(min = 1, max = 86_400))]
    pub unlisted_ttl_seconds: u32,
    /// How long a lookup that failed is not repeated, in seconds, 1 to 86400. Default 30.
    #[schemars(range(min = 1, max = 86_400))]
    pub failed_ttl_seconds: u32,
    /// The most verdicts that are kept, 1 to 1000000. Default 100000.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub max_entries: u32,
}

/// A zone of a DNS blocklist.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct DnsblZone {
    /// The name of the zone, such as `zen.spamhaus.org`. Required.
    pub zone: String,
    /// False: it is not asked. Default true.
    pub enabled: bool,
    /// What a listing adds to the score, 0 to 100. Default 50.
    #[serde(with = "number")]
    #[schemars(with = "f64")]
    pub weight: f64,
    /// Whether a listing denies regardless of the score. Default monitor.
    pub action: SourceAction,
    /// The tag of its signals. Default `dnsbl:` with the name of the zone.
    pub tag: String,
    /// The answers of the zone that are listings, at most 64. Default: none, which means all of 127.0.0.0/8 but errors; of Spamhaus' ZEN
    /// not the addresses of dial-up lines (`127.0.0.10`, `127.0.0.11`).
    pub codes: Vec<String>,
}

// === impl DnsblSettings ===

impl Default for DnsblSettings {
    fn default() -> DnsblSettings {
        DnsblSettings {
            zones: Vec::new(),
            resolvers: Vec::new(),
            wait_millis: 100,
            timeout_millis: 2_000,
            lookups_per_second: 100,
            listed_ttl_seconds: 900,
            unlisted_ttl_seconds: 300,
            failed_ttl_seconds: 30,
            max_entries: 100_000,
        }
    }
}

impl Default for DnsblZone {
    fn default() -> DnsblZone {
        DnsblZone {
            zone: String::new(),
            enabled: true,
            weight: 50.0,
            action: SourceAction::Monitor,
            tag: String::new(),
            codes: Vec::new(),
        }
    }
}

impl Settings for DnsblSettings {
    const FIELD: &'static str = "dnsbl";

    fn check(&self) -> Vec<FieldProblem> {
        let mut problems = Vec::new();
        problems.extend(count("/zones", self.zones.len(), MAX_ZONES));
        for (index, zone) in self.zones.iter().enumerate() {
            let place = format!("/zones/{index}");
            let is_same = |earlier: &DnsblZone| earlier.name() == zone.name();
            if self.zones.iter().take(index).any(is_same) {
                let problem = FieldProblem::new(format!("{place}/zone"), "the zone is there twice");
                problems.push(problem.expected("each zone once"));
            }
            problems.extend(zone.check(&place));
        }
        let resolvers = self.resolvers.iter().enumerate().filter(|(_, text)| server(text).is_none());
        problems.extend(resolvers.map(|(index, text)| {
            let message = format!("`{}` is not the address of a resolver", text.escape_debug());
            FieldProblem::new(format!("/resolvers/{index}"), message).expected("such as `192.0.2.53` or `[::1]:5353`")
        }));
        let found = [
            count("/resolvers", self.resolvers.len(), 8),
            within("/wait_millis", self.wait_millis, 0..=2_000),
            within("/timeout_millis", self.timeout_millis, 1..=30_000),
            within("/lookups_per_second", self.lookups_per_second, 1..=10_000),
            within("/listed_ttl_seconds", self.listed_ttl_seconds, 1..=86_400),
            within("/unlisted_ttl_seconds", self.unlisted_ttl_seconds, 1..=86_400),
            within("/failed_ttl_seconds", self.failed_ttl_seconds, 1..=86_400),
            within("/max_entries", self.max_entries, 1..=1_000_000),
        ];
        problems.extend(found.into_iter().flatten());
        problems
    }
}

impl DnsblSettings {
    /// The zones that are asked.
    pub(in super::super) fn enabled(&self) -> impl Iterator<Item = &DnsblZone> {
        self.zones.iter().filter(|zone| zone.enabled)
    }
}

impl DnsblZone {
    /// The name in lower case, without a dot at its end.
    pub(in super::super) fn name(&self) -> String {
        reputation_tables::zone_name(&self.zone)
    }

    /// The tag of its signals.
    pub(in super::super) fn tag(&self) -> String {
        if self.tag.is_empty() { format!("dnsbl:{}", self.name()) } else { self.tag.clone() }
    }

    fn check(&self, place: &str) -> Vec<FieldProblem> {
        let mut problems = Vec::new();
        let name = self.name();
        let is_label = |label: &str| {
            (1..=63).contains(&label.len())
                && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
        };
        if name.len() > MAX_NAME || !name.split('.').all(is_label) {
            let message = format!("`{}` is not the name of a zone", self.zone.escape_debug());
            let problem = FieldProblem::new(format!("{place}/zone"), message);
            problems.push(
                problem.expected(format!("a domain name of at most {MAX_NAME} bytes, such as `zen.spamhaus.org`")),
            );
        }
        problems.extend(weight(&format!("{place}/weight"), self.weight));
        problems.extend(tag(&format!("{place}/tag"), &self.tag));
        problems.extend(count(&format!("{place}/codes"), self.codes.len(), MAX_CODES));
        for (index, text) in self.codes.iter().enumerate().filter(|(_, text)| code(text).is_none()) {
            let message = format!("`{}` is no answer that is a listing", text.escape_debug());
            let problem = FieldProblem::new(format!("{place}/codes/{index}"), message);
            problems.push(problem.expected("an address of 127.0.0.0/8, such as `127.0.0.2`"));
        }
        problems
    }
}

/// An answer that may be a listing.
pub(super) fn code(text: &str) -> Option<Ipv4Addr> {
    text.parse().ok().filter(|code| super::zone::is_listing(*code))
}

/// The address of a resolver.
pub(super) fn server(text: &str) -> Option<SocketAddr> {
    let with_port = text.parse::<SocketAddr>().ok();
    with_port.or_else(|| Some(SocketAddr::new(text.parse::<IpAddr>().ok()?, 53)))
}
