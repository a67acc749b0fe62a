//! What plugins have at work in a control plane, beside what they compile.

use std::any::Any;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use crate::Plugin;

/// What a plugin has at work: one object of each control plane, which its gatherer and its operations share.
pub type Runtime = Arc<dyn Any + Send + Sync>;

/// Those of all plugins, by name. Clones are the same.
#[derive(Clone, Default)]
pub struct Runtimes(Arc<BTreeMap<&'static str, Runtime>>);

impl Runtimes {
    /// Makes those of plugins. Once for each control plane.
    pub fn of(plugins: impl Iterator<Item = &'static Plugin>) -> Runtimes {
        let made = plugins.filter_map(|plugin| Some((plugin.name, plugin.runtime?())));
        Runtimes(Arc::new(made.collect()))
    }

    /// That of a plugin, by name; `None` for a plugin without one.
    #[must_use]
    pub fn get(&self, plugin: &str) -> Option<Runtime> {
        self.0.get(plugin).cloned()
    }
}

impl fmt::Debug for Runtimes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}
