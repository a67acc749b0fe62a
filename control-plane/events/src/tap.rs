//! Events for parts of the control plane that act on them, such as plugins that report attacks elsewhere.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use tokio::sync::Notify;

/// Lines that wait for one receiver, at most.
const MAX_LINES: usize = 4_096;
/// The bytes of these lines together, at most.
const MAX_BYTES: usize = 16 << 20;

/// The events of gateways from one moment on, each as one line of JSON without its end. A receiver that is slow loses the oldest, which
/// `palisade_events_missed_total` counts.
#[derive(Debug)]
pub struct EventTap(Arc<Waiting>);

/// All taps of a hub.
#[derive(Debug, Default)]
pub(super) struct Taps(Mutex<Vec<Weak<Waiting>>>);

#[derive(Debug)]
struct Waiting {
    receiver: &'static str,
    state: Mutex<State>,
    filled: Notify,
}

#[derive(Debug, Default)]
struct State {
    lines: VecDeque<Arc<[u8]>>,
    /// In `lines`.
    bytes: usize,
    /// The oldest that were lost since this was asked for.
    missed: u64,
}

impl EventTap {
    /// How many events were lost since the last call, because the receiver was slow.
    pub fn take_missed(&mut self) -> u64 {
        std::mem::take(&mut self.0.lock().missed)
    }

    /// Waits for events and takes all that have come, the oldest first. A call that is given up loses nothing.
    pub async fn next(&mut self) -> Vec<Arc<[u8]>> {
        loop {
            // Registered before the look, so that a line that comes in between is not missed.
            let filled = self.0.filled.notified();
            {
                let mut state = self.0.lock();
                if !state.lines.is_empty() {
                    state.bytes = 0;
                    return std::mem::take(&mut state.lines).into();
                }
            }
            filled.await;
        }
    }
}

impl Taps {
    pub(super) fn open(&self, receiver: &'static str) -> EventTap {
        metrics::counter!("palisade_events_missed_total", "receiver" => receiver).increment(0);
        let waiting = Arc::new(Waiting { receiver, state: Mutex::default(), filled: Notify::new() });
        let mut taps = self.lock();
        taps.retain(|tap| tap.strong_count() > 0);
        taps.push(Arc::downgrade(&waiting));
        EventTap(waiting)
    }

    /// Gives an event to all that are open.
    pub(super) fn tell(&self, line: &Arc<[u8]>) {
        self.lock().iter().filter_map(Weak::upgrade).for_each(|tap| tap.push(Arc::clone(line)));
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Weak<Waiting>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Waiting {
    fn push(&self, line: Arc<[u8]>) {
        let mut state = self.lock();
        state.bytes += line.len();
        state.lines.push_back(line);
        let mut missed = 0_u64;
        while state.lines.len() > MAX_LINES || state.bytes > MAX_BYTES {
            let Some(oldest) = state.lines.pop_front() else { break };
            state.bytes -= oldest.len();
            missed += 1;
        }
        state.missed += missed;
        drop(state);
        if missed > 0 {
            metrics::counter!("palisade_events_missed_total", "receiver" => self.receiver).increment(missed);
        }
        self.filled.notify_one();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_tap_has_what_came_since_and_no_more_than_its_bounds() {
        let taps = Taps::default();
        let line = |text: String| -> Arc<[u8]> { text.into_bytes().into() };
        taps.tell(&line("before".to_owned()));
        let (mut one, mut other) = (taps.open("one"), taps.open("other"));
        taps.tell(&line("a".to_owned()));
        taps.tell(&line("b".to_owned()));
        assert_eq!(one.next().await, [line("a".to_owned()), line("b".to_owned())]);
        for number in 0..=MAX_LINES {
            taps.tell(&line(number.to_string()));
        }
        let all = one.next().await;
        assert_eq!((all.len(), &all[0]), (MAX_LINES, &line("1".to_owned())), "the oldest is lost");
        let large = line("x".repeat(MAX_BYTES / 4));
        (0..9).for_each(|_| taps.tell(&large));
        assert_eq!(one.next().await.len(), 4);
        // Its own queue is bounded as well, and it ends with its receiver.
        assert!(other.next().await.iter().map(|line| line.len()).sum::<usize>() <= MAX_BYTES);
        drop(one);
        drop(other);
        let _third = taps.open("third");
        assert_eq!(taps.lock().len(), 1);
    }
}
