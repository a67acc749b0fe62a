//! What the entities want verified, and by which resolvers.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use dns::{DnsName, Resolver, system_resolvers};
use kit::{EntitySource, View};

use super::super::settings::address;
use super::super::signature::method;
use super::super::{BotPolicy, BotSettings};
use crate::METHOD_BYTES;

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
        let servers = if named.is_empty() { system_resolvers() } else { named };
        Resolver { servers, timeout: Duration::from_millis(self.settings.timeout_millis.into()) }
    }
}

/// The settings, which are a part of an entity that this crate does not have: `security.bots` of `global-config`.
fn settings(entities: &dyn EntitySource) -> BotSettings {
    let global = entities.slot("global-config", "global-config").map(|slot| slot.entity.shown());
    let settings = global.and_then(|global| global.pointer("/security/bots").cloned());
    settings.and_then(|settings| serde_json::from_value(settings).ok()).unwrap_or_default()
}
