//! The way of an event through the control plane.

use std::sync::{Arc, Mutex, PoisonError};

use serde::Serialize;

use super::audit::Audit;
use super::event::{self, EventError};
use super::exporter::Exporter;
use super::incidents::{Incident, Incidents};
use super::queue::Queue;

/// The most lines that wait for one exporter.
const QUEUE: usize = 10_000;

/// Takes events, exports them, and keeps the incidents. Clones share one state.
#[derive(Clone, Debug)]
pub struct EventHub {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    exporters: Vec<(String, Arc<Queue>, tokio::task::JoinHandle<()>)>,
    incidents: Mutex<Incidents>,
    clock: fn() -> u64,
}

/// How an exporter is doing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ExporterStatus {
    /// Its name.
    pub name: String,
    /// Events that wait.
    pub waiting: usize,
    /// Events that were written.
    pub written: u64,
    /// Events that were lost, because it was too slow or failed.
    pub dropped: u64,
    /// Why the last attempt failed; none where it did not.
    pub error: Option<String>,
}

impl EventHub {
    /// A hub that exports to `exporters` and takes the time, in milliseconds since the Unix epoch, from `clock`. Must be
    /// called within a tokio runtime: each exporter gets a task.
    #[must_use]
    pub fn new(exporters: Vec<Exporter>, clock: fn() -> u64) -> EventHub {
        let start = |exporter: Exporter| {
            let queue = Arc::new(Queue::new(QUEUE));
            (exporter.name(), queue.clone(), tokio::spawn(exporter.run(queue)))
        };
        let exporters = exporters.into_iter().map(start).collect();
        EventHub { inner: Arc::new(Inner { exporters, incidents: Mutex::default(), clock }) }
    }

    /// Takes one event, as JSON. Never waits: an exporter that is too slow loses its oldest events.
    ///
    /// # Errors
    ///
    /// [`EventError`] where the bytes are no event; nothing is exported then.
    pub fn publish(&self, bytes: &[u8]) -> Result<(), EventError> {
        let checked = event::check(bytes).inspect_err(|_| {
            metrics::counter!("palisade_events_total", "outcome" => "refused").increment(1);
        })?;
        metrics::counter!("palisade_events_total", "outcome" => "taken").increment(1);
        if let Some(security) = checked.security {
            let now = (self.inner.clock)();
            self.inner.incidents.lock().unwrap_or_else(PoisonError::into_inner).record(security, now);
        }
        self.export(checked.line);
        Ok(())
    }

    /// Exports what was done to the control plane, with an id and the time. Never waits, as [`EventHub::publish`], which
    /// takes no such event: a node that is in other hands must not say what operators have done.
    pub fn audit(&self, audit: Audit) {
        let (id, _) = uuid::Uuid::new_v4().as_u64_pair();
        let event = audit.event(id, (self.inner.clock)());
        metrics::counter!("palisade_events_total", "outcome" => "audited").increment(1);
        self.export(event.to_string().into_bytes());
    }

    fn export(&self, line: Vec<u8>) {
        let line: Arc<[u8]> = line.into();
        for (name, queue, _) in &self.inner.exporters {
            if !queue.push(line.clone()) {
                metrics::counter!("palisade_events_dropped_total", "exporter" => name.clone()).increment(1);
            }
        }
    }

    /// The incidents, the most recent first.
    #[must_use]
    pub fn incidents(&self) -> Vec<Incident> {
        let now = (self.inner.clock)();
        self.inner.incidents.lock().unwrap_or_else(PoisonError::into_inner).list(now)
    }

    /// How each exporter is doing.
    #[must_use]
    pub fn exporters(&self) -> Vec<ExporterStatus> {
        let exporters = self.inner.exporters.iter();
        exporters
            .map(|(name, queue, _)| {
                let (waiting, written, dropped, error) = queue.figures();
                ExporterStatus { name: name.clone(), waiting, written, dropped, error }
            })
            .collect()
    }

    /// Waits until every event that was taken is written or lost: before the process ends.
    pub async fn flush(&self) {
        for (_, queue, _) in &self.inner.exporters {
            queue.drained().await;
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        for (_, _, task) in &self.exporters {
            task.abort();
        }
    }
}
