//! The ends of the way: what takes batches of lines, and the loop that gives them.
//!
//! [`run`] moves batches from a queue to a [`Sink`] and tries again what failed; [`elasticsearch`], [`file`], [`kafka`], [`otlp`],
//! [`stdout`], [`syslog`] and [`webhook`] are the sinks; [`lines`] writes lines so that none is torn, [`server`] speaks to those that are reached over
//! HTTP, [`parts`] divides what is too large for them, and [`facts`] are what they need to know of an event.

mod backoff;
mod ecs;
pub(super) mod elasticsearch;
mod facts;
pub(super) mod file;
mod formatted;
pub(super) mod kafka;
mod lines;
pub(super) mod otlp;
mod parts;
mod run;
pub(super) mod server;
pub(super) mod stdout;
pub(super) mod stored;
pub(super) mod syslog;
pub(super) mod webhook;

use std::time::Duration;

use super::queue::{Bounds, Line};

pub use backoff::Backoff;
pub(super) use formatted::Formatted;
pub(super) use run::{Notices, run};

/// Takes batches of lines.
pub(super) trait Sink: Send + 'static {
    /// The largest batch.
    const BATCH: Bounds;

    /// Writes a batch, in its order.
    fn write(&mut self, batch: &[Line]) -> impl Future<Output = Result<(), Failure>> + Send;
}

/// A batch was not written, or not all of it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Failure {
    /// So many of the first lines are written nonetheless, or refused.
    pub(super) written: usize,
    /// So many of those are refused by themselves: they would be refused again.
    pub(super) refused: usize,
    /// Why, for people.
    pub(super) reason: String,
    pub(super) then: Then,
}

/// What to do with the lines that are not written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Then {
    /// Try again, after this time where the other side has named one.
    Retry(Option<Duration>),
    /// Give them up: they would fail again.
    Drop,
}

/// The name of this machine; empty where it has none.
fn host_name() -> String {
    std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default().trim().to_owned()
}
