//! One request: the gateway's callbacks on one side, a [`Run`] on the other.

use std::cell::RefCell;
use std::rc::Rc;

use exchange::{Body, Chain, Flow, Headers, Reply, Request, Response, Run, Start};
use proxy_wasm::traits::{Context, HttpContext};
use proxy_wasm::types::Action;

use crate::calls::{self, Buffer, Half, LogLevel, Map};
use crate::held;
use crate::proxy_host::ProxyHost;

/// What a caller gets whose headers are more than the gateway hands out (RFC 6585).
const HEADERS_TOO_LARGE: u16 = 431;

/// One HTTP stream in one filter.
pub(crate) struct HttpFilter {
    stream: Rc<RefCell<Stream>>,
}

/// The state of a stream; shared with the list of held requests, which outlives no stream for long.
pub(crate) struct Stream {
    context: u32,
    chain: Option<Rc<Chain>>,
    node: Rc<str>,
    run: Option<Run>,
    upgrade: bool,
    request: Buffering,
    response: Buffering,
    held: bool,
}

/// Where one half of the stream stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Buffering {
    /// Nothing is held back.
    Off,
    /// Headers and body are held back until so many bytes are there, or all of them.
    Until(usize),
    /// A local reply was sent; nothing of this half matters any more.
    Answered,
}

impl HttpFilter {
    pub(crate) fn new(context: u32, chain: Option<Rc<Chain>>, node: Rc<str>) -> Self {
        let (request, response) = (Buffering::Off, Buffering::Off);
        let stream = Stream { context, chain, node, run: None, upgrade: false, request, response, held: false };
        Self { stream: Rc::new(RefCell::new(stream)) }
    }

    /// Runs one callback. A second one inside the first cannot happen in this gateway; were it to, it would pass.
    fn with(&self, callback: impl FnOnce(&mut Stream, &Rc<RefCell<Stream>>) -> Action) -> Action {
        match self.stream.try_borrow_mut() {
            Ok(mut stream) => callback(&mut stream, &self.stream),
            Err(_) => Action::Continue,
        }
    }
}

impl Context for HttpFilter {}

impl HttpContext for HttpFilter {
    fn on_http_request_headers(&mut self, _count: usize, end_of_stream: bool) -> Action {
        self.with(|stream, this| stream.request_headers(end_of_stream, this))
    }

    fn on_http_request_body(&mut self, size: usize, end_of_stream: bool) -> Action {
        self.with(|stream, this| stream.body(Half::Request, size, end_of_stream, this))
    }

    fn on_http_request_trailers(&mut self, _count: usize) -> Action {
        self.with(|stream, this| stream.body(Half::Request, usize::MAX, true, this))
    }

    fn on_http_response_headers(&mut self, _count: usize, end_of_stream: bool) -> Action {
        self.with(|stream, this| stream.response_headers(end_of_stream, this))
    }

    fn on_http_response_body(&mut self, size: usize, end_of_stream: bool) -> Action {
        self.with(|stream, this| stream.body(Half::Response, size, end_of_stream, this))
    }

    fn on_http_response_trailers(&mut self, _count: usize) -> Action {
        self.with(|stream, this| stream.body(Half::Response, usize::MAX, true, this))
    }

    fn on_log(&mut self) {
        self.with(|stream, _| {
            if let Some(run) = &mut stream.run {
                run.finish(&ProxyHost);
            }
            Action::Continue
        });
    }
}

impl Drop for HttpFilter {
    fn drop(&mut self) {
        if let Ok(stream) = self.stream.try_borrow()
            && stream.held
        {
            held::forget(stream.context);
        }
    }
}

impl Stream {
    fn request_headers(&mut self, end_of_stream: bool, this: &Rc<RefCell<Self>>) -> Action {
        let Some(chain) = self.chain.clone() else {
            return Action::Continue;
        };
        let Some(pairs) = calls::headers(Map::RequestHeaders) else {
            // What cannot be read cannot be checked, so it does not go on.
            calls::log(LogLevel::Warn, "palisade: a request with more headers than can be read was refused");
            return self.answer(Half::Request, &Reply::refusal(HEADERS_TOO_LARGE, b""));
        };
        let headers = Headers::new(pairs);
        let request = read_request(headers);
        self.upgrade = request.streaming && request.headers.get("content-type").is_none_or(|kind| !is_grpc(kind));
        let route = calls::property(&["xds", "route_name"]).unwrap_or_default();
        let peer = calls::property(&["source", "address"]).unwrap_or_default();
        let start = Start { request, route: &route, peer: &peer, node: &self.node };
        let mut run = Run::new(&chain, start, &ProxyHost);
        let flow = run.request_headers(!end_of_stream, &ProxyHost);
        self.run = Some(run);
        self.act(flow, Half::Request, this)
    }

    fn response_headers(&mut self, end_of_stream: bool, this: &Rc<RefCell<Self>>) -> Action {
        let Some(run) = &mut self.run else {
            return Action::Continue;
        };
        if self.request == Buffering::Answered {
            return Action::Continue;
        }
        // Headers that cannot be read come from the backend or the gateway itself: the response goes on unchecked.
        let Some(pairs) = calls::headers(Map::ResponseHeaders) else {
            return Action::Continue;
        };
        let response = read_response(Headers::new(pairs), self.upgrade);
        let flow = run.response_headers(response, !end_of_stream, &ProxyHost);
        self.act(flow, Half::Response, this)
    }

    /// More of a body came, or its end. Trailers end a body as well.
    fn body(&mut self, half: Half, size: usize, end_of_stream: bool, this: &Rc<RefCell<Self>>) -> Action {
        let limit = match self.buffering(half) {
            Buffering::Until(limit) => limit,
            Buffering::Off if self.held && half == Half::Request => return Action::Pause,
            Buffering::Off => return Action::Continue,
            Buffering::Answered => return Action::Pause,
        };
        if !end_of_stream && size < limit {
            return Action::Pause;
        }
        let Some(run) = &mut self.run else {
            return Action::Continue;
        };
        let buffer = if half == Half::Request { Buffer::RequestBody } else { Buffer::ResponseBody };
        let bytes = calls::buffer(buffer, limit.saturating_add(1)).unwrap_or_default();
        let complete = end_of_stream && bytes.len() <= limit;
        let body = Body { bytes: bytes.get(..limit).unwrap_or(&bytes), complete };
        let flow = match half {
            Half::Request => run.request_body(body, &ProxyHost),
            Half::Response => run.response_body(body, &ProxyHost),
        };
        if let (Flow::Continue, Some(body)) = (&flow, run.take_replaced_body()) {
            replace_body(half, buffer, &body);
        }
        self.act(flow, half, this)
    }

    /// The time of a held request is over. The gateway's calls act on its stream already.
    pub(crate) fn resume(&mut self) {
        self.held = false;
        let Some(run) = &mut self.run else { return };
        match run.resume(&ProxyHost) {
            Flow::Answer(reply) => {
                self.answer(Half::Request, &reply);
            }
            // No step behind a hold is given a body any more, so there is nothing else left to wait for.
            Flow::Continue | Flow::Buffer { .. } | Flow::Hold { .. } => calls::continue_stream(Half::Request),
        }
    }

    fn act(&mut self, flow: Flow, half: Half, this: &Rc<RefCell<Self>>) -> Action {
        match flow {
            Flow::Continue => {
                self.set_buffering(half, Buffering::Off);
                Action::Continue
            }
            Flow::Buffer { limit } => {
                self.set_buffering(half, Buffering::Until(limit));
                Action::Pause
            }
            Flow::Hold { millis } => {
                self.set_buffering(half, Buffering::Off);
                if held::hold(self.context, millis, this) {
                    self.held = true;
                    return Action::Pause;
                }
                let flow = self.run.as_mut().map_or(Flow::Continue, |run| run.resume(&ProxyHost));
                match flow {
                    Flow::Answer(reply) => self.answer(half, &reply),
                    _ => Action::Continue,
                }
            }
            Flow::Answer(reply) => self.answer(half, &reply),
        }
    }

    fn answer(&mut self, half: Half, reply: &Reply) -> Action {
        self.set_buffering(half, Buffering::Answered);
        calls::send_local_response(reply.status, "palisade", &reply.headers, &reply.body);
        Action::Pause
    }

    fn buffering(&self, half: Half) -> Buffering {
        if half == Half::Request { self.request } else { self.response }
    }

    fn set_buffering(&mut self, half: Half, buffering: Buffering) {
        match half {
            Half::Request => self.request = buffering,
            Half::Response => self.response = buffering,
        }
    }
}

/// Puts another body in place, and the length of it into the headers: with the old length, the rest of a longer body
/// would be read as the next request on the same connection.
fn replace_body(half: Half, buffer: Buffer, body: &[u8]) {
    calls::replace_buffer(buffer, body);
    let map = if half == Half::Request { Map::RequestHeaders } else { Map::ResponseHeaders };
    let has_length = calls::headers(map).is_some_and(|pairs| pairs.iter().any(|(name, _)| name == b"content-length"));
    if has_length {
        calls::set_header(map, "content-length", body.len().to_string().as_bytes());
    }
}

fn read_request(headers: Headers) -> Request {
    let value = |name: &str| headers.get(name).map(<[u8]>::to_vec).unwrap_or_default();
    let upgrade = headers.get("upgrade").is_some() || headers.get(":protocol").is_some();
    let streaming =
        upgrade || headers.get(":method") == Some(b"CONNECT") || headers.get("content-type").is_some_and(is_grpc);
    let protocol = calls::property(&["request", "protocol"]).unwrap_or_default();
    Request {
        id: value("x-request-id"),
        method: value(":method"),
        path: value(":path"),
        authority: value(":authority"),
        protocol,
        streaming,
        headers,
    }
}

fn read_response(headers: Headers, upgrade: bool) -> Response {
    let status = headers.get(":status").and_then(|status| std::str::from_utf8(status).ok()?.parse().ok());
    let kind = headers.get("content-type").unwrap_or_default();
    let events = kind.get(..17).is_some_and(|kind| kind.eq_ignore_ascii_case(b"text/event-stream"));
    let streaming = upgrade || is_grpc(kind) || events;
    Response { status: status.unwrap_or(0), headers, streaming }
}

fn is_grpc(content_type: &[u8]) -> bool {
    content_type.get(..16).is_some_and(|kind| kind.eq_ignore_ascii_case(b"application/grpc"))
}
