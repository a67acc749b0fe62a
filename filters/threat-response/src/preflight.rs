//! Questions of browsers whether a page of another origin may ask (CORS preflights).

use exchange::Request;
use names::METHOD_HEADERS;

/// Whether a request is a preflight and nothing else: no body, no upgrade, and no header by which backends take it for another method.
pub(crate) fn is_preflight(request: &Request, has_body: bool) -> bool {
    let has = |name: &str| request.headers.get(name).is_some();
    request.method == b"OPTIONS"
        && !has_body
        && !request.streaming
        && has("origin")
        && has("access-control-request-method")
        && !METHOD_HEADERS.iter().any(|name| has(name))
}
