//! A sink whose events are in another format than the queue's.

use super::{Failure, Sink};
use crate::format::EventFormat;
use crate::queue::{Bounds, Line};
use base::clock;

/// Gives a sink its events in a format.
#[derive(Debug)]
pub(crate) struct Formatted<S> {
    sink: S,
    format: EventFormat,
}

impl<S: Sink> Formatted<S> {
    pub(crate) fn new(sink: S, format: EventFormat) -> Formatted<S> {
        Formatted { sink, format }
    }
}

impl<S: Sink> Sink for Formatted<S> {
    const BATCH: Bounds = S::BATCH;

    async fn write(&mut self, batch: &[Line]) -> Result<(), Failure> {
        let now = clock::now_millis();
        let lines: Vec<Line> = batch.iter().map(|line| self.format.line(line, now)).collect();
        self.sink.write(&lines).await
    }
}
