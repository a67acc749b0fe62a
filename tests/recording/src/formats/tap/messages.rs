//! Envoy's messages, of them only what is read. Strings are bytes here: a value that is no UTF-8 is no fault of the trace.

use prost::Oneof;

use super::trace::{self, address};
use super::{Piece, Trace};
use crate::traffic::Headers;

/// `envoy.data.tap.v3.TraceWrapper`.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Wrapper {
    #[prost(oneof = "Kind", tags = "1, 2, 3, 4")]
    pub(crate) kind: Option<Kind>,
}

#[derive(Clone, PartialEq, Oneof)]
pub(crate) enum Kind {
    #[prost(message, boxed, tag = "1")]
    Buffered(Box<Buffered>),
    #[prost(message, tag = "2")]
    Segment(Segment),
    #[prost(bytes, tag = "3")]
    Socket(Vec<u8>),
    #[prost(bytes, tag = "4")]
    SocketSegment(Vec<u8>),
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Buffered {
    #[prost(message, optional, tag = "1")]
    pub(crate) request: Option<Message>,
    #[prost(message, optional, tag = "2")]
    pub(crate) response: Option<Message>,
    #[prost(message, optional, tag = "3")]
    pub(crate) downstream_connection: Option<Connection>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Message {
    #[prost(message, repeated, tag = "1")]
    pub(crate) headers: Vec<Header>,
    #[prost(message, optional, tag = "2")]
    pub(crate) body: Option<Body>,
    #[prost(message, repeated, tag = "3")]
    pub(crate) trailers: Vec<Header>,
    #[prost(message, optional, tag = "4")]
    pub(crate) headers_received_time: Option<Time>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Header {
    #[prost(bytes = "vec", tag = "1")]
    pub(crate) key: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    pub(crate) value: Vec<u8>,
    #[prost(bytes = "vec", tag = "3")]
    pub(crate) raw_value: Vec<u8>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Body {
    /// `as_bytes` and `as_string` differ in their tags only.
    #[prost(bytes = "vec", optional, tag = "1")]
    pub(crate) as_bytes: Option<Vec<u8>>,
    #[prost(bytes = "vec", optional, tag = "2")]
    pub(crate) as_string: Option<Vec<u8>>,
    #[prost(bool, tag = "3")]
    pub(crate) truncated: bool,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Time {
    #[prost(int64, tag = "1")]
    pub(crate) seconds: i64,
    #[prost(int32, tag = "2")]
    pub(crate) nanos: i32,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Connection {
    #[prost(message, optional, tag = "1")]
    pub(crate) local_address: Option<Address>,
    #[prost(message, optional, tag = "2")]
    pub(crate) remote_address: Option<Address>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Address {
    #[prost(message, optional, tag = "1")]
    pub(crate) socket_address: Option<SocketAddress>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct SocketAddress {
    #[prost(string, tag = "2")]
    pub(crate) address: String,
    #[prost(uint32, tag = "3")]
    pub(crate) port_value: u32,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Segment {
    #[prost(uint64, tag = "1")]
    pub(crate) trace_id: u64,
    #[prost(oneof = "SegmentPiece", tags = "2, 3, 4, 5, 6, 7")]
    pub(crate) piece: Option<SegmentPiece>,
}

#[derive(Clone, PartialEq, Oneof)]
pub(crate) enum SegmentPiece {
    #[prost(message, tag = "2")]
    RequestHeaders(Map),
    #[prost(message, tag = "3")]
    RequestBody(Body),
    #[prost(message, tag = "4")]
    RequestTrailers(Map),
    #[prost(message, tag = "5")]
    ResponseHeaders(Map),
    #[prost(message, tag = "6")]
    ResponseBody(Body),
    #[prost(message, tag = "7")]
    ResponseTrailers(Map),
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Map {
    #[prost(message, repeated, tag = "1")]
    pub(crate) headers: Vec<Header>,
}

impl From<Wrapper> for Trace {
    fn from(wrapper: Wrapper) -> Self {
        match wrapper.kind {
            Some(Kind::Buffered(trace)) => Self::Buffered(Box::new((*trace).into())),
            Some(Kind::Segment(segment)) => Self::Segment { id: segment.trace_id, piece: segment.piece.into() },
            Some(Kind::Socket(_) | Kind::SocketSegment(_)) => Self::Socket,
            None => Self::Nothing,
        }
    }
}

impl From<Buffered> for super::Buffered {
    fn from(trace: Buffered) -> Self {
        let connection = trace.downstream_connection.unwrap_or_default();
        Self {
            request: trace.request.map(Message::into),
            response: trace.response.map(Message::into),
            peer: connection.remote_address.and_then(Address::text),
            local: connection.local_address.and_then(Address::text),
        }
    }
}

impl Address {
    fn text(self) -> Option<String> {
        self.socket_address.map(|socket| address(&socket.address, u64::from(socket.port_value)))
    }
}

impl From<Option<SegmentPiece>> for Piece {
    fn from(piece: Option<SegmentPiece>) -> Self {
        match piece {
            Some(SegmentPiece::RequestHeaders(map)) => Self::RequestHeaders(pairs(map.headers)),
            Some(SegmentPiece::RequestBody(body)) => Self::RequestBody(body.into()),
            Some(SegmentPiece::RequestTrailers(map)) => Self::RequestTrailers(pairs(map.headers)),
            Some(SegmentPiece::ResponseHeaders(map)) => Self::ResponseHeaders(pairs(map.headers)),
            Some(SegmentPiece::ResponseBody(body)) => Self::ResponseBody(body.into()),
            Some(SegmentPiece::ResponseTrailers(map)) => Self::ResponseTrailers(pairs(map.headers)),
            None => Self::Nothing,
        }
    }
}

impl From<Message> for trace::Message {
    fn from(message: Message) -> Self {
        Self {
            headers: pairs(message.headers),
            body: message.body.unwrap_or_default().into(),
            trailers: pairs(message.trailers),
            at_millis: message.headers_received_time.and_then(|time| time.millis()),
        }
    }
}

impl Time {
    fn millis(&self) -> Option<u64> {
        let seconds = u64::try_from(self.seconds).ok()?;
        seconds.checked_mul(1000)?.checked_add(u64::try_from(self.nanos / 1_000_000).ok()?)
    }
}

impl From<Body> for trace::Body {
    fn from(body: Body) -> Self {
        Self { bytes: body.as_bytes.or(body.as_string).unwrap_or_default(), truncated: body.truncated }
    }
}

fn pairs(headers: Vec<Header>) -> Headers {
    let value =
        |header: Header| (header.key, if header.raw_value.is_empty() { header.value } else { header.raw_value });
    headers.into_iter().map(value).collect()
}
