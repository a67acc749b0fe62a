//! What is behind the clusters that a filter speaks to.

use prost::Message;

use crate::traffic::Headers;

/// What a filter says to a cluster. `token` is the number that the filter knows the call or the stream by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Word {
    /// An HTTP call.
    Http {
        /// Its number.
        token: u32,
        /// What is called.
        call: Outgoing,
    },
    /// A single gRPC call.
    Grpc {
        /// Its number.
        token: u32,
        /// What is called; it has no method.
        call: Outgoing,
    },
    /// A gRPC stream is opened.
    Open {
        /// Its number.
        token: u32,
        /// The cluster.
        cluster: String,
        /// `/SERVICE/METHOD`.
        path: String,
    },
    /// A message on a stream.
    Message {
        /// The stream.
        token: u32,
        /// The message, without a length in front.
        message: Vec<u8>,
        /// No other follows.
        end: bool,
    },
    /// The filter ends a stream.
    Close {
        /// The stream.
        token: u32,
    },
    /// The VM died, and with it all of its calls and streams.
    Gone,
}

/// A call.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Outgoing {
    /// The cluster.
    pub cluster: String,
    /// The path with its query; of gRPC `/SERVICE/METHOD`.
    pub path: String,
    /// The HTTP method.
    pub method: String,
    /// Headers, pseudo headers included; of gRPC the initial metadata.
    pub headers: Headers,
    /// The body or the message.
    pub body: Vec<u8>,
    /// How long the filter waits, in milliseconds.
    pub timeout_millis: u32,
}

/// What comes back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Delivery {
    /// The answer to an HTTP call. Headers have `:status`; none at all say that the call was reset.
    Response {
        /// Headers.
        headers: Headers,
        /// The body.
        body: Vec<u8>,
        /// Trailers.
        trailers: Headers,
    },
    /// The initial metadata of a gRPC stream.
    Metadata(Headers),
    /// A gRPC message. It ends a single call.
    Message(Vec<u8>),
    /// The end of a gRPC stream, or the failure of a single call: status and message.
    Close(u32, String),
}

/// A delivery to come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// The worker that gets it.
    pub worker: u32,
    /// The call or the stream.
    pub token: u32,
    /// When, in milliseconds of the node's clock from now; the least is one, since nothing outside answers at once.
    pub after_millis: u64,
    /// What.
    pub delivery: Delivery,
}

/// Everything that a filter can reach. All of a node's workers may share one.
pub trait Clusters {
    /// A worker says something at a time, in milliseconds since the Unix epoch. What comes back, and to whom.
    fn hear(&mut self, worker: u32, now_millis: u64, word: Word) -> Vec<Answer>;
}

/// gRPC's word for a service that cannot be reached.
pub(crate) const UNAVAILABLE: u32 = 14;

/// What a call gets whose cluster cannot be reached.
#[must_use]
pub fn unreachable(grpc: bool) -> Delivery {
    if grpc {
        return Delivery::Close(UNAVAILABLE, "no healthy upstream".to_owned());
    }
    gateways_own(503, "no healthy upstream")
}

/// What a call gets whose answer takes too long.
#[must_use]
pub fn timed_out(grpc: bool) -> Delivery {
    if grpc { Delivery::Close(4, "timeout".to_owned()) } else { gateways_own(504, "upstream request timeout") }
}

/// An answer of the gateway in the cluster's place.
fn gateways_own(status: u16, body: &str) -> Delivery {
    let pairs = [(":status", status.to_string()), ("content-length", body.len().to_string())];
    let mut headers: Headers = pairs.map(|(name, value)| (name.into(), value.into_bytes())).to_vec();
    headers.push((b"content-type".to_vec(), b"text/plain".to_vec()));
    Delivery::Response { headers, body: body.into(), trailers: Headers::new() }
}

/// The part of `envoy.config.core.v3.GrpcService` that names a cluster.
#[derive(Clone, PartialEq, Message)]
struct GrpcService {
    #[prost(message, optional, tag = "1")]
    envoy_grpc: Option<EnvoyGrpc>,
}

#[derive(Clone, PartialEq, Message)]
struct EnvoyGrpc {
    #[prost(string, tag = "1")]
    cluster_name: String,
}

/// The cluster of an encoded `GrpcService`; `None` where it is none. Google's own client has no cluster: then it is empty.
pub(crate) fn cluster_of(service: &[u8]) -> Option<String> {
    Some(GrpcService::decode(service).ok()?.envoy_grpc.unwrap_or_default().cluster_name)
}
