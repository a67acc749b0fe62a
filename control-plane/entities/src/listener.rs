//! `gateway.listener` of `global-config`: what the listener that xDS serves takes from callers, and for how long.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::FieldProblem;

/// The longest of the times, in seconds: a day.
const MAX_SECONDS: u32 = 86_400;

/// Limits and timeouts of the listener that xDS serves. Other listeners have their own settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ListenerConfig {
    /// The action for a path with an escaped slash or backslash (`%2f`, `%5c`). Default reject.
    pub escaped_slashes: EscapedSlashes,
    /// The action for a header name with an underscore. Default reject.
    pub underscore_headers: UnderscoreHeaders,
    /// The action for trailers of requests. Default drop.
    pub request_trailers: RequestTrailers,
    /// The timeout for receiving a request with its body in seconds, 0 to 86400; 0 means none. It ends when the response
    /// starts. Default 120.
    #[schemars(range(max = 86_400))]
    pub request_timeout_seconds: u32,
    /// The timeout for receiving the headers of a request in seconds, 1 to 86400. Default 10.
    #[schemars(range(min = 1, max = 86_400))]
    pub request_headers_timeout_seconds: u32,
    /// The idle timeout of a request, a response or an upgraded connection in seconds, 0 to 86400; 0 means none. Default
    /// 300.
    #[schemars(range(max = 86_400))]
    pub stream_idle_timeout_seconds: u32,
    /// The idle timeout of a connection without requests in seconds, 1 to 86400. Default 600.
    #[schemars(range(min = 1, max = 86_400))]
    pub connection_idle_timeout_seconds: u32,
    /// The maximum of concurrent requests on an HTTP/2 connection, 1 to 2147483647. Default 100.
    #[schemars(range(min = 1, max = 2_147_483_647))]
    pub max_concurrent_streams: u32,
}

/// The action for a path with an escaped slash or backslash.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum EscapedSlashes {
    /// The request is answered with 400.
    #[default]
    Reject,
    /// They are replaced by slashes before the request is routed and inspected.
    Unescape,
    /// The client is redirected to the path with slashes.
    Redirect,
    /// The path is left as it is. No `exclude` applies to it, and every `include` does.
    Keep,
}

/// The action for a header name with an underscore.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum UnderscoreHeaders {
    /// The request is refused: 400, or a reset stream over HTTP/2.
    #[default]
    Reject,
    /// The header is removed.
    Drop,
    /// The header is kept.
    Allow,
}

/// The action for trailers of requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum RequestTrailers {
    /// They are removed.
    #[default]
    Drop,
    /// The WAF inspects them like headers and forwards them if it finds nothing. Without a WAF on the route they are
    /// removed.
    Inspect,
}

impl Default for ListenerConfig {
    fn default() -> ListenerConfig {
        ListenerConfig {
            escaped_slashes: EscapedSlashes::Reject,
            underscore_headers: UnderscoreHeaders::Reject,
            request_trailers: RequestTrailers::Drop,
            request_timeout_seconds: 120,
            request_headers_timeout_seconds: 10,
            stream_idle_timeout_seconds: 300,
            connection_idle_timeout_seconds: 600,
            max_concurrent_streams: 100,
        }
    }
}

impl ListenerConfig {
    pub(super) fn check(&self) -> Vec<FieldProblem> {
        let limits = [
            ("/request_timeout_seconds", self.request_timeout_seconds, 0, MAX_SECONDS),
            ("/request_headers_timeout_seconds", self.request_headers_timeout_seconds, 1, MAX_SECONDS),
            ("/stream_idle_timeout_seconds", self.stream_idle_timeout_seconds, 0, MAX_SECONDS),
            ("/connection_idle_timeout_seconds", self.connection_idle_timeout_seconds, 1, MAX_SECONDS),
            ("/max_concurrent_streams", self.max_concurrent_streams, 1, (1 << 31) - 1),
        ];
        let wrong = limits.into_iter().filter(|(_, value, least, most)| !(*least..=*most).contains(value));
        wrong
            .map(|(field, _, least, most)| {
                FieldProblem::new(field, "out of range").expected(format!("{least} to {most}"))
            })
            .collect()
    }
}
