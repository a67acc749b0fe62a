//! Looks again and again whether what the control plane stands on works, and says what does not.

use std::sync::Arc;
use std::time::Duration;

use crate::entities::EntityService;
use crate::events::{EventHub, Part};
use crate::store::{Store, StoreError};

/// How often it looks.
const EVERY: Duration = Duration::from_secs(1);

/// Looks at the store, and at how far the entities follow it, until the store is closed. For a task of its own.
pub async fn watch(store: Arc<dyn Store>, entities: EntityService, events: EventHub) {
    let mut ticks = tokio::time::interval(EVERY);
    loop {
        ticks.tick().await;
        if look(store.as_ref(), &entities, &events).await == Err(StoreError::Closed) {
            return;
        }
    }
}

/// Looks once.
///
/// # Errors
/// What a read of the store fails with.
pub async fn look(store: &dyn Store, entities: &EntityService, events: &EventHub) -> Result<(), StoreError> {
    let read = store.ping().await;
    if read == Err(StoreError::Closed) {
        return read;
    }
    tell(events, Part::Store, "reads", read.as_ref().err());
    tell(events, Part::Store, "writes", store.faults().writes.as_ref());
    tell(events, Part::Entities, "view", entities.unread().await.as_ref());
    read
}

fn tell(events: &EventHub, part: Part, subject: &str, error: Option<&StoreError>) {
    match error {
        Some(error) => events.trouble(part, subject, &error.to_string()),
        None => events.recovered(part, subject),
    }
}
