//! What other control planes change in a shared store of what this one has told or read.

use std::collections::BTreeSet;
use std::sync::Arc;

use tokio::sync::broadcast;
use tokio::sync::broadcast::error::{RecvError, TryRecvError};

/// Changes that a listener may lag behind; one that lags further takes [`Elsewhere::Anything`] to have changed.
const LAG: usize = 1024;

/// What another control plane has changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Elsewhere {
    /// These, by their keys: each is to be read from the store. One that is not there is gone.
    Keys(Keys),
    /// It cannot be said what: everything was read anew.
    Anything,
}

/// Keys of what was changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Keys {
    /// Of bans that were made, changed or lifted.
    pub bans: BTreeSet<String>,
    /// Of entries of the allowlist.
    pub allowed: BTreeSet<String>,
    /// Of incidents.
    pub incidents: BTreeSet<String>,
    /// States of incidents were set or cleared.
    pub workflows: bool,
    /// Names of documents.
    pub documents: BTreeSet<String>,
    /// Ids of threat feeds.
    pub feeds: BTreeSet<String>,
    /// The API inventory.
    pub inventory: bool,
}

/// Listens to what others change.
#[derive(Debug)]
pub struct Others(broadcast::Receiver<Arc<Elsewhere>>);

impl Elsewhere {
    /// Both of them.
    #[must_use]
    pub fn and(self, other: &Elsewhere) -> Elsewhere {
        match (self, other) {
            (Elsewhere::Keys(mut keys), Elsewhere::Keys(more)) => {
                keys.bans.extend(more.bans.iter().cloned());
                keys.allowed.extend(more.allowed.iter().cloned());
                keys.incidents.extend(more.incidents.iter().cloned());
                keys.workflows |= more.workflows;
                keys.documents.extend(more.documents.iter().cloned());
                keys.inventory |= more.inventory;
                keys.feeds.extend(more.feeds.iter().cloned());
                Elsewhere::Keys(keys)
            }
            _ => Elsewhere::Anything,
        }
    }

    /// Whether a document was changed whose name begins so.
    #[must_use]
    pub fn has_documents(&self, prefix: &str) -> bool {
        match self {
            Elsewhere::Keys(keys) => keys.documents.iter().any(|name| name.starts_with(prefix)),
            Elsewhere::Anything => true,
        }
    }
}

impl Others {
    /// All that has changed since the last call; waits where that is nothing. `None` once the store is gone. A call that is given up
    /// loses nothing.
    pub async fn next(&mut self) -> Option<Elsewhere> {
        let mut changed = match self.0.recv().await {
            Ok(changed) => (*changed).clone(),
            Err(RecvError::Lagged(_)) => Elsewhere::Anything,
            Err(RecvError::Closed) => return None,
        };
        loop {
            match self.0.try_recv() {
                Ok(more) => changed = changed.and(&more),
                Err(TryRecvError::Lagged(_)) => changed = Elsewhere::Anything,
                Err(TryRecvError::Empty | TryRecvError::Closed) => return Some(changed),
            }
        }
    }
}

/// Where changes of others are announced.
pub(super) fn channel() -> broadcast::Sender<Arc<Elsewhere>> {
    broadcast::channel(LAG).0
}

/// A listener from now on.
pub(super) fn listen(sender: &broadcast::Sender<Arc<Elsewhere>>) -> Others {
    Others(sender.subscribe())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn document(name: &str) -> Elsewhere {
        Elsewhere::Keys(Keys { documents: [name.to_owned()].into(), ..Keys::default() })
    }

    #[tokio::test]
    async fn what_has_come_meanwhile_is_told_at_once() {
        let sender = channel();
        let mut others = listen(&sender);
        for change in [document("feeds/a"), document("b")] {
            sender.send(Arc::new(change)).unwrap();
        }
        let changed = others.next().await.unwrap();
        assert!(changed.has_documents("feeds/") && changed.has_documents("b") && !changed.has_documents("c"));
        sender.send(Arc::new(document("c"))).unwrap();
        sender.send(Arc::new(Elsewhere::Anything)).unwrap();
        assert_eq!(others.next().await, Some(Elsewhere::Anything));
        for _ in 0..=LAG {
            sender.send(Arc::new(document("d"))).unwrap();
        }
        assert_eq!(others.next().await, Some(Elsewhere::Anything), "a listener that lags behind reads everything");
        drop(sender);
        assert_eq!(others.next().await, None);
    }
}
