//! Settings of the verification of crawlers.

use std::net::{IpAddr, SocketAddr};

use kit::checks::{count, within};
use kit::{FieldProblem, Settings};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The verification of crawlers by reverse DNS, for the bot guard.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct BotSettings {
    /// The resolvers that are asked, addresses with or without a port (53), at most 8. Default: none, which means those of the system
    /// that the control plane runs on (/etc/resolv.conf).
    pub resolvers: Vec<String>,
    /// The timeout of a question to a resolver in milliseconds, 1 to 10000. A question is asked twice. Default 2000.
    #[schemars(range(min = 1, max = 10_000))]
    pub timeout_millis: u32,
    /// The most verifications that begin in a second, 1 to 1000. Default 50.
    #[schemars(range(min = 1, max = 1_000))]
    pub lookups_per_second: u32,
    /// How long a verified crawler stays so, in seconds, 60 to 604800. Default 21600.
    #[schemars(range(min = 60, max = 604_800))]
    pub verified_ttl_seconds: u32,
    /// How long an impersonator stays so, in seconds, 10 to 86400. Default 900.
    #[schemars(range(min = 10, max = 86_400))]
    pub impersonator_ttl_seconds: u32,
    /// How long a verification that failed is not repeated, in seconds, 10 to 86400. Default 60.
    #[schemars(range(min = 10, max = 86_400))]
    pub failed_ttl_seconds: u32,
    /// The most verdicts that are kept, 100 to 1000000. Default 100000.
    #[schemars(range(min = 100, max = 1_000_000))]
    pub max_entries: u32,
}

// === impl BotSettings ===

impl Default for BotSettings {
    fn default() -> BotSettings {
        BotSettings {
            resolvers: Vec::new(),
            timeout_millis: 2_000,
            lookups_per_second: 50,
            verified_ttl_seconds: 21_600,
            impersonator_ttl_seconds: 900,
            failed_ttl_seconds: 60,
            max_entries: 100_000,
        }
    }
}

impl Settings for BotSettings {
    const FIELD: &'static str = "bots";

    fn check(&self) -> Vec<FieldProblem> {
        let resolvers = self.resolvers.iter().enumerate().filter(|(_, text)| address(text).is_none());
        let resolvers = resolvers.map(|(index, text)| {
            let message = format!("`{}` is not the address of a resolver", text.escape_debug());
            FieldProblem::new(format!("/resolvers/{index}"), message).expected("such as `192.0.2.53` or `[::1]:5353`")
        });
        let found = [
            count("/resolvers", self.resolvers.len(), 8),
            within("/timeout_millis", self.timeout_millis, 1..=10_000),
            within("/lookups_per_second", self.lookups_per_second, 1..=1_000),
            within("/verified_ttl_seconds", self.verified_ttl_seconds, 60..=604_800),
            within("/impersonator_ttl_seconds", self.impersonator_ttl_seconds, 10..=86_400),
            within("/failed_ttl_seconds", self.failed_ttl_seconds, 10..=86_400),
            within("/max_entries", self.max_entries, 100..=1_000_000),
        ];
        resolvers.chain(found.into_iter().flatten()).collect()
    }
}

/// The address of a resolver.
pub(super) fn address(text: &str) -> Option<SocketAddr> {
    let with_port = text.parse::<SocketAddr>().ok();
    with_port.or_else(|| Some(SocketAddr::new(text.parse::<IpAddr>().ok()?, 53)))
}
