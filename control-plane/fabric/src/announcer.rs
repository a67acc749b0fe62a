//! Changes of bans and of the allowlist on their way to every linked worker, in the order in which they were recorded.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use snapshot::{BanChange, Down};
use tokio::sync::broadcast;

/// Changes that a link may lag behind; one that lags further is cut off and starts anew with the full list.
const LAG: usize = 1024;

/// Sends changes to all links. Clones share one state.
#[derive(Clone)]
pub struct Announcer {
    inner: Arc<Inner>,
}

struct Inner {
    changes: broadcast::Sender<Arc<Down>>,
    /// Held from recording a change until it is broadcast, so that nodes learn changes in the order of the record.
    order: tokio::sync::Mutex<()>,
    clock: fn() -> u64,
    /// When bans, and the allowlist, were last read from the store as a whole or changed; 0 for never.
    refreshed: [AtomicU64; 2],
}

/// When something was last read from the store as a whole or changed there, in milliseconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refreshed {
    /// The bans.
    pub bans: Option<u64>,
    /// The allowlist.
    pub allowed: Option<u64>,
}

impl Announcer {
    /// An announcer without links, with the time, in milliseconds since 1970, from `clock`.
    #[must_use]
    pub fn new(clock: fn() -> u64) -> Announcer {
        let (changes, _) = broadcast::channel(LAG);
        let order = tokio::sync::Mutex::new(());
        Announcer { inner: Arc::new(Inner { changes, order, clock, refreshed: Default::default() }) }
    }

    /// How many workers of gateways are linked.
    #[must_use]
    pub fn links(&self) -> usize {
        self.inner.changes.receiver_count()
    }

    /// The changes from now on, for one link.
    #[must_use]
    pub fn subscribe(&self) -> broadcast::Receiver<Arc<Down>> {
        self.inner.changes.subscribe()
    }

    /// When bans and the allowlist were last read from the store as a whole, or changed.
    #[must_use]
    pub fn refreshed(&self) -> Refreshed {
        let [bans, allowed] =
            self.inner.refreshed.each_ref().map(|at| Some(at.load(Ordering::Relaxed)).filter(|at| *at > 0));
        Refreshed { bans, allowed }
    }

    /// Notes that bans and the allowlist were read from the store as a whole.
    pub fn loaded(&self) {
        self.note_refresh(true, true);
    }

    fn note_refresh(&self, bans: bool, allowed: bool) {
        for (at, _) in self.inner.refreshed.iter().zip([bans, allowed]).filter(|(_, noted)| *noted) {
            at.store((self.inner.clock)(), Ordering::Relaxed);
        }
    }

    /// Tells every node of changes of bans that are recorded already.
    pub fn announce(&self, changes: Vec<BanChange>) {
        self.tell(Down { bans: changes, ..Down::default() });
    }

    /// Records changes and tells every node of them, in the order of the record among all changes: `work` records, and
    /// returns the message to the nodes.
    pub async fn change<T>(&self, work: impl Future<Output = (T, Down)>) -> T {
        self.change_many(async {
            let (value, down) = work.await;
            (value, vec![down])
        })
        .await
    }

    /// [`Announcer::change`] with several messages.
    pub async fn change_many<T>(&self, work: impl Future<Output = (T, Vec<Down>)>) -> T {
        let _in_order = self.inner.order.lock().await;
        let (value, downs) = work.await;
        downs.into_iter().for_each(|down| self.tell(down));
        value
    }

    fn tell(&self, down: Down) {
        if down == Down::default() {
            return;
        }
        self.note_refresh(!down.bans.is_empty(), !down.allowed.is_empty());
        // No receiver means that no node is connected: the next one starts with the full list.
        let _no_receiver = self.inner.changes.send(Arc::new(down));
    }
}

impl fmt::Debug for Announcer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Announcer").field("links", &self.links()).finish_non_exhaustive()
    }
}
