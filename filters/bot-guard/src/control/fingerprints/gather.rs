//! The loop: reports of gateways and decisions of operators in, the table of accepted pairs out.

use std::time::Duration;

use kit::{EntitySource, GatewayReports, Sources, View};
use metrics::{counter, gauge};
use prost::Message as _;
use snapshot::TableKind;
use tables::KeysBuilder;
use tokio::sync::mpsc;
use tokio::time::{MissedTickBehavior, interval};

use super::super::BotPolicy;
use super::super::verify::Verification;
use super::keep;
use super::learned::{Learned, PairState};
use super::runtime::{Order, Pairs};
use crate::{FINGERPRINTS, FingerprintSeen, SIGHTINGS};

/// How often what was seen is kept. Decisions are kept at once.
const SWEEP: Duration = Duration::from_secs(60);
/// The pause before the store is asked again.
const LOAD_AGAIN: Duration = Duration::from_secs(5);

/// Merges what gateways have seen for as long as the control plane runs.
pub(in super::super) async fn gather(sources: Sources) {
    let Some(runtime) = sources.runtime::<Verification>() else { return };
    let pairs = &runtime.fingerprints;
    let Some(inbox) = pairs.inbox() else { return };
    if load(&sources, pairs).await.is_some() {
        publish(&sources, pairs);
        run(&sources, pairs, inbox).await;
    }
}

async fn run(sources: &Sources, pairs: &Pairs, mut inbox: mpsc::Receiver<Order>) {
    let mut entities = sources.entities.clone();
    let mut reports = sources.reports(SIGHTINGS);
    let mut others = sources.store.elsewhere();
    let mut sweep = interval(SWEEP);
    sweep.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        show(pairs);
        let receiving = async {
            match reports.next().await {
                Some(reports) => reports,
                // Another receiver has taken over, as in tests of the frame.
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            // A policy that was switched off may still have reports under way.
            reports = receiving => if is_wanted(&**entities.borrow()) { take(sources, pairs, &reports) },
            // A decision of an operator at another control plane is in force at the gateways of this one, too.
            Some(changed) = others.next() => if changed.has_documents(keep::DOCUMENT) { follow(sources, pairs).await },
            Some(order) = inbox.recv() => {
                let outcome = decide(sources, pairs, &order).await;
                let _gone = order.done.send(outcome);
            }
            changed = entities.changed() => {
                if changed.is_err() {
                    return;
                }
            }
            _ = sweep.tick() => {
                pairs.learned().expire((sources.clock)());
                if let Err(error) = keep(sources, pairs).await {
                    sources.trouble(&error);
                }
            }
        }
    }
}

/// Whether an enabled policy learns.
fn is_wanted(entities: &dyn EntitySource) -> bool {
    let learns = |policy: &BotPolicy| policy.fingerprints.enabled && policy.fingerprints.learn;
    View::new(entities).all::<BotPolicy>().any(|policy| policy.enabled && learns(policy))
}

/// Takes up what was kept; `None` once the control plane ends. Without the decisions nothing else is done: they would be overwritten.
async fn load(sources: &Sources, pairs: &Pairs) -> Option<()> {
    let mut entities = sources.entities.clone();
    loop {
        let kept = sources.store.document(keep::DOCUMENT).await.map_err(|error| error.to_string());
        let restored = kept.and_then(|document| match document {
            Some(document) => keep::restored(&document),
            None => Ok(Learned::default()),
        });
        match restored {
            Ok(mut learned) => {
                if learned.secret.is_empty() {
                    let mut secret = vec![0; 32];
                    // Without random bytes networks would have hashes that anyone can compute; they are still no addresses.
                    let _ = getrandom::fill(&mut secret);
                    learned.secret = secret;
                }
                *pairs.learned() = learned;
                return Some(());
            }
            Err(error) => sources.trouble(&format!("learned TLS fingerprints could not be read: {error}")),
        }
        tokio::select! {
            () = tokio::time::sleep(LOAD_AGAIN) => {}
            () = async { while entities.changed().await.is_ok() {} } => return None,
        }
    }
}

/// Takes over what another control plane has kept.
async fn follow(sources: &Sources, pairs: &Pairs) {
    let kept = sources.store.document(keep::DOCUMENT).await.map_err(|error| error.to_string());
    match kept.and_then(|document| document.map_or(Ok(None), |document| keep::restored(&document).map(Some))) {
        Ok(Some(kept)) => {
            let mut learned = pairs.learned();
            let dropped = learned.dropped;
            *learned = kept;
            learned.dropped = dropped;
        }
        Ok(None) => return,
        Err(error) => return sources.trouble(&format!("learned TLS fingerprints could not be read: {error}")),
    }
    publish(sources, pairs);
}

fn take(sources: &Sources, pairs: &Pairs, reports: &GatewayReports) {
    let now = (sources.clock)();
    let mut learned = pairs.learned();
    for report in &reports.reports {
        match FingerprintSeen::decode(report.as_slice()) {
            Ok(seen) => learned.take(&seen, now),
            Err(_) => learned.dropped = learned.dropped.saturating_add(1),
        }
    }
}

/// Carries out a decision, keeps it, and has gateways act by it.
async fn decide(sources: &Sources, pairs: &Pairs, order: &Order) -> Result<(), String> {
    let before = {
        let mut learned = pairs.learned();
        let before = learned.pairs.get(&order.key).cloned();
        match order.state {
            Some(state) => learned.decide(&order.key, state, (sources.clock)())?,
            None => learned.forget(&order.key)?,
        }
        before
    };
    if let Err(error) = keep(sources, pairs).await {
        // What a restart would undo must not act.
        let mut learned = pairs.learned();
        if let Some(before) = before {
            learned.pairs.insert(order.key, before);
        }
        return Err(error);
    }
    publish(sources, pairs);
    Ok(())
}

/// Keeps the pairs if they changed.
async fn keep(sources: &Sources, pairs: &Pairs) -> Result<(), String> {
    let document = {
        let mut learned = pairs.learned();
        if !std::mem::take(&mut learned.unkept) {
            return Ok(());
        }
        keep::document(&learned)
    };
    sources.store.document_put(keep::DOCUMENT, document).await.map_err(|error| {
        pairs.learned().unkept = true;
        format!("learned TLS fingerprints could not be kept: {error}")
    })
}

/// Publishes the accepted pairs. There are few, and they change by hand.
fn publish(sources: &Sources, pairs: &Pairs) {
    let accepted = pairs.learned().accepted();
    let mut builder = KeysBuilder::default();
    let table = accepted.iter().try_for_each(|(ja4, families)| builder.put(ja4, &families.to_le_bytes()));
    let table =
        table.map_err(|error| error.to_string()).and_then(|()| builder.build().map_err(|error| error.to_string()));
    let publish = |table| sources.material.publish(FINGERPRINTS, TableKind::Keys, table);
    if let Err(error) = table.and_then(|table| publish(table).map_err(|error| error.to_string())) {
        sources.trouble(&error);
    }
}

fn show(pairs: &Pairs) {
    let learned = pairs.learned();
    for state in [PairState::Candidate, PairState::Accepted, PairState::Rejected] {
        let count = u32::try_from(learned.count(state)).unwrap_or(u32::MAX);
        gauge!("palisade_bots_fingerprints", "state" => state.word()).set(f64::from(count));
    }
    counter!("palisade_bots_fingerprints_dropped_total").absolute(learned.dropped);
}
