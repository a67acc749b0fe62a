//! Bodies: how they came, and what is in them.

use exchange::{Body, Request};
use seclang::body::decode::{DecodeError, decode};

use crate::Waf;

impl Waf {
    /// A body with its content encoding undone; `None` where it has none.
    pub(crate) fn decoded(&self, encoding: &[u8], body: Body<'_>) -> Result<Option<Vec<u8>>, DecodeError> {
        let encoding = encoding.trim_ascii();
        if encoding.is_empty() || encoding.eq_ignore_ascii_case(b"identity") || body.bytes.is_empty() {
            return Ok(None);
        }
        let limit = bytes(self.step.decompressed_input_body_limit);
        decode(encoding, body.bytes, limit, self.step.max_input_compression_ratio).map(Some)
    }
}

/// Headers that the caller has not sent.
pub(crate) fn added_by_gateway(name: &[u8]) -> bool {
    matches!(name, b"x-envoy-expected-rq-timeout-ms" | b"x-envoy-internal" | b"x-envoy-external-address")
}

/// The gateway undoes the chunks and takes their header away. A body without a length was sent that way: HTTP/1.1 has no
/// other (RFC 9112, section 6.3), and rules ask which of the two it was.
pub(crate) fn was_chunked(request: &Request, protocol: &[u8]) -> bool {
    let framed = ["content-length", "transfer-encoding"].iter().any(|name| request.headers.get(name).is_some());
    protocol == b"HTTP/1.1" && !request.streaming && !framed
}

/// A body in an upgrade comes before the other protocol does. It cannot be held apart from it, and a backend that does
/// not switch would read it.
pub(crate) fn upgrades_with_body(request: &Request) -> bool {
    let length = request.headers.get("content-length").is_some_and(|length| length.trim_ascii() != b"0");
    let chunked = request.headers.get("transfer-encoding").is_some();
    request.headers.get("upgrade").is_some() && request.streaming && (length || chunked)
}

pub(crate) fn bytes(limit: u64) -> usize {
    usize::try_from(limit).unwrap_or(usize::MAX)
}
