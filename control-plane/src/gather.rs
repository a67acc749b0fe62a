//! What plugins gather for filters beside entities, for as long as the control plane runs.

use std::sync::Arc;

use entities::{EntityService, EntitySource};
use kit::{Sources, Trouble};
use material::Material;
use tokio::sync::watch;

/// Starts the gatherers of all plugins.
pub(crate) fn start(entities: &EntityService, material: &Material) {
    let mut changes = entities.subscribe();
    let now: Arc<dyn EntitySource + Send + Sync> = changes.borrow_and_update().clone();
    let (sender, seen) = watch::channel(now);
    tokio::spawn(async move {
        while changes.changed().await.is_ok() {
            let now: Arc<dyn EntitySource + Send + Sync> = changes.borrow_and_update().clone();
            if sender.send(now).is_err() {
                return;
            }
        }
    });
    let trouble: Trouble = Arc::new(|plugin, what| tracing::warn!(plugin, "material is not up to date: {what}"));
    for plugin in entities::plugins::active() {
        if let Some(gather) = plugin.gather {
            tokio::spawn(gather(Sources::new(plugin.name, seen.clone(), material.clone(), Arc::clone(&trouble))));
        }
    }
}
