//! Settings of lookups in DNS blocklists. Nothing reads them yet.

use kit::checks::within;
use kit::{FieldProblem, Settings};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Lookups in DNS blocklists, for the IP reputation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct DnsblSettings {
    /// How long a request waits for a verdict, in milliseconds, 0 to 2000. Default 100.
    #[schemars(range(min = 0, max = 2_000))]
    pub wait_millis: u32,
    /// The timeout of a lookup in milliseconds, 1 to 30000. Default 2000.
    #[schemars(range(min = 1, max = 30_000))]
    pub timeout_millis: u32,
    /// How long the verdict on a listed address is kept, in seconds, 1 to 86400. Default 900.
    #[schemars(range(min = 1, max = 86_400))]
    pub listed_ttl_seconds: u32,
    /// How long the verdict on an address that is not listed is kept, in seconds, 1 to 86400. Default 300.
    #[schemars(range(min = 1, max = 86_400))]
    pub unlisted_ttl_seconds: u32,
    /// How long a lookup that failed is not repeated, in seconds, 1 to 86400. Default 30.
    #[schemars(range(min = 1, max = 86_400))]
    pub failed_ttl_seconds: u32,
    /// The most verdicts that are kept, 1 to 10000000. Default 100000.
    #[schemars(range(min = 1, max = 10_000_000))]
    pub max_entries: u32,
}

impl Default for DnsblSettings {
    fn default() -> DnsblSettings {
        DnsblSettings {
            wait_millis: 100,
            timeout_millis: 2_000,
            listed_ttl_seconds: 900,
            unlisted_ttl_seconds: 300,
            failed_ttl_seconds: 30,
            max_entries: 100_000,
        }
    }
}

impl Settings for DnsblSettings {
    const FIELD: &'static str = "dnsbl";

    fn check(&self) -> Vec<FieldProblem> {
        let found = [
            within("/wait_millis", self.wait_millis, 0..=2_000),
            within("/timeout_millis", self.timeout_millis, 1..=30_000),
            within("/listed_ttl_seconds", self.listed_ttl_seconds, 1..=86_400),
            within("/unlisted_ttl_seconds", self.unlisted_ttl_seconds, 1..=86_400),
            within("/failed_ttl_seconds", self.failed_ttl_seconds, 1..=86_400),
            within("/max_entries", self.max_entries, 1..=10_000_000),
        ];
        found.into_iter().flatten().collect()
    }
}
