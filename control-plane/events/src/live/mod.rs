//! Events as they come, for those who watch.
//!
//! One task reads each event once, for all listeners, while there are any. Each listener has a bounded queue: one that is slow loses its
//! oldest events, and nothing else waits for it.

mod queue;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use store::EventStore;
use store::events::{EventField, NewEvent};
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;
use tokio::task::JoinHandle;

use super::{EventHub, EventTap};
use queue::LiveQueue;

pub use queue::{LiveBatch, LiveEvent, MAX_WAITING_EVENTS};

/// The listeners at the same time, and those of one operator.
pub const MAX_LISTENERS: (usize, usize) = (32, 4);

/// Events as they come. Clones share one state.
#[derive(Clone)]
pub struct LiveEvents {
    inner: Arc<Inner>,
}

struct Inner {
    hub: EventHub,
    /// Where the events of other control planes come from.
    stored: Option<Arc<dyn EventStore>>,
    listeners: Mutex<Listeners>,
}

#[derive(Default)]
struct Listeners {
    queues: BTreeMap<u64, Arc<LiveQueue>>,
    next: u64,
    /// Reads events, while there are listeners.
    reader: Option<JoinHandle<()>>,
}

/// The events that one listener wants. It ends with this value.
pub struct LiveStream {
    number: u64,
    queue: Arc<LiveQueue>,
    inner: Arc<Inner>,
}

// === impl LiveEvents ===

impl LiveEvents {
    /// The events of `hub`, and those that other control planes append to `stored`.
    #[must_use]
    pub fn new(hub: EventHub, stored: Option<Arc<dyn EventStore>>) -> LiveEvents {
        LiveEvents { inner: Arc::new(Inner { hub, stored, listeners: Mutex::default() }) }
    }

    /// The events with all of these values from now on, for an operator; `None` where there are too many listeners. Must be called
    /// within a tokio runtime.
    #[must_use]
    pub fn listen(&self, filters: Vec<(EventField, String)>, operator: &str) -> Option<LiveStream> {
        let mut listeners = self.inner.listeners();
        let own = listeners.queues.values().filter(|queue| queue.operator() == operator).count();
        if listeners.queues.len() >= MAX_LISTENERS.0 || own >= MAX_LISTENERS.1 {
            return None;
        }
        let (number, queue) = (listeners.next, Arc::new(LiveQueue::new(filters, operator)));
        listeners.next += 1;
        listeners.queues.insert(number, Arc::clone(&queue));
        if listeners.reader.is_none() {
            // Opened here: nothing that comes from now on is missed.
            let (tap, others) = (self.inner.hub.tap_all("live"), self.inner.stored.as_ref().map(|all| all.others()));
            listeners.reader = Some(tokio::spawn(read(Arc::clone(&self.inner), tap, others)));
        }
        self.inner.show(&listeners);
        Some(LiveStream { number, queue, inner: Arc::clone(&self.inner) })
    }

    /// How many listeners there are.
    #[must_use]
    pub fn listeners(&self) -> usize {
        self.inner.listeners().queues.len()
    }
}

// === impl Inner ===

impl Inner {
    fn listeners(&self) -> MutexGuard<'_, Listeners> {
        self.listeners.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn queues(&self) -> Vec<Arc<LiveQueue>> {
        self.listeners().queues.values().cloned().collect()
    }

    fn show(&self, listeners: &Listeners) {
        let count = u32::try_from(listeners.queues.len()).unwrap_or(u32::MAX);
        metrics::gauge!("palisade_live_listeners").set(count);
    }
}

// === impl LiveStream ===

impl LiveStream {
    /// Waits for events and takes those that wait, the oldest first, with the number of those that were left out since the last call. A
    /// call that is given up loses nothing.
    pub async fn next(&mut self) -> LiveBatch {
        self.queue.take().await
    }
}

impl Drop for LiveStream {
    fn drop(&mut self) {
        let mut listeners = self.inner.listeners();
        listeners.queues.remove(&self.number);
        if listeners.queues.is_empty()
            && let Some(reader) = listeners.reader.take()
        {
            reader.abort();
        }
        self.inner.show(&listeners);
    }
}

/// Gives each event to the listeners that want it.
async fn read(inner: Arc<Inner>, mut tap: EventTap, mut others: Option<broadcast::Receiver<Arc<[u8]>>>) {
    loop {
        let (lines, missed) = tokio::select! {
            lines = tap.next() => (lines, tap.take_missed()),
            (lines, missed) = from_others(&mut others) => (lines, missed),
        };
        let (queues, now) = (inner.queues(), inner.hub.now());
        let giving = tokio::task::spawn_blocking(move || {
            if missed > 0 {
                queues.iter().for_each(|queue| queue.miss(missed));
            }
            for event in lines.iter().filter_map(|line| NewEvent::read(line, now)) {
                queues.iter().filter(|queue| queue.wants(&event)).for_each(|queue| queue.push(&event));
            }
        });
        let _given = giving.await;
    }
}

/// The next events of other control planes, and how many were missed; waits for ever where there are none.
async fn from_others(others: &mut Option<broadcast::Receiver<Arc<[u8]>>>) -> (Vec<Arc<[u8]>>, u64) {
    if let Some(receiver) = others {
        match receiver.recv().await {
            Ok(first) => {
                let mut lines = vec![first];
                while let Ok(line) = receiver.try_recv() {
                    lines.push(line);
                }
                return (lines, 0);
            }
            Err(RecvError::Lagged(missed)) => return (Vec::new(), missed),
            Err(RecvError::Closed) => *others = None,
        }
    }
    std::future::pending().await
}
