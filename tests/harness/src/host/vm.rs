//! One instance of a module, and an exchange on its way through it.

use wasmtime::{Store, TypedFunc, WasmParams, WasmResults};

use super::abi::PAUSE;
use super::load::{Callbacks, LoadError, Module, ROOT, fault, start};
use super::node::Node;
use super::state::{GrpcStream, Half, Phase, State, Stream};
use crate::traffic::{Exchange, Fault, Headers, LocalReply, LogLine, Outcome, Request, events};

/// How exchanges reach the filter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// Bodies come in pieces of so many bytes.
    pub chunk: usize,
    /// The most bytes that are held back; a longer request is answered with 413, a longer response with 500.
    pub buffer_limit: usize,
    /// The longest that a filter may hold an exchange, in milliseconds of the node's clock.
    pub max_hold_millis: u64,
}

impl Default for Options {
    /// Pieces of 16 KiB, buffers of 8 MiB, five minutes (the gateway's idle timeout).
    fn default() -> Self {
        Self { chunk: 16 << 10, buffer_limit: 8 << 20, max_hold_millis: 300_000 }
    }
}

/// One VM with one configuration: a worker's.
///
/// A filter that dies is started anew with the same configuration; what it kept in its own memory is lost, what it
/// shared with the node is not.
pub struct Vm {
    module: Module,
    store: Store<State>,
    callbacks: Callbacks,
    next_context: u32,
    options: Options,
}

/// What the client gets from a filter that died.
const FILTER_DIED: u16 = 503;
/// What the client gets where a filter held the exchange for too long.
const TIMED_OUT: u16 = 408;

impl Vm {
    /// Starts a module with a configuration on a node.
    ///
    /// # Errors
    ///
    /// The module is no proxy-wasm filter, died while it started, or refuses the configuration; with what it logged.
    pub fn load(module: &Module, configuration: &[u8], node: &Node) -> Result<Self, LoadError> {
        Self::with_options(module, configuration, node, Options::default())
    }

    /// [`Vm::load`] with options.
    ///
    /// # Errors
    ///
    /// As [`Vm::load`].
    pub fn with_options(
        module: &Module,
        configuration: &[u8],
        node: &Node,
        options: Options,
    ) -> Result<Self, LoadError> {
        let (store, callbacks) = start(module, configuration, node)?;
        Ok(Self { module: module.clone(), store, callbacks, next_context: ROOT + 1, options })
    }

    /// The node that this VM is a worker of.
    #[must_use]
    pub fn node(&self) -> &Node {
        &self.store.data().node
    }

    /// The gRPC streams that the filter has opened so far.
    #[must_use]
    pub fn grpc_streams(&self) -> &[GrpcStream] {
        &self.store.data().grpc
    }

    /// Takes what the filter has sent on its gRPC streams since the last call, and forgets the streams that are closed.
    /// A long run that never asks keeps all of it in memory.
    pub fn take_grpc_messages(&mut self) -> Vec<GrpcStream> {
        let streams = &mut self.store.data_mut().grpc;
        let taken = streams.clone();
        streams.retain_mut(|stream| {
            stream.sent.clear();
            !stream.closed
        });
        taken
    }

    /// What was logged outside of exchanges since the last call, or since the start.
    pub fn take_logs(&mut self) -> Vec<LogLine> {
        std::mem::take(&mut self.store.data_mut().logs)
    }

    /// The size of the filter's memory in bytes.
    #[must_use]
    pub fn memory_size(&self) -> usize {
        self.store.data().memory.map_or(0, |memory| memory.data_size(&self.store))
    }

    /// How long the thread ran for the filter to take its configuration: the module was compiled before.
    #[must_use]
    pub fn configured_in(&self) -> std::time::Duration {
        self.store.data().configured_in
    }

    /// Moves the node's clock on and runs the timers on its way, each at its time.
    ///
    /// # Errors
    ///
    /// The filter died of a timer; it was started anew.
    pub fn advance(&mut self, millis: u64) -> Result<(), Fault> {
        let end = self.node().now_millis().saturating_add(millis);
        while let Some(due) = self.next_tick().filter(|due| *due <= end) {
            let now = self.node().now_millis().max(due);
            self.node().set_now_millis(now);
            self.run_timers()?;
        }
        self.node().set_now_millis(end);
        Ok(())
    }

    /// Delivers a message on a gRPC stream that the filter opened.
    ///
    /// # Errors
    ///
    /// The filter died of it; it was started anew.
    pub fn deliver(&mut self, token: u32, message: &[u8]) -> Result<(), Fault> {
        let Some(context) = self.grpc_context(token) else { return Ok(()) };
        let size = u32::try_from(message.len()).unwrap_or(u32::MAX);
        self.store.data_mut().grpc_message = Some(message.to_vec());
        let result = self.call_by_name("proxy_on_grpc_receive", context, (context, token, size));
        self.store.data_mut().grpc_message = None;
        self.guard(result)
    }

    /// Ends a gRPC stream from the other side, with a gRPC status.
    ///
    /// # Errors
    ///
    /// The filter died of it; it was started anew.
    pub fn close_grpc(&mut self, token: u32, status: u32) -> Result<(), Fault> {
        let Some(context) = self.grpc_context(token) else { return Ok(()) };
        if let Some(stream) = self.store.data_mut().grpc.iter_mut().find(|stream| stream.token == token) {
            stream.closed = true;
        }
        let result = self.call_by_name("proxy_on_grpc_close", context, (context, token, status));
        self.guard(result)
    }

    /// Runs one exchange from its first header to its log. A filter that dies of it is started anew.
    pub fn exchange(&mut self, exchange: &Exchange) -> Outcome {
        let mut outcome = self.pass(exchange);
        outcome.events = events(&outcome.filter_state);
        outcome
    }

    /// [`Vm::exchange`] for measurements: [`Outcome::events`] stays empty, because reading them back takes a good part of
    /// what the filter takes to write them.
    pub fn pass(&mut self, exchange: &Exchange) -> Outcome {
        let mut outcome = Outcome::default();
        let result = self.run_due_timers().and_then(|()| self.run(exchange, &mut outcome));
        if let Err(fault) = result {
            let request = exchange.request.line();
            outcome.status = FILTER_DIED;
            outcome.fault = Some(Fault { request, ..fault });
        }
        if let Some(stream) = self.store.data_mut().stream.take() {
            let text = |path: Vec<u8>| String::from_utf8_lossy(&path).into_owned();
            outcome.filter_state = stream.filter_state.into_iter().map(|(path, value)| (text(path), value)).collect();
        }
        outcome.logs = self.take_logs();
        if outcome.fault.is_some() {
            self.restart();
        }
        outcome
    }

    fn run(&mut self, exchange: &Exchange, outcome: &mut Outcome) -> Result<(), Fault> {
        let id = self.next_context;
        self.next_context = self.next_context.checked_add(1).unwrap_or(ROOT + 1);
        let started = self.node().now_nanos();
        self.store.data_mut().stream = Some(Stream::new(id, &exchange.request, started));
        let create = self.callbacks.context_create.clone();
        self.call(&create, "on_context_create", id, (id, ROOT))?;

        let request = &exchange.request;
        let went_on = self.half(id, false, &request.body, !request.trailers.is_empty(), outcome)?;
        let (headers, body, trailers) = match went_on {
            Passage::Open(headers, body) => {
                outcome.reached_backend = true;
                (outcome.request_headers, outcome.request_body) = (headers, body);
                let response = &exchange.response;
                let status = (b":status".to_vec(), response.status.to_string().into_bytes());
                let headers = std::iter::once(status).chain(response.headers.iter().cloned()).collect();
                (headers, response.body.clone(), response.trailers.clone())
            }
            Passage::Answered(reply) => {
                let head = local_reply_headers(&reply);
                let body = reply.body.clone();
                outcome.local_reply = Some(reply);
                (head, body, Vec::new())
            }
            Passage::Ended => {
                outcome.status = if outcome.stalled { TIMED_OUT } else { 0 };
                return self.finish(id);
            }
        };

        if let Some(stream) = &mut self.store.data_mut().stream {
            stream.phase = Phase::Response;
            stream.response = Half { headers, trailers, ..Half::default() };
        }
        let has_trailers = outcome.local_reply.is_none() && !exchange.response.trailers.is_empty();
        match self.half(id, true, &body, has_trailers, outcome)? {
            Passage::Open(headers, body) => (outcome.response_headers, outcome.body) = (headers, body),
            // The answer to a response is not shown to the filters again.
            Passage::Answered(reply) => {
                (outcome.response_headers, outcome.body) = (local_reply_headers(&reply), reply.body.clone());
                outcome.local_reply = Some(reply);
            }
            Passage::Ended => {}
        }
        let status = super::headers::get(&outcome.response_headers, b":status");
        outcome.status = status
            .and_then(|status| std::str::from_utf8(status).ok()?.parse().ok())
            .unwrap_or(if outcome.stalled { TIMED_OUT } else { 0 });
        self.finish(id)
    }

    /// One direction of an exchange: headers, the body in pieces, trailers.
    fn half(
        &mut self,
        id: u32,
        response: bool,
        body: &[u8],
        has_trailers: bool,
        outcome: &mut Outcome,
    ) -> Result<Passage, Fault> {
        let mut sent = Vec::new();
        let count = self.with(response, |half| {
            half.headers_open = true;
            half.headers.len()
        });
        let (function, name) = match response {
            false => (self.callbacks.request_headers.clone(), "on_request_headers"),
            true => (self.callbacks.response_headers.clone(), "on_response_headers"),
        };
        let last = body.is_empty() && !has_trailers;
        let action = self.call(&function, name, id, (id, count, u32::from(last)))?;
        if let Some(passage) = self.after(action, response, &mut sent) {
            return Ok(passage);
        }
        let (function, name) = match response {
            false => (self.callbacks.request_body.clone(), "on_request_body"),
            true => (self.callbacks.response_body.clone(), "on_response_body"),
        };
        let pieces = body.chunks(self.options.chunk.max(1));
        let last = pieces.len().saturating_sub(1);
        for (number, piece) in pieces.enumerate() {
            let size = self.with(response, |half| {
                half.body_open = true;
                half.body.extend_from_slice(piece);
                half.body.len()
            });
            if to_usize(size) > self.options.buffer_limit {
                return Ok(Passage::Answered(too_large(response)));
            }
            let end = u32::from(number == last && !has_trailers);
            let action = self.call(&function, name, id, (id, size, end))?;
            if let Some(passage) = self.after(action, response, &mut sent) {
                return Ok(passage);
            }
        }
        if has_trailers {
            let count = self.with(response, |half| {
                half.trailers_open = true;
                half.trailers.len()
            });
            let (function, name) = match response {
                false => (self.callbacks.request_trailers.clone(), "on_request_trailers"),
                true => (self.callbacks.response_trailers.clone(), "on_response_trailers"),
            };
            if let Some(function) = function {
                let action = self.call(&function, name, id, (id, count))?;
                if let Some(passage) = self.after(action, response, &mut sent) {
                    return Ok(passage);
                }
            }
        }
        self.wait(response, &mut sent, outcome)
    }

    /// What a callback decided; `None` where there is more to come or to wait for.
    fn after(&mut self, action: u32, response: bool, sent: &mut Vec<u8>) -> Option<Passage> {
        let stream = self.store.data_mut().stream.as_mut()?;
        if let Some(reply) = stream.local.take() {
            return Some(Passage::Answered(reply));
        }
        if stream.reset {
            return Some(Passage::Ended);
        }
        let half = stream.half(response);
        half.held = action == PAUSE && !std::mem::take(&mut half.resumed);
        if !half.held {
            half.release(sent);
        }
        None
    }

    /// Lets time pass until the filter lets the exchange go on, where it does not yet.
    fn wait(&mut self, response: bool, sent: &mut Vec<u8>, outcome: &mut Outcome) -> Result<Passage, Fault> {
        let began = self.node().now_millis();
        loop {
            let Some(stream) = &mut self.store.data_mut().stream else { return Ok(Passage::Ended) };
            if let Some(reply) = stream.local.take() {
                return Ok(Passage::Answered(reply));
            }
            if stream.reset {
                return Ok(Passage::Ended);
            }
            let half = stream.half(response);
            if !half.held || std::mem::take(&mut half.resumed) {
                half.held = false;
                half.release(sent);
                return Ok(Passage::Open(half.headers.clone(), std::mem::take(sent)));
            }
            let Some(next) = self.next_tick().filter(|next| next.saturating_sub(began) <= self.options.max_hold_millis)
            else {
                outcome.stalled = true;
                return Ok(Passage::Ended);
            };
            let now = self.node().now_millis().max(next);
            self.node().set_now_millis(now);
            outcome.held_millis = now - began;
            self.run_due_timers()?;
        }
    }

    fn finish(&mut self, id: u32) -> Result<(), Fault> {
        if let Some(stream) = &mut self.store.data_mut().stream {
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
        Ok(())
    }

    fn run_timers(&mut self) -> Result<(), Fault> {
        let result = self.run_due_timers();
        self.guard(result)
    }

    /// Runs the timer if it is due, once however late it is: the gateway sets it again after it ran.
    fn run_due_timers(&mut self) -> Result<(), Fault> {
        let now = self.node().now_millis();
        if self.next_tick().is_none_or(|due| due > now) {
            return Ok(());
        }
        if let Some(tick) = self.callbacks.tick.clone() {
            self.call(&tick, "on_tick", ROOT, ROOT)?;
        }
        let state = self.store.data_mut();
        state.next_tick = now.saturating_add(u64::from(state.tick_period));
        Ok(())
    }

    fn next_tick(&self) -> Option<u64> {
        let state = self.store.data();
        (state.tick_period > 0 && self.callbacks.tick.is_some()).then_some(state.next_tick)
    }

    /// Changes one half of the exchange; the number that the closure gives is made a number of the ABI.
    fn with(&mut self, response: bool, change: impl FnOnce(&mut Half) -> usize) -> u32 {
        let half = self.store.data_mut().stream.as_mut().map(|stream| change(stream.half(response)));
        u32::try_from(half.unwrap_or(0)).unwrap_or(u32::MAX)
    }

    fn grpc_context(&self, token: u32) -> Option<u32> {
        self.store
            .data()
            .grpc
            .iter()
            .find(|stream| stream.token == token && !stream.closed)
            .map(|stream| stream.context)
    }

    fn call<P: WasmParams, R: WasmResults>(
        &mut self,
        function: &TypedFunc<P, R>,
        name: &str,
        context: u32,
        parameters: P,
    ) -> Result<R, Fault> {
        self.store.data_mut().effective = context;
        function.call(&mut self.store, parameters).map_err(|error| fault(name, &error, self.store.data()))
    }

    fn call_by_name(&mut self, name: &str, context: u32, parameters: (u32, u32, u32)) -> Result<(), Fault> {
        let instance = self.store.data().instance;
        let function = instance.and_then(|instance| instance.get_typed_func(&mut self.store, name).ok());
        match function {
            Some(function) => self.call(&function, name, context, parameters),
            None => Ok(()),
        }
    }

    /// Starts the filter anew where it has died.
    fn guard(&mut self, result: Result<(), Fault>) -> Result<(), Fault> {
        result.inspect_err(|_| self.restart())
    }

    /// A fresh VM. A configuration that was taken once is taken again, unless the filter depends on what it shared.
    fn restart(&mut self) {
        let state = self.store.data_mut();
        let (node, configuration) = (state.node.clone(), std::mem::take(&mut state.configuration));
        match start(&self.module, &configuration, &node) {
            Ok((store, callbacks)) => (self.store, self.callbacks) = (store, callbacks),
            Err(error) => {
                let text = format!("the filter could not be started again: {error}");
                state_log(self.store.data_mut(), text);
                self.store.data_mut().configuration = configuration;
            }
        }
    }
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
            route: request.route.clone(),
            started_nanos,
            filter_state: std::collections::BTreeMap::new(),
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

fn state_log(state: &mut State, text: String) {
    state.logs.push(LogLine { level: 5, text });
}

/// The headers of an answer as the client gets them.
pub(crate) fn local_reply_headers(reply: &LocalReply) -> Headers {
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

fn to_usize(number: u32) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}
