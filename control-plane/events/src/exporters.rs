//! The exporters of a control plane, each with its queue and its tasks.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::Serialize;
use tokio::task::JoinHandle;

use super::exporter::Exporter;
use super::format::EventFormat;
use super::queue::{Bounds, Figures, Kept, Line, Queue};
use super::sinks::Notices;
use super::spill::{self, Spill, SpillError};

/// What waits for one exporter in memory, at most.
const QUEUE: Bounds = Bounds { lines: 10_000, bytes: 64 << 20 };

/// All exporters; they end when it is dropped.
#[derive(Debug)]
pub(super) struct Exporters(Vec<Running>);

#[derive(Debug)]
struct Running {
    queue: Arc<Queue>,
    tasks: [JoinHandle<()>; 2],
}

/// What every exporter was given up to a moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Mark(Vec<u64>);

/// How an exporter is doing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ExporterStatus {
    /// Its name.
    pub name: String,
    /// Events that wait, those that are being written included.
    pub waiting: usize,
    /// So many of them are on disk.
    pub on_disk: usize,
    /// Events that were written.
    pub written: u64,
    /// Events that were lost: there was no room for them, they were refused, or a file of them is damaged.
    pub dropped: u64,
    /// Attempts that failed and were or will be made again.
    pub retries: u64,
    /// Why the last attempt failed; none where it did not.
    pub error: Option<String>,
    /// Why events cannot be kept on disk; none where they can, or are not to be.
    pub disk_error: Option<String>,
}

impl Exporters {
    /// Starts them. With `spill`, those over the network keep events on disk.
    pub(super) fn start(
        exporters: Vec<Exporter>,
        format: EventFormat,
        spill: Option<&Spill>,
        clock: fn() -> u64,
    ) -> Result<Exporters, SpillError> {
        let names = names(&exporters);
        let queues = match spill {
            Some(spill) => spill::queues(&exporters, names, QUEUE, spill)?,
            None => in_memory(names),
        };
        Ok(Exporters::run(exporters, queues, format, clock))
    }

    /// [`Exporters::start`] with the format of gateways, and nothing on disk.
    pub(super) fn in_memory(exporters: Vec<Exporter>, clock: fn() -> u64) -> Exporters {
        let queues = in_memory(names(&exporters));
        Exporters::run(exporters, queues, EventFormat::default(), clock)
    }

    fn run(exporters: Vec<Exporter>, queues: Vec<Queue>, format: EventFormat, clock: fn() -> u64) -> Exporters {
        let queues: Vec<Arc<Queue>> = queues.into_iter().map(Arc::new).collect();
        let start = |(exporter, queue): (Exporter, &Arc<Queue>)| {
            let others = queues.iter().filter(|other| !Arc::ptr_eq(queue, other)).cloned().collect();
            let exporting = exporter.run(Arc::clone(queue), format, Notices { others, clock });
            let tasks = [tokio::spawn(exporting), tokio::spawn(Arc::clone(queue).spill())];
            Running { queue: Arc::clone(queue), tasks }
        };
        Exporters(exporters.into_iter().zip(&queues).map(start).collect())
    }

    /// Gives an event to all.
    pub(super) fn export(&self, line: &Line) {
        for queue in self.queues() {
            queue.push(Arc::clone(line));
        }
    }

    /// What they were given so far.
    pub(super) fn mark(&self) -> Mark {
        Mark(self.queues().map(Queue::pushed).collect())
    }

    /// Whether each of them has written, lost or on disk what it was given up to a mark.
    pub(super) fn has_passed(&self, mark: &Mark) -> bool {
        self.queues().zip(&mark.0).all(|(queue, given)| queue.finished() >= *given)
    }

    pub(super) fn statuses(&self) -> Vec<ExporterStatus> {
        let status = |queue: &Queue| {
            let Figures { waiting, on_disk, written, dropped, retries, error, disk_error } = queue.figures();
            let name = queue.name().to_owned();
            ExporterStatus { name, waiting, on_disk, written, dropped, retries, error, disk_error }
        };
        self.queues().map(status).collect()
    }

    /// Waits until all that they were given is written or lost. One that waits to try again does so now, also while another one does not
    /// come to an end.
    pub(super) async fn drained(&self) {
        self.queues().for_each(Queue::hurry);
        for queue in self.queues() {
            queue.drained().await;
        }
    }

    /// Ends them. What still waits goes to the disk where there is one; the rest is lost. Logs both.
    pub(super) async fn close(&self) {
        for queue in self.queues() {
            let (exporter, Kept { on_disk, lost }) = (queue.name(), queue.keep().await);
            if on_disk > 0 {
                tracing::info!(exporter, on_disk, "events are on disk, and are exported after the next start");
            }
            if lost > 0 {
                tracing::warn!(exporter, lost, "events could not be exported in time and are lost");
            }
        }
    }

    fn queues(&self) -> impl Iterator<Item = &Queue> {
        self.0.iter().map(|running| &*running.queue)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

fn in_memory(names: Vec<String>) -> Vec<Queue> {
    names.into_iter().map(|name| Queue::new(name, QUEUE)).collect()
}

/// A name for each; those of the same kind and place are numbered.
fn names(exporters: &[Exporter]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for exporter in exporters {
        let name = exporter.name();
        let same = names.iter().filter(|other| other.split('#').next() == Some(name.as_str())).count();
        names.push(if same == 0 { name } else { format!("{name}#{}", same + 1) });
    }
    names
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::sinks::{self, Backoff, Failure, Sink, Then};

    /// Fails once, and has to be hurried then.
    struct Once(bool);

    impl Sink for Once {
        const BATCH: Bounds = Bounds { lines: 10, bytes: 100 };

        async fn write(&mut self, _batch: &[Line]) -> Result<(), Failure> {
            if std::mem::replace(&mut self.0, true) {
                return Ok(());
            }
            let then = Then::Retry(Some(Duration::from_secs(3600)));
            Err(Failure { written: 0, refused: 0, reason: "down".to_owned(), then })
        }
    }

    #[tokio::test(start_paused = true)]
    async fn one_that_is_dead_keeps_no_other_from_its_last_attempt() {
        let queues = ["dead", "works"].map(|name| Arc::new(Queue::new(name.to_owned(), QUEUE)));
        let notices = Notices { others: Vec::new(), clock: || 0 };
        let exporting = sinks::run(Once(false), Arc::clone(&queues[1]), Backoff::default(), notices);
        let idle = || tokio::spawn(std::future::pending());
        let tasks = [[idle(), idle()], [tokio::spawn(exporting), idle()]];
        let running = queues.iter().zip(tasks).map(|(queue, tasks)| Running { queue: Arc::clone(queue), tasks });
        let exporters = Exporters(running.collect());
        exporters.export(&Line::from(b"event".as_slice()));
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert!(tokio::time::timeout(Duration::from_secs(5), exporters.drained()).await.is_err());
        let written = exporters.statuses().into_iter().map(|status| status.written).collect::<Vec<_>>();
        assert_eq!(written, [0, 1]);
    }
}
