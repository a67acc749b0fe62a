//! A trace, whatever it was written in, and the entry that it is.

use crate::shape::{self, Line};
use crate::traffic::{Exchange, Headers, Request, Response};
use crate::{Entry, Place};

/// What Envoy's router adds to a request behind the filters: it would be there twice.
const OF_THE_ROUTER: [&[u8]; 3] =
    [b"x-envoy-attempt-count", b"x-envoy-expected-rq-timeout-ms", b"x-envoy-is-timeout-retry"];

/// One message of a tap sink.
#[derive(Debug)]
pub(crate) enum Trace {
    Buffered(Box<Buffered>),
    Segment {
        id: u64,
        piece: Piece,
    },
    /// Of a transport socket.
    Socket,
    Nothing,
}

/// A piece of a streamed trace.
#[derive(Debug)]
pub(crate) enum Piece {
    RequestHeaders(Headers),
    RequestBody(Body),
    RequestTrailers(Headers),
    ResponseHeaders(Headers),
    ResponseBody(Body),
    ResponseTrailers(Headers),
    Nothing,
}

/// An exchange.
#[derive(Debug, Default)]
pub(crate) struct Buffered {
    pub(crate) request: Option<Message>,
    pub(crate) response: Option<Message>,
    /// The client's address and port.
    pub(crate) peer: Option<String>,
    /// The gateway's own address and port.
    pub(crate) local: Option<String>,
}

#[derive(Debug, Default)]
pub(crate) struct Message {
    /// Pseudo headers among them.
    pub(crate) headers: Headers,
    pub(crate) body: Body,
    pub(crate) trailers: Headers,
    pub(crate) at_millis: Option<u64>,
}

#[derive(Debug, Default)]
pub(crate) struct Body {
    pub(crate) bytes: Vec<u8>,
    /// The recorder cut it.
    pub(crate) truncated: bool,
}

impl Buffered {
    /// The entry that it is.
    ///
    /// # Errors
    ///
    /// There is no request, or no method in it.
    pub(crate) fn entry(self, place: Place, peer: &str, mut notes: Vec<String>) -> Result<Entry, String> {
        let message = self.request.ok_or("the trace has no request")?;
        let at_millis = message.at_millis;
        let request = request(message, &mut notes)?;
        let peer = self.peer.unwrap_or_else(|| peer.to_owned());
        let local = self.local.unwrap_or_else(|| request.local.clone());
        let request = Request { peer, local, ..request };
        let (status, response) = response(self.response, &mut notes)?;
        Ok(Entry { place, at_millis, status, notes, exchange: Exchange { request, response } })
    }
}

fn request(message: Message, notes: &mut Vec<String>) -> Result<Request, String> {
    let Message { mut headers, body, trailers, .. } = message;
    headers.iter_mut().for_each(|(name, _)| name.make_ascii_lowercase());
    headers.retain(|(name, _)| !OF_THE_ROUTER.contains(&name.as_slice()));
    for (original, pseudo) in [("x-envoy-original-path", ":path"), ("x-envoy-original-host", ":authority")] {
        if let Some(at) = headers.iter().position(|(name, _)| name == original.as_bytes()) {
            let (_, value) = headers.remove(at);
            notes.push(format!("`{pseudo}` is the one before the route's rewrite, from `{original}`"));
            headers.retain(|(name, _)| name != pseudo.as_bytes());
            headers.push((pseudo.into(), value));
        }
    }
    let mut pseudo = |wanted: &str| {
        let at = headers.iter().position(|(name, _)| name == wanted.as_bytes())?;
        Some(headers.remove(at).1)
    };
    let line = Line {
        method: pseudo(":method").ok_or("the trace's request has no `:method`")?,
        path: pseudo(":path"),
        authority: pseudo(":authority"),
        scheme: pseudo(":scheme"),
    };
    // `:protocol` of an extended CONNECT.
    let others: Headers = headers.iter().filter(|(name, _)| name.starts_with(b":")).cloned().collect();
    let mut headers = shape::request(line, headers);
    let end = headers.iter().take_while(|(name, _)| name.starts_with(b":")).count();
    headers.splice(end..end, others);
    let body = take_body(body, &mut headers, "request", notes);
    Ok(Request { headers, body, trailers: shape::lower(trailers), ..Request::default() })
}

fn response(message: Option<Message>, notes: &mut Vec<String>) -> Result<(Option<u16>, Response), String> {
    let Some(Message { headers, body, trailers, .. }) = message.filter(|message| !message.headers.is_empty()) else {
        notes.push("no response was recorded".to_owned());
        return Ok((None, Response::default()));
    };
    let status = shape::value(&headers, ":status").and_then(|status| std::str::from_utf8(status).ok()?.parse().ok());
    let status = status.ok_or("the trace's response has no `:status`, or one that is no number")?;
    let mut headers = shape::response(headers);
    // Written over by Envoy behind the filters; the backend's own is not known.
    headers.retain(|(name, value)| !(name == b"server" && value == b"envoy"));
    let body = take_body(body, &mut headers, "response", notes);
    Ok((Some(status), Response { status, headers, body, trailers: shape::lower(trailers) }))
}

fn take_body(body: Body, headers: &mut Headers, whose: &str, notes: &mut Vec<String>) -> Vec<u8> {
    if body.truncated {
        notes.push(format!("the recorder cut the {whose}'s body after {} bytes", body.bytes.len()));
    }
    // A response to HEAD or with 304 has a length and no body.
    if (!body.bytes.is_empty() || whose == "request")
        && let Some(announced) = shape::fit_length(headers, &body.bytes)
    {
        let length = body.bytes.len();
        notes.push(format!(
            "the {whose}'s body has {length} bytes, {announced} were announced: the length is corrected"
        ));
    }
    body.bytes
}

/// An address and a port as [`crate::traffic::Request::peer`] has them.
pub(crate) fn address(address: &str, port: u64) -> String {
    if address.contains(':') { format!("[{address}]:{port}") } else { format!("{address}:{port}") }
}
