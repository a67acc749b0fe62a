//! Questions of browsers whether a page of another origin may ask (CORS preflights).

use exchange::Exchange;

/// What no browser sends with a preflight: credentials, a submission, and what says of a body what it is.
const NOT_OF_BROWSERS: [&str; 4] = ["cookie", "authorization", "content-type", challenge::HEADER];

/// Whether a request is a preflight and nothing else: no body, no upgrade, no credentials, and no header by which backends take it for
/// another method. An api key in the query is that of the request behind it.
pub(crate) fn is_preflight(exchange: &Exchange, has_body: bool) -> bool {
    let request = &exchange.request;
    let has = |name: &str| request.headers.get(name).is_some();
    let is_plain = !has_body && !request.streaming && !exchange.has_api_key_header;
    is_plain && !NOT_OF_BROWSERS.iter().any(|name| has(name)) && names::is_preflight(&request.method, has)
}
