//! Traces of Envoy's tap filter.

pub(crate) mod json;
mod messages;
pub(crate) mod proto;
mod streamed;
mod trace;

use std::collections::VecDeque;
use std::io::BufRead;

use crate::{BadEntry, Entry, Input};

use streamed::Streamed;
pub(crate) use trace::{Body, Buffered, Message, Piece, Trace};

/// The entries of a file of traces. The number of an entry is that of its trace, or of its trace's first segment.
pub(crate) struct Tap<S> {
    /// Its bytes are in the source.
    input: Input,
    source: Option<S>,
    streamed: Streamed,
    ready: VecDeque<Result<Entry, BadEntry>>,
    number: u64,
}

impl<S: Iterator<Item = Result<Trace, String>>> Tap<S> {
    pub(crate) fn new(mut input: Input, source: impl Fn(Box<dyn BufRead + Send>, usize) -> S) -> Self {
        let bytes = std::mem::replace(&mut input.bytes, Box::new(std::io::empty()));
        let source = Some(source(bytes, input.limit));
        let streamed = Streamed::new(input.limit);
        Self { input, source, streamed, ready: VecDeque::new(), number: 0 }
    }

    fn take(&mut self, trace: Result<Trace, String>) {
        let done = match trace {
            Ok(Trace::Buffered(buffered)) => vec![(self.number, Ok((*buffered, Vec::new())))],
            Ok(Trace::Segment { id, piece }) => self.streamed.add(id, self.number, piece),
            Ok(Trace::Socket) => {
                vec![(self.number, Err("a trace of a socket: only traces of HTTP are read".to_owned()))]
            }
            Ok(Trace::Nothing) => vec![(self.number, Err("a trace without an HTTP exchange in it".to_owned()))],
            Err(why) => vec![(self.number, Err(why))],
        };
        self.put(done);
    }

    fn put(&mut self, done: Vec<streamed::Done>) {
        for (number, trace) in done {
            let place = self.input.place(number);
            let entry = trace.and_then(|(trace, notes)| trace.entry(place.clone(), &self.input.peer, notes));
            self.ready.push_back(entry.map_err(|why| BadEntry { place, why }));
        }
    }
}

impl<S: Iterator<Item = Result<Trace, String>>> Iterator for Tap<S> {
    type Item = Result<Entry, BadEntry>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(ready) = self.ready.pop_front() {
                return Some(ready);
            }
            match self.source.as_mut()?.next() {
                Some(trace) => {
                    self.number += 1;
                    self.take(trace);
                }
                None => {
                    self.source = None;
                    let done = self.streamed.finish();
                    self.put(done);
                    return self.ready.pop_front();
                }
            }
        }
    }
}
