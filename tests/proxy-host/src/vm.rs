//! One instance of a module: its life, its calls, and what is behind the clusters.

use std::collections::{BTreeMap, VecDeque};

use wasmtime::{Store, TypedFunc, WasmParams, WasmResults};

use super::clusters::{Clusters, Delivery};
use super::load::{Callbacks, LoadError, Module, ROOT, Seat, fault, start};
use super::node::Node;
use super::state::{GrpcStream, State};
use super::way::{Finished, Way};
use crate::traffic::{Exchange, Fault, LogLine, Outcome, events};

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
/// shared with the node is not. The exchanges that it held die with it.
pub struct Vm {
    pub(super) module: Module,
    pub(super) store: Store<State>,
    pub(super) callbacks: Callbacks,
    pub(super) next_context: u32,
    pub(super) options: Options,
    pub(super) clusters: Option<Box<dyn Clusters>>,
    /// The exchanges that are under way, by context.
    pub(super) ways: BTreeMap<u32, Way>,
    pub(super) finished: Vec<Finished>,
    /// When exchanges are held for too long, in the order of time; of some, nothing is left.
    pub(super) deadlines: VecDeque<(u64, u32)>,
    /// What clusters and other workers have sent, by its time and its order.
    pub(super) due: BTreeMap<(u64, u64), Arrival>,
    pub(super) arrivals: u64,
    /// When anything happened last that could be seen outside, and how many effects there were then.
    pub(super) last_effect: (u64, u64),
}

/// Something from outside that the filter is told.
#[derive(Debug)]
pub(super) enum Arrival {
    Answer(u32, Delivery),
    Queue(u32),
}

/// The ticket of [`Vm::exchange`].
const OWN: u64 = u64::MAX;

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
        Self::start(module, configuration, node, options, None)
    }

    /// [`Vm::with_options`] with somebody behind the clusters.
    ///
    /// # Errors
    ///
    /// As [`Vm::load`].
    pub fn with_clusters(
        module: &Module,
        configuration: &[u8],
        node: &Node,
        options: Options,
        clusters: Box<dyn Clusters>,
    ) -> Result<Self, LoadError> {
        Self::start(module, configuration, node, options, Some(clusters))
    }

    fn start(
        module: &Module,
        configuration: &[u8],
        node: &Node,
        options: Options,
        clusters: Option<Box<dyn Clusters>>,
    ) -> Result<Self, LoadError> {
        let seat = Seat { worker: node.join(), listened: clusters.is_some(), next_token: 1 };
        let (store, callbacks) = start(module, configuration, node, seat)?;
        let mut vm = Self {
            module: module.clone(),
            store,
            callbacks,
            next_context: ROOT + 1,
            options,
            clusters,
            ways: BTreeMap::new(),
            finished: Vec::new(),
            deadlines: VecDeque::new(),
            due: BTreeMap::new(),
            arrivals: 0,
            last_effect: (node.now_millis(), 0),
        };
        vm.listen();
        Ok(vm)
    }

    /// The node that this VM is a worker of.
    #[must_use]
    pub fn node(&self) -> &Node {
        &self.store.data().node
    }

    /// The VM's number on its node, from 1.
    #[must_use]
    pub fn worker(&self) -> u32 {
        self.store.data().worker
    }

    /// The gRPC streams that the filter has opened so far; with [`Clusters`], those that are open.
    #[must_use]
    pub fn grpc_streams(&self) -> &[GrpcStream] {
        &self.store.data().grpc
    }

    /// Takes what the filter has sent on its gRPC streams since the last call, and forgets the streams that are closed.
    /// A long run that never asks keeps all of it in memory, unless there are [`Clusters`] who hear it.
    pub fn take_grpc_messages(&mut self) -> Vec<GrpcStream> {
        let streams = &mut self.store.data_mut().grpc;
        let taken = streams.clone();
        streams.retain_mut(|stream| {
            stream.sent.clear();
            !stream.closed
        });
        taken
    }

    /// What was logged since the last exchange ended or the last call.
    pub fn take_logs(&mut self) -> Vec<LogLine> {
        std::mem::take(&mut self.store.data_mut().logs).into()
    }

    /// How many things are kept for later: log lines, what is on its way, calls, words, outcomes that nobody took.
    #[must_use]
    pub fn kept(&self) -> usize {
        let state = self.store.data();
        let said = state.logs.len() + state.words.len() + state.calls.len() + state.streams.len() + state.touched.len();
        said + self.due.len() + self.deadlines.len() + self.ways.len() + self.finished.len()
    }

    /// The size of the filter's memory in bytes.
    #[must_use]
    pub fn memory_size(&self) -> usize {
        self.store.data().memory.map_or(0, |memory| memory.data_size(&self.store))
    }

    /// How many instructions a metered VM may still run; 0 where nothing is counted.
    #[must_use]
    pub fn fuel(&self) -> u64 {
        self.store.get_fuel().unwrap_or(0)
    }

    /// Sets how many instructions a metered VM may run from now on. Beyond them it dies, as of any trap.
    pub fn set_fuel(&mut self, instructions: u64) {
        // Only a VM that is not metered refuses, and that one has no end.
        let _ = self.store.set_fuel(instructions);
    }

    /// How long the thread ran for the filter to take its configuration: the module was compiled before.
    #[must_use]
    pub fn configured_in(&self) -> std::time::Duration {
        self.store.data().configured_in
    }

    /// Delivers a message on a gRPC stream that the filter opened.
    ///
    /// # Errors
    ///
    /// The filter died of it; it was started anew.
    pub fn deliver(&mut self, token: u32, message: &[u8]) -> Result<(), Fault> {
        let result = self.arrive(Arrival::Answer(token, Delivery::Message(message.to_vec())));
        self.guard(result)
    }

    /// Ends a gRPC stream from the other side, with a gRPC status.
    ///
    /// # Errors
    ///
    /// The filter died of it; it was started anew.
    pub fn close_grpc(&mut self, token: u32, status: u32) -> Result<(), Fault> {
        let result = self.arrive(Arrival::Answer(token, Delivery::Close(status, String::new())));
        self.guard(result)
    }

    /// Runs one exchange from its first header to its log, and the clock for as long as the filter holds it. A filter that
    /// dies of it is started anew.
    pub fn exchange(&mut self, exchange: &Exchange) -> Outcome {
        let mut outcome = self.pass(exchange);
        outcome.events = events(&outcome.filter_state);
        outcome
    }

    /// [`Vm::exchange`] for measurements: [`Outcome::events`] stays empty, because reading them back takes a good part of
    /// what the filter takes to write them.
    pub fn pass(&mut self, exchange: &Exchange) -> Outcome {
        if let Err(fault) = self.run_due() {
            let fault = Fault { request: exchange.request.line(), ..fault };
            return Outcome { status: FILTER_DIED, fault: Some(fault), logs: self.take_logs(), ..Outcome::default() };
        }
        self.begin(OWN, exchange);
        loop {
            if let Some(at) = self.finished.iter().position(|finished| finished.ticket == OWN) {
                return self.finished.swap_remove(at).outcome;
            }
            // What is under way has a deadline at least.
            let next = self.next_event().unwrap_or_default();
            let now = self.node().now_millis().max(next);
            self.node().set_now_millis(now);
            // A timer that dies takes the exchange along, which is then finished.
            let _ = self.run_due();
        }
    }

    pub(super) fn call<P: WasmParams, R: WasmResults>(
        &mut self,
        function: &TypedFunc<P, R>,
        name: &str,
        context: u32,
        parameters: P,
    ) -> Result<R, Fault> {
        self.store.data_mut().effective = context;
        self.module.wind(&mut self.store, 1);
        function.call(&mut self.store, parameters).map_err(|error| fault(name, &error, self.store.data()))
    }

    pub(super) fn call_by_name<P: WasmParams>(&mut self, name: &str, context: u32, parameters: P) -> Result<(), Fault> {
        let instance = self.store.data().instance;
        let function = instance.and_then(|instance| instance.get_typed_func::<P, ()>(&mut self.store, name).ok());
        match function {
            Some(function) => self.call(&function, name, context, parameters),
            None => Ok(()),
        }
    }

    /// Starts the filter anew where it has died outside of an exchange.
    pub(super) fn guard<T>(&mut self, result: Result<T, Fault>) -> Result<T, Fault> {
        result.inspect_err(|fault| self.die(fault, None))
    }

    /// A fresh VM. A configuration that was taken once is taken again, unless the filter depends on what it shared.
    pub(super) fn restart(&mut self) {
        let state = self.store.data_mut();
        let (node, configuration) = (state.node.clone(), std::mem::take(&mut state.configuration));
        let seat = Seat { worker: state.worker, listened: state.listened, next_token: state.next_token };
        (self.due, self.deadlines) = (BTreeMap::new(), VecDeque::new());
        match start(&self.module, &configuration, &node, seat) {
            Ok((store, callbacks)) => {
                (self.store, self.callbacks) = (store, callbacks);
                // That it lives again is nothing that it did.
                self.last_effect.1 = self.store.data().effects;
            }
            Err(error) => {
                let state = self.store.data_mut();
                state.log(5, format!("the filter could not be started again: {error}"));
                state.configuration = configuration;
            }
        }
    }
}

/// What the client gets from a filter that died.
pub(super) const FILTER_DIED: u16 = 503;
