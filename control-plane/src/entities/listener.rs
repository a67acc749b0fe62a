//! `gateway.listener` of `global-config`: what the listener that xDS serves takes from callers, and for how long.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::FieldProblem;

/// The longest of the times, in seconds: a day.
const MAX_SECONDS: u32 = 86_400;

/// What the listener takes from callers, and for how long. A listener of somebody else's has settings of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ListenerConfig {
    /// What happens to a path with an escaped slash or backslash (`%2f`, `%5c`). Default reject.
    pub escaped_slashes: EscapedSlashes,
    /// What happens to a request with an underscore in the name of a header. Default reject.
    pub underscore_headers: UnderscoreHeaders,
    /// What happens to the trailers of requests. Default drop.
    pub request_trailers: RequestTrailers,
    /// How long a request may take to come with its whole body, in seconds, 0 to 86400; 0 for ever. It ends with the
    /// beginning of the response. Default 120.
    #[schemars(range(max = 86_400))]
    pub request_timeout_seconds: u32,
    /// How long the headers of a request may take to come, in seconds, 1 to 86400. Default 10.
    #[schemars(range(min = 1, max = 86_400))]
    pub request_headers_timeout_seconds: u32,
    /// How long a request, a response or an upgraded connection may be silent, in seconds, 0 to 86400; 0 for ever. Default
    /// 300.
    #[schemars(range(max = 86_400))]
    pub stream_idle_timeout_seconds: u32,
    /// How long a connection may be without a request, in seconds, 1 to 86400. Default 600.
    #[schemars(range(min = 1, max = 86_400))]
    pub connection_idle_timeout_seconds: u32,
    /// The most requests at once on a connection of HTTP/2, 1 to 2147483647. Default 100.
    #[schemars(range(min = 1, max = 2_147_483_647))]
    pub max_concurrent_streams: u32,
}

/// What happens to a path with an escaped slash or backslash.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum EscapedSlashes {
    /// The request is answered with 400.
    #[default]
    Reject,
    /// They become slashes before the request is routed and inspected.
    Unescape,
    /// The caller is redirected to the path with slashes in their place.
    Redirect,
    /// The path stays as it is. No `exclude` holds for it, and every `include` does.
    Keep,
}

/// What happens to a request with an underscore in the name of a header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum UnderscoreHeaders {
    /// The request is refused: 400, or a reset stream over HTTP/2.
    #[default]
    Reject,
    /// The header is taken away.
    Drop,
    /// The header goes on.
    Allow,
}

/// What happens to the trailers of requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum RequestTrailers {
    /// They are taken away.
    #[default]
    Drop,
    /// The WAF judges them like headers, and they go on where it finds nothing. Without a WAF on the route they are taken
    /// away.
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
