//! What the ledger charges, and from when on it bans.

use super::BanRules;
use entities::{EntityService, LedgerSettings};
use events::{Deed, Offence};
use store::fabric::{Charge, LedgerRules};

/// The ledger's settings as they are now.
#[derive(Clone, Debug)]
pub struct Ledger(LedgerSettings);

impl Ledger {
    /// The settings of the global configuration.
    #[must_use]
    pub fn of(entities: &EntityService) -> Ledger {
        Ledger(entities.current().global().security.ledger.clone())
    }

    /// The settings.
    #[must_use]
    pub fn settings(&self) -> &LedgerSettings {
        &self.0
    }

    /// How long a charge counts, in milliseconds.
    #[must_use]
    pub fn window_millis(&self) -> u64 {
        self.0.window_seconds.saturating_mul(1000)
    }

    pub(super) fn rules(&self) -> LedgerRules {
        LedgerRules {
            window_millis: self.window_millis(),
            threshold: self.0.ban_threshold,
            ban_millis: self.0.ban_duration_seconds.saturating_mul(1000),
        }
    }

    /// The charge of an offence; `None` where it weighs nothing, or is of an identity that no node may have banned.
    pub(super) fn charge(&self, offence: Offence, rules: &BanRules) -> Option<Charge> {
        let points = match offence.deed {
            Deed::Denied(score) => score,
            Deed::WafBlocked if self.0.feed_waf_blocks => self.0.waf_weight,
            Deed::WafMonitored if self.0.feed_waf_monitored => self.0.waf_weight,
            Deed::WafBlocked | Deed::WafMonitored => 0.0,
        };
        if points <= 0.0 {
            return None;
        }
        let Offence { key, at, address, node, .. } = offence;
        match rules.bannable(&key) {
            Ok(identity) => {
                let address = address.map(|address| address.to_string()).unwrap_or_default();
                Some(Charge { key: identity.key(), points, at, address, node })
            }
            Err(reason) => {
                metrics::counter!("palisade_ledger_refused_total").increment(1);
                tracing::warn!(node, key, %reason, "a node reported an identity that the ledger does not charge");
                None
            }
        }
    }
}
