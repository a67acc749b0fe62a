//! What came of an exchange. What went in is [`recording::traffic`].

use std::collections::BTreeMap;

use serde_json::Value;

pub use recording::traffic::{Exchange, Headers, Request, Response};

/// What became of an exchange.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Outcome {
    /// The status that the client gets.
    pub status: u16,
    /// The answer that a filter gave in the backend's place.
    pub local_reply: Option<LocalReply>,
    /// The request went on to the backend.
    pub reached_backend: bool,
    /// The request's headers as the backend gets them; empty where it gets none.
    pub request_headers: Headers,
    /// The request's body as the backend gets it.
    pub request_body: Vec<u8>,
    /// The response's headers as the client gets them, `:status` included.
    pub response_headers: Headers,
    /// The response's body as the client gets it.
    pub body: Vec<u8>,
    /// The events that the filter emitted, in their order.
    pub events: Vec<Value>,
    /// The filter state at the end.
    pub filter_state: BTreeMap<String, Vec<u8>>,
    /// What was logged.
    pub logs: Vec<LogLine>,
    /// How long the request was held, on the host's clock, in milliseconds.
    pub held_millis: u64,
    /// The filter held the exchange and never let it go on.
    pub stalled: bool,
    /// The filter died; [`Outcome::status`] is then 503.
    pub fault: Option<Fault>,
}

/// An answer in the backend's place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocalReply {
    /// The status code.
    pub status: u16,
    /// What access logs show as the reason.
    pub details: String,
    /// Its headers.
    pub headers: Headers,
    /// Its body.
    pub body: Vec<u8>,
}

/// A line in the gateway's log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogLine {
    /// From 0 (trace) to 5 (critical).
    pub level: i32,
    /// The text.
    pub text: String,
}

/// A filter died of a trap.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The gateway's callback in which it happened.
    pub callback: String,
    /// The trap with its backtrace, and what the filter said last.
    pub message: String,
    /// The request line of the exchange.
    pub request: String,
}

/// The events in filter state `svc.event`.
pub fn events(state: &BTreeMap<String, Vec<u8>>) -> Vec<Value> {
    event_lines(state.get(exchange::EVENT_TOKEN).map(Vec::as_slice).unwrap_or_default())
}

/// Events, a line of JSON each. A line that is none becomes a string.
pub fn event_lines(lines: &[u8]) -> Vec<Value> {
    let lines = lines.split(|&byte| byte == b'\n').filter(|line| !line.is_empty());
    let parse = |line| serde_json::from_slice(line).unwrap_or_else(|_| String::from_utf8_lossy(line).into());
    lines.map(parse).collect()
}
