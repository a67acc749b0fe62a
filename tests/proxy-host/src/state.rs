//! What one VM's hostcalls act on.

use std::collections::{BTreeMap, VecDeque};

use wasmtime::{Instance, Memory, StoreLimits, TypedFunc};

use super::clusters::Word;
use super::node::Node;
use crate::traffic::{Headers, LocalReply, LogLine};

/// The most lines of the log that wait for somebody who takes them; the oldest go first.
const MAX_LOGS: usize = 10_000;

/// The data of one VM.
pub(crate) struct State {
    pub(crate) node: Node,
    pub(crate) memory: Option<Memory>,
    pub(crate) allocate: Option<TypedFunc<u32, u32>>,
    pub(crate) instance: Option<Instance>,
    pub(crate) configuration: Vec<u8>,
    pub(crate) root: u32,
    /// The context that hostcalls act on.
    pub(crate) effective: u32,
    /// The exchanges that are under way, by context.
    pub(crate) streams: BTreeMap<u32, Stream>,
    /// Contexts that calls acted on in a way that may let them go on, since somebody looked last.
    pub(crate) touched: VecDeque<u32>,
    /// The root contexts that live beside this one, with their configurations.
    pub(crate) beside: BTreeMap<u32, Vec<u8>>,
    /// By root context.
    pub(crate) timers: BTreeMap<u32, Timer>,
    pub(crate) logs: VecDeque<LogLine>,
    pub(crate) grpc: Vec<GrpcStream>,
    /// HTTP calls and single gRPC calls that are not answered, with the contexts that made them.
    pub(crate) calls: BTreeMap<u32, (u32, CallKind)>,
    /// Somebody listens to what is said to clusters; without, streams keep what was sent on them.
    pub(crate) listened: bool,
    /// What was said to clusters since somebody listened last.
    pub(crate) words: VecDeque<Word>,
    /// The number of the next stream or call; no number is given twice.
    pub(crate) next_token: u32,
    pub(crate) limits: StoreLimits,
    /// What a cluster answered, while the filter is told.
    pub(crate) incoming: Incoming,
    /// The VM's number on its node.
    pub(crate) worker: u32,
    /// How many calls have changed anything outside of the filter's own memory.
    pub(crate) effects: u64,
    /// How long the thread ran for the filter to take its configuration.
    pub(crate) configured_in: std::time::Duration,
}

/// The timer of a root context.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Timer {
    /// Milliseconds between ticks; 0 for none.
    pub(crate) period: u32,
    /// When the next tick is due, in milliseconds since the Unix epoch.
    pub(crate) next: u64,
}

/// What a call is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CallKind {
    Http,
    Grpc,
}

/// What a cluster answered.
#[derive(Debug, Default)]
pub(crate) struct Incoming {
    pub(crate) kind: Option<CallKind>,
    pub(crate) headers: Option<Headers>,
    pub(crate) body: Option<Vec<u8>>,
    pub(crate) trailers: Option<Headers>,
    /// The gRPC status and its message.
    pub(crate) status: (u32, String),
}

impl State {
    /// A number that was never given before.
    pub(crate) fn token(&mut self) -> u32 {
        let token = self.next_token;
        self.next_token = token.wrapping_add(1).max(1);
        token
    }

    /// Sets the timer of the root context that is in effect.
    pub(crate) fn set_timer(&mut self, period: u32) {
        let root = if self.beside.contains_key(&self.effective) { self.effective } else { self.root };
        let next = self.node.now_millis().saturating_add(u64::from(period));
        let before = self.timers.insert(root, Timer { period, next }).unwrap_or_default();
        if before.period != period {
            self.effect();
        }
    }

    /// Something outside of the filter's own memory changed.
    pub(crate) fn effect(&mut self) {
        self.effects = self.effects.wrapping_add(1);
    }

    pub(crate) fn log(&mut self, level: i32, text: String) {
        self.effect();
        if self.logs.len() >= MAX_LOGS {
            self.logs.pop_front();
        }
        self.logs.push_back(LogLine { level, text });
    }

    /// Says something to a cluster, where somebody listens.
    pub(crate) fn say(&mut self, word: Word) {
        self.effect();
        if self.listened {
            self.words.push_back(word);
        }
    }
}

/// A gRPC stream that a filter opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GrpcStream {
    /// The number that the filter knows it by.
    pub token: u32,
    /// The context that opened it and gets its messages.
    pub context: u32,
    /// The encoded `envoy.config.core.v3.GrpcService`.
    pub service: Vec<u8>,
    /// The service and the method, with a slash between them.
    pub method: String,
    /// The messages that the filter has sent.
    pub sent: Vec<Vec<u8>>,
    /// Neither side will send any more.
    pub closed: bool,
}

/// The exchange that is under way.
pub(crate) struct Stream {
    pub(crate) id: u32,
    pub(crate) phase: Phase,
    pub(crate) request: Half,
    pub(crate) response: Half,
    pub(crate) protocol: Vec<u8>,
    pub(crate) peer: String,
    pub(crate) destination: String,
    pub(crate) route: String,
    pub(crate) started_nanos: u64,
    /// By path, its words joined by NUL bytes.
    pub(crate) filter_state: BTreeMap<Vec<u8>, Vec<u8>>,
    pub(crate) local: Option<LocalReply>,
    /// The filter reset the stream.
    pub(crate) reset: bool,
}

/// Where an exchange stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    Request,
    Response,
    Log,
}

/// One direction of an exchange.
#[derive(Debug, Default)]
pub(crate) struct Half {
    pub(crate) headers: Headers,
    pub(crate) trailers: Headers,
    pub(crate) body: Vec<u8>,
    /// Filters may read and write the headers: they have come and have not gone on.
    pub(crate) headers_open: bool,
    pub(crate) trailers_open: bool,
    pub(crate) body_open: bool,
    /// The filter holds it.
    pub(crate) held: bool,
    /// The filter let it go on outside its callback.
    pub(crate) resumed: bool,
}
