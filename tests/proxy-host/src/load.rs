//! From a .wasm file to a filter that has taken its configuration.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::thread;
use std::time::Duration;

use wasmtime::{Instance, InstancePre, Linker, Store, StoreLimitsBuilder, Trap, TypedFunc, WasmParams, WasmResults};

use super::node::Node;
use super::state::{Incoming, State};
use super::{calls, compiled, wasi};
use crate::cpu_time;
use crate::traffic::Fault;

/// The number of the first root context.
pub(crate) const ROOT: u32 = 1;
/// The most memory that a filter gets, as in the gateway: 1 GiB.
const MEMORY_LIMIT: usize = 1 << 30;
/// How often the time is looked at while a callback runs.
const TENTHS: u32 = 10;
/// How many times longer than a callback the configuration may take.
const CONFIGURING: u32 = 12;
/// The most instructions of a metered VM between two calls of [`super::Vm::set_fuel`].
const FULL_TANK: u64 = u64::MAX / 2;

/// A compiled module, ready to be started as often as one likes.
#[derive(Clone)]
pub struct Module {
    instance: InstancePre<State>,
    /// How long a callback may take.
    patience: Option<Duration>,
    /// Whether instructions are counted.
    metered: bool,
}

/// Why a module or a configuration cannot be run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoadError(String);

impl LoadError {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self(message.into())
    }
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for LoadError {}

/// The filter's functions that the gateway calls.
pub(crate) struct Callbacks {
    pub(crate) context_create: TypedFunc<(u32, u32), ()>,
    pub(crate) request_headers: TypedFunc<(u32, u32, u32), u32>,
    pub(crate) request_body: TypedFunc<(u32, u32, u32), u32>,
    pub(crate) request_trailers: Option<TypedFunc<(u32, u32), u32>>,
    pub(crate) response_headers: TypedFunc<(u32, u32, u32), u32>,
    pub(crate) response_body: TypedFunc<(u32, u32, u32), u32>,
    pub(crate) response_trailers: Option<TypedFunc<(u32, u32), u32>>,
    pub(crate) tick: Option<TypedFunc<u32, ()>>,
    pub(crate) log: Option<TypedFunc<u32, ()>>,
    pub(crate) done: Option<TypedFunc<u32, u32>>,
    pub(crate) delete: Option<TypedFunc<u32, ()>>,
}

impl Module {
    /// Compiles a .wasm module (binary format).
    ///
    /// # Errors
    ///
    /// The bytes are no module, or it imports what this host does not have.
    pub fn compile(bytes: &[u8]) -> Result<Self, LoadError> {
        Self::with_engine(bytes, &wasmtime::Engine::default(), None)
    }

    /// [`Module::compile`] of a module whose instructions are counted ([`super::Vm::fuel`]): the same input on the same
    /// module takes the same number on every machine.
    ///
    /// # Errors
    ///
    /// As [`Module::compile`].
    pub fn metered(bytes: &[u8]) -> Result<Self, LoadError> {
        let mut config = wasmtime::Config::new();
        config.consume_fuel(true);
        let engine = wasmtime::Engine::new(&config).map_err(|error| LoadError(format!("{error:#}")))?;
        Ok(Self { metered: true, ..Self::with_engine(bytes, &engine, None)? })
    }

    /// [`Module::compile`] of a module whose callbacks are ended after so much real time, give or take a tenth. The module
    /// looks at the time in every loop, so it is a little slower.
    ///
    /// # Errors
    ///
    /// As [`Module::compile`]; or there is no thread left that could watch the time.
    pub fn guarded(bytes: &[u8], patience: Duration) -> Result<Self, LoadError> {
        let mut config = wasmtime::Config::new();
        config.epoch_interruption(true);
        let engine = wasmtime::Engine::new(&config).map_err(|error| LoadError(format!("{error:#}")))?;
        let (watched, period) = (engine.weak(), (patience / TENTHS).max(Duration::from_millis(1)));
        let watch = move || {
            while let Some(engine) = watched.upgrade() {
                engine.increment_epoch();
                drop(engine);
                thread::sleep(period);
            }
        };
        let started = thread::Builder::new().name("patience".into()).spawn(watch);
        started.map_err(|error| LoadError(format!("no thread to watch the time: {error}")))?;
        Self::with_engine(bytes, &engine, Some(patience))
    }

    fn with_engine(bytes: &[u8], engine: &wasmtime::Engine, patience: Option<Duration>) -> Result<Self, LoadError> {
        let module = compiled::module(engine, bytes)
            .map_err(|error| LoadError(format!("this is no module that can be run: {error:#}")))?;
        let mut linker = Linker::new(engine);
        let linked = calls::link(&mut linker).and_then(|()| wasi::link(&mut linker));
        linked.map_err(|error| LoadError(format!("{error:#}")))?;
        let instance = linker.instantiate_pre(&module).map_err(|error| {
            LoadError(format!("the module asks for what a proxy-wasm 0.2.1 host does not have: {error:#}"))
        })?;
        Ok(Self { instance, patience, metered: false })
    }

    /// Gives the filter its time to take a configuration.
    pub(crate) fn wind_to_configure(&self, store: &mut Store<State>) {
        self.wind(store, CONFIGURING);
    }

    /// Gives the next callback its time, so many times over.
    pub(crate) fn wind(&self, store: &mut Store<State>, times: u32) {
        if self.patience.is_some() {
            store.set_epoch_deadline(u64::from(TENTHS * times) + 1);
        }
    }
}

/// What stays the same when a VM is started anew.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Seat {
    /// Its number on the node.
    pub(crate) worker: u32,
    /// Somebody listens to its streams.
    pub(crate) listened: bool,
    /// The number of its next call or stream.
    pub(crate) next_token: u32,
}

/// A fresh instance that has taken its configuration.
pub(crate) fn start(
    module: &Module,
    configuration: &[u8],
    node: &Node,
    seat: Seat,
) -> Result<(Store<State>, Callbacks), LoadError> {
    let state = State {
        node: node.clone(),
        memory: None,
        allocate: None,
        instance: None,
        configuration: configuration.to_vec(),
        root: ROOT,
        effective: ROOT,
        streams: BTreeMap::new(),
        touched: VecDeque::new(),
        beside: BTreeMap::new(),
        timers: BTreeMap::new(),
        logs: VecDeque::new(),
        grpc: Vec::new(),
        calls: BTreeMap::new(),
        listened: seat.listened,
        words: VecDeque::new(),
        next_token: seat.next_token,
        limits: StoreLimitsBuilder::new().memory_size(MEMORY_LIMIT).build(),
        incoming: Incoming::default(),
        worker: seat.worker,
        effects: 0,
        configured_in: Duration::ZERO,
    };
    let mut store = Store::new(module.instance.module().engine(), state);
    store.limiter(|state| &mut state.limits);
    if module.metered {
        store.set_fuel(FULL_TANK).map_err(|error| LoadError(format!("{error:#}")))?;
    }
    module.wind(&mut store, CONFIGURING);
    let failed = |what: &str, error: &wasmtime::Error, store: &Store<State>| {
        LoadError(format!("{what}: {}", fault(what, error, store.data()).message))
    };
    let instance = module.instance.instantiate(&mut store).map_err(|error| failed("start", &error, &store))?;
    let memory = instance.get_memory(&mut store, "memory");
    let memory = memory.ok_or_else(|| LoadError("the module exports no memory".to_owned()))?;
    let allocate = ["proxy_on_memory_allocate", "malloc"];
    let allocate = allocate.iter().find_map(|name| instance.get_typed_func(&mut store, name).ok());
    let state = store.data_mut();
    (state.memory, state.allocate, state.instance) = (Some(memory), allocate, Some(instance));

    let callbacks = Callbacks::find(&instance, &mut store)?;
    // A reactor module is set up by `_initialize`, a command by `_start`.
    let setup = ["_initialize", "_start"];
    if let Some(setup) = setup.iter().find_map(|name| instance.get_typed_func::<(), ()>(&mut store, name).ok()) {
        setup.call(&mut store, ()).map_err(|error| failed("_initialize", &error, &store))?;
    }
    callbacks
        .context_create
        .call(&mut store, (ROOT, 0))
        .map_err(|error| failed("on_context_create", &error, &store))?;
    let size = u32::try_from(configuration.len()).map_err(|_| LoadError("the configuration is over 4 GiB".into()))?;
    for (name, size) in [("proxy_on_vm_start", 0), ("proxy_on_configure", size)] {
        let Ok(function) = instance.get_typed_func::<(u32, u32), u32>(&mut store, name) else { continue };
        let began = cpu_time();
        let taken = function.call(&mut store, (ROOT, size)).map_err(|error| failed(name, &error, &store))?;
        store.data_mut().configured_in += cpu_time().saturating_sub(began);
        if taken == 0 {
            let said: Vec<&str> = store.data().logs.iter().map(|line| line.text.as_str()).collect();
            return Err(LoadError(format!("the filter refuses its configuration: {}", said.join("; "))));
        }
    }
    Ok((store, callbacks))
}

impl Callbacks {
    fn find(instance: &Instance, store: &mut Store<State>) -> Result<Self, LoadError> {
        fn optional<P: WasmParams, R: WasmResults>(
            instance: &Instance,
            store: &mut Store<State>,
            name: &str,
        ) -> Option<TypedFunc<P, R>> {
            instance.get_typed_func(store, name).ok()
        }
        fn needed<P: WasmParams, R: WasmResults>(
            instance: &Instance,
            store: &mut Store<State>,
            name: &str,
        ) -> Result<TypedFunc<P, R>, LoadError> {
            instance
                .get_typed_func(store, name)
                .map_err(|error| LoadError(format!("the module is no proxy-wasm HTTP filter: `{name}`: {error:#}")))
        }
        Ok(Self {
            context_create: needed(instance, store, "proxy_on_context_create")?,
            request_headers: needed(instance, store, "proxy_on_request_headers")?,
            request_body: needed(instance, store, "proxy_on_request_body")?,
            request_trailers: optional(instance, store, "proxy_on_request_trailers"),
            response_headers: needed(instance, store, "proxy_on_response_headers")?,
            response_body: needed(instance, store, "proxy_on_response_body")?,
            response_trailers: optional(instance, store, "proxy_on_response_trailers"),
            tick: optional(instance, store, "proxy_on_tick"),
            log: optional(instance, store, "proxy_on_log"),
            done: optional(instance, store, "proxy_on_done"),
            delete: optional(instance, store, "proxy_on_delete"),
        })
    }
}

/// The trap, its backtrace and the filter's last words: a panic's message is among them.
pub(crate) fn fault(callback: &str, error: &wasmtime::Error, state: &State) -> Fault {
    let mut message = format!("{error:?}");
    if error.downcast_ref::<Trap>() == Some(&Trap::Interrupt) {
        message.insert_str(0, "the filter did not return in time and was ended\n");
    }
    let words = state.logs.iter().filter(|line| line.level >= 4).map(|line| line.text.as_str());
    for line in words {
        message.push_str("\nthe filter said: ");
        message.push_str(line);
    }
    Fault { callback: callback.to_owned(), message, request: String::new() }
}
