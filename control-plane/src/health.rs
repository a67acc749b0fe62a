//! Looks again and again whether what the control plane stands on works, and says what does not.

use std::sync::Arc;
use std::time::Duration;

use entities::EntityService;
use events::{EventHub, Part};
use store::{Store, StoreError};
use xds::Hub;

/// How often it looks.
const EVERY: Duration = Duration::from_secs(1);

/// Looks at the store, at how far the entities follow it, and at what gateways refuse, until the store is closed. For a task of
/// its own.
pub async fn watch(store: Arc<dyn Store>, entities: EntityService, events: EventHub, nodes: Hub) {
    let mut ticks = tokio::time::interval(EVERY);
    loop {
        ticks.tick().await;
        look_at_nodes(&nodes, &events);
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

/// Looks once at what connected gateways refuse: the configuration is not in force there.
pub fn look_at_nodes(nodes: &Hub, events: &EventHub) {
    match nodes.refusals() {
        Some(reason) => events.trouble(Part::Nodes, "refusals", &reason),
        None => events.recovered(Part::Nodes, "refusals"),
    }
}

fn tell(events: &EventHub, part: Part, subject: &str, error: Option<&StoreError>) {
    match error {
        Some(error) => events.trouble(part, subject, &error.to_string()),
        None => events.recovered(part, subject),
    }
}
