//! The ledger at work: who is refused again and again, each time for less than a ban, is banned in the end.

use serde_json::json;
use snapshot::Down;
use tokio::sync::mpsc;

use super::bans::{change_of, widened_note};
use super::ledger::Ledger;
use super::{Fabric, told};
use base::clock;
use entities::plugins;
use events::{Audit, AuditAction, BanWay, EventHub, Offence};
use store::StoreError;
use store::fabric::{Ban, Charge, Issued, Note, Promotion};

/// Offences that wait for the store, at most.
const QUEUE: usize = 10_000;
/// Offences that are charged in one transaction, at most.
const BATCH: usize = 256;

impl Fabric {
    /// Feeds the ledger from the events, for as long as the store is open. The events are watched from the call on; the
    /// answer is for a task of its own.
    pub fn keep_ledger(self) -> impl Future<Output = ()> + Send {
        let (sender, mut offences) = mpsc::channel(QUEUE);
        self.inner.events.feed(sender, charged_by_trail);
        async move {
            let mut batch = Vec::with_capacity(BATCH);
            while offences.recv_many(&mut batch, BATCH).await > 0 {
                match self.charge(batch.drain(..)).await {
                    Ok(()) => {}
                    Err(StoreError::Closed) => return,
                    Err(error) => {
                        metrics::counter!("palisade_ledger_lost_total").increment(1);
                        tracing::warn!(%error, "charging the ledger failed");
                    }
                }
            }
        }
    }

    async fn charge(&self, offences: impl Iterator<Item = Offence>) -> Result<(), StoreError> {
        let ledger = Ledger::of(&self.inner.entities);
        if !ledger.settings().enabled {
            return Ok(());
        }
        let rules = self.rules();
        let charges: Vec<Charge> = offences.filter_map(|offence| ledger.charge(offence, &rules)).collect();
        if charges.is_empty() {
            return Ok(());
        }
        let now = self.now();
        let down = |promoted: &Vec<Promotion>| {
            let bans = promoted.iter().flat_map(|promotion| told(&promotion.issued).bans);
            Down { bans: bans.collect(), ..Down::default() }
        };
        let note = Note::new(move |promoted: &Vec<Promotion>| {
            promoted.iter().map(|promotion| audit(promotion).note(now)).collect()
        });
        let promoted = self.change(self.inner.store.ledger_charge(charges, ledger.rules(), now, note), down).await?;
        for promotion in &promoted {
            tell(&self.inner.events, promotion, now);
        }
        if promoted.is_empty() || !rules.widens {
            return Ok(());
        }
        let keys = promoted.into_iter().map(|promotion| promotion.key).collect();
        let down = |wider: &Vec<Ban>| Down { bans: wider.iter().map(change_of).collect(), ..Down::default() };
        for ban in self.change(self.inner.store.bans_widen(keys, now, widened_note(now)), down).await? {
            self.inner.events.banned(&ban, BanWay::Tier, now);
        }
        Ok(())
    }
}

/// Whether the module of an event is a plugin whose trail events are charged.
fn charged_by_trail(module: &str) -> bool {
    plugins::active().any(|plugin| plugin.charged_by_trail && plugin.name == module)
}

/// Whether an identity that has reached the threshold is banned, and the words for it.
fn outcome(promotion: &Promotion) -> (AuditAction, String) {
    let Promotion { total, issued, .. } = promotion;
    let refused = match issued {
        Issued::Live(_) => return (AuditAction::Ban, format!("by the ledger, at {total} points")),
        Issued::Allowlisted(entry) => format!("{} is on the allowlist: {}", entry.key, entry.reason),
        Issued::Lifted(_) | Issued::Full => "the list is full".to_owned(),
    };
    (AuditAction::BanRefused, format!("asked for by the ledger, at {total} points: {refused}"))
}

fn audit(promotion: &Promotion) -> Audit {
    let (action, detail) = outcome(promotion);
    Audit::new(action).of(promotion.key.clone()).detail(detail)
}

/// The event of an identity that has reached the threshold.
fn tell(events: &EventHub, promotion: &Promotion, now: u64) {
    let Promotion { key, address, total, issued } = promotion;
    let (action, detail) = outcome(promotion);
    if let Issued::Live(ban) = issued {
        events.banned(ban, BanWay::Ledger, now);
    }
    let of = |kind: &str| key.split_once(':').filter(|(found, _)| *found == kind).map(|(_, value)| value);
    let banned = action == AuditAction::Ban;
    let event = json!({
        "@type": "SvcSecurityEvent",
        "@id": uuid::Uuid::new_v4().to_string(),
        "@timestamp": clock::rfc3339(now),
        "event": {
            "kind": "alert", "category": "ban", "action": "ban", "module": "ledger", "dataset": "svc.ban",
            "outcome": if banned { "blocked" } else { "observed" },
        },
        "source": {
            // The address itself where it is known: a ban on IPv6 is on its network.
            "ip": Some(address.as_str()).filter(|address| !address.is_empty()).or_else(|| of("ip")),
            "network": of("ip"), "apikey": of("apikey"), "user": of("user"),
        },
        "threat": { "score": total.min(100.0), "tags": ["ledger"], "signals": [] },
        "route": { "id": null, "name": null, "node": null },
        "message": detail,
        "decision": {
            "action": "ban", "score": total.min(100.0), "tier": null, "dry_run": false, "enforced": banned,
            "reason": detail, "held_ms": 0, "policy": null, "tag": null, "subject": null,
        },
    });
    if let Err(error) = events.publish(event.to_string().as_bytes()) {
        tracing::error!(reason = %error, "the report on a ban by the ledger is not a valid event");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_of_a_plugin_with_a_trail_are_charged_by_it_alone() {
        let charged = |module| charged_by_trail(module);
        assert_eq!(
            ["waf", "threat-response", "threat-gate", "SvcWaf", ""].map(charged),
            [true, false, false, false, false]
        );
    }
}
