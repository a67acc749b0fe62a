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

    /// Waits until all that they were given is written or lost.
    pub(super) async fn drained(&self) {
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
