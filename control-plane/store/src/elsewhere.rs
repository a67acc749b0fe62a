//! What other control planes change in a shared store of what gateways are told at once.

use std::collections::BTreeSet;
use std::sync::Arc;

use tokio::sync::broadcast;

/// Changes that a listener may lag behind; one that lags further takes [`Elsewhere::Anything`] to have changed.
const LAG: usize = 1024;

/// What another control plane has changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Elsewhere {
    /// These, by their keys: each is to be read from the store. One that is not there was lifted, or taken from the allowlist.
    Keys {
        /// Of bans that were made, changed or lifted.
        bans: BTreeSet<String>,
        /// Of entries of the allowlist.
        allowed: BTreeSet<String>,
    },
    /// It cannot be said what: everything was read anew.
    Anything,
}

/// Where changes of others are announced.
pub(super) fn channel() -> broadcast::Sender<Arc<Elsewhere>> {
    broadcast::channel(LAG).0
}
