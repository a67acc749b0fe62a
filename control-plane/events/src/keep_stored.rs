//! Rollups are kept, and stored events give way.

use std::sync::Arc;
use std::time::Duration;

use super::EventHub;
use store::{EventStore, Store, StoreError, StoreFaults};

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
        let done = match has_no_room(&store.faults(), store.is_dedicated()) {
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

/// Whether the store of everything else has no room where the events are. Those of a `dedicated` store are at its server, and those of all
/// control planes: the disk of one of them gets no room from them.
fn has_no_room(faults: &StoreFaults, dedicated: bool) -> bool {
    match faults.writes {
        Some(StoreError::ServerFull { .. }) => true,
        Some(StoreError::DiskFull { .. }) => !dedicated,
        _ => false,
    }
}

#[allow(clippy::cast_precision_loss, reason = "a gauge; exact up to 2^53")]
fn gauge(number: u64) -> f64 {
    number as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_disk_of_one_control_plane_halves_no_events_at_a_server() {
        let disk = StoreError::DiskFull { path: "replica".into() };
        let memory = StoreError::ServerFull { server: "redis".to_owned() };
        let busy = StoreError::ServerBusy { server: "redis".to_owned() };
        for (error, dedicated, expected) in
            [(&disk, false, true), (&disk, true, false), (&memory, true, true), (&busy, true, false)]
        {
            let faults = StoreFaults { writes: Some(error.clone()), reads: Some(memory.clone()) };
            assert_eq!(has_no_room(&faults, dedicated), expected, "{error} {dedicated}");
        }
        assert!(!has_no_room(&StoreFaults::default(), true));
    }
}
