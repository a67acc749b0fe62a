//! A bounded queue that forgets the oldest.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;
use tokio::sync::futures::Notified;

/// One event: a line of JSON without its end.
pub(super) type Line = Arc<[u8]>;

/// So many lines, and so many bytes in them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bounds {
    pub(super) lines: usize,
    pub(super) bytes: usize,
}

/// Lines on their way to one exporter. A slow exporter loses the oldest lines, never the newest, and never holds up a node.
#[derive(Debug)]
pub(super) struct Queue {
    name: String,
    state: Mutex<State>,
    filled: Notify,
    emptied: Notify,
    hurried: Notify,
    bounds: Bounds,
}

#[derive(Debug, Default)]
struct State {
    lines: VecDeque<Line>,
    /// In `lines`.
    bytes: usize,
    /// Lines that were taken out and are not settled yet.
    writing: usize,
    /// Lines that ever came.
    pushed: u64,
    figures: Figures,
}

/// The figures of a queue.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Figures {
    /// Lines that were taken out and are not settled yet included.
    pub(super) waiting: usize,
    pub(super) written: u64,
    pub(super) dropped: u64,
    pub(super) retries: u64,
    /// Why the last attempt failed.
    pub(super) error: Option<String>,
}

/// The outcome of the lines that were taken.
#[derive(Debug, Default)]
pub(super) struct Settled {
    pub(super) written: usize,
    /// Given up.
    pub(super) refused: usize,
    /// To be tried again, in their order.
    pub(super) back: Vec<Line>,
    pub(super) error: Option<String>,
}

impl Queue {
    /// An empty one for the exporter `name`. It holds at least one line.
    pub(super) fn new(name: String, bounds: Bounds) -> Queue {
        // What has not happened yet is worth showing as 0.
        for reason in ["full", "refused"] {
            let labels = [("exporter", name.clone()), ("reason", reason.to_owned())];
            metrics::counter!("palisade_events_dropped_total", &labels).increment(0);
        }
        metrics::counter!("palisade_exporter_retries_total", "exporter" => name.clone()).increment(0);
        metrics::counter!("palisade_exporter_written_events_total", "exporter" => name.clone()).increment(0);
        let (filled, emptied, hurried) = (Notify::new(), Notify::new(), Notify::new());
        Queue { name, state: Mutex::default(), filled, emptied, hurried, bounds }
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Adds a line; the oldest go where there is no room for it.
    pub(super) fn push(&self, line: Line) {
        let mut state = self.lock();
        state.bytes += line.len();
        state.lines.push_back(line);
        state.pushed += 1;
        let dropped = state.fit(self.bounds);
        self.show(&state);
        drop(state);
        self.count_dropped("full", dropped);
        self.filled.notify_one();
    }

    /// Waits for lines and takes the oldest, as many as `most` allows and at least one. They are to be settled.
    pub(super) async fn take(&self, most: Bounds) -> Vec<Line> {
        loop {
            // Registered before the look, so that a line that comes in between is not missed.
            let filled = self.filled.notified();
            {
                let mut state = self.lock();
                let mut taken = Vec::new();
                let mut bytes = 0;
                while let Some(line) = state.lines.front() {
                    bytes += line.len();
                    if !taken.is_empty() && (taken.len() >= most.lines || bytes > most.bytes) {
                        break;
                    }
                    taken.extend(state.pop());
                }
                if !taken.is_empty() {
                    state.writing = taken.len();
                    return taken;
                }
            }
            filled.await;
        }
    }

    /// Reports the outcome of the lines that were taken.
    pub(super) fn settle(&self, settled: Settled) {
        let Settled { written, refused, back, error } = settled;
        let mut state = self.lock();
        state.writing = 0;
        state.figures.written += number(written);
        state.figures.dropped += number(refused);
        state.figures.retries += u64::from(!back.is_empty());
        state.figures.error = error;
        let retried = !back.is_empty();
        for line in back.into_iter().rev() {
            state.bytes += line.len();
            state.lines.push_front(line);
        }
        let dropped = state.fit(self.bounds);
        self.show(&state);
        let empty = state.lines.is_empty();
        drop(state);
        let exporter = || self.name.clone();
        metrics::counter!("palisade_exporter_written_events_total", "exporter" => exporter())
            .increment(number(written));
        self.count_dropped("refused", refused);
        self.count_dropped("full", dropped);
        if retried {
            metrics::counter!("palisade_exporter_retries_total", "exporter" => exporter()).increment(1);
        }
        if empty {
            self.emptied.notify_waiters();
        }
    }

    /// Waits until everything that was pushed before is written or lost. An exporter that waits to try again does so now.
    pub(super) async fn drained(&self) {
        self.hurried.notify_waiters();
        loop {
            let emptied = self.emptied.notified();
            tokio::pin!(emptied);
            emptied.as_mut().enable();
            {
                let state = self.lock();
                if state.lines.is_empty() && state.writing == 0 {
                    return;
                }
            }
            emptied.await;
        }
    }

    /// How many lines ever came.
    pub(super) fn pushed(&self) -> u64 {
        self.lock().pushed
    }

    /// How many of them are written or lost: the oldest, because lines keep their order.
    pub(super) fn finished(&self) -> u64 {
        let state = self.lock();
        state.pushed.saturating_sub(number(state.waiting()))
    }

    /// Ends when a task begins to wait in [`Queue::drained`] from now on.
    pub(super) fn hurried(&self) -> Notified<'_> {
        self.hurried.notified()
    }

    pub(super) fn figures(&self) -> Figures {
        let state = self.lock();
        Figures { waiting: state.waiting(), ..state.figures.clone() }
    }

    fn show(&self, state: &State) {
        let waiting = u32::try_from(state.waiting()).unwrap_or(u32::MAX);
        metrics::gauge!("palisade_exporter_waiting_events", "exporter" => self.name.clone()).set(waiting);
    }

    fn count_dropped(&self, reason: &'static str, count: usize) {
        if count > 0 {
            let labels = [("exporter", self.name.clone()), ("reason", reason.to_owned())];
            metrics::counter!("palisade_events_dropped_total", &labels).increment(number(count));
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn waiting(&self) -> usize {
        self.lines.len() + self.writing
    }

    fn pop(&mut self) -> Option<Line> {
        let line = self.lines.pop_front()?;
        self.bytes -= line.len();
        Some(line)
    }

    /// Lets the oldest go until the rest fits; how many went.
    fn fit(&mut self, bounds: Bounds) -> usize {
        let mut dropped = 0;
        while self.lines.len() > 1 && (self.lines.len() > bounds.lines || self.bytes > bounds.bytes) {
            dropped += usize::from(self.pop().is_some());
        }
        self.figures.dropped += number(dropped);
        dropped
    }
}

fn number(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: Bounds = Bounds { lines: usize::MAX, bytes: usize::MAX };

    fn queue(lines: usize, bytes: usize, content: &[&str]) -> Queue {
        let queue = Queue::new("test".to_owned(), Bounds { lines, bytes });
        for line in content {
            queue.push(line.as_bytes().into());
        }
        queue
    }

    fn texts(lines: &[Line]) -> Vec<&str> {
        lines.iter().map(|line| std::str::from_utf8(line).unwrap()).collect()
    }

    #[tokio::test]
    async fn the_oldest_go_first_and_are_counted() {
        let queue = queue(2, 100, &["1", "2", "3"]);
        let lines = queue.take(ALL).await;
        assert_eq!(texts(&lines), ["2", "3"]);
        assert_eq!(queue.figures().waiting, 2, "taken is not written");
        queue.settle(Settled { written: 2, ..Settled::default() });
        assert_eq!(queue.figures(), Figures { written: 2, dropped: 1, ..Figures::default() });
        queue.drained().await;
    }

    #[tokio::test]
    async fn what_is_finished_is_written_or_lost() {
        let queue = queue(2, 100, &["1", "2", "3"]);
        assert_eq!((queue.pushed(), queue.finished()), (3, 1), "the oldest is lost");
        let back = queue.take(ALL).await;
        assert_eq!(queue.finished(), 1, "taken is not written");
        queue.settle(Settled { back, ..Settled::default() });
        queue.push("4".as_bytes().into());
        assert_eq!((queue.pushed(), queue.finished()), (4, 2));
        let lines = queue.take(ALL).await;
        queue.settle(Settled { written: lines.len(), ..Settled::default() });
        assert_eq!(queue.finished(), 4);
    }

    #[tokio::test]
    async fn bytes_are_bounded_too_and_one_long_line_still_fits() {
        let queue = queue(100, 10, &["aaaa", "bbbb", "cccc", "a line beyond the bound"]);
        assert_eq!(texts(&queue.take(ALL).await), ["a line beyond the bound"]);
        assert_eq!(queue.figures().dropped, 3);
    }

    #[tokio::test]
    async fn a_batch_has_its_own_bounds() {
        let queue = queue(100, 1000, &["aaaa", "bbbb", "cccccccc", "d"]);
        for expected in [vec!["aaaa"], vec!["bbbb"], vec!["cccccccc"], vec!["d"]] {
            let lines = queue.take(Bounds { lines: 100, bytes: 7 }).await;
            assert_eq!(texts(&lines), expected);
        }
        for line in ["1", "2", "3"] {
            queue.push(line.as_bytes().into());
        }
        assert_eq!(texts(&queue.take(Bounds { lines: 2, bytes: 100 }).await), ["1", "2"]);
    }

    #[tokio::test]
    async fn what_comes_back_is_the_oldest_again() {
        let queue = queue(3, 100, &["1", "2"]);
        let back = queue.take(ALL).await;
        queue.push("3".as_bytes().into());
        queue.push("4".as_bytes().into());
        queue.settle(Settled { back, error: Some("no".to_owned()), ..Settled::default() });
        let expected = Figures { waiting: 3, dropped: 1, retries: 1, error: Some("no".to_owned()), written: 0 };
        assert_eq!(queue.figures(), expected);
        assert_eq!(texts(&queue.take(ALL).await), ["2", "3", "4"]);
    }
}
