//! From a queue to a sink, for as long as the task lives.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::{Backoff, Failure, Sink, Then};
use crate::dependency::dependency;
use crate::queue::{Queue, Settled};
use base::clock::Stopwatch;

/// How many events an exporter refuses in a row before it fails: one that takes the others works.
const MANY: usize = 10;
/// How often refused events are logged, at most.
const SILENCE: Duration = Duration::from_secs(60);

/// Tells when an exporter begins to fail and when it works again: once each, in the log and to the other exporters.
#[derive(Debug)]
pub(crate) struct Notices {
    pub(crate) others: Vec<Arc<Queue>>,
    pub(crate) clock: fn() -> u64,
}

/// Moves what comes through `queue` to `sink`.
pub(crate) async fn run<S: Sink>(mut sink: S, queue: Arc<Queue>, mut backoff: Backoff, notices: Notices) {
    let mut failing = false;
    let mut refusals = Refusals::default();
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
                refusals.in_a_row = 0;
                if std::mem::replace(&mut failing, false) {
                    notices.recovered(&queue);
                }
                queue.settle(Settled { written: batch.len(), ..Settled::default() });
                continue;
            }
            Err(failure) => failure,
        };
        let all = batch.len();
        let back = batch.split_off(written.min(all));
        let written = batch.len().saturating_sub(refused);
        let fails = match then {
            Then::Retry(_) => Some(true),
            Then::Drop => refusals.judge(written, all, back.is_empty()),
        };
        match fails {
            Some(true) if !failing => notices.failing(&queue, &reason, then),
            Some(false) if failing => notices.recovered(&queue),
            _ => {}
        }
        failing = fails.unwrap_or(failing);
        if fails != Some(true) && refusals.is_news() {
            tracing::warn!(exporter = queue.name(), reason, "events are refused and lost; others are exported");
        }
        let error = Some(reason);
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

/// Events that an exporter has refused, while it may have taken others.
#[derive(Debug, Default)]
struct Refusals {
    /// Since it has last taken one.
    in_a_row: usize,
    /// When it was logged.
    told: Option<Instant>,
}

impl Refusals {
    /// Whether the exporter fails that has written so many of a batch and refused the others, `each` of them by itself or the batch as a
    /// whole; `None` where too few are refused to know. One event must not make it fail and work again all the time.
    fn judge(&mut self, written: usize, all: usize, each: bool) -> Option<bool> {
        self.in_a_row = if written > 0 { 0 } else { self.in_a_row.saturating_add(all) };
        match written {
            0 if each && self.in_a_row < MANY => None,
            _ => Some(written == 0),
        }
    }

    /// Whether nothing was logged for a while. It is about to be.
    fn is_news(&mut self) -> bool {
        let now = Instant::now();
        let news = self.told.is_none_or(|told| now.duration_since(told) >= SILENCE);
        if news {
            self.told = Some(now);
        }
        news
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
