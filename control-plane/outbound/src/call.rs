//! A call and its answer.

use std::fmt;
use std::time::Duration;

use axum::body::Bytes;
use axum::http::{HeaderMap, Method, StatusCode};

use super::target::Target;

/// One call.
#[derive(Clone)]
pub struct Call {
    /// GET, POST and so on.
    pub method: Method,
    /// `http://` or `https://`, without user and password. It may hold a secret, which no error repeats.
    pub url: String,
    /// The headers. Those of the connection (`Host`, `Content-Length`, `Transfer-Encoding`, ...) are set by the call itself.
    /// To another origin than that of `url`, only `Accept`, `Accept-Encoding`, `Accept-Language`, `Content-Type`, `If-Modified-Since`,
    /// `If-None-Match` and `User-Agent` are sent on.
    pub headers: HeaderMap,
    /// The body; empty for none. It is sent to the origin of `url` alone.
    pub body: Bytes,
    /// How long all of it may take together: resolving the name, connecting, redirects, the whole answer.
    pub timeout: Duration,
    /// The bytes of the answer's body, at most; a longer one is an error ([`OutboundFault::TooLong`](crate::OutboundFault::TooLong)).
    pub max_answer_bytes: usize,
    /// How many redirects are followed, one after the other. With 0 a redirect is the answer.
    pub redirects: u8,
}

/// What came back, whatever its status.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The status, not 1xx.
    pub status: StatusCode,
    /// Its headers.
    pub headers: HeaderMap,
    /// All of its body, as it was sent (not unpacked).
    pub body: Bytes,
}

impl fmt::Debug for Call {
    /// Without what may be secret: the URL's path, headers, the body.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let origin = Target::parse(&self.url).map_or_else(|_| "no URL".to_owned(), |target| target.origin());
        f.debug_struct("Call").field("method", &self.method).field("origin", &origin).finish_non_exhaustive()
    }
}
