//! The events that wait for one listener.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use store::events::{EventField, NewEvent};
use tokio::sync::Notify;

/// The events that wait for one listener, at most.
pub const MAX_WAITING_EVENTS: usize = 1000;
/// The bytes of these events, at most.
const MAX_WAITING_BYTES: usize = 4 << 20;

/// An event as a listener gets it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LiveEvent {
    /// The time by which it is ordered, in milliseconds since 1970.
    pub at_millis: u64,
    /// One line of JSON.
    pub line: Arc<[u8]>,
}

/// What a listener gets at once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LiveBatch {
    /// The events, oldest first.
    pub events: Vec<LiveEvent>,
    /// How many were left out before them.
    pub dropped: u64,
}

pub(super) struct LiveQueue {
    filters: Vec<(EventField, String)>,
    operator: String,
    state: Mutex<State>,
    filled: Notify,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<LiveEvent>,
    bytes: usize,
    dropped: u64,
}

impl LiveQueue {
    pub(super) fn new(filters: Vec<(EventField, String)>, operator: &str) -> LiveQueue {
        LiveQueue { filters, operator: operator.to_owned(), state: Mutex::default(), filled: Notify::new() }
    }

    pub(super) fn operator(&self) -> &str {
        &self.operator
    }

    pub(super) fn wants(&self, event: &NewEvent) -> bool {
        event.has(&self.filters)
    }

    pub(super) fn push(&self, event: &NewEvent) {
        let event = LiveEvent { at_millis: event.at_millis(), line: Arc::clone(event.line()) };
        let mut state = self.lock();
        state.bytes += event.line.len();
        state.waiting.push_back(event);
        while state.waiting.len() > MAX_WAITING_EVENTS || (state.bytes > MAX_WAITING_BYTES && state.waiting.len() > 1) {
            let Some(oldest) = state.waiting.pop_front() else { break };
            state.bytes -= oldest.line.len();
            state.dropped += 1;
            metrics::counter!("palisade_live_dropped_events_total").increment(1);
        }
        drop(state);
        self.filled.notify_one();
    }

    /// Notes that events were lost before they came here. It is not known whether the listener would have got them.
    pub(super) fn miss(&self, missed: u64) {
        self.lock().dropped += missed;
        self.filled.notify_one();
    }

    pub(super) async fn take(&self) -> LiveBatch {
        loop {
            // Registered before the look, so that an event that comes in between is not missed.
            let filled = self.filled.notified();
            {
                let mut state = self.lock();
                if !state.waiting.is_empty() || state.dropped > 0 {
                    state.bytes = 0;
                    let dropped = std::mem::take(&mut state.dropped);
                    return LiveBatch { events: std::mem::take(&mut state.waiting).into(), dropped };
                }
            }
            filled.await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
