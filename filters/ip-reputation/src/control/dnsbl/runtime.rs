//! What the resolver of blocklists shares with the console and with questions of gateways.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};

use super::health::ShownZone;
use super::verdicts::Found;
use super::waiting::Tell;

/// Questions that wait for the resolver, at most.
const MAX_ASKED: usize = 1_024;

/// A question about an address.
#[derive(Debug)]
pub(super) struct Asked {
    pub(super) address: IpAddr,
    /// Told what is found out; dropped where the address is not looked up.
    pub(super) tell: Tell,
}

/// What is known of blocklists.
pub(in super::super) struct Blocklists {
    sender: mpsc::Sender<Asked>,
    inbox: Mutex<Option<mpsc::Receiver<Asked>>>,
    shown: Mutex<Arc<ShownBlocklists>>,
}

/// What is shown of blocklists.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in super::super) struct ShownBlocklists {
    /// The zones that are asked, by name.
    pub(in super::super) zones: BTreeMap<String, ShownZone>,
    /// The resolvers that are asked.
    pub(in super::super) resolvers: Vec<String>,
    /// Verdicts that are in force, and those of them on listed addresses.
    pub(in super::super) entries: usize,
    pub(in super::super) listed: usize,
    /// Addresses that wait or are looked up, and those that were dropped.
    pub(in super::super) waiting: usize,
    pub(in super::super) dropped: u64,
}

impl Default for Blocklists {
    fn default() -> Blocklists {
        let (sender, inbox) = mpsc::channel(MAX_ASKED);
        Blocklists { sender, inbox: Mutex::new(Some(inbox)), shown: Mutex::default() }
    }
}

impl Blocklists {
    /// The questions, for the one resolver.
    pub(super) fn inbox(&self) -> Option<mpsc::Receiver<Asked>> {
        self.inbox.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    pub(super) fn show(&self, shown: ShownBlocklists) {
        *self.lock() = Arc::new(shown);
    }

    /// What is known.
    pub(in super::super) fn shown(&self) -> Arc<ShownBlocklists> {
        Arc::clone(&self.lock())
    }

    /// What the lists say of an address, if it is known or found out within a time.
    pub(in super::super) async fn ask(&self, address: IpAddr, patience: Duration) -> Option<Found> {
        let (tell, told) = oneshot::channel();
        self.sender.try_send(Asked { address, tell }).ok()?;
        tokio::time::timeout(patience, told).await.ok()?.ok()
    }

    fn lock(&self) -> MutexGuard<'_, Arc<ShownBlocklists>> {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
