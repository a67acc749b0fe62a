//! Reading the head of a request and of a response: one place, whatever drives the exchange.

use crate::{Headers, Request, Response};

/// What is behind the headers of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Opening {
    /// A gRPC stream: its first bytes are still to be looked at.
    pub grpc: bool,
    /// The status that makes a stream of another protocol of this one, where the request asks for that.
    pub switches_at: Option<u16>,
}

impl Request {
    /// Reads a request. `may_be_grpc` is what [`crate::Chain::may_be_grpc`] says of its route.
    #[must_use]
    pub fn read(headers: Headers, protocol: Vec<u8>, may_be_grpc: bool) -> (Self, Opening) {
        let value = |name: &str| headers.get(name).map(<[u8]>::to_vec).unwrap_or_default();
        let method = value(":method");
        let connect = method == b"CONNECT";
        let upgrade = headers.get("upgrade").is_some() || headers.get(":protocol").is_some();
        let grpc = may_be_grpc && opens_grpc(&method, &protocol, &headers);
        let streaming = upgrade || connect || grpc;
        let opening = Opening { grpc, switches_at: (streaming && !grpc).then_some(if connect { 200 } else { 101 }) };
        let request = Self {
            id: value("x-request-id"),
            method,
            path: value(":path"),
            authority: value(":authority"),
            protocol,
            streaming,
            headers,
        };
        (request, opening)
    }

    /// Whether it asks for an upgrade and announces a body, which comes before the other protocol does: it cannot be held apart from it,
    /// and a backend that does not switch would read it. A chunked body of HTTP/1 is not told from none: gateways take the header away,
    /// and keep what follows from a backend that has not switched.
    #[must_use]
    pub fn upgrades_with_body(&self) -> bool {
        let length = self.headers.all("content-length").any(|length| length != b"0");
        let chunked = self.headers.get("transfer-encoding").is_some();
        self.headers.get("upgrade").is_some() && self.streaming && (length || chunked)
    }
}

impl Response {
    /// Reads the response to a request with that opening.
    #[must_use]
    pub fn read(headers: Headers, opening: Opening) -> Self {
        let status = headers.get(":status").and_then(|status| std::str::from_utf8(status).ok()?.parse().ok());
        // A backend that does not switch gives an answer like any other.
        let switched = status.is_some() && status == opening.switches_at;
        let streaming = switched || is_stream(headers.get("content-type").unwrap_or_default());
        Self { status: status.unwrap_or(0), headers, streaming }
    }
}

/// Whether messages of a content type may be streams: server-sent events, gRPC, and grpc-web, which may go on for as long.
pub(crate) fn is_stream(kind: &[u8]) -> bool {
    let events = kind.get(..17).is_some_and(|kind| kind.eq_ignore_ascii_case(b"text/event-stream"));
    events || grpc_subtype(kind).is_some()
}

/// Whether a request opens a gRPC stream, which is never held. The content type alone is a word of the caller's: what
/// cannot be gRPC (RFC 9113 is its only transport, and its method POST) is an ordinary request with an odd content type.
fn opens_grpc(method: &[u8], protocol: &[u8], headers: &Headers) -> bool {
    let subtype = headers.get("content-type").and_then(grpc_subtype);
    method == b"POST"
        && !protocol.starts_with(b"HTTP/1")
        && subtype.is_some_and(|subtype| subtype.first().is_none_or(|byte| b"+; \t".contains(byte)))
}

/// What follows `application/grpc` in a content type that begins so.
fn grpc_subtype(content_type: &[u8]) -> Option<&[u8]> {
    let (kind, subtype) = content_type.split_at_checked(16)?;
    kind.eq_ignore_ascii_case(b"application/grpc").then_some(subtype)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn post(kind: &str, protocol: &str, may_be_grpc: bool) -> (bool, Opening) {
        let headers = Headers::from([(":method", "POST"), ("content-type", kind)]);
        let (request, opening) = Request::read(headers, protocol.into(), may_be_grpc);
        (request.streaming, opening)
    }

    #[test]
    fn only_what_can_be_grpc_is() {
        let grpc = (true, Opening { grpc: true, switches_at: None });
        for kind in ["application/grpc", "Application/GRPC+proto", "application/grpc; charset=x"] {
            assert_eq!(post(kind, "HTTP/2", true), grpc, "{kind}");
            assert_eq!(post(kind, "HTTP/1.1", true), (false, Opening::default()), "{kind}");
            assert_eq!(post(kind, "HTTP/2", false), (false, Opening::default()), "{kind}");
        }
        for kind in ["application/grpc-web", "application/grpcfoo", "application/json", ""] {
            assert!(!post(kind, "HTTP/2", true).0, "{kind}");
        }
    }

    #[test]
    fn an_answer_to_an_upgrade_is_a_stream_only_where_it_switches() {
        let headers = Headers::from([(":method", "GET"), ("upgrade", "websocket")]);
        let (request, opening) = Request::read(headers, b"HTTP/1.1".to_vec(), true);
        assert!(request.streaming && opening.switches_at == Some(101));
        let answer = |status: &str| Response::read(Headers::from([(":status", status)]), opening).streaming;
        assert!(answer("101") && !answer("200"));
        assert!(
            Response::read(Headers::from([("content-type", "text/event-stream; x")]), Opening::default()).streaming
        );
    }
}
