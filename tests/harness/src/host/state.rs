//! What one VM's hostcalls act on.

use std::collections::BTreeMap;

use wasmtime::{Instance, Memory, StoreLimits, TypedFunc};

use super::node::Node;
use crate::traffic::{Headers, LocalReply, LogLine};

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
    pub(crate) stream: Option<Stream>,
    /// Milliseconds between ticks; 0 for none.
    pub(crate) tick_period: u32,
    /// When the next tick is due, in milliseconds since the Unix epoch.
    pub(crate) next_tick: u64,
    pub(crate) logs: Vec<LogLine>,
    pub(crate) grpc: Vec<GrpcStream>,
    /// The number of the next stream; no number is given twice.
    pub(crate) next_token: u32,
    pub(crate) limits: StoreLimits,
    pub(crate) grpc_message: Option<Vec<u8>>,
    /// How long the thread ran for the filter to take its configuration.
    pub(crate) configured_in: std::time::Duration,
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
