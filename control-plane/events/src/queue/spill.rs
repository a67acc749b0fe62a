//! What a queue keeps on disk: lines that would be lost otherwise.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Mutex, OwnedMutexGuard};

use super::disk::{Damage, Disk};
use super::{Bounds, Line, Queue, State};

/// How many bytes go to the disk at once, at most.
const PART: usize = 4 << 20;
/// How long a disk that could not be written is left alone.
const REST: Duration = Duration::from_secs(5);

/// The lines that wait when the process ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Kept {
    /// They are on disk, for the next process.
    pub(crate) on_disk: usize,
    pub(crate) lost: usize,
}

impl Queue {
    /// The same queue with the lines that an earlier process has left on `disk`. [`Queue::spill`] must run.
    pub(crate) fn with_disk(mut self, disk: Disk) -> Queue {
        let mut state = self.lock();
        state.on_disk = disk.unread();
        state.pushed = super::number(state.on_disk);
        drop(state);
        metrics::gauge!("palisade_exporter_disk_failing", "exporter" => self.name.clone()).set(0.0);
        self.disk = Some(Arc::new(Mutex::new(disk)));
        self.show(&self.lock());
        self
    }

    /// Moves the oldest lines in memory to the disk whenever there are many. For a task of its own; ends at once without a disk.
    pub(crate) async fn spill(self: Arc<Self>) {
        let Some(disk) = &self.disk else { return };
        loop {
            self.crowded.notified().await;
            while self.lock().is_crowded(self.bounds) {
                let held = Arc::clone(disk).lock_owned().await;
                if !self.move_part(held).await {
                    tokio::time::sleep(REST).await;
                }
            }
        }
    }

    /// Moves some lines to the disk; false where it cannot be written, they stay then.
    async fn move_part(&self, disk: OwnedMutexGuard<Disk>) -> bool {
        let part = self.lock().begin_to_move(Bounds { lines: (self.bounds.lines / 2).max(1), bytes: PART });
        let lines = part.clone();
        let (disk, appended) = with(disk, move |disk| disk.append(&lines)).await;
        let mut state = self.lock();
        state.moving = 0;
        state.on_disk = disk.unread();
        let (evicted, error) = match appended {
            Ok(evicted) => (evicted, None),
            Err(error) => {
                state.put_back(part);
                (state.fit(self.bounds), Some(error.to_string()))
            }
        };
        let moved = error.is_none();
        if moved {
            state.figures.dropped += super::number(evicted);
        }
        self.note(&mut state, error);
        self.show(&state);
        drop(state);
        self.count_dropped("full", evicted);
        self.filled.notify_one();
        moved
    }

    /// Reads the next lines from the disk, and notes there that those before are settled.
    pub(super) async fn load(&self, most: Bounds) {
        let Some(disk) = &self.disk else { return };
        let held = Arc::clone(disk).lock_owned().await;
        let (disk, (noted, read)) = with(held, move |disk| (disk.commit(), disk.read(most))).await;
        let mut state = self.lock();
        state.uncommitted = false;
        state.on_disk = disk.unread();
        let damaged = match read {
            Ok(lines) => {
                state.from_disk = !lines.is_empty();
                state.bytes += lines.iter().map(|line| line.len()).sum::<usize>();
                state.front.extend(lines);
                0
            }
            Err(Damage { lines, reason }) => {
                // Those before are settled, and nothing was read: what is in memory may be next.
                state.from_disk = false;
                tracing::error!(exporter = self.name, lines, reason, "a file of events cannot be read; they are lost");
                lines
            }
        };
        state.figures.dropped += super::number(damaged);
        if let Err(error) = noted {
            self.note(&mut state, Some(error.to_string()));
        }
        self.show(&state);
        let empty = state.waiting() == 0;
        drop(state);
        self.count_dropped("damaged", damaged);
        if empty {
            self.emptied.notify_waiters();
        }
    }

    /// Ends the queue: what still waits goes to the disk. Nothing is taken any more.
    pub(crate) async fn keep(&self) -> Kept {
        let Some(disk) = &self.disk else {
            let mut state = self.lock();
            state.closed = true;
            return Kept { on_disk: 0, lost: state.waiting() };
        };
        // With the disk in hand: nothing is on its way between it and the memory.
        let held = Arc::clone(disk).lock_owned().await;
        let (again, oldest, newest, settled) = {
            let mut state = self.lock();
            state.closed = true;
            let oldest: Vec<Line> = state.writing.iter().chain(&state.front).cloned().collect();
            let newest: Vec<Line> = state.lines.iter().cloned().collect();
            // What was read from the disk is read again by the next process.
            let (again, oldest) = if state.from_disk { (oldest.len(), Vec::new()) } else { (0, oldest) };
            (again, oldest, newest, state.uncommitted)
        };
        // Each whatever became of the others: lines that cannot be noted as settled are read twice, and cost no others.
        let work = move |disk: &mut Disk| {
            let noted = if settled { disk.commit() } else { Ok(()) };
            let first = if oldest.is_empty() { Ok(()) } else { disk.prepend(&oldest) };
            let last = if newest.is_empty() { Ok(()) } else { disk.append(&newest).map(drop) };
            noted.and(first).and(last)
        };
        let (disk, done) = with(held, work).await;
        let mut state = self.lock();
        let (on_disk, waited) = (disk.unread() + again, state.waiting());
        match done {
            Ok(()) => {
                (state.lines, state.front, state.writing) = Default::default();
                (state.bytes, state.on_disk) = (0, on_disk);
            }
            Err(error) => self.note(&mut state, Some(error.to_string())),
        }
        Kept { on_disk, lost: waited.saturating_sub(on_disk) }
    }

    /// Shows whether the disk can be used, and logs when that changes.
    fn note(&self, state: &mut State, error: Option<String>) {
        match &error {
            Some(reason) if state.figures.disk_error.is_none() => {
                tracing::error!(exporter = self.name, reason, "events cannot be kept on disk");
            }
            None if state.figures.disk_error.is_some() => {
                tracing::info!(exporter = self.name, "events are kept on disk again");
            }
            _ => {}
        }
        let failing = if error.is_some() { 1.0 } else { 0.0 };
        metrics::gauge!("palisade_exporter_disk_failing", "exporter" => self.name.clone()).set(failing);
        state.figures.disk_error = error;
    }
}

impl State {
    /// Takes the oldest of those that came last, for the disk.
    fn begin_to_move(&mut self, most: Bounds) -> Vec<Line> {
        let (mut part, mut bytes) = (Vec::new(), 0);
        while let Some(line) = self.lines.front() {
            bytes += line.len();
            if part.len() >= most.lines || (bytes > most.bytes && !part.is_empty()) {
                break;
            }
            self.bytes -= line.len();
            part.extend(self.lines.pop_front());
        }
        self.moving = part.len();
        part
    }

    fn put_back(&mut self, part: Vec<Line>) {
        for line in part.into_iter().rev() {
            self.bytes += line.len();
            self.lines.push_front(line);
        }
    }
}

/// Does work that blocks with the disk. The work goes on if the caller ends meanwhile.
async fn with<T: Send + 'static>(
    mut disk: OwnedMutexGuard<Disk>,
    work: impl FnOnce(&mut Disk) -> T + Send + 'static,
) -> (OwnedMutexGuard<Disk>, T) {
    let done = tokio::task::spawn_blocking(move || {
        let result = work(&mut disk);
        (disk, result)
    });
    match done.await {
        Ok(done) => done,
        // It has panicked, or the runtime ends.
        Err(_) => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests;
