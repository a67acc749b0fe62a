//! From a queue to a sink, for as long as the task lives.

use std::sync::Arc;

use super::{Backoff, Failure, Sink, Then};
use crate::dependency::dependency;
use crate::queue::{Queue, Settled};
use base::clock::Stopwatch;

/// Tells when an exporter begins to fail and when it works again: once each, in the log and to the other exporters.
#[derive(Debug)]
pub(crate) struct Notices {
    pub(crate) others: Vec<Arc<Queue>>,
    pub(crate) clock: fn() -> u64,
}

/// Moves what comes through `queue` to `sink`.
pub(crate) async fn run<S: Sink>(mut sink: S, queue: Arc<Queue>, mut backoff: Backoff, notices: Notices) {
    let mut failing = false;
    notices.show(&queue, failing);
    loop {
        let mut batch = queue.take(S::BATCH).await;
        let watch = Stopwatch::start();
        let result = sink.write(&batch).await;
        metrics::histogram!("palisade_exporter_write_seconds", "exporter" => queue.name().to_owned())
            .record(watch.seconds());
        let Failure { written, refused, reason, then } = match result {
            Ok(()) => {
                backoff.reset();
                if failing {
                    failing = false;
                    notices.recovered(&queue);
                }
                queue.settle(Settled { written: batch.len(), ..Settled::default() });
                continue;
            }
            Err(failure) => failure,
        };
        if !failing {
            failing = true;
            notices.failing(&queue, &reason, then);
        }
        let back = batch.split_off(written.min(batch.len()));
        let (written, error) = (batch.len().saturating_sub(refused), Some(reason));
        match then {
            Then::Drop => {
                backoff.reset();
                queue.settle(Settled { written, refused: refused + back.len(), error, ..Settled::default() });
            }
            Then::Retry(after) => {
                // Before the lines are back: who hurries once they are is heard.
                let hurried = queue.hurried();
                tokio::pin!(hurried);
                queue.settle(Settled { written, refused, back, error });
                let wait = after.unwrap_or_else(|| backoff.next_wait());
                tokio::select! {
                    () = tokio::time::sleep(wait) => {}
                    () = hurried => {}
                }
            }
        }
    }
}

impl Notices {
    fn failing(&self, queue: &Queue, reason: &str, then: Then) {
        let exporter = queue.name();
        self.show(queue, true);
        match then {
            Then::Retry(_) => {
                tracing::warn!(
                    exporter,
                    reason,
                    "events cannot be exported; they are queued, the oldest are lost first"
                )
            }
            Then::Drop => tracing::warn!(exporter, reason, "events are refused and lost"),
        }
        self.tell(&format!("the exporter {exporter} fails: {reason}"));
    }

    fn recovered(&self, queue: &Queue) {
        let exporter = queue.name();
        self.show(queue, false);
        let figures = queue.figures();
        tracing::info!(exporter, dropped = figures.dropped, "events are exported again");
        self.tell(&format!("the exporter {exporter} works again; {} events were lost so far", figures.dropped));
    }

    fn show(&self, queue: &Queue, failing: bool) {
        let value = if failing { 1.0 } else { 0.0 };
        metrics::gauge!("palisade_exporter_failing", "exporter" => queue.name().to_owned()).set(value);
    }

    fn tell(&self, message: &str) {
        let event = dependency((self.clock)(), "exporter", None, message).to_string();
        for other in &self.others {
            other.push(event.as_bytes().into());
        }
    }
}

#[cfg(test)]
mod tests;
