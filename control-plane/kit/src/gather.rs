//! What plugins gather for filters beside entities, and from what.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use material::{Material, MaterialError};
use snapshot::TableKind;
use tokio::sync::watch;

use crate::EntitySource;

/// Keeps tables of a plugin up to date for as long as the control plane runs. Ends when [`Sources::entities`] does.
pub type Gather = fn(Sources) -> Pin<Box<dyn Future<Output = ()> + Send>>;

/// All entities as they are now, and as they change.
pub type EntityWatch = watch::Receiver<Arc<dyn EntitySource + Send + Sync>>;

/// Says what does not work, for the operator: the name of the plugin, and a sentence.
pub type Trouble = Arc<dyn Fn(&'static str, &str) + Send + Sync>;

/// What a plugin gathers from, and where it puts what it has gathered.
#[derive(Clone)]
pub struct Sources {
    /// All entities.
    pub entities: EntityWatch,
    /// The tables of all plugins. The name of a table should begin with that of its plugin.
    pub material: Material,
    plugin: &'static str,
    trouble: Trouble,
}

impl Sources {
    /// Those of a plugin.
    #[must_use]
    pub fn new(plugin: &'static str, entities: EntityWatch, material: Material, trouble: Trouble) -> Sources {
        Sources { entities, material, plugin, trouble }
    }

    /// Publishes a table of address ranges as a whole, in a thread that may take long; what differs from the one before goes to the
    /// workers that keep it.
    ///
    /// # Errors
    /// [`MaterialError::Base`]: the bytes are no such table. The one before stays.
    pub async fn publish_ranges(&self, name: &str, base: Vec<u8>) -> Result<(), MaterialError> {
        let (material, name) = (self.material.clone(), name.to_owned());
        let publishing = tokio::task::spawn_blocking(move || material.publish(&name, TableKind::Ranges, base));
        // A runtime that ends takes its threads along: then nothing is published any more.
        publishing.await.unwrap_or(Ok(()))
    }

    /// Tells the operator what does not work: a line in the log.
    pub fn trouble(&self, what: &str) {
        (self.trouble)(self.plugin, what);
    }
}
