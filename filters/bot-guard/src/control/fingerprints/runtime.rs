//! What is at work in a control plane: the pairs as they are now, for the console, and orders to the gatherer.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};

use super::learned::{Learned, PairKey, PairState};

/// Orders that wait for the gatherer, at most: each belongs to a call of the console, of which few run at a time.
const MAX_ORDERS: usize = 16;
/// How long an order is waited for. The console gives up after 30 seconds.
const PATIENCE: Duration = Duration::from_secs(20);

/// The pairs at work.
#[derive(Debug)]
pub(in super::super) struct Pairs {
    learned: Mutex<Learned>,
    orders: mpsc::Sender<Order>,
    /// Taken by the gatherer.
    inbox: Mutex<Option<mpsc::Receiver<Order>>>,
}

/// What an operator wants of a pair.
#[derive(Debug)]
pub(super) struct Order {
    pub(super) key: PairKey,
    /// The state that it gets; `None` forgets it.
    pub(super) state: Option<PairState>,
    /// Tells when it is done and kept, or why it cannot be, for people.
    pub(super) done: oneshot::Sender<Result<(), String>>,
}

impl Default for Pairs {
    fn default() -> Pairs {
        let (orders, inbox) = mpsc::channel(MAX_ORDERS);
        Pairs { learned: Mutex::default(), orders, inbox: Mutex::new(Some(inbox)) }
    }
}

impl Pairs {
    /// The pairs as they are now.
    pub(super) fn learned(&self) -> MutexGuard<'_, Learned> {
        self.learned.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The orders, for the one gatherer.
    pub(super) fn inbox(&self) -> Option<mpsc::Receiver<Order>> {
        self.inbox.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Has a decision carried out and kept. In a thread that may block.
    ///
    /// # Errors
    /// Why it was not, for people.
    pub(super) fn order(&self, key: PairKey, state: Option<PairState>) -> Result<(), String> {
        let gathers = self.inbox.lock().unwrap_or_else(PoisonError::into_inner).is_none();
        let runtime = tokio::runtime::Handle::try_current().ok().filter(|_| gathers);
        let Some(runtime) = runtime else { return Err("this control plane gathers no fingerprints".to_owned()) };
        let (done, told) = oneshot::channel();
        runtime.block_on(async {
            let carried_out = async {
                let gone = || "no fingerprints are gathered at the moment".to_owned();
                self.orders.send(Order { key, state, done }).await.map_err(|_| gone())?;
                told.await.map_err(|_| gone())?
            };
            let late = |_| "it takes longer than calls wait; look whether it was done".to_owned();
            tokio::time::timeout(PATIENCE, carried_out).await.map_err(late)?
        })
    }
}
