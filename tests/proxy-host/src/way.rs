//! An exchange on its way through a VM.
//!
//! All of a request comes at once, whether the filter holds it or not; what is held goes on when the filter lets it. So an
//! exchange waits at two places at most: behind its request, and behind its response.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::abi::PAUSE;
use super::clusters::Word;
use super::load::ROOT;
use super::state::{Half, Phase, Stream};
use super::vm::{FILTER_DIED, Vm};
use crate::traffic::{Exchange, Fault, Headers, LocalReply, Outcome, Request, Response};

/// What the client gets where a filter held the exchange for too long.
const TIMED_OUT: u16 = 408;

/// An exchange that is over.
#[derive(Debug, Clone, PartialEq)]
pub struct Finished {
    /// What it was begun with.
    pub ticket: u64,
    /// What became of it. [`Outcome::events`] is empty: they are lines in its filter state.
    pub outcome: Outcome,
    /// The real time that it took.
    pub spent: Duration,
    /// What was not as it was recorded, a sentence each.
    pub notes: Vec<String>,
}

/// An exchange that is not over.
pub(super) struct Way {
    ticket: u64,
    /// The request line.
    line: String,
    /// What the backend answers.
    response: Response,
    outcome: Outcome,
    /// The body of the half that is under way, as far as the filter let it go on.
    sent: Vec<u8>,
    /// The half that is under way.
    answering: bool,
    /// When it began to wait, in milliseconds since the Unix epoch; and when it waits no more.
    waiting: Option<(u64, u64)>,
    spent: Duration,
}

/// What became of one direction of an exchange.
enum Passage {
    /// It went on, with these headers and this body.
    Open(Headers, Vec<u8>),
    /// The filter answered.
    Answered(LocalReply),
    /// It was reset, or held for ever.
    Ended,
}

impl Vm {
    /// Starts an exchange and lets it come as far as it does without waiting. Under its ticket it comes out of
    /// [`Vm::take_finished`], now or when the clock was moved.
    pub fn begin(&mut self, ticket: u64, exchange: &Exchange) {
        let began = Instant::now();
        let id = self.next_context;
        self.next_context = self.next_context.checked_add(1).unwrap_or(ROOT + 1);
        let started = self.node().now_nanos();
        self.store.data_mut().streams.insert(id, Stream::new(id, &exchange.request, started));
        let way = Way {
            ticket,
            line: exchange.request.line(),
            response: exchange.response.clone(),
            outcome: Outcome::default(),
            sent: Vec::new(),
            answering: false,
            waiting: None,
            spent: Duration::ZERO,
        };
        self.ways.insert(id, way);
        let result = self.open(id, &exchange.request);
        self.account(id, began, result);
        self.settle();
        self.note_effects();
    }

    /// Takes the exchanges that are over, in the order in which they ended.
    pub fn take_finished(&mut self) -> Vec<Finished> {
        std::mem::take(&mut self.finished)
    }

    /// How many exchanges the filter holds.
    #[must_use]
    pub fn under_way(&self) -> usize {
        self.ways.len()
    }

    /// Lets an exchange go on, if it may.
    pub(super) fn look_after(&mut self, id: u32) {
        let Some(way) = self.ways.get(&id).filter(|way| way.waiting.is_some()) else { return };
        let response = way.answering;
        let began = Instant::now();
        if let Some(passage) = self.passage(id, response) {
            let result = self.go_on(id, Some(passage));
            self.account(id, began, result);
        }
    }

    /// The exchange was held for too long.
    pub(super) fn give_up(&mut self, id: u32) {
        let began = Instant::now();
        if let Some(way) = self.ways.get_mut(&id) {
            way.outcome.stalled = true;
        }
        let result = self.go_on(id, Some(Passage::Ended));
        self.account(id, began, result);
    }

    /// Whether an exchange waits until a time.
    pub(super) fn waits(&self, id: u32, until: u64) -> bool {
        self.ways.get(&id).is_some_and(|way| way.waiting.is_some_and(|(_, end)| end == until))
    }

    /// The filter is dead: so is all that was under way in it.
    pub(super) fn die(&mut self, fault: &Fault, culprit: Option<u32>) {
        let line = culprit.and_then(|id| self.ways.get(&id)).map(|way| way.line.clone());
        let logs = self.take_logs();
        for (id, way) in std::mem::take(&mut self.ways) {
            let mut outcome = way.outcome;
            let message = match &line {
                Some(line) if culprit != Some(id) => format!("the filter held this one and died of another, {line}"),
                _ => fault.message.clone(),
            };
            outcome.fault = Some(Fault { callback: fault.callback.clone(), message, request: way.line });
            outcome.status = FILTER_DIED;
            outcome.filter_state = self.filter_state(id);
            if culprit.is_none_or(|culprit| culprit == id) {
                outcome.logs.clone_from(&logs);
            }
            self.finished.push(Finished { ticket: way.ticket, outcome, spent: way.spent, notes: Vec::new() });
        }
        let (worker, now) = (self.worker(), self.node().now_millis());
        if let Some(clusters) = &mut self.clusters {
            clusters.hear(worker, now, Word::Gone);
        }
        self.restart();
    }

    /// Counts the time, and the dead.
    fn account(&mut self, id: u32, began: Instant, result: Result<(), Fault>) {
        let spent = began.elapsed();
        if let Some(way) = self.ways.get_mut(&id) {
            way.spent += spent;
        } else if let Some(finished) = self.finished.last_mut() {
            // It has just ended.
            finished.spent += spent;
        }
        if let Err(fault) = result {
            self.die(&fault, Some(id));
        }
    }

    fn open(&mut self, id: u32, request: &Request) -> Result<(), Fault> {
        let create = self.callbacks.context_create.clone();
        self.call(&create, "on_context_create", id, (id, self.root()))?;
        let passage = self.feed(id, false, &request.body, !request.trailers.is_empty())?;
        self.go_on(id, passage)
    }

    /// From one half to the next and to the end, as far as nothing is held.
    fn go_on(&mut self, id: u32, mut passage: Option<Passage>) -> Result<(), Fault> {
        let now = self.node().now_millis();
        loop {
            let Some(way) = self.ways.get_mut(&id) else { return Ok(()) };
            let Some(passed) = passage else {
                let until = now.saturating_add(self.options.max_hold_millis);
                way.waiting = Some((now, until));
                self.deadlines.push_back((until, id));
                return Ok(());
            };
            if let Some((since, _)) = way.waiting.take() {
                way.outcome.held_millis += now - since;
            }
            let outcome = &mut way.outcome;
            if way.answering {
                match passed {
                    Passage::Open(headers, body) => (outcome.response_headers, outcome.body) = (headers, body),
                    // The answer to a response is not shown to the filters again.
                    Passage::Answered(reply) => {
                        (outcome.response_headers, outcome.body) = (local_reply_headers(&reply), reply.body.clone());
                        outcome.local_reply = Some(reply);
                    }
                    Passage::Ended => {}
                }
                let status = super::headers::get(&outcome.response_headers, b":status");
                // As the gateway does for its own answers; a backend sends none.
                if outcome.local_reply.is_some() && way.line.starts_with("HEAD ") {
                    outcome.body.clear();
                }
                outcome.status = status
                    .and_then(|status| std::str::from_utf8(status).ok()?.parse().ok())
                    .unwrap_or(if outcome.stalled { TIMED_OUT } else { 0 });
                return self.finish(id);
            }
            let (headers, body, trailers) = match passed {
                Passage::Open(headers, body) => {
                    outcome.reached_backend = true;
                    (outcome.request_headers, outcome.request_body) = (headers, body);
                    let Response { status, headers, body, trailers } = std::mem::take(&mut way.response);
                    let status = (b":status".to_vec(), status.to_string().into_bytes());
                    (std::iter::once(status).chain(headers).collect(), body, trailers)
                }
                Passage::Answered(reply) => {
                    let (head, body) = (local_reply_headers(&reply), reply.body.clone());
                    outcome.local_reply = Some(reply);
                    (head, body, Headers::new())
                }
                Passage::Ended => {
                    outcome.status = if outcome.stalled { TIMED_OUT } else { 0 };
                    return self.finish(id);
                }
            };
            way.answering = true;
            let has_trailers = !trailers.is_empty();
            if let Some(stream) = self.store.data_mut().streams.get_mut(&id) {
                stream.phase = Phase::Response;
                stream.response = Half { headers, trailers, ..Half::default() };
            }
            passage = self.feed(id, true, &body, has_trailers)?;
        }
    }

    /// One direction of an exchange: headers, the body in pieces, trailers. `None` where the filter holds it.
    fn feed(&mut self, id: u32, response: bool, body: &[u8], has_trailers: bool) -> Result<Option<Passage>, Fault> {
        let count = self.with(id, response, |half| {
            half.headers_open = true;
            half.headers.len()
        });
        let (function, name) = match response {
            false => (self.callbacks.request_headers.clone(), "on_request_headers"),
            true => (self.callbacks.response_headers.clone(), "on_response_headers"),
        };
        let last = body.is_empty() && !has_trailers;
        let action = self.call(&function, name, id, (id, count, u32::from(last)))?;
        if let Some(passage) = self.after(id, action, response) {
            return Ok(Some(passage));
        }
        let (function, name) = match response {
            false => (self.callbacks.request_body.clone(), "on_request_body"),
            true => (self.callbacks.response_body.clone(), "on_response_body"),
        };
        let pieces = body.chunks(self.options.chunk.max(1));
        let last = pieces.len().saturating_sub(1);
        for (number, piece) in pieces.enumerate() {
            let size = self.with(id, response, |half| {
                half.body_open = true;
                half.body.extend_from_slice(piece);
                half.body.len()
            });
            if usize::try_from(size).unwrap_or(usize::MAX) > self.options.buffer_limit {
                return Ok(Some(Passage::Answered(too_large(response))));
            }
            let end = u32::from(number == last && !has_trailers);
            let action = self.call(&function, name, id, (id, size, end))?;
            if let Some(passage) = self.after(id, action, response) {
                return Ok(Some(passage));
            }
        }
        if has_trailers {
            let count = self.with(id, response, |half| {
                half.trailers_open = true;
                half.trailers.len()
            });
            let (function, name) = match response {
                false => (self.callbacks.request_trailers.clone(), "on_request_trailers"),
                true => (self.callbacks.response_trailers.clone(), "on_response_trailers"),
            };
            if let Some(function) = function {
                let action = self.call(&function, name, id, (id, count))?;
                if let Some(passage) = self.after(id, action, response) {
                    return Ok(Some(passage));
                }
            }
        }
        Ok(self.passage(id, response))
    }

    /// What a callback decided; `None` where there is more to come or to wait for.
    fn after(&mut self, id: u32, action: u32, response: bool) -> Option<Passage> {
        let stream = self.store.data_mut().streams.get_mut(&id)?;
        if let Some(reply) = stream.local.take() {
            return Some(Passage::Answered(reply));
        }
        if stream.reset {
            return Some(Passage::Ended);
        }
        let half = stream.half(response);
        half.held = action == PAUSE && !std::mem::take(&mut half.resumed);
        if !half.held {
            half.release(&mut self.ways.get_mut(&id)?.sent);
        }
        None
    }

    /// Where all of one direction has come: how it goes on, or `None` where the filter holds it.
    fn passage(&mut self, id: u32, response: bool) -> Option<Passage> {
        let (Some(stream), Some(way)) = (self.store.data_mut().streams.get_mut(&id), self.ways.get_mut(&id)) else {
            return Some(Passage::Ended);
        };
        if let Some(reply) = stream.local.take() {
            return Some(Passage::Answered(reply));
        }
        if stream.reset {
            return Some(Passage::Ended);
        }
        let half = stream.half(response);
        if half.held && !std::mem::take(&mut half.resumed) {
            return None;
        }
        half.held = false;
        half.release(&mut way.sent);
        Some(Passage::Open(half.headers.clone(), std::mem::take(&mut way.sent)))
    }

    fn finish(&mut self, id: u32) -> Result<(), Fault> {
        if let Some(stream) = self.store.data_mut().streams.get_mut(&id) {
            stream.phase = Phase::Log;
        }
        if let Some(log) = self.callbacks.log.clone() {
            self.call(&log, "on_log", id, id)?;
        }
        // The gateway writes its logs first and takes the filters down then.
        if let Some(done) = self.callbacks.done.clone() {
            self.call(&done, "on_done", id, id)?;
        }
        if let Some(delete) = self.callbacks.delete.clone() {
            self.call(&delete, "on_delete", id, id)?;
        }
        let filter_state = self.filter_state(id);
        let logs = self.take_logs();
        // Whatever it called or opened ends with it.
        let state = self.store.data_mut();
        state.calls.retain(|_, (owner, _)| *owner != id);
        let listened = state.listened;
        let mut ended = Vec::new();
        state.grpc.iter_mut().filter(|stream| stream.context == id && !stream.closed).for_each(|stream| {
            stream.closed = true;
            ended.push(Word::Close { token: stream.token });
        });
        if listened {
            state.words.extend(ended);
        }
        if let Some(way) = self.ways.remove(&id) {
            let outcome = Outcome { filter_state, logs, ..way.outcome };
            self.finished.push(Finished { ticket: way.ticket, outcome, spent: way.spent, notes: Vec::new() });
        }
        Ok(())
    }

    /// Takes the filter state of an exchange, and the exchange out of the filter's reach.
    fn filter_state(&mut self, id: u32) -> BTreeMap<String, Vec<u8>> {
        let text = |path: Vec<u8>| String::from_utf8_lossy(&path).into_owned();
        let stream = self.store.data_mut().streams.remove(&id);
        let state = stream.map(|stream| stream.filter_state).unwrap_or_default();
        state.into_iter().map(|(path, value)| (text(path), value)).collect()
    }

    /// Changes one half of the exchange; the number that the closure gives is made a number of the ABI.
    fn with(&mut self, id: u32, response: bool, change: impl FnOnce(&mut Half) -> usize) -> u32 {
        let half = self.store.data_mut().streams.get_mut(&id).map(|stream| change(stream.half(response)));
        u32::try_from(half.unwrap_or(0)).unwrap_or(u32::MAX)
    }
}

impl Stream {
    fn new(id: u32, request: &Request, started_nanos: u64) -> Self {
        let half = Half { headers: request.headers.clone(), trailers: request.trailers.clone(), ..Half::default() };
        Self {
            id,
            phase: Phase::Request,
            request: half,
            response: Half::default(),
            protocol: request.protocol.clone(),
            peer: request.peer.clone(),
            destination: request.local.clone(),
            route: request.route.clone(),
            started_nanos,
            filter_state: BTreeMap::new(),
            local: None,
            reset: false,
        }
    }

    fn half(&mut self, response: bool) -> &mut Half {
        if response { &mut self.response } else { &mut self.request }
    }
}

impl Half {
    /// What was held goes on; the filter can reach it no more.
    fn release(&mut self, sent: &mut Vec<u8>) {
        sent.append(&mut self.body);
        (self.headers_open, self.body_open, self.trailers_open) = (false, false, false);
    }
}

/// The headers of an answer as the client gets them.
pub fn local_reply_headers(reply: &LocalReply) -> Headers {
    let mut headers = vec![(b":status".to_vec(), reply.status.to_string().into_bytes())];
    headers.extend(reply.headers.iter().cloned());
    if !reply.body.is_empty() && super::headers::get(&headers, b"content-length").is_none() {
        headers.push((b"content-length".to_vec(), reply.body.len().to_string().into_bytes()));
    }
    headers
}

/// The gateway's own answer where more is held back than it buffers.
fn too_large(response: bool) -> LocalReply {
    let (status, details) = match response {
        false => (413, "request_payload_too_large"),
        true => (500, "response_payload_too_large"),
    };
    LocalReply { status, details: details.to_owned(), headers: Vec::new(), body: Vec::new() }
}
