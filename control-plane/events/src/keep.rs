//! Incidents in the store, so that a restart does not lose them.

use std::sync::Arc;
use std::time::Duration;

use super::EventHub;
use super::incidents::Unsaved;
use store::fabric::Note;
use store::{Store, StoreError};

/// How soon what has changed of incidents is kept.
const EVERY: Duration = Duration::from_secs(1);

/// Takes over the incidents that an earlier process has kept, and what operators made of them.
///
/// # Errors
///
/// What the store reports.
pub async fn restore_incidents(store: &dyn Store, events: &EventHub) -> Result<(), StoreError> {
    let (rows, workflows) = (store.incidents().await?, store.workflows().await?);
    let read = rows.into_iter().filter_map(|row| match serde_json::from_str(&row.json) {
        Ok(incident) => Some(incident),
        Err(error) => {
            tracing::warn!(key = row.key, %error, "an incident of another release is unreadable and ignored");
            None
        }
    });
    events.restore(read.collect(), workflows);
    Ok(())
}

/// Keeps what changes of incidents, every second, for as long as the store is open. For a task of its own.
pub async fn keep_incidents(store: Arc<dyn Store>, events: EventHub) {
    let mut ticks = tokio::time::interval(EVERY);
    loop {
        ticks.tick().await;
        match save_incidents(store.as_ref(), &events).await {
            Ok(()) => {}
            Err(StoreError::Closed) => return,
            Err(error) => tracing::warn!(%error, "storing incidents failed; retrying"),
        }
    }
}

/// Keeps what has changed of incidents so far.
///
/// # Errors
///
/// What the store reports; what it did not take is offered again.
pub async fn save_incidents(store: &dyn Store, events: &EventHub) -> Result<(), StoreError> {
    let Unsaved { written, removed, cleared } = events.unsaved();
    if !cleared.is_empty()
        && let Err(error) = store.workflows_clear(cleared.clone(), Note::none()).await
    {
        events.put_back(Unsaved { written, removed, cleared });
        return Err(error);
    }
    if written.is_empty() && removed.is_empty() {
        return Ok(());
    }
    let result = store.incidents_write(written.clone(), removed.clone()).await;
    if result.is_err() {
        events.put_back(Unsaved { written, removed, cleared: Vec::new() });
    }
    result
}
