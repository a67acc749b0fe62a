//! The chains of one filter.

use prost::{Enumeration, Message};

/// Everything that one filter runs.
#[derive(Clone, PartialEq, Message)]
pub struct Snapshot {
    /// The filter that this snapshot is for (`preset`, `waf`, ...).
    #[prost(string, tag = "1")]
    pub filter: String,
    /// How a caller is identified.
    #[prost(message, optional, tag = "2")]
    pub identity: Option<IdentitySource>,
    /// Steps that see every request, a request without a route included, in order.
    #[prost(message, repeated, tag = "3")]
    pub global: Vec<Step>,
    /// The chain of each route. Names are unique.
    #[prost(message, repeated, tag = "4")]
    pub routes: Vec<RouteChain>,
    /// The parts that steps refer to by hash.
    #[prost(message, repeated, tag = "5")]
    pub parts: Vec<Part>,
    /// The link to the control plane; absent for a gateway without one.
    #[prost(message, optional, tag = "6")]
    pub link: Option<LinkSettings>,
    /// The most requests that the workers of a node hold at once for a tarpit, all together; 0 for 1000.
    #[prost(uint32, tag = "7")]
    pub max_held: u32,
    /// The filter runs all plugins of the gateway, under whatever name: nothing travels to other filters. The preset does so
    /// without this.
    #[prost(bool, tag = "10")]
    pub composite: bool,
    /// What becomes of the trailers of requests.
    #[prost(enumeration = "Trailers", tag = "20")]
    pub trailers: i32,
}

/// What becomes of the trailers of requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Enumeration)]
#[repr(i32)]
pub enum Trailers {
    /// They are taken away.
    Drop = 0,
    /// They are shown to the steps that look at them, and taken away where no step does.
    Inspect = 1,
    /// They go on: another filter of this gateway looks at them.
    Pass = 2,
}

/// How a caller is identified: by api key, else user, else address. An api key or a user counts only where something has
/// verified it; what a caller merely claims is shown in events, and is no identity. Tag 4 is taken: filters
/// once read `x-forwarded-for`.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct IdentitySource {
    /// Request header that carries the api key; empty for none. Verified where the key is one of `api_keys`.
    #[prost(string, tag = "1")]
    pub api_key_header: String,
    /// Query parameter that carries the api key; empty for none. Verified where the key is one of `api_keys`.
    #[prost(string, tag = "2")]
    pub api_key_query: String,
    /// Request header that carries a name for events; empty for none. Never verified.
    #[prost(string, tag = "3")]
    pub user_header: String,
    /// The key in the request is a public id and may be shown in events, unverified as it is; otherwise they show a
    /// fingerprint of it.
    #[prost(bool, tag = "5")]
    pub api_key_is_id: bool,
    /// The bits of the IPv6 network that an address is judged by; 0 for 64.
    #[prost(uint32, tag = "6")]
    pub ipv6_prefix: u32,
    /// The api keys that there are, by ascending digest.
    #[prost(message, repeated, tag = "7")]
    pub api_keys: Vec<ApiKeyDigest>,
    /// What else has verified a caller, in the order in which it is asked.
    #[prost(message, repeated, tag = "8")]
    pub verifiers: Vec<Verifier>,
    /// Bans hold on the JA4 of the client's TLS as well.
    #[prost(bool, tag = "60")]
    pub tls_fingerprint: bool,
}

/// An api key without the key.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct ApiKeyDigest {
    /// Its id, by which bans and events name it.
    #[prost(string, tag = "1")]
    pub id: String,
    /// The SHA-256 of the key: 32 bytes.
    #[prost(bytes = "vec", tag = "2")]
    pub sha256: Vec<u8>,
}

/// Something in front of the filters that has verified who calls, and where it leaves what it found.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct Verifier {
    /// What it finds is the id of an api key; otherwise it is a user.
    #[prost(bool, tag = "1")]
    pub api_key: bool,
    /// The gateway's property that it is in, word by word; empty where it is in a header.
    #[prost(string, repeated, tag = "2")]
    pub property: Vec<String>,
    /// The request header that it is in, which only the verifier can set; empty where it is in a property.
    #[prost(string, tag = "3")]
    pub header: String,
}

/// The chain of one route.
#[derive(Clone, PartialEq, Message)]
pub struct RouteChain {
    /// The Envoy route's name (`xds.route_name`).
    #[prost(string, tag = "1")]
    pub name: String,
    /// Id of the route entity.
    #[prost(string, tag = "2")]
    pub id: String,
    /// Name of the route entity, for events.
    #[prost(string, tag = "3")]
    pub label: String,
    /// Its steps in the order of `plugin_index`; those without an index come last, in listed order.
    #[prost(message, repeated, tag = "4")]
    pub steps: Vec<Step>,
    /// The backend speaks HTTP/1.1, so nothing on this route is gRPC, whatever a request says of itself.
    #[prost(bool, tag = "5")]
    pub no_grpc: bool,
}

/// One plugin in a chain.
#[derive(Clone, PartialEq, Message)]
pub struct Step {
    /// The plugin's name (`waf`, `threat-gate`, ...).
    #[prost(string, tag = "1")]
    pub plugin: String,
    /// Regular expressions; where any is given, the step acts only on paths that one of them finds.
    #[prost(string, repeated, tag = "2")]
    pub include: Vec<String>,
    /// Regular expressions; the step never acts on a path that one of them finds.
    #[prost(string, repeated, tag = "3")]
    pub exclude: Vec<String>,
    /// The plugin's compiled configuration, encoded.
    #[prost(bytes = "vec", tag = "4")]
    pub config: Vec<u8>,
    /// The step belongs to another filter of this gateway; here it only answers for what this filter refuses.
    #[prost(bool, tag = "5")]
    pub on_refusal_only: bool,
}

/// A large part that several steps may share.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct Part {
    /// SHA-256 of `data`: 32 bytes.
    #[prost(bytes = "vec", tag = "1")]
    pub hash: Vec<u8>,
    /// Its content; what it means is the business of the plugin that refers to it.
    #[prost(bytes = "vec", tag = "2")]
    pub data: Vec<u8>,
}

/// The link from a worker to the control plane.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct LinkSettings {
    /// The Envoy cluster of the control plane's xDS and node port.
    #[prost(string, tag = "1")]
    pub cluster: String,
    /// How often queued events leave, in milliseconds.
    #[prost(uint32, tag = "2")]
    pub flush_millis: u32,
    /// The most events that wait for a broken link; the oldest go first, and are counted.
    #[prost(uint32, tag = "3")]
    pub max_queued: u32,
}
