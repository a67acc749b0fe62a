//! What plugins gather for filters beside entities, for as long as the control plane runs.

use std::sync::Arc;

use base::clock;
use entities::{EntityService, EntitySource};
use events::{EventHub, Part};
use kit::{SourceHealth, Sources, Surroundings, Trouble};
use material::Material;
use tokio::sync::watch;

use crate::cli::Parts;

/// Sources that fail are troubles of the control plane.
struct Health(EventHub);

/// Starts the gatherers of all plugins.
pub(crate) fn start(parts: &Parts, material: &Material, events: EventHub) {
    let trouble: Trouble = Arc::new(|plugin, what| tracing::warn!(plugin, "material is not up to date: {what}"));
    let around = Surroundings {
        entities: follow(&parts.entities),
        material: material.clone(),
        store: Arc::clone(&parts.store),
        outbound: parts.outbound.clone(),
        health: Arc::new(Health(events)),
        clock: clock::now_millis,
        trouble,
        runtimes: parts.runtimes.clone(),
    };
    for plugin in entities::plugins::active() {
        if let Some(gather) = plugin.gather {
            tokio::spawn(gather(Sources::new(plugin, &around)));
        }
    }
}

/// The entities as gatherers see them.
fn follow(entities: &EntityService) -> kit::EntityWatch {
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
    seen
}

impl SourceHealth for Health {
    fn fails(&self, subject: &str, why: &str) {
        self.0.trouble(Part::Sources, subject, why);
    }

    fn works(&self, subject: &str) {
        self.0.recovered(Part::Sources, subject);
    }

    fn ends(&self, subject: &str) {
        self.0.dismiss_trouble(Part::Sources, subject);
    }
}
