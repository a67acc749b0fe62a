//! What commands have done beside the running control plane: kept in the store with the change itself, told here.

use std::sync::Arc;
use std::time::Duration;

use super::EventHub;
use crate::store::{Store, StoreError};

/// How soon what a command has done is told.
const EVERY: Duration = Duration::from_secs(1);
/// How long exporters may take before what was kept for them is looked at again.
const FLUSH: Duration = Duration::from_secs(5);

/// Tells what commands have kept in the store, for as long as it is open. For a task of its own.
///
/// An event leaves the store once every exporter has written or lost it. A process that ends in between tells it again at
/// the next start, with the same `@id`.
pub async fn tell_kept(store: Arc<dyn Store>, events: EventHub) {
    let mut ticks = tokio::time::interval(EVERY);
    let mut last = 0;
    loop {
        ticks.tick().await;
        match tell_once(store.as_ref(), &events, &mut last).await {
            Ok(()) => {}
            Err(StoreError::Closed) => return,
            Err(error) => tracing::warn!(%error, "what commands have done cannot be told; it is tried again"),
        }
    }
}

/// One look into the store. `last` is the number of the last event that exporters were given.
async fn tell_once(store: &dyn Store, events: &EventHub, last: &mut u64) -> Result<(), StoreError> {
    let kept = store.kept_events().await?;
    let Some(newest) = kept.last().map(|event| event.number) else {
        return Ok(());
    };
    for event in kept.iter().filter(|event| event.number > *last) {
        events.tell(&event.event);
    }
    *last = newest.max(*last);
    match tokio::time::timeout(FLUSH, events.flush()).await {
        Ok(()) => store.kept_events_told(newest).await,
        // It stays where it is, and is not given to them twice.
        Err(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::{AdminKey, Scope};
    use crate::clock;
    use crate::events::{Audit, AuditAction, Exporter};
    use crate::store::{AccessChange, SqliteOptions, SqliteStore};

    #[tokio::test]
    async fn what_was_kept_is_told_once_and_forgotten() {
        let folder = tempfile::tempdir().unwrap();
        let store = SqliteStore::open(folder.path(), SqliteOptions::default()).unwrap();
        let file = folder.path().join("events");
        let events = EventHub::new(vec![Exporter::File(file.clone())], clock::now_millis);
        let key = AdminKey::issue("ci", &[Scope::Read], 1, None).unwrap().key;
        let id = key.id.clone();
        let note = |action| Audit::new(action).of(format!("admin-keys/{id}")).note(7);
        assert!(store.access_change(AccessChange::KeyPut(key), note(AuditAction::KeyCreate)).await.unwrap());
        let revoke = |id: &str| AccessChange::KeyRevoke { id: id.to_owned(), at_millis: 9 };
        assert!(store.access_change(revoke(&id), note(AuditAction::KeyRevoke)).await.unwrap());
        assert!(!store.access_change(revoke("none"), note(AuditAction::KeyRevoke)).await.unwrap());
        assert_eq!(store.kept_events().await.unwrap().len(), 2, "what changed nothing is not kept");

        let mut last = 0;
        tell_once(&store, &events, &mut last).await.unwrap();
        tell_once(&store, &events, &mut last).await.unwrap();
        assert_eq!(store.kept_events().await.unwrap(), Vec::new());
        let told = std::fs::read_to_string(file).unwrap();
        let actions: Vec<&str> =
            told.lines().map(|line| line.split("\"action\":\"").nth(1).unwrap().split('"').next().unwrap()).collect();
        assert_eq!(actions, ["key-create", "key-revoke"], "{told}");
        assert!(told.contains("1970-01-01T00:00:00.007Z"), "the time is that of the change: {told}");
    }
}
