//! A bounded queue that forgets the oldest, or moves them to the disk first.
//!
//! The order is: what was taken and came back, what is on disk, what came last.

mod disk;
mod spill;

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;
use tokio::sync::futures::Notified;

pub(super) use disk::Disk;
pub(super) use spill::Kept;

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
    /// There are many lines in memory.
    crowded: Notify,
    bounds: Bounds,
    /// Where the oldest lines go before the queue is full. What is on disk changes only while it is locked.
    disk: Option<Arc<tokio::sync::Mutex<Disk>>>,
}

#[derive(Debug, Default)]
struct State {
    /// Lines that were taken out and are not settled yet: the oldest of all.
    writing: Vec<Line>,
    /// Lines that came back, or were read from the disk. Then come those on disk.
    front: VecDeque<Line>,
    /// What is in `writing` and `front` was read from the disk, where it still is.
    from_disk: bool,
    /// All that was read from the disk is settled, which is not noted there yet.
    uncommitted: bool,
    /// Lines on disk that were not read.
    on_disk: usize,
    /// Lines on their way to the disk.
    moving: usize,
    /// Lines that came after those.
    lines: VecDeque<Line>,
    /// In `front` and `lines`.
    bytes: usize,
    /// Nothing is taken any more.
    closed: bool,
    /// Lines that ever came.
    pushed: u64,
    figures: Figures,
}

/// What there is to take.
enum Next {
    Batch(Vec<Line>),
    OnDisk,
    Nothing,
}

/// The figures of a queue.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Figures {
    /// Lines that were taken out and are not settled yet included.
    pub(super) waiting: usize,
    /// So many of those that wait are on disk.
    pub(super) on_disk: usize,
    pub(super) written: u64,
    pub(super) dropped: u64,
    pub(super) retries: u64,
    /// Why the last attempt failed.
    pub(super) error: Option<String>,
    /// Why the disk cannot be used.
    pub(super) disk_error: Option<String>,
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
        for reason in ["full", "refused", "damaged"] {
            let labels = [("exporter", name.clone()), ("reason", reason.to_owned())];
            metrics::counter!("palisade_events_dropped_total", &labels).increment(0);
        }
        metrics::counter!("palisade_exporter_retries_total", "exporter" => name.clone()).increment(0);
        metrics::counter!("palisade_exporter_written_events_total", "exporter" => name.clone()).increment(0);
        let (filled, emptied, hurried, crowded) = (Notify::new(), Notify::new(), Notify::new(), Notify::new());
        Queue { name, state: Mutex::default(), filled, emptied, hurried, crowded, bounds, disk: None }
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
        let crowded = self.disk.is_some() && state.is_crowded(self.bounds);
        drop(state);
        self.count_dropped("full", dropped);
        self.filled.notify_one();
        if crowded {
            self.crowded.notify_one();
        }
    }

    /// Waits for lines and takes the oldest, as many as `most` allows and at least one. They are to be settled.
    pub(super) async fn take(&self, most: Bounds) -> Vec<Line> {
        loop {
            // Registered before the look, so that a line that comes in between is not missed.
            let filled = self.filled.notified();
            let next = self.lock().next(most);
            match next {
                Next::Batch(lines) => return lines,
                Next::OnDisk => self.load(most).await,
                Next::Nothing => filled.await,
            }
        }
    }

    /// Reports the outcome of the lines that were taken.
    pub(super) fn settle(&self, settled: Settled) {
        let Settled { written, refused, back, error } = settled;
        let mut state = self.lock();
        if state.closed {
            return;
        }
        state.writing.clear();
        state.figures.written += number(written);
        state.figures.dropped += number(refused);
        state.figures.retries += u64::from(!back.is_empty());
        state.figures.error = error;
        let retried = !back.is_empty();
        for line in back.into_iter().rev() {
            state.bytes += line.len();
            state.front.push_front(line);
        }
        let dropped = state.fit(self.bounds);
        state.uncommitted |= state.from_disk && state.front.is_empty();
        self.show(&state);
        let empty = state.waiting() == 0;
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

    /// An exporter that waits to try again does so now.
    pub(super) fn hurry(&self) {
        self.hurried.notify_waiters();
    }

    /// Waits until everything that was pushed before is written or lost. An exporter that waits to try again does so now.
    pub(super) async fn drained(&self) {
        self.hurry();
        loop {
            let emptied = self.emptied.notified();
            tokio::pin!(emptied);
            emptied.as_mut().enable();
            {
                if self.lock().waiting() == 0 {
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

    /// How many of them are written, lost or on disk: the oldest, because lines keep their order.
    pub(super) fn finished(&self) -> u64 {
        let state = self.lock();
        let only_here = state.writing.len() + state.front.len();
        let unfinished = match state.from_disk || only_here == 0 {
            true => state.moving + state.lines.len(),
            false => state.waiting(),
        };
        state.pushed.saturating_sub(number(unfinished))
    }

    /// Ends when [`Queue::hurry`] is called from now on.
    pub(super) fn hurried(&self) -> Notified<'_> {
        self.hurried.notified()
    }

    pub(super) fn figures(&self) -> Figures {
        let state = self.lock();
        Figures { waiting: state.waiting(), on_disk: state.on_disk, ..state.figures.clone() }
    }

    fn show(&self, state: &State) {
        let gauge = |count| u32::try_from(count).unwrap_or(u32::MAX);
        metrics::gauge!("palisade_exporter_waiting_events", "exporter" => self.name.clone())
            .set(gauge(state.waiting()));
        if self.disk.is_some() {
            let on_disk = gauge(state.on_disk);
            metrics::gauge!("palisade_exporter_disk_events", "exporter" => self.name.clone()).set(on_disk);
        }
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
        self.writing.len() + self.front.len() + self.on_disk + self.moving + self.lines.len()
    }

    /// Whether lines should go to the disk.
    fn is_crowded(&self, bounds: Bounds) -> bool {
        let many = self.lines.len() > bounds.lines / 4 * 3 || self.bytes > bounds.bytes / 4 * 3;
        many && !self.lines.is_empty()
    }

    /// Takes the oldest lines, at least one if there are any.
    fn next(&mut self, most: Bounds) -> Next {
        if self.closed {
            return Next::Nothing;
        }
        if self.front.is_empty() && (self.uncommitted || self.on_disk > 0) {
            return Next::OnDisk;
        }
        // Those in `lines` are next unless there are some on disk, or will be.
        let only_front = self.from_disk || self.on_disk + self.moving > 0;
        let (mut taken, mut bytes) = (Vec::new(), 0);
        while let Some(line) = self.front.front().or_else(|| self.lines.front().filter(|_| !only_front)) {
            bytes += line.len();
            if !taken.is_empty() && (taken.len() >= most.lines || bytes > most.bytes) {
                break;
            }
            taken.extend(self.pop());
        }
        if taken.is_empty() {
            return Next::Nothing;
        }
        self.writing.clone_from(&taken);
        Next::Batch(taken)
    }

    /// The oldest of those in memory.
    fn pop(&mut self) -> Option<Line> {
        let line = self.front.pop_front().or_else(|| self.lines.pop_front())?;
        self.bytes -= line.len();
        Some(line)
    }

    /// The oldest of those that are in memory alone.
    fn pop_unkept(&mut self) -> Option<Line> {
        if !self.from_disk {
            return self.pop();
        }
        let line = self.lines.pop_front()?;
        self.bytes -= line.len();
        Some(line)
    }

    /// Lets the oldest go until the rest fits; how many went. A batch that is on disk as well takes no room from those that are not, and
    /// stays: without it nothing would say that its lines on disk are to be committed.
    fn fit(&mut self, bounds: Bounds) -> usize {
        let mut dropped = 0;
        let fits = |state: &State| {
            let front = if state.from_disk { 0 } else { state.front.len() };
            let lines = front + state.lines.len();
            lines <= 1 || (lines <= bounds.lines && state.bytes <= bounds.bytes)
        };
        while !fits(self) {
            dropped += usize::from(self.pop_unkept().is_some());
        }
        self.figures.dropped += number(dropped);
        dropped
    }
}

fn number(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
