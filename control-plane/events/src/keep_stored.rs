//! Rollups are kept, and stored events give way.

use std::sync::Arc;
use std::time::Duration;

use super::EventHub;
use store::{EventStore, Store, StoreError};

/// How soon what was counted is in the store, and how often old events are removed.
const EVERY: Duration = Duration::from_secs(10);

/// Adds what was counted to the rollups every ten seconds, as long as the store is open. For a task of its own.
pub async fn keep_rollups(store: Arc<dyn Store>, events: EventHub) {
    let mut ticks = tokio::time::interval(EVERY);
    loop {
        ticks.tick().await;
        match save_rollups(store.as_ref(), &events).await {
            Ok(()) => {}
            Err(StoreError::Closed) => return,
            Err(error) => tracing::warn!(%error, "storing rollups failed; retrying"),
        }
    }
}

/// Adds what was counted so far.
///
/// # Errors
///
/// What the store reports; what it did not take is offered again. Where its answer was lost, the counts of these seconds may be lost
/// as well: they are never counted twice.
pub async fn save_rollups(store: &dyn Store, events: &EventHub) -> Result<(), StoreError> {
    let taken = events.take_tallies();
    if taken.is_empty() {
        return Ok(());
    }
    let added = store.rollups_add(taken.rollups(), events.now()).await;
    if !matches!(added, Ok(()) | Err(StoreError::Unanswered { .. })) {
        events.put_back_tallies(taken);
    }
    added
}

/// Removes stored events that are too old, and half of them when the store of everything else has no room, as long as the event
/// store is open. For a task of its own.
pub async fn keep_events(stored: Arc<dyn EventStore>, store: Arc<dyn Store>, clock: fn() -> u64) {
    let mut ticks = tokio::time::interval(EVERY);
    loop {
        ticks.tick().await;
        let is_full =
            matches!(store.faults().writes, Some(StoreError::DiskFull { .. } | StoreError::ServerFull { .. }));
        let done = match is_full {
            true => stored.give_way().await.map(|has| {
                metrics::counter!("palisade_event_store_gave_way_total").increment(u64::from(has));
            }),
            false => stored.sweep(clock()).await,
        };
        let status = match done {
            Ok(()) => stored.status().await,
            Err(error) => Err(error),
        };
        match status {
            Ok(status) => {
                metrics::gauge!("palisade_event_store_events").set(gauge(status.events));
                metrics::gauge!("palisade_event_store_bytes").set(gauge(status.bytes));
            }
            Err(StoreError::Closed) => return,
            Err(error) => tracing::debug!(%error, "the stored events cannot be looked after"),
        }
    }
}

#[allow(clippy::cast_precision_loss, reason = "a gauge; exact up to 2^53")]
fn gauge(number: u64) -> f64 {
    number as f64
}
