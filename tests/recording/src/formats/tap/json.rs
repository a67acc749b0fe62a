//! Traces as JSON: documents one after the other, on as many lines as they like.

use std::io::BufRead;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

use super::trace;
use super::{Piece, Trace};
use crate::formats::too_long;
use crate::json::{self, Cut, Scanner, Stop};
use crate::time;
use crate::traffic::Headers;

/// The documents of a stream.
pub(crate) struct Documents {
    scanner: Scanner<Box<dyn BufRead + Send>>,
    text: Vec<u8>,
    limit: usize,
    done: bool,
}

impl Documents {
    pub(crate) fn new(bytes: Box<dyn BufRead + Send>, limit: usize) -> Self {
        Self { scanner: Scanner::of_documents(bytes), text: Vec::new(), limit, done: false }
    }

    fn cut(&mut self) -> Result<Option<(u64, Cut)>, Stop> {
        // Documents may be the elements of a list, or separated by commas.
        while self.scanner.accept(b',')? || self.scanner.accept(b'[')? || self.scanner.accept(b']')? {}
        if self.scanner.peek()?.is_none() {
            return Ok(None);
        }
        let line = self.scanner.line();
        Ok(Some((line, self.scanner.value(&mut self.text, self.limit)?)))
    }
}

impl Iterator for Documents {
    type Item = Result<Trace, String>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.done {
            return None;
        }
        match self.cut() {
            Ok(None) => None,
            Ok(Some((_, Cut::TooLong(length)))) => Some(Err(too_long(length, self.limit))),
            Ok(Some((line, Cut::Whole))) => {
                Some(json::parse::<Wrapper>(&self.text).map(Trace::from).map_err(|fault| {
                    let at = line + u64::try_from(fault.line).unwrap_or(0) - 1;
                    format!("line {at}: `{}`: {}", fault.path, fault.why)
                }))
            }
            Err(Stop::Syntax(what, line)) => {
                self.done = !self.scanner.resume().unwrap_or(false);
                Some(Err(format!("line {line}: expected {what}; what follows up to the next document is left out")))
            }
            Err(stop) => {
                self.done = true;
                Some(Err(stop.to_string()))
            }
        }
    }
}

/// `envoy.data.tap.v3.TraceWrapper`. Envoy writes the names as in the proto, other tools in camel case.
#[derive(Debug, Deserialize)]
struct Wrapper {
    #[serde(alias = "httpBufferedTrace")]
    http_buffered_trace: Option<Buffered>,
    #[serde(alias = "httpStreamedTraceSegment")]
    http_streamed_trace_segment: Option<Segment>,
    #[serde(alias = "socketBufferedTrace")]
    socket_buffered_trace: Option<serde::de::IgnoredAny>,
    #[serde(alias = "socketStreamedTraceSegment")]
    socket_streamed_trace_segment: Option<serde::de::IgnoredAny>,
}

#[derive(Debug, Deserialize)]
struct Buffered {
    request: Option<Message>,
    response: Option<Message>,
    #[serde(alias = "downstreamConnection")]
    downstream_connection: Option<Connection>,
}

#[derive(Debug, Default, Deserialize)]
struct Message {
    #[serde(default)]
    headers: Vec<Header>,
    body: Option<Body>,
    #[serde(default)]
    trailers: Vec<Header>,
    #[serde(alias = "headersReceivedTime")]
    headers_received_time: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
struct Header {
    #[serde(default)]
    key: String,
    #[serde(default)]
    value: String,
    #[serde(default, alias = "rawValue", deserialize_with = "bytes")]
    raw_value: Vec<u8>,
}

#[derive(Debug, Default, Deserialize)]
struct Body {
    #[serde(default, alias = "asBytes", deserialize_with = "bytes")]
    as_bytes: Vec<u8>,
    #[serde(default, alias = "asString")]
    as_string: String,
    #[serde(default)]
    truncated: bool,
}

#[derive(Debug, Deserialize)]
struct Segment {
    /// 64 bits are a string in JSON.
    #[serde(default, alias = "traceId", deserialize_with = "number")]
    trace_id: u64,
    #[serde(alias = "requestHeaders")]
    request_headers: Option<Map>,
    #[serde(alias = "requestBodyChunk")]
    request_body_chunk: Option<Body>,
    #[serde(alias = "requestTrailers")]
    request_trailers: Option<Map>,
    #[serde(alias = "responseHeaders")]
    response_headers: Option<Map>,
    #[serde(alias = "responseBodyChunk")]
    response_body_chunk: Option<Body>,
    #[serde(alias = "responseTrailers")]
    response_trailers: Option<Map>,
}

#[derive(Debug, Deserialize)]
struct Map {
    #[serde(default)]
    headers: Vec<Header>,
}

#[derive(Debug, Default, Deserialize)]
struct Connection {
    #[serde(alias = "localAddress")]
    local_address: Option<Address>,
    #[serde(alias = "remoteAddress")]
    remote_address: Option<Address>,
}

#[derive(Debug, Deserialize)]
struct Address {
    #[serde(alias = "socketAddress")]
    socket_address: Option<SocketAddress>,
}

#[derive(Debug, Deserialize)]
struct SocketAddress {
    #[serde(default)]
    address: String,
    #[serde(default, alias = "portValue", deserialize_with = "number")]
    port_value: u64,
}

impl From<Wrapper> for Trace {
    fn from(wrapper: Wrapper) -> Self {
        if let Some(buffered) = wrapper.http_buffered_trace {
            let connection = buffered.downstream_connection.unwrap_or_default();
            return Self::Buffered(Box::new(super::Buffered {
                request: buffered.request.map(Message::into),
                response: buffered.response.map(Message::into),
                peer: connection.remote_address.and_then(Address::text),
                local: connection.local_address.and_then(Address::text),
            }));
        }
        if let Some(segment) = wrapper.http_streamed_trace_segment {
            return Self::Segment { id: segment.trace_id, piece: segment.piece() };
        }
        let socket = wrapper.socket_buffered_trace.or(wrapper.socket_streamed_trace_segment);
        if socket.is_some() { Self::Socket } else { Self::Nothing }
    }
}

impl Address {
    fn text(self) -> Option<String> {
        self.socket_address.map(|socket| trace::address(&socket.address, socket.port_value))
    }
}

impl Segment {
    fn piece(self) -> Piece {
        let map = |map: Map| pairs(map.headers);
        if let Some(headers) = self.request_headers {
            Piece::RequestHeaders(map(headers))
        } else if let Some(body) = self.request_body_chunk {
            Piece::RequestBody(body.into())
        } else if let Some(trailers) = self.request_trailers {
            Piece::RequestTrailers(map(trailers))
        } else if let Some(headers) = self.response_headers {
            Piece::ResponseHeaders(map(headers))
        } else if let Some(body) = self.response_body_chunk {
            Piece::ResponseBody(body.into())
        } else {
            self.response_trailers.map_or(Piece::Nothing, |trailers| Piece::ResponseTrailers(map(trailers)))
        }
    }
}

impl From<Message> for trace::Message {
    fn from(message: Message) -> Self {
        Self {
            headers: pairs(message.headers),
            body: message.body.unwrap_or_default().into(),
            trailers: pairs(message.trailers),
            at_millis: message.headers_received_time.as_deref().and_then(time::parse),
        }
    }
}

impl From<Body> for trace::Body {
    fn from(body: Body) -> Self {
        let bytes = if body.as_bytes.is_empty() { body.as_string.into_bytes() } else { body.as_bytes };
        Self { bytes, truncated: body.truncated }
    }
}

fn pairs(headers: Vec<Header>) -> Headers {
    let value = |header: Header| {
        let value = if header.raw_value.is_empty() { header.value.into_bytes() } else { header.raw_value };
        (header.key.into_bytes(), value)
    };
    headers.into_iter().map(value).collect()
}

fn bytes<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
    let text = String::deserialize(deserializer)?;
    let decoded = STANDARD.decode(&text).or_else(|_| STANDARD_NO_PAD.decode(&text));
    decoded.map_err(|error| D::Error::custom(format!("no base64: {error}")))
}

fn number<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Number {
        Number(u64),
        Text(String),
    }
    match Number::deserialize(deserializer)? {
        Number::Number(number) => Ok(number),
        Number::Text(text) => text.parse().map_err(|_| D::Error::custom("no number")),
    }
}
